// What real programs and devices send, through the gateway, nginx and Caddy side by side: what one of these serves, the gateway serves.
import { expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:tls";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Caddy, startCaddy } from "../support/caddy.ts";
import { selfSigned } from "../support/certificate.ts";
import { executable } from "../support/executable.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { H2Client } from "../support/h2-client.ts";
import { needs } from "../support/needs.ts";
import { type Nginx, startNginx } from "../support/nginx.ts";
import { signIn, startNtlmTarget } from "../support/ntlm-target.ts";
import { type Origin, type OriginRequest, reply, startOrigin } from "../support/origin.ts";
import { quietPort } from "../support/quiet-port.ts";
import { exchange } from "../support/raw-exchange.ts";
import { connectRaw } from "../support/raw-http.ts";

const { afterAll, beforeAll, describe, test } = needs("executable", "nginx", "caddy");

const OK = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
const EVIL = `${OK}Content-Length: 4\r\n\r\nevil`;
const HOST = "device.test";
const IDN = "xn--bcher-kva.example";
/** RFC 6455 section 1.3. */
const KEY = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const ACCEPT = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
const COOKIES = Array.from({ length: 200 }, (_, at) => `c${at}=${"x".repeat(95)}`).join("; ");

const METADATA = "m".repeat(64_000);

const transports = ["HTTP/1.1", "HTTP/1.1, TLS", "HTTP/2", "HTTP/2, TLS"] as const;
type Transport = (typeof transports)[number];
const isTls = (transport: Transport) => transport.endsWith("TLS");
const isHttp2 = (transport: Transport) => transport.startsWith("HTTP/2");

interface Row {
  readonly why: string;
  /** What the target sends. */
  readonly response: string | ((request: OriginRequest) => string);
  /** Status and body that it means, of which the client knows the scheme and the port. */
  readonly want: string | ((scheme: string, port: number) => string);
  /** The target closes the connection behind its response. */
  readonly ends?: true;
  readonly method?: string;
  readonly host?: string;
  /** In front of the path of the row. */
  readonly prefix?: string;
  readonly fields?: readonly (readonly [name: string, value: string])[];
  readonly body?: string;
  /** The body has no length. */
  readonly isChunked?: true;
  /** Default: all. */
  readonly over?: readonly Transport[];
  /** Why the gateway does not serve it, whatever others do. */
  readonly refused?: string;
}

const seenBy = (request: OriginRequest, ...names: readonly string[]) =>
  reply(names.map((name) => request.header(name) ?? "none").join(" "));

const rows: readonly Row[] = [
  ...(
    [
      ["HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "lines end in LF"],
      ["HTTP/1.1 200 OK\r\nX: y\nContent-Length: 2\n\nok", "the fields of a script end in LF"],
      [`${OK}X: y\r\r\nContent-Length: 2\r\n\r\nok`, "more than one CR"],
      ["HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok", "two blanks in the status line"],
      ["HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nok", "a minor version"],
      ["HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", "no reason"],
      ["HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok", "an empty reason"],
      [`${OK}${OK}Content-Length: 2\r\n\r\nok`, "the status line twice"],
      [`${OK}Content-Length: 2\r\nContent-Length: 2\r\n\r\nok`, "a length twice"],
      [`${OK}Content-Length:2\r\n\r\nok`, "nothing behind the colon"],
      [`${OK}CONTENT-LENGTH: 2\r\n\r\nok`, "names in upper case"],
      [`${OK}content-type:\r\ncontent-length: 2\r\n\r\nok`, "an empty Content-Type"],
      [`${OK}Content-Type: text/html; charset=\r\nContent-Length: 2\r\n\r\nok`, "an empty charset"],
      [`${OK}X: \xe4\xf6\r\nContent-Length: 2\r\n\r\nok`, "Latin-1 in a value"],
      [`${OK}X_Y: z\r\nContent-Length: 2\r\n\r\nok`, "an underscore in a name"],
      [`${OK}Connection: close\r\nContent-Length: 2\r\n\r\nok`, "a connection that it closes"],
      [
        `${OK}Set-Cookie: a=${"x".repeat(20_000)}\r\nContent-Length: 2\r\n\r\nok`,
        "a head of 20 KB",
      ],
      [`${OK}Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok`, "the coding identity"],
      [`${OK}Content-Length: 2\r\n\r\nokXX`, "bytes beyond the length"],
      [`${OK}Content-Length: 2\r\n\r\nok\r\n`, "CRLF beyond the length"],
      [`${CHUNKED}2 \r\nok\r\n0\r\n\r\n`, "a blank behind a size"],
      [`${CHUNKED}2\t\r\nok\r\n0\t\r\n\r\n`, "tabs behind sizes"],
      [`${CHUNKED} 2\r\nok\r\n 0\r\n\r\n`, "blanks before sizes"],
      [`${CHUNKED}0002\r\nok\r\n00\r\n\r\n`, "sizes with zeros"],
      [`${CHUNKED}2;a=b\r\nok\r\n0\r\n\r\n`, "an extension of a chunk"],
      [`${CHUNKED}2\nok\n0\n\n`, "chunks with LF"],
      [`${CHUNKED}2\r\nok\r\n0\r\nT: 1\r\n\r\n`, "a trailer"],
      [`${CHUNKED}2\r\nok\r\n0\r\n\r\nX`, "bytes behind the chunks"],
      [`${OK}Transfer-Encoding: Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`, "the coding in another case"],
      [
        `${OK}Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
        "a length beside chunks",
      ],
      [`HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok`, "HTTP/1.0"],
    ] as const
  ).map(([response, why]): Row => ({ response, why, want: "200 ok" })),
  ...(
    [
      // nginx or Caddy would wait for more.
      [`\r\n${OK}Content-Length: 2\r\n\r\nok`, "an empty line before"],
      [`${OK}Content-Length: 2, 2\r\n\r\nok`, "a list of one length"],
      [`${OK}Content-Length : 2\r\n\r\nok`, "a blank before the colon"],
      [`${OK}Content-Length:\t2\r\n\r\nok`, "a tab behind the colon"],
      [`HTTP/1.1 100 Continue\r\n\r\n${OK}Content-Length: 2\r\n\r\nok`, "an interim response"],
      [`${OK}\r\nok`, "no length"],
      ["HTTP/1.0 200 OK\r\n\r\nok", "HTTP/1.0 without a length"],
      ["HTTP/1.0 200 OK\n\nok", "HTTP/1.0 with LF"],
      [
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "chunked in HTTP/1.0",
      ],
      [`${OK}Content-Length: 2\r\n\r\nok`, "a kept connection that it closes"],
    ] as const
  ).map(([response, why]): Row => ({ response, why, want: "200 ok", ends: true })),
  {
    response: `${CHUNKED}2\r\nok\r\n0\r\n`,
    why: "no line behind the last chunk",
    want: "200 ok",
    ends: true,
  },
  { response: "HTTP/1.1 204 No Content\r\n\r\nok", why: "a body behind 204", want: "204 " },
  {
    response: "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok",
    why: "a length and a body behind 204",
    want: "204 ",
  },
  {
    response: "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    why: "chunks behind 204",
    want: "204 ",
  },
  {
    response: "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok",
    why: "a body behind 304",
    want: "304 ",
  },
  {
    method: "HEAD",
    response: `${OK}Content-Length: 2\r\n\r\nok`,
    why: "a body behind HEAD",
    want: "200 ",
  },
  {
    method: "HEAD",
    response: `${CHUNKED}2\r\nok\r\n0\r\n\r\n`,
    why: "chunks behind HEAD",
    want: "200 ",
  },
  ...(
    [
      [`${OK}Content-Length: 2\r\n\r\nok${EVIL}`, "a second response", "200 ok"],
      [`${OK}Content-Length: 0\r\n\r\n${EVIL}`, "a second response behind none", "200 "],
      [`${CHUNKED}2\r\nok\r\n0\r\n\r\n${EVIL}`, "a second response behind chunks", "200 ok"],
      [`${CHUNKED}2 \nok\n 0\n\n${EVIL}`, "a second response behind lenient chunks", "200 ok"],
      [`HTTP/1.1 200 OK\nContent-Length: 2\n\nok${EVIL}`, "a second response behind LF", "200 ok"],
      [`HTTP/1.1 204 No Content\r\n\r\n${EVIL}`, "a second response behind 204", "204 "],
      [
        `HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok${EVIL}`,
        "a second response behind 204 with a body",
        "204 ",
      ],
      [`HTTP/1.1 304 Not Modified\r\n\r\n${EVIL}`, "a second response behind 304", "304 "],
    ] as const
  ).map(([response, why, want]): Row => ({ response, why, want })),
  {
    method: "HEAD",
    response: `${OK}Content-Length: 2\r\n\r\nok${EVIL}`,
    why: "a second response behind HEAD",
    want: "200 ",
  },
  {
    response: `${OK}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${EVIL}`,
    why: "a second response behind a length beside chunks",
    want: "200 ",
  },
  ...(
    [
      [`${OK}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!`, "two lengths"],
      [`${OK}Content-Length: -2\r\n\r\nok`, "a negative length"],
      [`${CHUNKED}2x\r\nok\r\n0\r\n\r\n`, "a size that is none"],
    ] as const
  ).map(([response, why]): Row => ({
    response,
    why,
    want: "200 ok",
    ends: true,
    refused: "programs disagree about its end",
  })),
  {
    response: `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    why: "another coding",
    want: "200 ok",
    ends: true,
    refused: "the content would be another one",
  },
  {
    why: "the case of a name that a client sends",
    fields: [["X-Device-KEY", "1"]],
    response: ({ head }) => reply(/x-device-key/i.exec(head)?.[0] ?? "none"),
    want: "200 X-Device-KEY",
    over: ["HTTP/1.1", "HTTP/1.1, TLS"],
  },
  {
    why: "the case of Content-Length and Host, for firmware that compares bytes",
    method: "POST",
    body: "cmnd=Power",
    response: ({ head }) =>
      reply(
        ["content-length", "host"].map((name) => new RegExp(name, "i").exec(head)?.[0]).join(" "),
      ),
    want: "200 Content-Length Host",
  },
  {
    why: "an empty Content-Type of a request",
    fields: [["Content-Type", ""]],
    response: reply(),
    want: "200 ok",
  },
  {
    why: "20 KB of cookies",
    fields: [["Cookie", COOKIES]],
    response: (request) => reply(String(request.header("cookie")?.length)),
    want: `200 ${COOKIES.length}`,
  },
  {
    why: "64 KB of metadata, as gRPC sends it",
    fields: [["X-Metadata", METADATA]],
    response: (request) => reply(String(request.header("x-metadata")?.length)),
    want: `200 ${METADATA.length}`,
  },
  {
    why: "a body without a length, with request buffering",
    prefix: "/buffered",
    method: "POST",
    body: "hello",
    isChunked: true,
    response: (request) => seenBy(request, "content-length", "transfer-encoding"),
    want: "200 5 none",
  },
  {
    why: "a body without a length",
    method: "POST",
    body: "hello",
    isChunked: true,
    response: ({ body }) => reply(body.includes("hello") ? "got it" : "nothing"),
    want: "200 got it",
  },
  { why: "a body of GET", body: "hello", response: ({ body }) => reply(body), want: "200 hello" },
  ...["PROPFIND", "REPORT", "M-SEARCH", "QUERY", "LINK"].map((method): Row => ({
    why: `the method ${method}`,
    method,
    response: (request) => reply(request.method),
    want: `200 ${method}`,
  })),
  {
    why: "encoded slashes, blanks and colons in a path",
    prefix: "/a%2Fb%20c%3A//d",
    response: ({ target }) => reply(target.replace(/\/\d+$/, "")),
    want: "200 /a%2Fb%20c%3A//d",
  },
  {
    why: "dot segments in a path",
    prefix: "/a/../b",
    response: ({ target }) => reply(target.replace(/\/\d+$/, "")),
    want: "200 /a/../b",
    refused: "the target gets the path that chose the route",
  },
  {
    why: "X-Forwarded-Proto and -Port",
    host: `${HOST}:PORT`,
    response: (request) => seenBy(request, "x-forwarded-proto", "x-forwarded-port"),
    want: (scheme, port) => `200 ${scheme} ${port}`,
  },
  {
    why: "X-Forwarded-Proto, -Host and -Prefix that a client spoofs",
    fields: [
      ["X-Forwarded-Proto", "gopher"],
      ["X-Forwarded-Host", "evil.test"],
      ["X-Forwarded-Prefix", "/evil"],
    ],
    response: (request) =>
      seenBy(request, "x-forwarded-proto", "x-forwarded-host", "x-forwarded-prefix"),
    want: (scheme) => `200 ${scheme} ${HOST} none`,
  },
  {
    why: "X-Forwarded-Prefix of a stripped prefix",
    prefix: "/media",
    response: (request) => seenBy(request, "x-forwarded-prefix"),
    want: "200 /media",
  },
  {
    why: "X-Forwarded-Scheme",
    prefix: "/scheme",
    response: (request) => seenBy(request, "x-forwarded-scheme"),
    want: (scheme) => `200 ${scheme}`,
  },
  { why: "a target with TLS 1.0", prefix: "/tls1.0", response: "", want: "200 TLSv1" },
  { why: "a target with TLS 1.1", prefix: "/tls1.1", response: "", want: "200 TLSv1.1" },
  {
    why: "an international host",
    host: IDN,
    response: (request) => seenBy(request, "host"),
    want: `200 ${IDN}`,
  },
  {
    why: "an international host in upper case",
    host: "XN--Bcher-KVA.Example",
    response: reply(),
    want: "200 ok",
  },
  {
    why: "an international host in UTF-8",
    host: Buffer.from("bücher.example").toString("latin1"),
    response: reply(),
    want: "200 ok",
    refused: "an invalid Host gets 400 (RFC 9112 section 3.2)",
  },
  { why: "a host with a dot at its end", host: `${HOST}.`, response: reply(), want: "200 ok" },
];

const upgrades = ["websocket", "tailscale-control-protocol", "DERP", "tcp", "SPDY/3.1"].flatMap(
  (protocol) =>
    (["GET", "POST"] as const).map((method) => ({
      protocol,
      method,
      why: `${method} upgrades to ${protocol}`,
    })),
);

type Program = "Sluice" | "nginx" | "Caddy";
const programs = ["Sluice", "nginx", "Caddy"] as const;
interface Ports {
  readonly plain: number;
  /** HTTP/2 with prior knowledge. */
  readonly h2c: number;
  readonly tls: number;
}

const scratch = mkdtempSync(join(tmpdir(), "sluice-device-responses-"));
const ntlm = startNtlmTarget();
let origin: Origin;
let gateway: Gateway;
let nginx: Nginx;
let caddy: Caddy;
const old: Server[] = [];
const ports = {} as Record<Program, Ports>;

beforeAll(async () => {
  origin = startOrigin({
    answer(request, connection) {
      if (/\/canary$/.test(request.target)) return reply("canary");
      const protocol = request.header("upgrade");
      if (protocol !== null)
        return `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${protocol === "websocket" ? `${ACCEPT}\r\n\x81\x05` : "\r\n"}hello`;
      const row = rows[Number(/\d+$/.exec(request.target)?.[0])];
      if (row === undefined) return reply("no such row");
      connection.write(typeof row.response === "string" ? row.response : row.response(request));
      if (row.ends) connection.end();
      return null;
    },
  });
  const pair = await selfSigned(HOST, IDN, "localhost");
  writeFileSync(join(scratch, "cert.pem"), pair.cert);
  writeFileSync(join(scratch, "key.pem"), pair.key);
  const tls10 = await startOld(pair, "TLSv1");
  const tls11 = await startOld(pair, "TLSv1.1");
  await Promise.all([
    startSluice(tls10, tls11),
    startTheNginx(tls10, tls11),
    startTheCaddy(tls10, tls11),
  ]);
});
afterAll(async () => {
  await Promise.all([gateway?.stop(), nginx?.stop(), caddy?.stop()]);
  origin?.stop();
  ntlm.stop();
  for (const server of old) server.close();
  rmSync(scratch, { recursive: true, force: true });
});

async function startOld(
  pair: { cert: string; key: string },
  version: "TLSv1" | "TLSv1.1",
): Promise<number> {
  const server = createServer({ ...pair, minVersion: version, maxVersion: version });
  server.on("tlsClientError", () => {});
  server.on("secureConnection", (socket) => {
    socket.on("error", () => {});
    socket.on("data", (bytes) =>
      socket.write(
        reply(String(bytes).includes("/canary") ? "canary" : (socket.getProtocol() ?? "")),
      ),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  old.push(server);
  return (server.address() as AddressInfo).port;
}

async function startSluice(tls10: number, tls11: number) {
  gateway = await startGateway({ binary: executable, workers: 1 });
  const post = (path: string, body: object) => gateway.ok("POST", `/api/v1/${path}`, body);
  const service = (name: string, port: number, more: object = {}) =>
    post("services", { name, targets: [{ host: "127.0.0.1", port }], ...more });
  const hosts = [HOST];
  await service("device", origin.port);
  await service("ntlm", ntlm.port);
  for (const { id } of await gateway.ok("GET", "/api/v1/listeners"))
    await gateway.ok("PATCH", `/api/v1/listeners/${id}`, { max_header_bytes: 131_072 });
  await service("old-1.0", tls10, {
    protocol: "https",
    tls: { verify: false, min_version: "1.0" },
  });
  await service("old-1.1", tls11, {
    protocol: "https",
    tls: { verify: false, min_version: "1.1" },
  });
  const service_id = "device";
  await post("routes", { name: "device", hosts, service_id });
  await post("routes", { name: "idn", hosts: ["bücher.example"], service_id });
  await post("routes", {
    name: "buffered",
    hosts,
    paths: ["/buffered"],
    service_id,
    request_buffering: "on",
  });
  await post("routes", { name: "ntlm", hosts, paths: ["/ntlm"], service_id: "ntlm" });
  await post("routes", { name: "media", hosts, paths: ["/media"], service_id, strip_path: true });
  await post("routes", { name: "scheme", hosts, paths: ["/scheme"], service_id });
  await post("plugins", {
    name: "transform",
    route_id: "scheme",
    // As the import of Nginx Proxy Manager writes it.
    config: { request: { headers: { set: { "X-Forwarded-Scheme": "${request.scheme}" } } } },
  });
  for (const version of ["1.0", "1.1"])
    await post("routes", {
      name: `old-${version}`,
      hosts,
      paths: [`/tls${version}`],
      service_id: `old-${version}`,
    });
  const { httpPort, httpsPort } = gateway;
  ports.Sluice = { plain: httpPort, h2c: httpPort, tls: httpsPort };
}

async function startTheNginx(tls10: number, tls11: number) {
  const [h2c, tls] = [quietPort(), quietPort()];
  const set = `
    proxy_set_header Host $host;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $upgrade_or_none;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header X-Forwarded-Host $host;
    proxy_set_header X-Forwarded-Port $server_port;
    proxy_set_header X-Forwarded-Scheme $scheme;`;
  const place = (port: number, version: string) => `
    location /tls${version.slice(-3)} {
      proxy_ssl_protocols ${version};
      proxy_ssl_ciphers DEFAULT@SECLEVEL=0;
      proxy_pass https://127.0.0.1:${port};
    }`;
  nginx = await startNginx({
    files: { "index.html": "" },
    servers: (own) =>
      `
      map $http_upgrade $upgrade_or_none { default upgrade; '' ''; }
      upstream device { server 127.0.0.1:${origin.port}; keepalive 8; }
      upstream ntlm { server 127.0.0.1:${ntlm.port}; keepalive 8; }
      server {
        listen 127.0.0.1:${own};
        listen 127.0.0.1:${h2c} http2;
        listen 127.0.0.1:${tls} ssl http2;
        server_name ${HOST} ${IDN} bücher.example;
        ssl_certificate ${scratch}/cert.pem;
        ssl_certificate_key ${scratch}/key.pem;
        large_client_header_buffers 4 128k;
        proxy_buffer_size 64k;
        proxy_buffers 8 64k;
        proxy_http_version 1.1;
        ${set}
        location / { proxy_pass http://device; }
        location /ntlm { ${set} proxy_set_header Connection ""; proxy_pass http://ntlm; }
        location /media/ { ${set} proxy_set_header X-Forwarded-Prefix /media; proxy_pass http://device/; }
        ${place(tls10, "TLSv1")}
        ${place(tls11, "TLSv1.1")}
      }`.replace("/tlsSv1 {", "/tls1.0 {"),
  });
  ports.nginx = { plain: nginx.port, h2c, tls };
}

async function startTheCaddy(tls10: number, tls11: number) {
  caddy = await startCaddy();
  const tls = quietPort();
  const proxy = (port: number, set: object = {}, more: object = {}) => ({
    handler: "reverse_proxy",
    upstreams: [{ dial: `127.0.0.1:${port}` }],
    headers: {
      request: {
        set: {
          "X-Forwarded-Port": ["{http.request.port}"],
          "X-Forwarded-Scheme": ["{http.request.scheme}"],
          ...set,
        },
      },
    },
    ...more,
  });
  const oldTarget = (path: string, port: number) => ({
    match: [{ path: [`${path}/*`] }],
    handle: [
      proxy(port, {}, { transport: { protocol: "http", tls: { insecure_skip_verify: true } } }),
    ],
    terminal: true,
  });
  const routes = [
    oldTarget("/tls1.0", tls10),
    oldTarget("/tls1.1", tls11),
    { match: [{ path: ["/ntlm"] }], handle: [proxy(ntlm.port)], terminal: true },
    {
      match: [{ path: ["/media/*"] }],
      handle: [
        { handler: "rewrite", strip_path_prefix: "/media" },
        proxy(origin.port, { "X-Forwarded-Prefix": ["/media"] }),
      ],
      terminal: true,
    },
    {
      match: [{ host: [HOST, IDN, "bücher.example"] }],
      handle: [proxy(origin.port)],
      terminal: true,
    },
    { handle: [{ handler: "static_response", status_code: 404 }] },
  ];
  const server = { routes, automatic_https: { disable: true } };
  await caddy.load({
    http: {
      servers: {
        plain: { ...server, listen: [`127.0.0.1:${caddy.port}`], protocols: ["h1", "h2c"] },
        tls: {
          ...server,
          listen: [`127.0.0.1:${tls}`],
          protocols: ["h1", "h2"],
          tls_connection_policies: [{}],
        },
      },
    },
    tls: {
      certificates: {
        load_files: [{ certificate: join(scratch, "cert.pem"), key: join(scratch, "key.pem") }],
      },
    },
  });
  ports.Caddy = { plain: caddy.port, h2c: caddy.port, tls };
}

const portOf = ({ plain, h2c, tls }: Ports, transport: Transport) =>
  isTls(transport) ? tls : isHttp2(transport) ? h2c : plain;

/** Status and body of the row, and of the request that follows on the connection. */
async function ask(
  row: Row,
  at: number | "canary",
  port: number,
  transport: Transport,
): Promise<[own: string, next: string]> {
  const { method = "GET", prefix = "", fields = [], body } = row;
  const host = (row.host ?? HOST).replace("PORT", String(port));
  const path = `${prefix}/${at}`;
  const next = `${row.prefix?.startsWith("/tls") ? row.prefix : ""}/canary`;
  if (isHttp2(transport)) {
    const client = await H2Client.connect({ port, tls: isTls(transport) });
    const send = async (name: string, target: string, more: typeof fields, text?: string) => {
      const stream = client.headers(
        [
          [":method", name],
          [":scheme", isTls(transport) ? "https" : "http"],
          [":authority", host],
          [":path", target],
          ...more.map(([field, value]) => [field.toLowerCase(), value] as const),
        ],
        { isLast: text === undefined },
      );
      if (text !== undefined) client.data(stream, text);
      const { outcome, body: got } = await client.result(stream);
      return `${outcome} ${got}`;
    };
    const length =
      body === undefined || row.isChunked ? [] : [["content-length", String(body.length)] as const];
    const own = await send(method, path, [...fields, ...length], body);
    const then = await send("GET", next, []).catch(() => "closed ");
    client.close();
    return [own, then];
  }
  const framing =
    body === undefined
      ? ""
      : row.isChunked
        ? "Transfer-Encoding: chunked\r\n"
        : `Content-Length: ${body.length}\r\n`;
  const sent =
    body === undefined
      ? ""
      : row.isChunked
        ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
        : body;
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const { answers, rest } = await exchange(
    `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n${lines}${framing}\r\n${sent}GET ${next} HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    { port, tls: isTls(transport), answers: 2, methods: [method, "GET"] },
  );
  const [own = "closed ", then = "closed "] = answers.map(
    ({ status, isComplete, body: got }) => `${isComplete ? status : "cut"} ${got}`,
  );
  return [own, then + rest];
}

const CANARY: Row = { why: "", response: "", want: "200 canary" };

/** Whatever nginx and Caddy do, the comparison goes on. */
const tried = (program: Program, asked: ReturnType<typeof ask>): ReturnType<typeof ask> =>
  program === "Sluice" ? asked : asked.catch(() => ["failed ", "closed "]);

/** Whether a request got what the target has sent for another one, by its outcome. */
const isForeign = (next: string) => next !== "200 canary" && /evil|^200|^204|^304/.test(next);

const outcomes = new Map<string, Record<Program, string[]>>();
const attacks: Record<Program, number> = { Sluice: 0, nginx: 0, Caddy: 0 };

function note(why: string, program: Program, text: string) {
  const own = outcomes.get(why) ?? { Sluice: [], nginx: [], Caddy: [] };
  own[program].push(text);
  outcomes.set(why, own);
}

describe.each(transports)("%s:", (transport) => {
  const those = rows
    .map((row, at) => [row.why, row, at] as const)
    .filter(([, { over = transports }]) => over.includes(transport));

  test.each(those)("%s", async (why, row, at) => {
    const served: Program[] = [];
    for (const program of programs) {
      const port = portOf(ports[program], transport);
      const [own, next] = await tried(program, ask(row, at, port, transport));
      const [fresh] = await tried(program, ask(CANARY, "canary", port, transport));
      const want =
        typeof row.want === "string"
          ? row.want
          : row.want(isTls(transport) ? "https" : "http", port);
      if (own === want) served.push(program);
      note(why, program, own === want ? "served" : (own.split(" ")[0]?.slice(0, 12) ?? ""));
      const isPoisoned = [next, fresh].some(isForeign);
      if (isPoisoned) {
        attacks[program]++;
        note(why, program, `foreign: ${next}`);
      }
      if (program === "Sluice")
        expect([why, fresh, isPoisoned ? next : ""]).toEqual([why, "200 canary", ""]);
    }
    if (row.refused !== undefined) expect(served).not.toContain("Sluice");
    else if (served.length > 0) expect(served).toContain("Sluice");
  });
});

describe.each(["HTTP/1.1", "HTTP/1.1, TLS"] as const)("%s:", (transport) => {
  test.each(upgrades)("$why", async ({ protocol, method, why }) => {
    const served: Program[] = [];
    for (const program of programs) {
      const client = await connectRaw({
        port: portOf(ports[program], transport),
        tls: isTls(transport),
      });
      const length = method === "POST" ? "Content-Length: 5\r\n" : "";
      const socket = protocol === "websocket" ? KEY : "";
      client.write(
        `${method} /upgrade HTTP/1.1\r\nHost: ${HOST}\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${socket}${length}\r\n${length && "early"}`,
      );
      const isServed = await client.until(/^HTTP\/1\.1 101 [\s\S]*hello$|^HTTP\/1\.1 [2-5]/).then(
        (text) => text.startsWith("HTTP/1.1 101"),
        () => false,
      );
      client.close();
      if (isServed) served.push(program);
      note(
        why,
        program,
        isServed ? "served" : (/^HTTP\/1\.1 (\d+)/.exec(client.received)?.[1] ?? "closed"),
      );
    }
    // A WebSocket begins with GET (RFC 6455 section 4.2.1), and its frames are checked: the rest is forwarded without Upgrade.
    if (why === "POST upgrades to websocket") expect(served).not.toContain("Sluice");
    else if (served.length > 0) expect(served).toContain("Sluice");
  });
});

describe.each(["HTTP/1.1", "HTTP/1.1, TLS"] as const)("%s:", (transport) => {
  test("a client signs its connection in by NTLM, and no stranger is served as that user", async () => {
    for (const program of programs) {
      const port = portOf(ports[program], transport);
      const connect = () => connectRaw({ port, tls: isTls(transport) });
      const ask = async (connection: Awaited<ReturnType<typeof connect>>, line = "") => {
        const from = connection.received.length;
        connection.write(`GET /ntlm HTTP/1.1\r\nHost: ${HOST}\r\n${line}\r\n`);
        await connection.until((text) => /login$|secret$/.test(text.slice(from)));
        return connection.received.slice(from + 9, from + 12);
      };
      const client = await connect();
      const signedIn = [
        await ask(client),
        await ask(client, signIn(1)),
        await ask(client, signIn(3)),
      ];
      const strangers: string[] = [];
      for (let count = 0; count < 20; count++) {
        const stranger = await connect();
        strangers.push(await ask(stranger));
        stranger.close();
      }
      const own = await ask(client);
      client.close();
      const served = strangers.filter((status) => status === "200").length;
      note("a client signs in by NTLM", program, own === "200" ? "served" : own);
      note("strangers served as that user", program, String(served));
      if (program === "Sluice")
        expect([signedIn, served, own]).toEqual([["401", "401", "200"], 0, "200"]);
    }
  });
});

test("without a program between, a second response would reach the next request", async () => {
  const at = rows.findIndex(({ why }) => why === "a second response");
  const [, next] = await ask(rows[at] ?? CANARY, at, origin.port, "HTTP/1.1");
  expect([next.slice(0, 8), isForeign(next)]).toEqual(["200 evil", true]);
});

test("no response reaches a request that is not its own", () => {
  const cell = (texts: readonly string[]) => [...new Set(texts)].join(", ");
  const lines = [...outcomes].map(
    ([why, of]) =>
      `${why.padEnd(60)} ${programs.map((program) => cell(of[program]).padEnd(20)).join(" ")}`,
  );
  console.log(
    ["".padEnd(60), ...programs.map((name) => name.padEnd(20))]
      .join(" ")
      .concat("\n", lines.join("\n")),
  );
  console.log(`responses for another request: ${JSON.stringify(attacks)}`);
  expect(attacks.Sluice).toBe(0);
});
