// A stream route: a TCP or UDP port whose traffic goes to a service byte for byte; knows no socket.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineResource, refersTo } from "./resource.ts";
import {
  flag,
  type Identity,
  integer,
  labels,
  listOf,
  milliseconds,
  name,
  nullable,
  oneOf,
} from "./fields.ts";

const cidr = t.String({ minLength: 1, maxLength: 64 });

export const streamRouteInput = t.Object(
  {
    name: name("Unique name"),
    listen_address: t.String({
      minLength: 1,
      maxLength: 64,
      default: "0.0.0.0",
      description: "IP address to listen on",
    }),
    listen_port: nullable(
      t.Integer({ minimum: 1, maximum: 65_535 }),
      "Port to listen on; either this or port_range",
    ),
    port_range: nullable(
      t.String({
        pattern: "^[1-9]\\d{0,4}-[1-9]\\d{0,4}$",
        errorMessage: "must be two ports such as 32500-32599",
      }),
      "Ports to listen on, first and last; the target's port is used for all of them",
    ),
    protocol: oneOf(["tcp", "udp"], { default: "tcp", description: "Transport" }),
    udp_session_timeout: integer(60, {
      minimum: 1,
      maximum: 86_400,
      description: "Seconds without a datagram after which a client's session ends",
    }),
    udp_max_sessions: integer(10_000, {
      minimum: 1,
      maximum: 1_000_000,
      description:
        "Concurrent UDP sessions in one worker; datagrams of further clients are dropped",
    }),
    sni: listOf(
      t.String({
        maxLength: 253,
        pattern: "^(?:\\*\\.)?(?:[A-Za-z0-9_-]{1,63}\\.)*[A-Za-z0-9_-]{1,63}$",
        errorMessage: "must be a host name, or one behind *.",
      }),
      "TLS server names that it matches; empty: every connection. Several stream routes with different names may share a port",
    ),
    tls_mode: oneOf(["none", "passthrough", "terminate"], {
      default: "none",
      description:
        "none: raw bytes; passthrough: the target terminates TLS, the server name selects the route; terminate: the gateway terminates TLS",
    }),
    certificate_id: nullable(
      refersTo("certificates", t.String()),
      "ID or name of the certificate for terminate; null: selected by server name",
    ),
    service_id: refersTo(
      "services",
      t.String({ minLength: 1, description: "ID or name of the service" }),
      { isFilter: true },
    ),
    proxy_protocol_in: flag(false, "Expect a PROXY protocol header from proxy_protocol_trusted"),
    proxy_protocol_trusted: listOf(
      cidr,
      "Networks whose PROXY header is trusted; others are rejected",
    ),
    proxy_protocol_out: oneOf(["off", "v1", "v2"], {
      default: "off",
      description: "Version of the PROXY protocol header for the target",
    }),
    connect_timeout: milliseconds(5000, "Milliseconds to connect to a target"),
    idle_timeout: integer(600, {
      minimum: 0,
      maximum: 604_800,
      description:
        "Seconds without a byte in either direction until the gateway closes the connection; 0: no limit",
    }),
    max_connections: integer(0, {
      minimum: 0,
      maximum: 10_000_000,
      description: "Concurrent connections, over all workers; 0: no limit",
    }),
    allow: listOf(cidr, "Client networks that may connect; empty: all"),
    deny: listOf(cidr, "Client networks that may not connect; wins over allow"),
    enabled: flag(true, "Whether it listens"),
    ...labels,
  },
  { additionalProperties: false, title: "Stream route" },
);

export type StreamRouteInput = Static<typeof streamRouteInput>;
export type StreamRoute = Readonly<StreamRouteInput> & Identity;

/** The ports that a stream route listens on, in order. */
export function portsOf({
  listen_port,
  port_range,
}: Pick<StreamRouteInput, "listen_port" | "port_range">): number[] {
  if (port_range === null) return listen_port === null ? [] : [listen_port];
  const [first = 0, last = 0] = port_range.split("-").map(Number);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);
}

export const streamRoutes = defineResource<StreamRoute>({
  word: "stream route",
  input: streamRouteInput,
  normalize: (route: StreamRouteInput) => ({
    ...route,
    sni: route.sni.map((host) => host.toLowerCase()),
  }),
  nameField: "name",
  api: { tag: "Stream routes", schema: "StreamRoute" },
});
