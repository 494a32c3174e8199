// Applications with a real CA: self-signed at first, issued once there is an account, HTTPS only from then on.
import { expect } from "bun:test";
import { connect } from "node:tls";
import { type AcmeScene, startAcmeScene, startDnsHook } from "../support/acme-scene.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";

const { afterAll, beforeAll, describe, test } = needs("pebble");

let scene: AcmeScene;
let origin: ReturnType<typeof Bun.serve>;
let hook: ReturnType<typeof startDnsHook>;

beforeAll(async () => {
  scene = await startAcmeScene({ gateway: { workers: 2 } });
  await scene.gateway.ok("DELETE", "/api/v1/acme/accounts/pebble");
  origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("served") });
  hook = startDnsHook(scene.pebble);
});
afterAll(async () => {
  await scene?.stop();
  await origin?.stop(true);
  hook?.stop();
});

const at = (name: string) => `/api/v1/applications/${name}`;
const create = (body: object) =>
  scene.gateway.ok("POST", "/api/v1/applications", {
    upstream: `http://127.0.0.1:${origin.port}`,
    ...body,
  });

/** Waits until plain requests are redirected to HTTPS. */
const isSecured = (name: string) =>
  eventually(
    async () => {
      const application = await scene.gateway.ok("GET", at(name));
      if (application.routes[0].https_redirect === 308) return application;
      throw new Error(JSON.stringify(application.certificate));
    },
    { intervalMs: 50 },
  );

async function visit(host: string, scheme: "http" | "https") {
  const { httpPort, httpsPort } = scene.gateway;
  const response = await fetch(
    `${scheme}://127.0.0.1:${scheme === "http" ? httpPort : httpsPort}/x`,
    { headers: { host }, redirect: "manual", tls: { rejectUnauthorized: false } },
  );
  return { status: response.status, text: await response.text(), headers: response.headers };
}

/** The issuer of the certificate that a client gets. */
function issuerOf(servername: string) {
  return new Promise<string>((resolve, reject) => {
    const port = scene.gateway.httpsPort;
    const socket = connect(
      { host: "127.0.0.1", port, servername, rejectUnauthorized: false },
      () => {
        resolve(String(socket.getPeerCertificate().issuer.CN));
        socket.destroy();
      },
    );
    socket.on("error", reject);
  });
}

describe("without an ACME account", () => {
  test("a public name is served with a self-signed certificate, and the response names what is missing", async () => {
    const made = await create({
      name: "shop",
      domains: ["shop.example.com", "shop.lan"],
      https: { hsts: true },
    });
    expect(made.warnings).toEqual([
      'application "shop" has a self-signed certificate: there is no enabled ACME account; the gateway requests a certificate as soon as there is one',
    ]);
    expect(made.certificate).toMatchObject({
      source: "self_signed",
      domains: ["shop.example.com"],
    });
    expect(made.interim_certificate).toMatchObject({ source: "local_ca", domains: ["shop.lan"] });
    expect(await issuerOf("shop.example.com")).toBe("shop.example.com");
    expect((await visit("shop.example.com", "https")).text).toBe("served");
    const plain = await visit("shop.example.com", "http");
    expect(plain).toMatchObject({ status: 200, text: "served" });
  });

  test("a mode that requires issuance is rejected", async () => {
    const response = await scene.gateway.api("POST", "/api/v1/applications", {
      name: "strict",
      domains: ["strict.example.com"],
      https: { mode: "acme" },
      upstream: `http://127.0.0.1:${origin.port}`,
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      error: 'https.mode: "acme" requires an enabled ACME account',
    });
  });
});

