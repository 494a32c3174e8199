// The client certificate of a service: named by name or id, replaced without a restart, protected from deletion.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import tls from "node:tls";
import { Authority } from "../../support/authority.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { reply } from "../../support/origin.ts";

let gateway: Gateway;
let authority: Authority;
let server: tls.Server;
beforeAll(async () => {
  gateway = await startGateway();
  authority = await Authority.create("authority");
  const pair = await authority.sign({ names: ["inside.test"], addresses: ["127.0.0.1"] });
  const ca = authority.cert;
  server = tls.createServer({ ...pair, ca, requestCert: true, rejectUnauthorized: true });
  server.on("secureConnection", (socket) => {
    socket.on("error", () => {});
    socket.on("data", () => socket.write(reply(String(socket.getPeerCertificate().subject.CN))));
  });
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(async () => {
  await gateway.stop();
  server.close();
});

const uploaded = async (name: string) => {
  const { cert, key } = await authority.sign({ names: [name] });
  return { name: "ours", certificate: cert, private_key: key };
};
const get = async () => {
  const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/`);
  return [response.status, await response.text()] as const;
};

test("it is presented, replaced during traffic, and in use", async () => {
  const service = {
    name: "app",
    protocol: "https",
    targets: [{ host: "127.0.0.1", port: (server.address() as AddressInfo).port }],
    tls: { ca_certificates: authority.cert, client_certificate_id: "ours" },
  };
  const early = await gateway.api("POST", "/api/v1/services", service);
  expect([early.status, await early.json()]).toEqual([
    400,
    { error: 'tls.client_certificate_id: certificate "ours" does not exist' },
  ]);
  const { id } = await gateway.ok("POST", "/api/v1/certificates", await uploaded("first.test"));
  const made = await gateway.ok("POST", "/api/v1/services", service);
  expect(made.tls.client_certificate_id).toBe(id);
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "app" });
  expect(await get()).toEqual([200, "first.test"]);
  await gateway.ok("PUT", `/api/v1/certificates/${id}`, await uploaded("second.test"));
  expect(await get()).toEqual([200, "second.test"]);
  const removal = await gateway.api("DELETE", "/api/v1/certificates/ours");
  expect([removal.status, await removal.json()]).toEqual([
    409,
    { error: 'certificate "ours" is used by service "app"' },
  ]);
});
