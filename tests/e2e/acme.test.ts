// Certificates from a real CA by each challenge, also in hard cases, and the certificate that clients get.
import { expect } from "bun:test";
import { connect } from "node:tls";
import { X509Certificate } from "node:crypto";
import { type AcmeScene, startAcmeScene, startDnsHook } from "../support/acme-scene.ts";
import { needs } from "../support/needs.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, describe, test } = needs("executable", "pebble");

let scene: AcmeScene;
let hook: ReturnType<typeof startDnsHook>;

beforeAll(async () => {
  scene = await startAcmeScene({
    gateway: { binary: executable, workers: 2 },
    pebble: { badNonces: 15, env: { PEBBLE_ALTERNATE_ROOTS: "1" } },
  });
  hook = startDnsHook(scene.pebble);
  await scene.gateway.ok("POST", "/api/v1/dns-providers", {
    name: "hook",
    type: "webhook",
    zones: ["hooked.test"],
    config: { url: hook.url },
    propagation_timeout: 10,
  });
});
afterAll(async () => {
  await scene?.stop();
  hook?.stop();
});

/** The certificate that a client of the https listener gets for a name. */
function shown(name: string): Promise<X509Certificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      host: "127.0.0.1",
      port: scene.gateway.httpsPort,
      servername: name,
      rejectUnauthorized: false,
    });
    socket.on("secureConnect", () => {
      resolve(new X509Certificate(socket.getPeerCertificate().raw));
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

async function isShown(name: string, fingerprint: string): Promise<void> {
  const { fingerprint256 } = await shown(name);
  expect(fingerprint256.replaceAll(":", "").toLowerCase()).toBe(fingerprint);
}

describe("a certificate is issued", () => {
  test("by http-01, and clients get it", async () => {
    const created = await scene.order("http", { domains: ["by-http.test"] });
    expect(["pending", "ordering"]).toContain(created.status);
    const certificate = await scene.becomes("http", "valid");
    expect(certificate).toMatchObject({
      domains: ["by-http.test"],
      attempts: 0,
      last_error: null,
      challenge: "http-01",
    });
    expect(certificate.issuer).toContain("Pebble Intermediate");
    expect(Date.parse(certificate.next_attempt_at)).toBeLessThan(Date.parse(certificate.not_after));
    expect(certificate).not.toHaveProperty("sealed_key");
    await isShown("by-http.test", certificate.fingerprint);
    const chain = await scene.gateway.api("GET", "/api/v1/certificates/http/pem");
    const leaf = new X509Certificate(await chain.text());
    expect(leaf.subjectAltName).toBe("DNS:by-http.test");
  });

  test("by http-01, even with a route for its path", async () => {
    const { gateway } = scene;
    const everywhere = [{ type: "prefix", value: "/" }];
    await gateway.ok("POST", "/api/v1/routes", {
      name: "shadow",
      hosts: ["shadowed.test"],
      paths: everywhere,
      service_id: null,
      https_redirect: true,
      maintenance: { html: "closed" },
      priority: 1000,
    });
    await gateway.ok("POST", "/api/v1/plugins", {
      name: "ip-restriction",
      config: { deny: ["0.0.0.0/0", "::/0"] },
    });
    await scene.order("shadowed", { domains: ["shadowed.test"] });
    await scene.becomes("shadowed", "valid");
    const [plugin] = await gateway.ok("GET", "/api/v1/plugins");
    await gateway.ok("DELETE", `/api/v1/plugins/${plugin.id}`);
  });

  test("by tls-alpn-01, and the listener is unchanged afterwards", async () => {
    await scene.order("tls", { domains: ["by-tls.test"], challenge: "tls-alpn-01" });
    const certificate = await scene.becomes("tls", "valid");
    await isShown("by-tls.test", certificate.fingerprint);
    const proof = await scene.gateway.ok("GET", "/api/v1/listeners");
    expect(proof.every(({ http2 }: { http2: boolean }) => http2)).toBe(true);
  });

  test("by dns-01 for a name and its wildcard, and no record remains", async () => {
    const domains = ["hooked.test", "*.hooked.test"];
    await scene.order("wild", { domains, challenge: "dns-01" });
    const certificate = await scene.becomes("wild", "valid");
    await isShown("any.hooked.test", certificate.fingerprint);
    expect(hook.calls.filter((call) => call.startsWith("/present"))).toHaveLength(2);
    expect(hook.left).toEqual([]);
  });

  test("by dns-01 where the name's own record is an alias into another zone", async () => {
    await scene.pebble.setAlias("_acme-challenge.elsewhere.test", "here.hooked.test");
    await scene.order("alias", { domains: ["elsewhere.test"], challenge: "dns-01" });
    await scene.becomes("alias", "valid");
    expect(hook.calls).toContain("/present here.hooked.test");
  });

  test("for several names at once", async () => {
    const domains = ["one.test", "two.test", "three.test"];
    await scene.order("several", { domains });
    const { fingerprint } = await scene.becomes("several", "valid");
    for (const name of domains) await isShown(name, fingerprint);
  });

  test("with an RSA key", async () => {
    await scene.order("rsa", { domains: ["rsa.test"], key_type: "rsa" });
    await scene.becomes("rsa", "valid");
    expect((await shown("rsa.test")).publicKey.asymmetricKeyType).toBe("rsa");
  });

  test("with the preferred chain", async () => {
    const roots = await scene.pebble.roots();
    const wanted = /CN=(.*)/.exec(new X509Certificate(roots[1] ?? "").subject)?.[1] ?? "";
    await scene.order("chain", { domains: ["chain.test"], preferred_chain: wanted });
    await scene.becomes("chain", "valid");
    const { certificate } = await scene.find("chain");
    const last = certificate.split("-----BEGIN").at(-1);
    expect(new X509Certificate(`-----BEGIN${last}`).issuer).toContain(wanted);
  });
});

describe("an existing certificate", () => {
  const keyOf = async (name: string) =>
    (await shown(name)).publicKey.export({ type: "spki", format: "pem" }).toString();

  test("is renewed on request, with a new key", async () => {
    const before = await scene.find("http");
    const key = await keyOf("by-http.test");
    await scene.gateway.ok("POST", "/api/v1/certificates/http/renew");
    await scene.becomes("http", "valid");
    const after = await scene.find("http");
    expect(after.fingerprint).not.toBe(before.fingerprint);
    await isShown("by-http.test", after.fingerprint);
    expect(await keyOf("by-http.test")).not.toBe(key);
  });

  test("keeps its key when configured so", async () => {
    await scene.gateway.ok("PATCH", "/api/v1/certificates/http", { reuse_key: true });
    const [before, key] = [await scene.find("http"), await keyOf("by-http.test")];
    await scene.gateway.ok("POST", "/api/v1/certificates/http/renew");
    const after = await scene.becomes("http", "valid");
    expect(after.fingerprint).not.toBe(before.fingerprint);
    expect(await keyOf("by-http.test")).toBe(key);
  });

  test("is reissued when a name is added, and stays in use until then", async () => {
    const before = await scene.find("http");
    const domains = ["by-http.test", "added.test"];
    const patched = await scene.gateway.ok("PATCH", "/api/v1/certificates/http", { domains });
    expect(patched.fingerprint).toBe(before.fingerprint);
    const after = await scene.becomes("http", "valid");
    await isShown("added.test", after.fingerprint);
  });

  test("stays in use when an imported file only has its settings", async () => {
    const before = await scene.find("rsa");
    const { format } = await scene.gateway.ok("GET", "/api/v1/export");
    const certificate = { name: "rsa", source: "acme", domains: ["rsa.test"], key_type: "rsa" };
    const document = { format, certificates: [certificate], acme_accounts: [] };
    const { changes } = await scene.gateway.ok("POST", "/api/v1/import?mode=merge", document);
    expect(changes).toEqual([]);
    const again = { ...document, certificates: [{ ...certificate, description: "noted" }] };
    await scene.gateway.ok("POST", "/api/v1/import?mode=merge", again);
    const after = await scene.find("rsa");
    expect(after).toMatchObject({ fingerprint: before.fingerprint, description: "noted" });
  });

  test("is issued from a configuration file alone", async () => {
    const { format } = await scene.gateway.ok("GET", "/api/v1/export");
    const { directoryUrl: directory_url, trusted: ca_certificates } = scene.pebble;
    const account = { name: "written", directory_url, ca_certificates };
    const certificates = [
      { name: "written", source: "acme", domains: ["written.test"], acme_account_ids: ["written"] },
    ];
    const document = { format, acme_accounts: [account], certificates };
    await scene.gateway.ok("POST", "/api/v1/import?mode=merge", document);
    const waiting = await scene.becomes("written", "failed");
    expect(waiting.last_error).toBe('ACME account "written" requires terms_agreed');
    await scene.gateway.ok("PATCH", "/api/v1/acme/accounts/written", { terms_agreed: true });
    await scene.becomes("written", "valid");
  });

  test("is exported without its key and those of accounts", async () => {
    const text = await (await scene.gateway.api("GET", "/api/v1/export")).text();
    expect(text).toContain("by-http.test");
    expect(text).not.toMatch(/PRIVATE KEY|sealed:1:/);
  });

  test("is revoked and replaced", async () => {
    const before = await scene.find("several");
    const serial = new X509Certificate(before.certificate).serialNumber;
    const body = { reason: "key_compromise" };
    await scene.gateway.ok("POST", "/api/v1/certificates/several/revoke", body);
    expect(await scene.pebble.statusOf(serial)).toBe("Revoked");
    const after = await scene.becomes("several", "valid");
    expect(after.fingerprint).not.toBe(before.fingerprint);
    await isShown("two.test", after.fingerprint);
  });

  test("is revoked twice at once, and both requests succeed", async () => {
    const revoke = () => scene.gateway.api("POST", "/api/v1/certificates/several/revoke", {});
    const answers = await Promise.all([revoke(), revoke()]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    await scene.becomes("several", "valid");
  });
});
