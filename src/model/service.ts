// A service: an upstream application, its load balancing, health checks and retries; knows nothing of storage or HTTP.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineResource, refersTo, schemaRef, since } from "./resource.ts";
import { serviceRules } from "./service-rules.ts";
import {
  type FieldForm,
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
import { hashOn, HTTP, sticky } from "./load-balancing.ts";
import { retriesFields } from "./retries.ts";
import { health } from "./service-health.ts";
import { inlineTargetInput } from "./target.ts";
import { asHostName } from "./host-name.ts";

const tls = group(
  {
    verify: flag(true, "Verify the target's certificate and name", {
      title: "Verify the target's certificate",
      help: "Off only for devices with a self-signed certificate: the connection can then be intercepted",
    }),
    ca_certificates: t.String({
      default: "",
      maxLength: 262_144,
      description: "PEM certificates to trust instead of the system's",
      form: {
        title: "Trusted CAs",
        help: "PEM certificates. Empty: the system's CAs",
        example: "-----BEGIN CERTIFICATE-----",
        input: "code",
        order: 1,
      },
    }),
    server_name: asHostName(
      t.String({
        default: "",
        maxLength: 253,
        description: "Name for SNI and verification; empty: the target's host",
        form: {
          title: "Server name (SNI)",
          help: "Empty: the host of the target",
          example: "app.internal",
        },
      }),
    ),
    client_certificate_id: nullable(
      refersTo("certificates", t.String()),
      "ID or name of the client certificate for the target",
      {
        title: "Client certificate",
        help: "Presented to targets that require one (mTLS)",
      },
    ),
    min_version: oneOf(["1.0", "1.1", "1.2", "1.3"], {
      default: "1.2",
      description:
        "Minimum TLS version. 1.0 and 1.1 are for old devices on networks that you trust: both are broken (RFC 8996); h2 and grpcs need 1.2",
      form: {
        title: "Minimum TLS version",
        help: "1.3 if every target supports it; 1.0 and 1.1 are insecure, for old devices only",
        options: { "1.0": "1.0 (insecure)", "1.1": "1.1 (insecure)", "1.2": "1.2", "1.3": "1.3" },
      },
    }),
  },
  "TLS to targets, for the protocols https, h2, grpcs and tls",
  { group: "tls", when: { protocol: ["https", "h2", "grpcs", "tls"] } },
);

/** What a client may send; `targets` beside it is handled by the service use-cases. */
export const serviceInput = t.Object(
  {
    name: name("Unique name"),
    protocol: oneOf(["http", "https", "h2", "h2c", "grpc", "grpcs", "tcp", "tls", "udp"], {
      default: "http",
      description:
        "Protocol to the targets. h2 and grpcs: HTTP/2 over TLS; h2c and grpc: plain HTTP/2; grpc and grpcs need a listener with engine sluice",
      form: {
        help: "Towards the targets. gRPC needs a listener with the engine Sluice, or the plugin grpc-web for browsers",
        options: {
          http: "HTTP: a web application",
          https: "HTTPS: a web application with its own certificate",
          h2c: "HTTP/2 without TLS (h2c)",
          h2: "HTTP/2 over TLS",
          grpc: "gRPC without TLS",
          grpcs: "gRPC over TLS",
          tcp: "TCP: databases, mail, SSH, for stream routes",
          tls: "TCP with TLS, for stream routes",
          udp: "UDP: DNS, games, for stream routes",
        },
      },
    }),
    path: t.String({
      default: "",
      maxLength: 2048,
      pattern: "^(/[^?#\\s]*)?$",
      errorMessage: "must be empty or start with /, without query",
      description:
        "Path prepended to the request's path; where nothing is left of that, it is sent as written",
      form: {
        help: "Prefix for each request's path: with /app, a request for /cart becomes /app/cart",
        example: "/app",
        group: "upstream",
        when: { protocol: HTTP },
      },
    }),
    host_header: asHostName(
      t.String({
        default: "preserve",
        minLength: 1,
        maxLength: 255,
        description:
          "Host sent upstream: `preserve` (the client's), `target` (the target's host and port), or a name",
        form: {
          help: "Most applications need the client's",
          options: { preserve: "Host of the client's request", target: "Host of the target" },
          other: "Custom Host header",
          example: "app.internal",
          group: "upstream",
          when: { protocol: HTTP },
        },
      }),
    ),
    rewrite_redirects: since(
      7,
      flag(
        true,
        "Whether Location and Refresh of responses that name scheme, host and port of the target get the address that the client has requested",
        {
          title: "Rewrite redirects",
          help: "Redirects to the target's own address lead clients to the gateway instead, with the prefix that the route strips or replaces",
          group: "upstream",
          when: { protocol: HTTP },
        },
      ),
    ),
    algorithm: oneOf(
      ["round_robin", "least_connections", "random_two", "ewma", "consistent_hash", "first"],
      {
        default: "round_robin",
        description: "Load balancing algorithm",
        form: {
          help: "",
          options: {
            round_robin: "Weighted round robin",
            least_connections: "Least connections",
            random_two: "Power of two random choices",
            ewma: "Lowest latency (EWMA)",
            consistent_hash: "Consistent hashing",
            first: "First healthy target",
          },
          group: "balancing",
        },
      },
    ),
    hash_on: hashOn,
    sticky,
    connect_timeout: milliseconds(5000, "Milliseconds to connect", {
      title: "Connect",
      help: "",
      group: "timeouts",
    }),
    response_timeout: milliseconds(60_000, "Milliseconds until the response head", {
      title: "First byte of the response",
      help: "",
      group: "timeouts",
    }),
    read_timeout: milliseconds(
      60_000,
      "Milliseconds between two reads of the response; 0 after an upgrade",
      { title: "Between two reads of the response", help: "", group: "timeouts" },
    ),
    write_timeout: milliseconds(60_000, "Milliseconds without progress in sending the request", {
      title: "Between two writes of the request",
      help: "",
      group: "timeouts",
    }),
    request_timeout: milliseconds(0, "Milliseconds for the whole exchange; 0: no limit", {
      title: "Whole request",
      help: "",
      zero: "no limit",
      group: "timeouts",
    }),
    retries: group(retriesFields, "Retries", { group: "retries" }),
    keepalive: group(
      {
        size: integer(64, {
          minimum: 0,
          maximum: 10_000,
          description: "Idle connections in the pool of each target and worker",
          form: { title: "Idle connections", help: "Per target and worker", zero: "none" },
        }),
        idle_timeout: milliseconds(
          60_000,
          "Milliseconds until the gateway closes an idle connection",
          { help: "" },
        ),
        max_requests: integer(1000, {
          minimum: 0,
          maximum: 1_000_000_000,
          description: "Requests per connection; 0: no limit",
          form: { title: "Requests per connection", help: "", zero: "no limit" },
        }),
      },
      "Connection pool",
      {
        title: "Keep-alive",
        help: "Reuses connections across requests",
        group: "connections",
        when: { protocol: HTTP },
        order: 1,
      },
    ),
    response_parsing: since(
      9,
      oneOf(["lenient", "strict"], {
        default: "lenient",
        description:
          "HTTP/1.1 responses that are not strictly valid. lenient: those with one meaning, such as lines that end in LF alone or bytes behind the end, pass in valid form, and their connection closes; strict: 502",
        form: {
          help: "Lenient accepts the responses of many devices and scripts",
          options: {
            lenient: "Lenient: correct those with one meaning",
            strict: "Strict: refuse with 502",
          },
          group: "upstream",
          when: { protocol: ["http", "https"] },
        },
      }),
    ),
    response_buffer_bytes: integer(1_048_576, {
      minimum: 0,
      maximum: 67_108_864,
      description:
        "Largest response body of known length that the gateway buffers and sends with Content-Length; longer ones are streamed",
      form: {
        title: "Response buffer",
        help: "Larger responses are streamed",
        group: "connections",
        when: { protocol: HTTP },
        order: 2,
      },
    }),
    tls,
    resolve: oneOf(["dns", "srv", "static"], {
      default: "dns",
      description: "DNS record type for target names",
      form: {
        title: "Name resolution",
        help: "",
        options: {
          dns: "DNS, refreshed at run time",
          srv: "DNS SRV records, with ports",
          static: "Once, at start",
        },
        group: "connections",
      },
    }),
    health,
    slow_start: milliseconds(
      0,
      "Slow start: milliseconds over which the weight of a new or recovered target grows to its full value",
      {
        help: "A new target reaches its full share after this time",
        zero: "off",
        unit: "ms",
        group: "timeouts",
      },
    ),
    max_connections_per_target: integer(0, {
      minimum: 0,
      maximum: 1_000_000,
      description: "Requests in flight per target; 0: no limit",
      form: {
        title: "Concurrent requests per target",
        help: "Requests above the limit get status 503",
        zero: "no limit",
        group: "connections",
      },
    }),
    enabled: flag(true, "Whether routes may use it", { help: "Off: no route can use it" }),
    ...labels,
  },
  { additionalProperties: false, title: "Service" },
);

const form: FieldForm = {
  groups: [
    { id: "main", title: "Service" },
    {
      id: "targets",
      title: "Targets",
      text: "Servers that run it. Traffic is distributed by weight.",
    },
    { id: "tls", title: "TLS to the targets", text: "How the gateway verifies the targets." },
    {
      id: "upstream",
      title: "Upstream request",
      text: "The path and the Host header that targets receive, and redirects that they send.",
      folded: true,
      summary: "Path unchanged, Host header of the client, redirects to the target rewritten",
    },
    {
      id: "balancing",
      title: "Load balancing",
      text: "How requests are distributed across the targets.",
    },
    {
      id: "health",
      title: "Health checks",
      text: "Unhealthy targets get no traffic until they recover.",
      folded: true,
      summary: "Ejection after 5 consecutive failures; no active checks",
    },
    {
      id: "retries",
      title: "Retries",
      text: "The gateway retries a failed request at another target.",
      folded: true,
      summary: "2 retries, idempotent methods only",
    },
    {
      id: "timeouts",
      title: "Timeouts",
      text: "How long the gateway waits for a target.",
      folded: true,
      summary: "5 s to connect, 60 s to the first byte",
    },
    {
      id: "connections",
      title: "Connections",
      text: "Limits, keep-alive and name resolution.",
      folded: true,
      summary: "No limit per target; resolved by DNS",
    },
  ],
};

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
        form: { help: "", group: "targets", input: "bare", isNewOnly: true },
      }),
    }),
  ],
  { additionalProperties: false, title: "Service", form },
);

export type ServiceInput = Static<typeof serviceInput>;
export type Service = Readonly<ServiceInput> & Identity;
export type Retries = Service["retries"];

export const services = defineResource<Service>({
  word: "service",
  input: serviceInput,
  rules: serviceRules,
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