describe("with an ACME account", () => {
  test("a certificate is requested for public names, which redirect to HTTPS once it is valid", async () => {
    await scene.addAccount("pebble");
    const application = await isSecured("shop");
    expect(application).toMatchObject({
      certificate: { source: "acme", status: "valid", domains: ["shop.example.com"] },
      interim_certificate: { source: "local_ca", domains: ["shop.lan"] },
      routes: [{ hosts: ["shop.example.com"] }, { hosts: ["shop.lan"], https_redirect: false }],
      drift: [],
      warnings: [],
    });
    expect(await issuerOf("shop.example.com")).toContain("Pebble");
    const plain = await eventually(async () => {
      const response = await visit("shop.example.com", "http");
      return response.status === 308 ? response : null;
    });
    expect(plain.headers.get("location")).toStartWith("https://shop.example.com");
    const safe = await visit("shop.example.com", "https");
    expect(safe.text).toBe("served");
    expect(safe.headers.get("strict-transport-security")).toBe("max-age=31536000");
    expect(await visit("shop.lan", "http")).toMatchObject({ status: 200, text: "served" });
  });

  test("the history shows who enabled HTTPS", async () => {
    const revisions = await scene.gateway.ok("GET", "/api/v1/revisions");
    const line = revisions.find(({ actor }: { actor: string }) => actor === "applications");
    expect(line.summary).toBe('update HTTPS of application "shop"');
  });

  test("an added name gets a self-signed certificate until the new one is issued, the others keep theirs", async () => {
    const added = await scene.gateway.ok("PATCH", at("shop"), {
      domains: ["shop.example.com", "new.example.com"],
    });
    expect(added.certificate.domains).toEqual(["shop.example.com", "new.example.com"]);
    expect(added.interim_certificate.domains).toEqual(["new.example.com"]);
    expect(added.routes).toHaveLength(1);
    expect(await issuerOf("shop.example.com")).toContain("Pebble");
    const application = await isSecured("shop");
    expect(application.interim_certificate).toBeNull();
    expect(await issuerOf("new.example.com")).toContain("Pebble");
  });

  test("the challenge works although plain requests redirect to HTTPS and access is private", async () => {
    await scene.gateway.ok("PATCH", at("shop"), { access: "private", maintenance: true });
    await scene.gateway.ok("PATCH", at("shop"), {
      domains: ["shop.example.com", "third.example.com"],
    });
    const { certificate } = await isSecured("shop");
    expect(certificate.status).toBe("valid");
  });

  test("a wildcard is requested once there is a DNS provider", async () => {
    const made = await create({ name: "many", domains: ["*.many.example.com"] });
    expect(made.warnings[0]).toContain("DNS provider");
    expect(made.certificate.source).toBe("self_signed");
    await scene.gateway.ok("POST", "/api/v1/dns-providers", {
      name: "hook",
      type: "webhook",
      zones: ["many.example.com"],
      config: { url: hook.url },
      propagation_timeout: 10,
    });
    const application = await isSecured("many");
    expect(application.certificate).toMatchObject({ challenge: "dns-01", status: "valid" });
    expect(await issuerOf("a.many.example.com")).toContain("Pebble");
  });

  test("the mode acme requests certificates for every name", async () => {
    await create({
      name: "all",
      domains: ["inside.test"],
      https: { mode: "acme", redirect: true },
    });
    const { certificate } = await isSecured("all");
    expect(certificate.domains).toEqual(["inside.test"]);
  });

  test("deleting a certificate also removes the redirect, and force restores both", async () => {
    await create({ name: "gone", domains: ["gone.example.com"] });
    await isSecured("gone");
    await scene.gateway.ok("DELETE", "/api/v1/certificates/gone");
    await eventually(async () => (await visit("gone.example.com", "http")).status === 200);
    const { drift, certificate } = await scene.gateway.ok("GET", at("gone"));
    expect(drift).toMatchObject([{ kind: "certificate", name: "gone", field: null, found: null }]);
    expect(certificate).toMatchObject({ source: "self_signed", domains: ["gone.example.com"] });
    await scene.gateway.ok("PATCH", `${at("gone")}?force=1`, {});
    await isSecured("gone");
    // The gateway's own change, which is stored before every worker serves it.
    await eventually(async () => (await visit("gone.example.com", "http")).status === 308);
  });

  test("a disabled redirect or HTTPS mode stays disabled", async () => {
    await create({ name: "plain", domains: ["plain.example.com"], https: { redirect: false } });
    await scene.becomes("plain", "valid");
    expect((await visit("plain.example.com", "http")).status).toBe(200);
    const off = await scene.gateway.ok("PATCH", at("plain"), { https: { mode: "off" } });
    expect(off.certificate).toBeNull();
    expect((await scene.gateway.api("GET", "/api/v1/certificates/plain")).status).toBe(404);
  });
});
