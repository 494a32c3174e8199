// A service: an upstream application, how it is reached, balanced, checked and retried; knows nothing of storage or HTTP.
import { type Static, Type as t } from "@sinclair/typebox";
import {
  flag,
  group,
  type Identity,
  integer,
  labels,
  milliseconds,
  name,
  nullable,
  oneOf,
} from "./fields.ts";
import { inlineTargetInput } from "./target.ts";

const status = t.Integer({ minimum: 100, maximum: 599 });

/** When an attempt that failed is made again; shared by services and routes. */
export const retriesFields = {
  count: integer(2, { minimum: 0, maximum: 10, description: "Attempts after the first" }),
  on: t.Array(
    oneOf(["connect", "reset", "timeout", "500", "502", "503", "504", "429"], {
      description: "A reason to try again",
    }),
    {
      default: ["connect", "reset", "502", "503", "504"],
      maxItems: 8,
      description:
        "Reasons to try again: a failed connect, a reset, a time-out, or one of these statuses",
    },
  ),
  methods: oneOf(["idempotent", "all"], {
    default: "idempotent",
    description: "Methods that may be sent twice (RFC 9110 section 9.2.2)",
  }),
  per_try_timeout: milliseconds(
    0,
    "Time for one attempt in milliseconds; 0: only the total counts",
  ),
  backoff_ms: milliseconds(
    25,
    "First pause between attempts in milliseconds; doubled and jittered",
  ),
  budget_percent: integer(20, {
    minimum: 0,
    maximum: 100,
    description: "Share of all requests that may be retries; those after a failed connect are free",
  }),
};

const hashSource = ["ip", "header", "cookie", "query", "path", "consumer"] as const;

const hashOn = group(
  {
    source: oneOf(hashSource, { default: "ip", description: "What consistent_hash hashes" }),
    name: t.String({
      default: "",
      maxLength: 256,
      description: "Name of the header, cookie or query parameter",
    }),
    fallback: oneOf(hashSource, {
      default: "ip",
      description: "Source to use when the first one is absent",
    }),
  },
  "Key of the consistent_hash algorithm",
);

const sticky = group(
  {
    enabled: flag(false, "Keep a client on the target it was first sent to"),
    cookie: t.String({
      default: "sluice_sticky",
      pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$",
      errorMessage: "must be a cookie name",
      description: "Cookie name",
    }),
    ttl: integer(0, {
      minimum: 0,
      maximum: 31_536_000,
      description: "Cookie lifetime in seconds; 0: a session cookie",
    }),
  },
  "Session affinity by cookie",
);

const activeHealth = group(
  {
    enabled: flag(false, "Send requests of our own to find out whether targets work"),
    type: oneOf(["http", "https", "tcp"], { default: "http", description: "Kind of check" }),
    path: t.String({
      default: "/",
      pattern: "^/",
      errorMessage: "must start with /",
      maxLength: 2048,
      description: "Path to ask for",
    }),
    method: oneOf(["GET", "HEAD", "POST", "OPTIONS"], {
      default: "GET",
      description: "Method of the check",
    }),
    headers: t.Record(t.String(), t.String(), { default: {}, description: "Headers of the check" }),
    port: nullable(
      t.Integer({ minimum: 1, maximum: 65_535 }),
      "Port to check; null: the target's own",
    ),
    interval: integer(10, { minimum: 1, maximum: 3600, description: "Seconds between checks" }),
    unhealthy_interval: integer(5, {
      minimum: 1,
      maximum: 3600,
      description: "Seconds between checks of an unhealthy target",
    }),
    timeout: integer(2, {
      minimum: 1,
      maximum: 300,
      description: "Seconds until a check has failed",
    }),
    expect_statuses: t.Array(
      t.Union([
        status,
        t.String({
          pattern: "^[1-5]\\d\\d(-[1-5]\\d\\d)?$",
          errorMessage: "must be a status or a range such as 200-399",
        }),
      ]),
      {
        default: ["200-399"],
        maxItems: 50,
        description: "Statuses of a working target: numbers or ranges",
      },
    ),
    expect_body: nullable(t.String({ maxLength: 1024 }), "Text that the body must contain"),
    healthy_threshold: integer(2, {
      minimum: 1,
      maximum: 100,
      description: "Successes until healthy",
    }),
    unhealthy_threshold: integer(3, {
      minimum: 1,
      maximum: 100,
      description: "Failures until unhealthy",
    }),
  },
  "Active checks",
);

