// Response schemas of recent requests; used for the API description only.
import { cacheForwards, cacheReasons, cacheStatuses } from "../model/cache-outcome.ts";
import { type TSchema, Type as t } from "@sinclair/typebox";

const orNull = (schema: TSchema, description: string) =>
  t.Union([schema, t.Null()], { description });
const text = t.String();
const reference = (what: string) =>
  orNull(
    t.Object({ id: t.String({ format: "uuid" }), name: orNull(text, "Null when it was deleted") }),
    what,
  );
const word = (words: readonly string[], description: string) =>
  t.Unsafe<string>({ type: "string", enum: [...words], description });
const ms = (description: string) => orNull(t.Number({ minimum: 0 }), description);

/** Of an explained request: what serves it. */
export const explainedProtocol = {
  engine: orNull(
    t.Object({
      name: t.Unsafe<string>({ type: "string", enum: ["sluice", "bun"] }),
      reason: t.String({ description: "Why, as a sentence" }),
    }),
    "Engine that serves the host on this listener",
  ),
  grpc: orNull(
    t.Object({
      service: t.String({ description: "Full name of the gRPC service" }),
      method: t.String({ description: "Its method" }),
    }),
    "The gRPC call; null: the request is none",
  ),
};

export const requestSchemas: Readonly<Record<string, TSchema>> = {
  Request: t.Object(
    {
      id: t.String({ description: "The same ID in logs and error pages" }),
      kind: t.Unsafe<string>({ type: "string", enum: ["http", "stream"] }),
      time: t.String({ format: "date-time", description: "Start of the request" }),
      client: t.String({ description: "Address of the client" }),
      method: orNull(text, "Null for streams"),
      scheme: t.String({ description: "http or https; for streams tcp or udp" }),
      host: orNull(text, "Lower case, without port"),
      path: orNull(text, "With the query, in which secrets are masked"),
      status: orNull(t.Integer(), "Null when the gateway sent none"),
      route: reference("The route or stream route; null when no route matched"),
      service: reference("The service"),
      target: orNull(
        t.Object({ id: text, address: orNull(text, "Null when it was deleted") }),
        "The target of the last attempt",
      ),
      consumer: orNull(text, "Consumer, if a plugin authenticated one"),
      attempts: t.Integer({ description: "Number of attempts" }),
      timings: t.Object(
        {
          queue: ms("Waiting in the queue of concurrency-limit"),
          plugins: ms("In plugins"),
          connect: ms("Connecting to the last target; 0 for a reused connection"),
          first_byte: ms("Until the response head arrived"),
          total: t.Number({ description: "Until the last byte of the response" }),
        },
        { description: "Timings in milliseconds; null: unknown" },
      ),
      bytes_in: t.Number({ description: "Bytes of the request body" }),
      bytes_out: t.Number({ description: "Bytes of the response body" }),
      reasons: t.Array(text, { description: "Reasons of an unusual outcome; empty: none" }),
      cache: orNull(
        t.Object({
          status: word(cacheStatuses, "`miss`: nothing usable was stored; `expired`: it was stale"),
          fwd: orNull(word(cacheForwards, "RFC 9211"), "Why it went upstream; null: it did not"),
          stored: t.Boolean({
            description: "Whether the response is stored, or updates a stored one",
          }),
          collapsed: orNull(
            t.Boolean(),
            "Whether it got the response to another request that it waited for; null: it did not wait",
          ),
          reason: orNull(
            word(cacheReasons, "A reason"),
            "Why it bypassed the cache, got a stale response, or was not stored; null: none applies",
          ),
          detail: t.String({ description: "The same in sentences" }),
        }),
        "What response-cache did; null: it did not run",
      ),
      grpc: orNull(
        t.Object({
          status: t.Integer({ minimum: 0, maximum: 16, description: "grpc-status" }),
          name: t.String({ description: "Such as `UNAVAILABLE`" }),
        }),
        "Status of a gRPC call, whose `status` is the HTTP status that stands for it; null: not gRPC",
      ),
      tls_version: orNull(text, "`TLSv1.3` or `TLSv1.2`, if known"),
      http_version: orNull(text, "`2`, `1.1` or `1.0`, or `1` for one of these two, if known"),
      user_agent: orNull(text, "User-Agent of the client"),
      truncated: t.Array(text, { description: "Fields with truncated text" }),
    },
    { title: "Request" },
  ),
};
