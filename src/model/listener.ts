// A listener: an address and port where clients connect; knows nothing of sockets.
import { type Static, Type as t } from "@sinclair/typebox";
import { FORMER } from "./decode.ts";
import { DEFAULTS, type DependentDefault } from "./dependent-defaults.ts";
import { listenerRules } from "./listener-rules.ts";
import { defineResource, since } from "./resource.ts";
import {
  type FieldForm,
  flag,
  hostCheck,
  type Identity,
  integer,
  labels,
  listOf,
  name,
  nullable,
  oneOf,
  proxyNetwork,
} from "./fields.ts";
import { proxiesInWords } from "./known-proxies.ts";
import { asHostName } from "./host-name.ts";

/** What parses HTTP on the sockets of a listener. */
export const httpEngines = ["sluice", "bun"] as const;
export type HttpEngine = (typeof httpEngines)[number];

const DEFAULT_ENGINE: HttpEngine = "sluice";

const https = { protocol: ["https"] };
const own = { engine: ["sluice"] };

const clientCertificates = { ...https, client_auth: ["request", "require"] };

const form: FieldForm = {
  groups: [
    { id: "main", title: "Listener" },
    {
      id: "engine",
      title: "HTTP engine",
      text: "The engine sluice serves what Bun's cannot: gRPC, trailers, WebSockets over HTTP/2, downloads with their length, client certificates, the PROXY protocol.",
    },
    {
      id: "tls",
      title: "TLS",
      text: "The gateway selects the certificate by the name that the client requests (SNI).",
    },
    {
      id: "clients",
      title: "Client certificates",
      text: "Clients authenticate with a certificate (mTLS).",
      folded: true,
      summary: "Not requested",
    },
    {
      id: "proxies",
      title: "Behind another proxy",
      text: "Proxies that are trusted to name the client.",
      folded: true,
      summary: "None",
    },
    {
      id: "limits",
      title: "Limits",
      text: "Connections and requests above a limit are closed or rejected.",
      folded: true,
      summary: "Any number of connections; idle timeout 75 s",
    },
  ],
};

