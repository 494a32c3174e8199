// Settings: what holds for the whole gateway; knows no other resource.
import { type Static, Type as t } from "@sinclair/typebox";
import { cidr, flag, group, integer, listOf, milliseconds, nullable, oneOf } from "./fields.ts";

/** Names of query parameters whose values are confidential. */
const SECRET_NAMES = [
  "access_token",
  "apikey",
  "assertion",
  "auth",
  "authorization",
  "bearer",
  "code",
  "credential",
  "credentials",
  "hmac",
  "jsessionid",
  "jwt",
  "key",
  "otp",
  "pass",
  "passcode",
  "passphrase",
  "passwd",
  "password",
  "phpsessid",
  "pin",
  "pwd",
  "secret",
  "session",
  "sessionid",
  "sid",
  "sig",
  "signature",
  "token",
] as const;

export const settingsInput = t.Object(
  {
    public_url: nullable(
      t.String({
        pattern: "^https?://[^/?#\\s]+/?$",
        errorMessage: "must be http:// or https:// and a host, without a path",
        maxLength: 255,
      }),
      "Public URL of the management API and UI",
    ),
    trusted_proxies: listOf(
      cidr,
      "Networks whose X-Forwarded-* headers are trusted on every listener",
    ),
    admin_allowed_cidrs: listOf(
      cidr,
      "Networks that may use the management API. Empty: those of --admin-allow; without either, only this machine. A change that locks out its own client needs ?force=1",
    ),
    default_site: group(
      {
        action: oneOf(["404", "redirect", "html", "close"], {
          default: "404",
          description: "Response when no route matches",
        }),
        to: t.String({
          default: "",
          maxLength: 2048,
          // It becomes a header as it is.
          pattern: "^[\\x21-\\x7e]*$",
          errorMessage: "must hold neither spaces, nor control characters, nor any beyond ASCII",
          description: "URL of the redirect",
        }),
        html: t.String({ default: "", maxLength: 262_144, description: "HTML page" }),
      },
      "Response when no route matches",
    ),
    geoip: group(
      {
        country_db: nullable(t.String({ maxLength: 4096 }), "Path of a MaxMind country database"),
        asn_db: nullable(t.String({ maxLength: 4096 }), "Path of a MaxMind ASN database"),
      },
      "GeoIP databases",
    ),
    debug_headers: flag(
      false,
      "Add X-Sluice-Worker, X-Sluice-Revision, X-Sluice-Route and X-Sluice-Target to every proxied response",
    ),
    retention: group(
      {
        revisions: integer(1000, {
          minimum: 1,
          maximum: 1_000_000,
          description: "Number of revisions",
        }),
        audit_days: integer(90, {
          minimum: 1,
          maximum: 3650,
          description: "Days until audit entries are deleted",
        }),
        audit_entries: integer(10_000, {
          minimum: 100,
          maximum: 10_000_000,
          description: "Number of audit entries",
        }),
        requests: integer(10_000, {
          minimum: 0,
          maximum: 1_000_000,
          description: "Recent requests in memory",
        }),
      },
      "Retention of the history",
    ),
    requests: group(
      {
        ids: flag(
          true,
          "Send X-Request-Id to targets and clients; the ID of a trusted proxy is preserved",
        ),
        redacted_query_names: t.Array(t.String({ minLength: 1, maxLength: 64 }), {
          default: [...SECRET_NAMES],
          maxItems: 200,
          description:
            "Words in the names of query parameters whose values are masked: `key` masks `key`, `api_key` and `apiKey`",
        }),
      },
      "Request IDs and the log of recent requests; retention.requests is its size",
    ),
    fleet: group(
      {
        max_stale_sessions: milliseconds(
          900_000,
          "Milliseconds without the database of the fleet after which a node accepts no sessions in its management API, because users may have been disabled on other nodes; tokens stay valid; 0: no limit; without effect on a gateway without a fleet",
        ),
        max_stale: milliseconds(
          0,
          "Milliseconds without the database of the fleet after which /readyz of a node responds with 503, so that a load balancer takes it out; 0: never; without effect on a gateway without a fleet",
        ),
        absent_after: integer(86_400_000, {
          minimum: 60_000,
          maximum: 2_592_000_000,
          description:
            "Milliseconds for which the fleet is prepared for the return of a node that is away: the log keeps the entries that it lacks, and what its version does not know is refused",
        }),
      },
      "Nodes that are away, or cut off from the database of their fleet; without effect on a gateway without a fleet",
    ),
    limits: group(
      {
        max_header_fields: integer(100, {
          minimum: 10,
          maximum: 100,
          description: "Number of headers in a request; above it the gateway responds with 431",
        }),
        max_target_bytes: integer(8192, {
          minimum: 256,
          maximum: 16_384,
          description: "Length of path and query; above it the gateway responds with 414",
        }),
        max_response_head_bytes: integer(65_536, {
          minimum: 1024,
          maximum: 1_048_576,
          description:
            "Size of an upstream response's head in bytes; above it the gateway responds with 502",
        }),
        head_read_timeout: milliseconds(
          15_000,
          "Milliseconds in which the head of a request must arrive on fronted listeners that see it: those without TLS and those with client_auth; then 408; 0: Bun's 12 seconds, without a response",
        ),
        body_read_timeout: milliseconds(
          60_000,
          "Milliseconds without a byte of the request body; then 408",
        ),
        body_min_rate_grace: milliseconds(
          30_000,
          "Milliseconds of waiting for the client before body_min_rate of its listener or route applies",
        ),
        response_write_timeout: milliseconds(
          60_000,
          "Milliseconds in which the client reads nothing of the response; then the gateway aborts it; 0: no limit",
        ),
        preread_timeout: integer(10_000, {
          minimum: 100,
          maximum: 86_400_000,
          description:
            "Milliseconds in which a client must send its PROXY header and TLS ClientHello; then the gateway closes the connection",
        }),
        stream_drain_timeout: milliseconds(
          10_000,
          "Milliseconds for open connections and UDP sessions of a stream route to finish after the route was deleted or changed its service",
        ),
        response_buffer_budget_bytes: integer(67_108_864, {
          minimum: 0,
          maximum: 4_294_967_296,
          description:
            "Memory of one worker for buffered response bodies, in bytes; when it is used up, responses are streamed",
        }),
        max_in_flight_requests: integer(0, {
          minimum: 0,
          maximum: 10_000_000,
          description:
            "Requests in flight in one worker; above it the gateway responds with 503; 0: no limit",
        }),
        max_in_flight_total: integer(0, {
          minimum: 0,
          maximum: 10_000_000,
          description:
            "Requests in flight in all workers together; above it the gateway responds with 503; 0: no limit",
        }),
        max_aborted_per_connection: integer(300, {
          minimum: 0,
          maximum: 1_000_000,
          description:
            "Requests that one connection may abort in ten seconds while a target processes them, in addition to as many as it completes; then the gateway responds to its requests with 429; 0: no limit",
        }),
        max_aborted_per_address: integer(2000, {
          minimum: 0,
          maximum: 1_000_000,
          description:
            "Requests that one client address may abort in ten seconds while a target processes them, in one worker; then the gateway responds to its requests with 429 for ten seconds; 0: no limit",
        }),
        max_memory_bytes: integer(0, {
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          description:
            "Resident memory in bytes above which the gateway responds to new requests with 503, until it is 10 % lower; 0: 80 % of what the machine or its control group allows",
        }),
        counter_keys: integer(131_072, {
          minimum: 1024,
          maximum: 4_194_304,
          description:
            "Counters of plugins, such as one per client address, in memory at the same time; takes effect at the next start",
        }),
        shutdown_timeout: milliseconds(
          30_000,
          "Milliseconds for requests in flight to finish when the gateway stops",
        ),
      },
      "Limits",
    ),
  },
  { additionalProperties: false, title: "Settings" },
);

export type SettingsInput = Static<typeof settingsInput>;
export type Settings = Readonly<SettingsInput> & { readonly updated_at: string };
