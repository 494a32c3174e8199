// HTTP/2 targets over TLS: ALPN is required, and the checks of certificates are those of HTTP/1.1.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { once } from "node:events";
import type { SecureServerOptions } from "node:http2";
import type { AddressInfo } from "node:net";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls from "node:tls";
import { Authority, type Leaf } from "../../support/authority.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type ServiceSketch, startDataPlane } from "../../support/data-plane.ts";
import { reply } from "../../support/origin.ts";
import { startHttp2Target } from "./target.ts";

let authority: Authority;
let leaf: Leaf;
let client: Leaf;
const stops = cleanupsOf(afterAll);
beforeAll(async () => {
  authority = await Authority.create("root");
  leaf = await authority.sign({ names: ["inside.test"], addresses: ["127.0.0.1"] });
  client = await authority.sign({ names: ["client.test"] });
});

async function respond(
  target: { readonly port?: number; readonly host?: string },
  service: Partial<ServiceSketch>,
) {
  const gateway = await startDataPlane({
    services: [
      { name: "app", protocol: "h2", retries: { count: 0 }, ...service, targets: [target] },
    ],
    routes: [{ name: "all", service_id: "app" }],
  });
  stops.push(() => gateway.drain(0));
  const response = await fetch(gateway.url);
  const { fields } = gateway.log.findLast(({ message }) => message === "request failed") ?? {};
  return {
    text: `${response.status} ${response.ok ? await response.text() : ""}`.trim(),
    failure: JSON.stringify(fields ?? {}),
  };
}

async function secureTarget(options: SecureServerOptions = {}) {
  const names: unknown[] = [];
  const target = await startHttp2Target(
    (stream) => {
      const socket = stream.session!.socket as tls.TLSSocket;
      names.push(socket.servername);
      stream.respond({ ":status": 200 });
      stream.end(options.requestCert === true ? socket.getPeerCertificate().subject.CN : "secure");
    },
    { ...leaf, ...options },
  );
  stops.push(() => target.stop());
  return { port: target.port, names };
}

test.each([
  { protocol: "h2" as const, why: "HTTP/2" },
  { protocol: "grpcs" as const, why: "gRPC" },
])("a verified target is used with $why", async ({ protocol }) => {
  const { port } = await secureTarget();
  const ca_certificates = authority.cert;
  expect(await respond({ port }, { protocol, tls: { ca_certificates } })).toMatchObject({
    text: "200 secure",
  });
});

test("the server name is sent and verified", async () => {
  const { port, names } = await secureTarget();
  const ca_certificates = authority.cert;
  const own = { ca_certificates, server_name: "inside.test" };
  expect(await respond({ port }, { tls: own })).toMatchObject({ text: "200 secure" });
  expect(names).toEqual(["inside.test"]);
  const other = await respond({ port }, { tls: { ...own, server_name: "other.test" } });
  expect(other.text).toBe("502");
  expect(other.failure).toContain("the target's certificate is for another name");
});

test("an unknown CA is refused, and accepted without verification", async () => {
  const { port } = await secureTarget();
  const refused = await respond({ port }, {});
  expect(refused.text).toBe("502");
  expect(refused.failure).toContain("the target's certificate comes from an unknown CA");
  expect(await respond({ port }, { tls: { verify: false } })).toMatchObject({ text: "200 secure" });
});

test("a client certificate is presented, and its absence is named", async () => {
  const { port } = await secureTarget({
    ca: authority.cert,
    requestCert: true,
    rejectUnauthorized: true,
  });
  const tlsSettings = { ca_certificates: authority.cert };
  expect(await respond({ port }, { tls: tlsSettings, clientCertificate: client })).toMatchObject({
    text: "200 client.test",
  });
  const refused = await respond({ port }, { tls: tlsSettings });
  expect(refused.text).toBe("502");
});

test("a TLS version below the minimum is refused", async () => {
  const { port } = await secureTarget({ maxVersion: "TLSv1.2" });
  const refused = await respond(
    { port },
    { tls: { ca_certificates: authority.cert, min_version: "1.3" } },
  );
  expect(refused.text).toBe("502");
  expect(refused.failure).toContain("TLS");
});

test.each([
  { alpn: ["http/1.1"], why: "only HTTP/1.1" },
  { alpn: undefined, why: "nothing" },
])("a target that selects $why by ALPN gets no request", async ({ alpn }) => {
  let received = 0;
  const server = tls.createServer({ ...leaf, ...(alpn ? { ALPNProtocols: alpn } : {}) });
  server.on("secureConnection", (socket) => {
    socket.on("error", () => {});
    socket.on("data", () => {
      received++;
      socket.write(reply("HTTP/1.1"));
    });
  });
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stops.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  const seen = await respond({ port }, { tls: { ca_certificates: authority.cert } });
  expect(seen.text).toBe("502");
  expect(seen.failure).toMatch(/does not speak HTTP\/2|handshake/);
  expect(received).toBe(0);
});

test.each([{ isSecure: false }, { isSecure: true }])(
  "a unix socket, TLS: $isSecure",
  async ({ isSecure }) => {
    const path = join(await mkdtemp(join(tmpdir(), "h2-")), "target");
    const target = await startHttp2Target(
      (stream, fields) => {
        stream.respond({ ":status": 200 });
        stream.end(String(fields[":scheme"]));
      },
      isSecure ? leaf : {},
      { path },
    );
    stops.push(() => target.stop());
    const settings = isSecure
      ? { tls: { ca_certificates: authority.cert, server_name: "inside.test" } }
      : { protocol: "h2c" as const };
    expect(await respond({ host: `unix:${path}` }, settings)).toMatchObject({
      text: `200 ${isSecure ? "https" : "http"}`,
    });
  },
);
