// Schemas of the figures of the traffic as the management API shows them; used for the description only.
import { type TSchema, Type as t } from "@sinclair/typebox";

const count = (description: string) => t.Integer({ minimum: 0, description });
const amount = (description: string) => t.Number({ minimum: 0, description });
const orNull = t.Union([t.Number({ minimum: 0 }), t.Null()], {
  description: "Null when nothing was measured",
});
const time = (description: string) => t.String({ format: "date-time", description });

const tally = {
  requests: count("Requests that have ended"),
  errors: count("Answered with 500 and above"),
  client_errors: count("Answered with 400 to 499"),
  broken_off: count("Answers that broke off"),
  retries: count("Attempts after the first one of a request"),
  bytes_in: count("Bytes of request bodies"),
  bytes_out: count("Bytes of response bodies"),
  error_share: t.Number({ minimum: 0, maximum: 1, description: "errors as a part of requests" }),
  latency_ms: t.Object(
    { mean: orNull, p50: orNull, p95: orNull, p99: orNull },
    { description: "Milliseconds from the head of a request to the last byte of its answer" },
  ),
};

const object = t.Object({
  id: t.String({ description: "Id, or `_other` and `_none`" }),
  name: t.String({ description: "The present name, or the last one" }),
  requests_per_second: amount("Requests in a second"),
  ...tally,
});

const byObject = {
  by_route: t.Array(object, { description: "Most requests first" }),
  by_service: t.Array(object, { description: "As by_route" }),
  by_target: t.Array(object, {
    description: "As by_route. A request counts for each target that it was tried on",
  }),
};

export const statsSchemas: Readonly<Record<string, TSchema>> = {
  Stats: t.Object(
    {
      at: time("When this was counted"),
      now: t.Object(
        {
          seconds: count("How long it was counted: a minute, less after a start"),
          requests_per_second: amount("Requests in a second"),
          bytes_in_per_second: amount("Bytes in a second"),
          bytes_out_per_second: amount("Bytes in a second"),
          in_flight: count("Requests that are being served"),
          open_websockets: count("WebSockets that are open"),
          ...tally,
          ...byObject,
        },
        { description: "The last minute" },
      ),
      history: t.Object(
        {
          range: t.Unsafe<string>({ type: "string", enum: ["1h", "24h", "30d"] }),
          from: time("When the first point begins"),
          to: time("When the last point begins"),
          step_seconds: count("How long a point is"),
          total: t.Object(tally, { description: "All points together" }),
          points: t.Array(t.Object({ at: time("When it began"), ...tally }), {
            description: "Oldest first, only those in which there was traffic",
          }),
          ...byObject,
        },
        { description: "The time that was asked for" },
      ),
    },
    { title: "Stats" },
  ),
};
