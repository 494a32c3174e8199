// Limits of the whole gateway; knows no route.
import { group, integer, milliseconds } from "./fields.ts";
import { since } from "./resource.ts";

export const limits = group(
  {
    max_header_fields: integer(100, {
      minimum: 10,
      maximum: 100,
      description: "Number of headers in a request; above it the gateway responds with 431",
      form: { title: "Request headers", help: "Requests with more get status 431" },
    }),
    max_target_bytes: integer(8192, {
      minimum: 256,
      maximum: 16_384,
      description: "Length of path and query; above it the gateway responds with 414",
      form: {
        title: "Path and query length",
        help: "Longer ones get status 414",
        unit: "B",
      },
    }),
    max_response_head_bytes: integer(65_536, {
      minimum: 1024,
      maximum: 1_048_576,
      description:
        "Size of an upstream response's head in bytes; above it the gateway responds with 502",
      form: { title: "Response head size", help: "Larger heads cause status 502" },
    }),
    head_read_timeout: milliseconds(
      15_000,
      "Milliseconds in which the head of a request must arrive on listeners with engine sluice; then 408; 0: the idle timeout. With engine bun it is 12 seconds, without a response",
      {
        title: "Request head timeout",
        help: "With the engine sluice; slower clients get status 408",
        zero: "the idle timeout",
      },
    ),
    body_read_timeout: milliseconds(
      60_000,
      "Milliseconds without a byte of the request body; then 408",
      {
        title: "Request body timeout",
        help: "A client that sends nothing for this time gets status 408",
      },
    ),
    body_min_rate_grace: milliseconds(
      30_000,
      "Milliseconds of waiting for the client before body_min_rate of its listener or route applies",
      {
        title: "Grace period for slow request bodies",
        help: "Time before the minimum rate of the listener or route applies",
      },
    ),
    response_write_timeout: milliseconds(
      60_000,
      "Milliseconds in which the client reads nothing of the response; then the gateway aborts it; 0: no limit",
      {
        title: "Response write timeout",
        help: "The gateway closes the connection of a client that reads nothing for this time",
      },
    ),
    preread_timeout: integer(10_000, {
      minimum: 100,
      maximum: 86_400_000,
      description:
        "Milliseconds in which a client must send its PROXY header and TLS ClientHello; then the gateway closes the connection",
      form: {
        help: "The gateway closes a connection that sends its PROXY header or TLS ClientHello later",
        group: "connections",
      },
    }),
    stream_drain_timeout: milliseconds(
      10_000,
      "Milliseconds for open connections and UDP sessions of a stream route to finish after the route was deleted or changed its service",
      {
        help: "Open connections of a stream route get this long after the route was deleted or leads elsewhere",
        group: "connections",
      },
    ),
    response_buffer_budget_bytes: integer(67_108_864, {
      minimum: 0,
      maximum: 4_294_967_296,
      description:
        "Memory of one worker for buffered response bodies, in bytes; when it is used up, responses are streamed",
      form: {
        title: "Response buffers per worker",
        help: "Above the limit, bodies are streamed",
        group: "gateway",
      },
    }),
    request_buffer_disk_bytes: since(
      9,
      integer(10_737_418_240, {
        minimum: 0,
        maximum: 1_099_511_627_776,
        description:
          "Disk of one worker for request bodies of routes with request_buffering, in bytes; above it the gateway responds with 507",
        form: {
          title: "Request buffers per worker",
          help: "Disk for request bodies of routes with request buffering; requests above the limit get status 507",
          group: "gateway",
        },
      }),
    ),
    max_in_flight_requests: integer(0, {
      minimum: 0,
      maximum: 10_000_000,
      description:
        "Requests in flight in one worker; above it the gateway responds with 503; 0: no limit",
      form: {
        title: "Requests in flight per worker",
        help: "Requests above the limit get status 503",
        zero: "no limit",
        group: "gateway",
      },
    }),
    max_in_flight_total: integer(0, {
      minimum: 0,
      maximum: 10_000_000,
      description:
        "Requests in flight in all workers together; above it the gateway responds with 503; 0: no limit",
      form: {
        title: "Requests in flight in all workers",
        help: "Requests above the limit get status 503",
        zero: "no limit",
        group: "gateway",
      },
    }),
    max_aborted_per_connection: integer(300, {
      minimum: 0,
      maximum: 1_000_000,
      description:
        "Requests that one connection may abort in ten seconds while a target processes them, in addition to as many as it completes; then the gateway responds to its requests with 429; 0: no limit",
      form: {
        title: "Per connection",
        help: "Aborted requests in ten seconds, in addition to as many as complete. Further requests get status 429",
        zero: "no limit",
        group: "aborts",
      },
    }),
    max_aborted_per_address: integer(2000, {
      minimum: 0,
      maximum: 1_000_000,
      description:
        "Requests that one client address may abort in ten seconds while a target processes them, in one worker; then the gateway responds to its requests with 429 for ten seconds; 0: no limit",
      form: {
        title: "Per client address",
        help: "Aborted requests in ten seconds, per worker. Further requests get status 429",
        zero: "no limit",
        group: "aborts",
      },
    }),
    max_memory_bytes: integer(0, {
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description:
        "Resident memory in bytes above which the gateway responds to new requests with 503, until it is 10 % lower; 0: 80 % of what the machine or its control group allows",
      form: {
        title: "Memory limit",
        help: "Above the limit, new requests get status 503",
        zero: "80 % of the machine's memory",
        group: "gateway",
      },
    }),
    counter_keys: integer(131_072, {
      minimum: 1024,
      maximum: 4_194_304,
      description:
        "Counters of plugins, such as one per client address, in memory at the same time; takes effect at the next start",
      form: {
        help: "Keys, such as client addresses, that plugins count at the same time. Takes effect after a restart",
        group: "gateway",
      },
    }),
    shutdown_timeout: milliseconds(
      30_000,
      "Milliseconds for requests in flight to finish when the gateway stops",
      {
        help: "Time for requests in flight to finish when the gateway stops",
        group: "gateway",
      },
    ),
    max_plugin_reloads: since(
      7,
      integer(20, {
        minimum: 0,
        maximum: 10_000,
        description:
          "Reloads of plugins from a directory after which the workers are replaced one by one, because the engine never releases replaced code; 0: never",
        form: {
          title: "Plugin reloads",
          help: "Then the workers are replaced one by one, which frees the memory of replaced code",
          zero: "they are never replaced",
          group: "gateway",
        },
      }),
    ),
    worker_drain_timeout: since(
      7,
      milliseconds(
        3_600_000,
        "Milliseconds for the connections of a replaced worker to end; then it closes the rest",
        {
          title: "Drain time of a replaced worker",
          help: "Its WebSockets, streams and long responses go on for this time",
          group: "gateway",
        },
      ),
    ),
  },
  "Limits",
  {
    group: "limits",
    groups: [
      { id: "requests", title: "Requests" },
      { id: "aborts", title: "Aborted requests" },
      { id: "connections", title: "Connections" },
      { id: "gateway", title: "Gateway" },
    ],
  },
);
