// Schemas of recent requests as the management API shows them; used for the description only.
import { type TSchema, Type as t } from "@sinclair/typebox";

const orNull = (schema: TSchema, description: string) =>
  t.Union([schema, t.Null()], { description });
const text = t.String();
const met = (what: string) =>
  orNull(
    t.Object({ id: t.String({ format: "uuid" }), name: orNull(text, "Null when it is gone") }),
    what,
  );
const ms = (description: string) => orNull(t.Number({ minimum: 0 }), description);

export const requestSchemas: Readonly<Record<string, TSchema>> = {
  Request: t.Object(
    {
      id: t.String({ description: "Names the request in logs and error pages, too" }),
      kind: t.Unsafe<string>({ type: "string", enum: ["http", "stream"] }),
      time: t.String({ format: "date-time", description: "When it began" }),
      client: t.String({ description: "Address of the client" }),
      method: orNull(text, "Null for streams"),
      scheme: t.String({ description: "http or https; of a stream tcp or udp" }),
      host: orNull(text, "Lower case, without port"),
      path: orNull(text, "With the query, in which secrets are masked"),
      status: orNull(t.Integer(), "Null when the client was sent none"),
      route: met("The route or stream route; null when none took it"),
      service: met("The service"),
      target: orNull(
        t.Object({ id: text, address: orNull(text, "Null when it is gone") }),
        "The target of the last attempt",
      ),
      consumer: orNull(text, "Who sent it, as far as a plugin knows"),
      attempts: t.Integer({ description: "How often a target was tried" }),
      timings: t.Object(
        {
          queue: ms("In plugins, waiting for a place of concurrency-limit"),
          plugins: ms("In plugins"),
          connect: ms("Connecting to the last target; 0 when a connection was kept"),
          first_byte: ms("Until the head of the answer was there"),
          total: t.Number({ description: "Until the last byte of the answer" }),
        },
        { description: "Milliseconds; null: not known" },
      ),
      bytes_in: t.Number({ description: "Bytes of the body that the client sent" }),
      bytes_out: t.Number({ description: "Bytes of the body that it was sent" }),
      reasons: t.Array(text, { description: "Why it ended as it did; empty: nothing special" }),
      tls_version: orNull(text, "`TLSv1.3` or `TLSv1.2`, where it is certain"),
      http_version: orNull(text, "`2`, or `1` for 1.1 and 1.0, where it is certain"),
      user_agent: orNull(text, "What the client says of itself"),
      truncated: t.Array(text, { description: "Fields whose text was too long and is cut" }),
    },
    { title: "Request" },
  ),
};