const passiveHealth = group(
  {
    enabled: flag(true, "Learn from the traffic itself which targets work"),
    consecutive_failures: integer(5, {
      minimum: 1,
      maximum: 1000,
      description: "Failures in a row until ejected",
    }),
    statuses: t.Array(status, {
      default: [502, 503, 504],
      maxItems: 50,
      description: "Statuses that count as failures",
    }),
    ejection_seconds: integer(30, {
      minimum: 1,
      maximum: 3600,
      description: "Seconds of the first ejection; multiplied by their number",
    }),
    max_ejection_seconds: integer(300, {
      minimum: 1,
      maximum: 86_400,
      description: "Longest ejection in seconds",
    }),
    max_ejection_percent: integer(50, {
      minimum: 0,
      maximum: 100,
      description: "Largest share of targets ejected at once",
    }),
  },
  "Passive checks",
);

const tls = group(
  {
    verify: flag(true, "Verify the target's certificate and name"),
    ca_certificates: t.String({
      default: "",
      maxLength: 262_144,
      description: "PEM certificates to trust instead of the system's",
    }),
    server_name: t.String({
      default: "",
      maxLength: 253,
      description: "Name for SNI and verification; empty: the target's host",
    }),
    client_certificate_id: nullable(
      t.String(),
      "Id or name of the certificate to show to the target",
    ),
    min_version: oneOf(["1.2", "1.3"], { default: "1.2", description: "Oldest TLS version" }),
  },
  "TLS to targets, for the protocols https and tls",
);

/** What a client may send; `targets` beside it is handled by the service use-cases. */
export const serviceInput = t.Object(
  {
    name: name("Unique name"),
    protocol: oneOf(["http", "https", "tcp", "tls", "udp"], {
      default: "http",
      description: "How targets are spoken to",
    }),
    path: t.String({
      default: "",
      maxLength: 2048,
      pattern: "^(/[^?#\\s]*)?$",
      errorMessage: "must be empty or start with /, without query",
      description: "Path put before the request's path",
    }),
    host_header: t.String({
      default: "preserve",
      minLength: 1,
      maxLength: 255,
      description:
        "Host sent upstream: `preserve` (the client's), `target` (the target's host and port), or a name",
    }),
    algorithm: oneOf(
      ["round_robin", "least_connections", "random_two", "ewma", "consistent_hash", "first"],
      {
        default: "round_robin",
        description: "How a target is chosen",
      },
    ),
    hash_on: hashOn,
    sticky,
    connect_timeout: milliseconds(5000, "Milliseconds to connect"),
    response_timeout: milliseconds(60_000, "Milliseconds until the response head"),
    read_timeout: milliseconds(
      60_000,
      "Milliseconds between two reads of the response; 0 after an upgrade",
    ),
    write_timeout: milliseconds(
      60_000,
      "Milliseconds in which the target accepts no byte of the request",
    ),
    request_timeout: milliseconds(0, "Milliseconds for the whole exchange; 0: no limit"),
    retries: group(retriesFields, "When an attempt is made again"),
    keepalive: group(
      {
        size: integer(64, {
          minimum: 0,
          maximum: 10_000,
          description: "Idle connections kept for each target and worker",
        }),
        idle_timeout: milliseconds(60_000, "Milliseconds an idle connection is kept"),
        max_requests: integer(1000, {
          minimum: 0,
          maximum: 1_000_000_000,
          description: "Requests on one connection; 0: no limit",
        }),
      },
      "Connections kept open to targets",
    ),
    response_buffer_bytes: integer(1_048_576, {
      minimum: 0,
      maximum: 67_108_864,
      description:
        "Largest response body of known length that the gateway buffers and sends with Content-Length; longer ones are streamed",
    }),
    tls,
    resolve: oneOf(["dns", "srv", "static"], {
      default: "dns",
      description: "How target names become addresses",
    }),
    health: group(
      {
        active: activeHealth,
        passive: passiveHealth,
        panic_percent: integer(0, {
          minimum: 0,
          maximum: 100,
          description: "Below this share of healthy targets health is ignored",
        }),
      },
      "Health checks",
    ),
    slow_start: milliseconds(
      0,
      "Milliseconds over which a new or recovered target's weight grows to its full value",
    ),
    max_connections_per_target: integer(0, {
      minimum: 0,
      maximum: 1_000_000,
      description: "Requests in flight for each target; 0: no limit",
    }),
    enabled: flag(true, "Whether routes may use it"),
    ...labels,
  },
  { additionalProperties: false, title: "Service" },
);

/** The body of a POST or PUT: the service with its targets. */
export const serviceWithTargetsInput = t.Composite(
  [
    serviceInput,
    t.Object({
      targets: t.Array(inlineTargetInput, {
        default: [],
        maxItems: 1000,
        description:
          "Servers of the service: all that it has afterwards. One that has the id, or the host and port, of one that is there keeps its id and state",
      }),
    }),
  ],
  { additionalProperties: false, title: "Service" },
);

export type ServiceInput = Static<typeof serviceInput>;
export type Service = Readonly<ServiceInput> & Identity;
export type Retries = Service["retries"];
