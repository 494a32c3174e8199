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
      "Host names that it serves, `*.example.com` for all below; empty: any. Listeners with different names may share an address and port: the most specific name decides",
      100,
    ),
    protocol: oneOf(["http", "https"], { default: "http", description: "Plain or TLS" }),
    http2: flag(true, "Offer HTTP/2"),
    http3: flag(false, "Offer HTTP/3; TLS only"),
    tls_min_version: oneOf(["1.2", "1.3"], { default: "1.2", description: "Oldest TLS version" }),
    client_auth: oneOf(["none", "request", "require"], {
      default: "none",
      description:
        "Client certificates: none; request: may be shown, and must hold then; require: must be shown. TLS listeners with http2 false only",
    }),
    client_ca: nullable(
      t.String({ maxLength: 262_144 }),
      "PEM certificates of those who sign client certificates; required with client_auth",
    ),
    client_crl: nullable(
      t.String({ maxLength: 1_048_576 }),
      "PEM revocation lists, one for every certificate of client_ca; client certificates on them are refused",
    ),
    proxy_protocol: flag(false, "Expect a PROXY protocol header from trusted_proxies"),
    trusted_proxies: listOf(
      t.String({ minLength: 1, maxLength: 64 }),
      "Networks whose forwarded fields are believed, beside the settings'",
    ),
    strict_sni: flag(false, "Refuse names that no certificate covers"),
    max_connections: integer(0, {
      minimum: 0,
      maximum: 10_000_000,
      description: "Connections at once; 0: no limit",
    }),
    max_connections_per_address: integer(0, {
      minimum: 0,
      maximum: 10_000_000,
      description: "Connections at once from one address; 0: no limit",
    }),
    max_in_flight_requests: integer(0, {
      minimum: 0,
      maximum: 10_000_000,
      description:
        "Requests in flight through this listener, in all workers; more are answered with 503; 0: no limit",
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
        "Bytes per second that a request body must bring on average while the client is waited for; less is answered with 408; 0: any rate",
    }),
    idle_timeout: integer(75, {
      minimum: 1,
      maximum: 255,
      description: "Seconds an idle connection is kept",
    }),
    enabled: flag(true, "Whether it listens"),
    ...labels,
  },
  { additionalProperties: false, title: "Listener" },
);

export type ListenerInput = Static<typeof listenerInput>;
export type Listener = Readonly<ListenerInput> & Identity;
