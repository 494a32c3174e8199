// The management API over TLS, and what keeps it from starting so.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { selfSigned } from "../../support/certificate.ts";
import { chosenCipher } from "../../support/cipher.ts";
import { type Gateway, runCommand, startGateway } from "../../support/gateway.ts";
import { needs } from "../../support/needs.ts";
import { sendRaw } from "../../support/raw-http.ts";
import { PASSWORD, ROOT } from "../api/people.ts";

const directory = mkdtempSync(join(tmpdir(), "sluice-tls-"));
const file = (name: string, text: string) => {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
};
const [pair, other] = await Promise.all([selfSigned(), selfSigned()]);
const cert = file("cert.pem", pair.cert);
const key = file("key.pem", pair.key);
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe("with --admin-tls-cert and --admin-tls-key", () => {
  let gateway: Gateway;
  beforeAll(async () => {
    const env = { SLUICE_ADMIN_TLS_CERT: cert };
    gateway = await startGateway({ workers: 1, args: ["--admin-tls-key", key], env });
  });
  afterAll(() => gateway?.stop());

  test("it is served over TLS only, with Strict-Transport-Security", async () => {
    expect(gateway.admin).toStartWith("https://127.0.0.1:");
    const response = await gateway.api("GET", "/healthz");
    expect(response.headers.get("strict-transport-security")).toBe("max-age=31536000");
    const port = Number(new URL(gateway.admin).port);
    const plain = await sendRaw("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", { port });
    expect(plain).not.toContain("200");
    const text = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    expect(await sendRaw(text, { port, tls: true })).toStartWith("HTTP/1.1 200 ");
  });

  needs("openssl").test(
    "it chooses the cipher: a client that offers CBC first gets GCM",
    async () => {
      const port = Number(new URL(gateway.admin).port);
      expect(await chosenCipher(port, "localhost")).toMatch(/^ECDHE-\w+-AES128-GCM-SHA256$/);
    },
  );

  test("the cookie of a session is for HTTPS only, and our own origin may make changes", async () => {
    await gateway.ok("POST", "/api/v1/users", ROOT);
    const body = { email: ROOT.email, password: PASSWORD };
    const origin = { origin: gateway.admin };
    const response = await gateway.api("POST", "/api/v1/auth/login", body, origin);
    expect(response.status).toBe(200);
    const [header = ""] = response.headers.getSetCookie();
    expect(header).toEndWith("; Secure");
    const cookie = header.split(";")[0] ?? "";
    const signedOut = await gateway.api("POST", "/api/v1/auth/logout", undefined, { cookie });
    expect(signedOut.headers.get("set-cookie")).toMatch(/=; .*Max-Age=0; .*; Secure$/);
  });
});

test("without TLS there is no Strict-Transport-Security", async () => {
  const gateway = await startGateway({ workers: 1 });
  const { headers } = await gateway.api("GET", "/healthz");
  await gateway.stop();
  expect(headers.get("strict-transport-security")).toBeNull();
});

describe("the gateway does not start with", () => {
  test.each([
    { why: "a certificate alone", args: [cert, null], code: 2, says: "needs --admin-tls-key" },
    { why: "a key alone", args: [null, key], code: 2, says: "needs --admin-tls-cert" },
    {
      why: "a file that is not there",
      args: ["/nope", key],
      code: 1,
      says: "/nope cannot be read",
    },
    { why: "a directory", args: [cert, directory], code: 1, says: "is not a file" },
    {
      why: "the key of another certificate",
      args: [cert, file("other.pem", other.key)],
      code: 1,
      says: "does not belong to the certificate",
    },
    { why: "a key for a certificate", args: [key, key], code: 1, says: "--admin-tls-cert: " },
    { why: "a certificate for a key", args: [cert, cert], code: 1, says: "--admin-tls-key: " },
  ])("$why", async ({ args: [certPath, keyPath], code, says }) => {
    const args = [
      ...(certPath == null ? [] : ["--admin-tls-cert", certPath]),
      ...(keyPath == null ? [] : ["--admin-tls-key", keyPath]),
    ];
    const where = ["--data-dir", join(directory, "data"), "--admin", "127.0.0.1:0"];
    const result = await runCommand(["serve", ...where, ...args]);
    expect([result.code, result.stderr]).toEqual([code, expect.stringContaining(says)]);
    expect(result.stderr).not.toContain(pair.key.split("\n")[1]);
  });
});

describe("an address that other machines reach", () => {
  test("needs networks, and nothing else once sign-in is required", async () => {
    const gateway = await startGateway({ workers: 1 });
    try {
      await gateway.ok("POST", "/api/v1/users", ROOT);
      await gateway.restart(["--admin", "0.0.0.0:0", "--admin-allow", "127.0.0.1"]);
      expect(gateway.admin).toContain("//0.0.0.0:");
      gateway.admin = gateway.admin.replace("0.0.0.0", "127.0.0.1");
      expect((await gateway.api("GET", "/api/v1/services")).status).toBe(401);
    } finally {
      await gateway.stop();
    }
  });
});