export const listenerInput = t.Object(
  {
    name: name("Unique name"),
    address: t.String({
      minLength: 1,
      maxLength: 64,
      default: "0.0.0.0",
      description: "IP address to listen on",
      form: { help: "0.0.0.0 for all IPv4 addresses, :: for all addresses" },
    }),
    port: t.Integer({
      minimum: 1,
      maximum: 65_535,
      description: "Port to listen on",
      form: {
        help: "Browsers use 80 for HTTP, 443 for HTTPS",
        example: "443",
        input: "plain-number",
        order: -1,
      },
    }),
    hosts: listOf(
      asHostName(t.String({ minLength: 1, maxLength: 255, form: { check: hostCheck } })),
      "Host names that it serves, `*.example.com` for all subdomains; empty: any. Listeners with different names may share an address and port: the most specific name wins",
      {
        maxItems: 100,
        form: {
          help: "Serves only these names. Empty: any. Listeners with different hosts may share an address and port",
          example: "*.example.com",
        },
      },
    ),
    protocol: oneOf(["http", "https"], {
      default: "http",
      description: "http: plain; https: TLS",
      form: {
        help: "",
        options: { http: "HTTP", https: "HTTPS, with the gateway's certificates" },
        order: -2,
      },
    }),
    engine: since(4, {
      ...oneOf(httpEngines, {
        default: DEFAULT_ENGINE,
        description:
          "HTTP engine. sluice: the gateway's own, with the least processor time, gRPC, trailers, exact lengths, every upgrade, names as sent, client certificates, PROXY protocol and limits of connections; bun: Bun.serve. A change binds the listener again",
        form: {
          help: "Bun's has no gRPC and loses lengths, trailers and the case of names",
          options: { sluice: "Sluice: our own", bun: "Bun: Bun.serve" },
          group: "engine",
        },
      }),
      [FORMER]: {
        full: '"full" is "sluice" now',
        standard: '"standard" is "sluice" now, the default; "bun" is what it was',
      },
    }),
    max_concurrent_streams: since(
      4,
      integer(100, {
        minimum: 1,
        maximum: 1000,
        description: "Concurrent HTTP/2 streams per connection of the engine sluice",
        form: {
          title: "Concurrent streams per connection",
          help: "HTTP/2 requests that a client may have open on one connection",
          group: "engine",
          when: own,
        },
      }),
    ),
    max_connection_age: since(
      4,
      integer(0, {
        minimum: 0,
        maximum: 604_800,
        description:
          "Seconds after which the engine sluice asks a client to open a new HTTP/2 connection; 0: no limit",
        form: {
          title: "Maximum connection age",
          help: "Then clients are asked to connect again, so that they spread over gateways",
          zero: "no limit",
          group: "engine",
          when: own,
        },
      }),
    ),
    http2: flag(true, "Whether to offer HTTP/2", {
      title: "HTTP/2",
      help: "Concurrent requests on one connection",
    }),
    http3: flag(false, "Whether to offer HTTP/3; TLS only", {
      title: "HTTP/3",
      help: "Over UDP on the same port, which the firewall must allow. A certificate change may close its connections",
      group: "tls",
      order: 1,
      when: https,
    }),
    tls_min_version: oneOf(["1.2", "1.3"], {
      default: "1.2",
      description: "Minimum TLS version",
      form: {
        title: "Minimum TLS version",
        help: "1.3 denies clients from before 2018",
        options: { "1.2": "1.2", "1.3": "1.3" },
        group: "tls",
        when: https,
      },
    }),
    client_auth: oneOf(["none", "request", "require"], {
      default: "none",
      description:
        "Client certificates. none: not requested; request: optional, but must be valid; require: mandatory. TLS and engine sluice only",
      form: {
        title: "Client certificates",
        help: "",
        options: {
          none: "Not requested",
          request: "Optional, must be valid if presented",
          require: "Required",
        },
        group: "clients",
        when: https,
      },
    }),
    client_ca: nullable(
      t.String({ maxLength: 262_144 }),
      "PEM certificates of the CAs that sign client certificates; required with client_auth",
      {
        title: "Client CAs",
        help: "PEM certificates of the only CAs that are trusted",
        example: "-----BEGIN CERTIFICATE-----",
        input: "code",
        isNeeded: true,
        group: "clients",
        when: clientCertificates,
      },
    ),
    client_crl: nullable(
      t.String({ maxLength: 1_048_576 }),
      "PEM revocation lists, one for every certificate of client_ca; the gateway rejects client certificates on them",
      {
        title: "Revocation lists",
        help: "PEM, one per CA. After a list expires, the certificates of its CA are rejected",
        example: "-----BEGIN X509 CRL-----",
        input: "code",
        group: "clients",
        when: clientCertificates,
      },
    ),
    proxy_protocol: flag(false, "Expect a PROXY protocol header from trusted_proxies", {
      title: "Require the PROXY protocol",
      help: "The gateway closes connections without it and from untrusted addresses",
      group: "proxies",
      order: 1,
    }),
    trusted_proxies: listOf(
      proxyNetwork,
      `Networks whose X-Forwarded-* headers are trusted, beside the settings'; also names of proxies with their published networks of a day: ${proxiesInWords}`,
      {
        form: {
          help: `Networks whose X-Forwarded-For is trusted, in addition to those of the gateway settings, or a name: ${proxiesInWords}`,
          example: "10.0.0.0/8",
          group: "proxies",
        },
      },
    ),
    strict_sni: flag(false, "Whether to reject handshakes for names that no certificate covers", {
      title: "Reject unknown names",
      help: "Closes TLS connections whose server name has no certificate",
      group: "tls",
      when: https,
    }),
    max_connections: integer(0, {
      minimum: 0,
      maximum: 10_000_000,
      description: "Concurrent connections; 0: no limit",
      form: { title: "Connections", help: "", zero: "no limit", group: "limits" },
    }),
    max_connections_per_address: integer(0, {
      minimum: 0,
      maximum: 10_000_000,
      description: "Concurrent connections from one address; 0: no limit",
      form: {
        title: "Connections per client address",
        help: "",
        zero: "no limit",
        group: "limits",
      },
    }),
    max_in_flight_requests: integer(0, {
      minimum: 0,
      maximum: 10_000_000,
      description:
        "Requests in flight through this listener, in all workers; above it the gateway responds with 503; 0: no limit",
      form: {
        title: "Requests in flight",
        help: "In all workers. Requests above the limit get status 503",
        zero: "no limit",
        group: "limits",
      },
    }),
    max_header_bytes: {
      ...integer(32_768, {
        minimum: 1024,
        maximum: 262_144,
        description:
          "Largest request head in bytes; at most 16384 with engine bun, whose default that is",
        form: {
          title: "Maximum request head",
          help: "More than 16 KiB only with the engine sluice",
          group: "limits",
        },
      }),
      [DEFAULTS]: [{ when: { engine: ["bun"] }, default: 16_384 }] satisfies DependentDefault[],
    },
    max_body_bytes: integer(0, {
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: "Largest request body in bytes; 0: no limit",
      form: { title: "Maximum request body", help: "", zero: "no limit", group: "limits" },
    }),
    body_min_rate: integer(500, {
      minimum: 0,
      maximum: 1_000_000_000,
      description:
        "Minimum average rate of a request body in bytes per second while the gateway waits for the client; below it the gateway responds with 408; 0: no limit",
      form: {
        title: "Minimum request body rate",
        help: "Bytes per second. Slower clients get status 408",
        zero: "no minimum",
        group: "limits",
      },
    }),
    idle_timeout: integer(75, {
      minimum: 1,
      maximum: 255,
      description: "Seconds until the gateway closes an idle connection",
      form: { help: "", group: "limits" },
    }),
    enabled: flag(true, "Whether it listens", { help: "Off: its port is closed" }),
    ...labels,
  },
  {
    additionalProperties: false,
    title: "Listener",
    form,
    [FORMER]: {
      shared_engines: 'is gone: engine "sluice" serves all host names, also those of gRPC services',
    },
  },
);

export type ListenerInput = Static<typeof listenerInput>;
export type Listener = Readonly<ListenerInput> & Identity;

export const listeners = defineResource<Listener>({
  word: "listener",
  input: listenerInput,
  rules: listenerRules,
  nameField: "name",
  columns: { name: { of: ({ name }) => name, isUnique: true, isNullable: true } },
  api: { tag: "Listeners", schema: "Listener", write: "admin" },
});
