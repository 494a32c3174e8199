// Response schemas of traffic statistics; used for the API description only.
import { type TSchema, Type as t } from "@sinclair/typebox";

const count = (description: string) => t.Integer({ minimum: 0, description });
const amount = (description: string) => t.Number({ minimum: 0, description });
const orNull = t.Union([t.Number({ minimum: 0 }), t.Null()], {
  description: "Null without measurements",
});
const time = (description: string) => t.String({ format: "date-time", description });

const tally = {
  requests: count("Completed requests"),
  errors: count("Responses with status 500 and above"),
  client_errors: count("Responses with status 400 to 499"),
  aborted_responses: count("Aborted responses"),
  retries: count("Retries"),
  bytes_in: count("Bytes of request bodies"),
  bytes_out: count("Bytes of response bodies"),
  cache_lookups: count("Requests that response-cache looked up, without those that bypass it"),
  cache_hits: count("Those served from the cache: fresh, stale or revalidated"),
  cache_bytes: count("Bytes of their bodies"),
  cache_hit_ratio: t.Union([t.Number({ minimum: 0, maximum: 1 }), t.Null()], {
    description: "cache_hits divided by cache_lookups, null without lookups",
  }),
  error_share: t.Number({ minimum: 0, maximum: 1, description: "errors divided by requests" }),
  latency_ms: t.Object(
    { mean: orNull, p50: orNull, p95: orNull, p99: orNull },
    { description: "Milliseconds from the request head to the last byte of the response" },
  ),
};

const object = t.Object({
  id: t.String({ description: "ID, or `_other` and `_none`" }),
  name: t.String({ description: "Present or last name" }),
  requests_per_second: amount("Requests per second"),
  ...tally,
});

const byObject = {
  by_route: t.Array(object, { description: "Most requests first" }),
  by_service: t.Array(object, { description: "As by_route" }),
  by_target: t.Array(object, {
    description: "As by_route. A request counts for each target of its attempts",
  }),
};

const presentMembers = {
  seconds: count("Length of the window: a minute, less after a start"),
  requests_per_second: amount("Requests per second"),
  bytes_in_per_second: amount("Bytes per second"),
  bytes_out_per_second: amount("Bytes per second"),
  in_flight: count("Requests in flight"),
  open_websockets: count("Open WebSockets"),
  open_connections: count("Open connections of clients on listeners with the engine sluice"),
  open_http2_streams: count("Open HTTP/2 streams on these connections"),
  ...tally,
};

/** The last minute of a gateway. */
export const present: TSchema = t.Object(presentMembers);

export const statsSchemas: Readonly<Record<string, TSchema>> = {
  Stats: t.Object(
    {
      at: time("Time of the measurement"),
      now: t.Object({ ...presentMembers, ...byObject }, { description: "The last minute" }),
      history: t.Object(
        {
          range: t.Unsafe<string>({ type: "string", enum: ["1h", "24h", "30d"] }),
          from: time("Start of the first point"),
          to: time("Start of the last point"),
          step_seconds: count("Length of a point"),
          total: t.Object(tally, { description: "Sum of all points" }),
          points: t.Array(t.Object({ at: time("Start of the point"), ...tally }), {
            description: "Oldest first, only points with traffic",
          }),
          ...byObject,
        },
        { description: "The requested range" },
      ),
    },
    { title: "Stats" },
  ),
};
