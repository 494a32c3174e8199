// A stream route: a TCP or UDP port whose traffic goes to a service byte for byte; knows no socket.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineResource, refersTo } from "./resource.ts";
import {
  cidr,
  type FieldForm,
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
import { asHostName } from "./host-name.ts";

export const streamRouteInput = t.Object(
  {
    name: name("Unique name"),
    listen_address: t.String({
      minLength: 1,
      maxLength: 64,
      default: "0.0.0.0",
      description: "IP address to listen on",
      form: {
        title: "Address",
        help: "0.0.0.0 for all IPv4 addresses, :: for all addresses",
      },
    }),
    listen_port: nullable(
      t.Integer({ minimum: 1, maximum: 65_535 }),
      "Port to listen on; either this or port_range",
      {
        title: "Port",
        help: "Clients connect to it. Empty with a port range",
        input: "plain-number",
        example: "5432",
      },
    ),
    port_range: nullable(
      t.String({
        pattern: "^[1-9]\\d{0,4}-[1-9]\\d{0,4}$",
        errorMessage: "must be two ports such as 32500-32599",
      }),
      "Ports to listen on, first and last; the target's port is used for all of them",
      {
        help: "Instead of a port: first and last; all forward to the port of the target",
        example: "32500-32599",
      },
    ),
    protocol: oneOf(["tcp", "udp"], {
      default: "tcp",
      description: "Transport",
      form: {
        title: "Transport",
        help: "UDP for DNS and games; TCP for the rest",
        options: { tcp: "TCP", udp: "UDP" },
        order: -2,
      },
    }),
    udp_session_timeout: integer(60, {
      minimum: 1,
      maximum: 86_400,
      description: "Seconds without a datagram after which a client's session ends",
      form: {
        title: "Session timeout",
        help: "Time without a datagram before the gateway ends a session",
        group: "limits",
        when: { protocol: ["udp"] },
      },
    }),
    udp_max_sessions: integer(10_000, {
      minimum: 1,
      maximum: 1_000_000,
      description:
        "Concurrent UDP sessions in one worker; datagrams of further clients are dropped",
      form: {
        title: "Sessions",
        help: "Per worker",
        group: "limits",
        when: { protocol: ["udp"] },
      },
    }),
    sni: listOf(
      asHostName(
        t.String({
          maxLength: 253,
          pattern: "^(?:\\*\\.)?(?:[A-Za-z0-9_-]{1,63}\\.)*[A-Za-z0-9_-]{1,63}$",
          errorMessage: "must be a host name, or one behind *.",
        }),
      ),
      "TLS server names that it matches; empty: every connection. Several stream routes with different names may share a port",
      {
        form: {
          title: "Server names",
          help: "TLS server names (SNI) that it matches. Several stream routes with different names may share a port. Empty: any",
          example: "nas.example.com",
          group: "tls",
          order: 1,
          when: { protocol: ["tcp"], tls_mode: ["passthrough", "terminate"] },
        },
      },
    ),
    tls_mode: oneOf(["none", "passthrough", "terminate"], {
      default: "none",
      description:
        "none: raw bytes; passthrough: the target terminates TLS, the server name selects the route; terminate: the gateway terminates TLS",
      form: {
        title: "TLS",
        help: "",
        options: {
          none: "None: bytes are forwarded unchanged",
          passthrough: "Passthrough: routed by server name (SNI)",
          terminate: "Terminate, with a certificate of the gateway",
        },
        group: "tls",
        when: { protocol: ["tcp"] },
      },
    }),
    certificate_id: nullable(
      refersTo("certificates", t.String()),
      "ID or name of the certificate for terminate; null: selected by server name",
      {
        title: "Certificate",
        help: "Empty: selected by the server name (SNI)",
        group: "tls",
        order: 1,
        when: { protocol: ["tcp"], tls_mode: ["terminate"] },
      },
    ),
    service_id: refersTo(
      "services",
      t.String({
        minLength: 1,
        description: "ID or name of the service",
        form: {
          title: "Service",
          help: "One with the protocol TCP, TLS or UDP",
          only: { protocol: ["tcp", "tls", "udp"] },
          order: -1,
        },
      }),
      { isFilter: true },
    ),
    proxy_protocol_in: flag(false, "Expect a PROXY protocol header from proxy_protocol_trusted", {
      title: "Require it from clients",
      help: "The gateway closes connections without it",
      group: "proxy",
      when: { protocol: ["tcp"] },
    }),
    proxy_protocol_trusted: listOf(
      cidr,
      "Networks whose PROXY header is trusted; others are rejected",
      {
        form: {
          title: "Trusted proxies",
          help: "Networks; connections from others are closed",
          example: "10.0.0.0/8",
          group: "proxy",
          when: { protocol: ["tcp"], proxy_protocol_in: [true] },
        },
      },
    ),
    proxy_protocol_out: oneOf(["off", "v1", "v2"], {
      default: "off",
      description: "Version of the PROXY protocol header for the target",
      form: {
        title: "Send it to targets",
        help: "Only if the targets require it",
        options: { off: "No", v1: "Version 1, as text", v2: "Version 2, binary" },
        group: "proxy",
        when: { protocol: ["tcp"] },
      },
    }),
    connect_timeout: milliseconds(5000, "Milliseconds to connect to a target", {
      help: "",
      group: "limits",
    }),
    idle_timeout: integer(600, {
      minimum: 0,
      maximum: 604_800,
      description:
        "Seconds without a byte in either direction until the gateway closes the connection; 0: no limit",
      form: {
        help: "Time without a byte in either direction before the gateway closes a connection",
        zero: "never",
        group: "limits",
        when: { protocol: ["tcp"] },
      },
    }),
    max_connections: integer(0, {
      minimum: 0,
      maximum: 10_000_000,
      description: "Concurrent connections, over all workers; 0: no limit",
      form: {
        title: "Connections",
        help: "In all workers",
        zero: "no limit",
        group: "limits",
      },
    }),
    allow: listOf(cidr, "Client networks that may connect; empty: all", {
      form: {
        title: "Allowed",
        help: "Empty: all",
        example: "192.168.0.0/16",
        group: "networks",
      },
    }),
    deny: listOf(cidr, "Client networks that may not connect; wins over allow", {
      form: {
        title: "Denied",
        help: "Takes precedence over allowed networks",
        group: "networks",
      },
    }),
    enabled: flag(true, "Whether it listens", { help: "Off: its port is closed" }),
    ...labels,
  },
  {
    additionalProperties: false,
    title: "Stream route",
    form: {
      groups: [
        { id: "main", title: "Stream route" },
        { id: "tls", title: "TLS", text: "TLS mode and the server names that the route matches." },
        {
          id: "networks",
          title: "Client networks",
          text: "The gateway closes connections from denied networks.",
          folded: true,
          summary: "All networks",
        },
        {
          id: "limits",
          title: "Limits and timeouts",
          text: "Maximum connections and idle timeouts.",
          folded: true,
          summary: "Defaults",
        },
        {
          id: "proxy",
          title: "PROXY protocol",
          text: "Carries the client address between proxies.",
          folded: true,
          summary: "Not required, not sent",
        },
      ],
    } satisfies FieldForm,
  },
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
