// A service: an upstream application, its load balancing, health checks and retries; knows nothing of storage or HTTP.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineResource, refersTo, schemaRef } from "./resource.ts";
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

/** When a failed attempt is retried; shared by services and routes. */
export const retriesFields = {
  count: integer(2, { minimum: 0, maximum: 10, description: "Retries after the first attempt" }),
  on: t.Array(
    oneOf(["connect", "reset", "timeout", "500", "502", "503", "504", "429"], {
      description: "A condition for a retry",
    }),
    {
      default: ["connect", "reset", "502", "503", "504"],
      maxItems: 8,
      description:
        "Conditions for a retry: a failed connect, a reset, a timeout, or one of these statuses; 503 is also UNAVAILABLE of gRPC",
    },
  ),
  methods: oneOf(["idempotent", "all"], {
    default: "idempotent",
    description: "Methods that may be retried (RFC 9110 section 9.2.2)",
  }),
  per_try_timeout: milliseconds(
    0,
    "Timeout of one attempt in milliseconds; 0: only request_timeout applies",
  ),
  backoff_ms: milliseconds(
    25,
    "Initial backoff in milliseconds; doubles with each retry, with jitter",
  ),
  budget_percent: integer(20, {
    minimum: 0,
    maximum: 100,
    description:
      "Share of all requests that may be retries; retries after a failed connect do not count",
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
    enabled: flag(false, "Whether a client stays on its first target"),
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
  "Sticky sessions with a cookie",
);

const activeHealth = group(
  {
    enabled: flag(false, "Whether the gateway probes the targets"),
    type: oneOf(["http", "https", "tcp", "grpc", "grpcs"], {
      default: "http",
      description:
        "Protocol of the check. grpc and grpcs: grpc.health.v1.Health/Check; http is HTTP/2 for services that speak only that",
    }),
    path: t.String({
      default: "/",
      pattern: "^/",
      errorMessage: "must start with /",
      maxLength: 2048,
      description: "Path of the check",
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
      description: "Timeout of a check in seconds",
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
        description: "Statuses of a healthy target: numbers or ranges",
      },
    ),
    grpc_service: t.String({
      default: "",
      maxLength: 512,
      description: "Service name in gRPC checks; empty: the server as a whole",
    }),
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
  "Active health checks",
);

const passiveHealth = group(
  {
    enabled: flag(true, "Whether to eject targets whose requests fail"),
    consecutive_failures: integer(5, {
      minimum: 1,
      maximum: 1000,
      description: "Consecutive failures until ejection",
    }),
    statuses: t.Array(status, {
      default: [502, 503, 504],
      maxItems: 50,
      description:
        "Statuses that count as failures; 503 is also UNAVAILABLE of gRPC, 504 DEADLINE_EXCEEDED",
    }),
    ejection_seconds: integer(30, {
      minimum: 1,
      maximum: 3600,
      description: "Seconds of the first ejection; multiplied by the number of ejections",
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
  "Passive health checks",
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
      refersTo("certificates", t.String()),
      "ID or name of the client certificate for the target",
    ),
    min_version: oneOf(["1.2", "1.3"], { default: "1.2", description: "Minimum TLS version" }),
  },
  "TLS to targets, for the protocols https, h2, grpcs and tls",
);

/** What a client may send; `targets` beside it is handled by the service use-cases. */
export const serviceInput = t.Object(
  {
    name: name("Unique name"),
    protocol: oneOf(["http", "https", "h2", "h2c", "grpc", "grpcs", "tcp", "tls", "udp"], {
      default: "http",
      description:
        "Protocol to the targets. h2 and grpcs: HTTP/2 over TLS; h2c and grpc: plain HTTP/2; grpc and grpcs need a listener with the full engine",
    }),
    path: t.String({
      default: "",
      maxLength: 2048,
      pattern: "^(/[^?#\\s]*)?$",
      errorMessage: "must be empty or start with /, without query",
      description:
        "Path prepended to the request's path; where nothing is left of that, it is sent as written",
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
        description: "Load balancing algorithm",
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
    write_timeout: milliseconds(60_000, "Milliseconds without progress in sending the request"),
    request_timeout: milliseconds(0, "Milliseconds for the whole exchange; 0: no limit"),
    retries: group(retriesFields, "Retries"),
    keepalive: group(
      {
        size: integer(64, {
          minimum: 0,
          maximum: 10_000,
          description: "Idle connections in the pool of each target and worker",
        }),
        idle_timeout: milliseconds(
          60_000,
          "Milliseconds until the gateway closes an idle connection",
        ),
        max_requests: integer(1000, {
          minimum: 0,
          maximum: 1_000_000_000,
          description: "Requests per connection; 0: no limit",
        }),
      },
      "Connection pool",
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
      description: "DNS record type for target names",
    }),
    health: group(
      {
        active: activeHealth,
        passive: passiveHealth,
        panic_percent: integer(0, {
          minimum: 0,
          maximum: 100,
          description:
            "Panic threshold: below this percentage of healthy targets health is ignored",
        }),
      },
      "Health checks",
    ),
    slow_start: milliseconds(
      0,
      "Slow start: milliseconds over which the weight of a new or recovered target grows to its full value",
    ),
    max_connections_per_target: integer(0, {
      minimum: 0,
      maximum: 1_000_000,
      description: "Requests in flight per target; 0: no limit",
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
          "All targets of the service. A target with the id, or the host and port, of a present one keeps its id and state",
      }),
    }),
  ],
  { additionalProperties: false, title: "Service" },
);

export type ServiceInput = Static<typeof serviceInput>;
export type Service = Readonly<ServiceInput> & Identity;
export type Retries = Service["retries"];

export const services = defineResource<Service>({
  word: "service",
  input: serviceInput,
  nameField: "name",
  columns: { name: { of: ({ name }) => name, isUnique: true, isNullable: true } },
  api: {
    tag: "Services",
    schema: "Service",
    body: serviceWithTargetsInput,
    view: t.Object({ targets: t.Array(schemaRef("Target")) }),
    replaceNote:
      "So does `targets`: without it, the gateway removes all targets, and `X-Warning` says how many.",
  },
});
