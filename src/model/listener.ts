// A listener: an address and port where clients connect; knows nothing of sockets.
import { type Static, Type as t } from "@sinclair/typebox";
import { flag, type Identity, integer, labels, listOf, name, nullable, oneOf } from "./fields.ts";

export const listenerInput = t.Object(
  {
    name: name("Unique name"),
    address: t.String({
      minLength: 1,
      maxLength: 64,
      default: "0.0.0.0",
      description: "IP address to listen on",
    }),
    port: t.Integer({ minimum: 1, maximum: 65_535, description: "Port to listen on" }),
    hosts: listOf(
      t.String({ minLength: 1, maxLength: 255 }),
      "Host names that it serves, `*.example.com` for all subdomains; empty: any. Listeners with different names may share an address and port: the most specific name wins",
      { maxItems: 100 },
    ),
    protocol: oneOf(["http", "https"], { default: "http", description: "http: plain; https: TLS" }),
    engine: oneOf(["standard", "full"], {
      default: "standard",
      description:
        "HTTP engine. standard: the fastest; full: also gRPC, trailers, WebSockets over HTTP/2 and exact Content-Length, at several times the processor time per request and without HTTP/3. A change binds the listener again",
    }),
    shared_engines: flag(
      false,
      "Serve host names of gRPC services and of routes with exact_responses with the full engine, and all others with the standard one; TLS only, without HTTP/3. Costs a hop inside the gateway for all names; a change binds the listener again",
    ),
    max_concurrent_streams: integer(100, {
      minimum: 1,
      maximum: 1000,
      description: "Concurrent HTTP/2 streams per connection of the full engine",
    }),
    max_connection_age: integer(0, {
      minimum: 0,
      maximum: 604_800,
      description:
        "Seconds after which the full engine asks a client to open a new HTTP/2 connection; 0: no limit",
    }),
    http2: flag(true, "Whether to offer HTTP/2"),
    http3: flag(false, "Whether to offer HTTP/3; TLS only"),
    tls_min_version: oneOf(["1.2", "1.3"], { default: "1.2", description: "Minimum TLS version" }),
    client_auth: oneOf(["none", "request", "require"], {
      default: "none",
      description:
        "Client certificates. none: not requested; request: optional, but must be valid; require: mandatory. TLS only; with the standard engine http2 must be false",
    }),
    client_ca: nullable(
      t.String({ maxLength: 262_144 }),
      "PEM certificates of the CAs that sign client certificates; required with client_auth",
    ),
    client_crl: nullable(
      t.String({ maxLength: 1_048_576 }),
      "PEM revocation lists, one for every certificate of client_ca; the gateway rejects client certificates on them",
    ),
    proxy_protocol: flag(false, "Expect a PROXY protocol header from trusted_proxies"),
    trusted_proxies: listOf(
      t.String({ minLength: 1, maxLength: 64 }),
      "Networks whose X-Forwarded-* headers are trusted, beside the settings'",
    ),
    strict_sni: flag(false, "Whether to reject handshakes for names that no certificate covers"),
    max_connections: integer(0, {
      minimum: 0,
      maximum: 10_000_000,
      description: "Concurrent connections; 0: no limit",
    }),
    max_connections_per_address: integer(0, {
      minimum: 0,
      maximum: 10_000_000,
      description: "Concurrent connections from one address; 0: no limit",
    }),
    max_in_flight_requests: integer(0, {
      minimum: 0,
      maximum: 10_000_000,
      description:
        "Requests in flight through this listener, in all workers; above it the gateway responds with 503; 0: no limit",
    }),
    max_header_bytes: integer(16_384, {
      minimum: 1024,
      maximum: 16_384,
      description: "Largest request head in bytes",
    }),
    max_body_bytes: integer(0, {
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: "Largest request body in bytes; 0: no limit",
    }),
    body_min_rate: integer(500, {
      minimum: 0,
      maximum: 1_000_000_000,
      description:
        "Minimum average rate of a request body in bytes per second while the gateway waits for the client; below it the gateway responds with 408; 0: no limit",
    }),
    idle_timeout: integer(75, {
      minimum: 1,
      maximum: 255,
      description: "Seconds until the gateway closes an idle connection",
    }),
    enabled: flag(true, "Whether it listens"),
    ...labels,
  },
  { additionalProperties: false, title: "Listener" },
);

export type ListenerInput = Static<typeof listenerInput>;
export type Listener = Readonly<ListenerInput> & Identity;
