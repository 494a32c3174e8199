// On-demand certificates for names that clients request: allowed, denied, and when the client gets its own.
import { expect } from "bun:test";
import { connect } from "node:tls";
import { type AcmeScene, startAcmeScene } from "../support/acme-scene.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, test } = needs("executable", "pebble");

let scene: AcmeScene;
const asked: string[] = [];
let judge: ReturnType<typeof Bun.serve>;

beforeAll(async () => {
  judge = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const name = new URL(request.url).searchParams.get("domain") ?? "";
      asked.push(name);
      return new Response(null, { status: name.startsWith("good") ? 200 : 404 });
    },
  });
  scene = await startAcmeScene({ gateway: { binary: executable, workers: 2 } });
  await scene.order("customers", {
    on_demand: { ask_url: `http://127.0.0.1:${judge.port}/ask`, hosts: ["*.customers.test"] },
  });
  // It binds listeners again, which may reset connections that are being established.
  await eventually(() => shown("nobody.elsewhere.test").catch(() => null));
});
afterAll(async () => {
  await scene?.stop();
  await judge?.stop(true);
});

/** Names of the certificate that a client gets. */
function shown(servername: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const port = scene.gateway.httpsPort;
    const socket = connect({ host: "127.0.0.1", port, servername, rejectUnauthorized: false });
    socket.on("secureConnect", () => {
      resolve(String(socket.getPeerCertificate().subjectaltname));
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

const all = async () => {
  const certificates = await scene.gateway.ok("GET", "/api/v1/certificates");
  return certificates.map(({ name }: { name: string }) => name);
};

test("an allowed name gets a certificate when a client requests it", async () => {
  expect(await shown("good.customers.test")).not.toContain("good.customers.test");
  await eventually(async () => (await shown("good.customers.test")) === "DNS:good.customers.test", {
    intervalMs: 100,
  });
  // Workers may present it before the engine has ended its attempt.
  const certificate = await scene.becomes("customers%20good.customers.test", "valid");
  expect(certificate).toMatchObject({
    domains: ["good.customers.test"],
    source: "acme",
    on_demand: null,
  });
  expect(asked.filter((name) => name === "good.customers.test")).toHaveLength(1);
});

test("a denied name gets none, and the denial is cached", async () => {
  for (let time = 0; time < 5; time++) await shown("bad.customers.test");
  await eventually(() => asked.includes("bad.customers.test"));
  for (let time = 0; time < 20; time++) await shown("bad.customers.test");
  expect(asked.filter((name) => name === "bad.customers.test")).toHaveLength(1);
  expect(await all()).not.toContain("customers bad.customers.test");
});

test("names that do not match cause no permission request", async () => {
  const before = asked.length;
  for (const name of ["good.elsewhere.test", "customers.test", "a.b.customers.test"])
    await shown(name);
  // No CA issues for these.
  for (const label of ["good_one", "_good", "good-", `good${"x".repeat(60)}`])
    await shown(`${label}.customers.test`).catch(() => undefined);
  await shown("bad.customers.test");
  expect(asked).toHaveLength(before);
});

test("without hosts no certificate is requested", async () => {
  const answer = await scene.gateway.api("POST", "/api/v1/certificates", {
    name: "all",
    source: "acme",
    on_demand: {},
  });
  expect(await answer.json()).toEqual({ error: "on_demand.hosts: is required" });
});

test("the template itself cannot be renewed", async () => {
  const answer = await scene.gateway.api("POST", "/api/v1/certificates/customers/renew");
  expect(answer.status).toBe(409);
  expect(await answer.json()).toMatchObject({
    error: expect.stringContaining('"customers" has no names of its own'),
  });
});

test("an import that replaces everything keeps the certificates of its template", async () => {
  const before = await all();
  expect(before).toContain("customers good.customers.test");
  const { on_demand } = await scene.find("customers");
  const certificates = [{ name: "customers", source: "acme", on_demand }];
  await scene.gateway.ok("POST", "/api/v1/import?mode=replace", { format: 1, certificates });
  expect(await all()).toEqual(before);
  await scene.gateway.ok("POST", "/api/v1/import?mode=replace", { format: 1, certificates: [] });
  expect(await all()).toEqual([]);
});
