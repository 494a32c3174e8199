// The self-signed certificate of a data directory: created once, kept, renewed in time, readable by its owner only.
import { expect, test } from "bun:test";
import { X509Certificate, createPrivateKey } from "node:crypto";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { loadDefaultCertificate } from "../../../src/crypto/default-certificate.ts";
import { expiryOf } from "../../../src/crypto/x509.ts";
import { createLog } from "../../../src/log.ts";

const DAY_MS = 86_400_000;
const log = createLog({ level: "error", format: "json", sink: () => undefined });
const start = Date.parse("2026-01-01T00:00:00Z");

function directory() {
  const path = mkdtempSync(join(tmpdir(), "sluice-certificate-"));
  return {
    load: (now: number) => loadDefaultCertificate({ dataDir: path, now, log }),
    file: join(path, "sluice.pem"),
    [Symbol.dispose]: () => rmSync(path, { recursive: true }),
  };
}

test("it is an ECDSA certificate for this machine that its own key signed", async () => {
  using dir = directory();
  const { cert, key } = await dir.load(start);
  const certificate = new X509Certificate(cert);
  expect(certificate.checkHost("localhost")).toBe("localhost");
  expect(certificate.checkHost(hostname().toLowerCase())).toBeDefined();
  expect(certificate.checkIP("127.0.0.1")).toBe("127.0.0.1");
  expect(certificate.checkPrivateKey(createPrivateKey(key))).toBe(true);
  expect(certificate.verify(certificate.publicKey)).toBe(true);
  expect(certificate.publicKey.asymmetricKeyDetails?.namedCurve).toBe("prime256v1");
  expect(certificate.ca).toBe(false);
});

test("only the owner can read its file", async () => {
  using dir = directory();
  await dir.load(start);
  expect((statSync(dir.file).mode & 0o777).toString(8)).toBe("600");
});

test("it stays the same until 30 days before it expires", async () => {
  using dir = directory();
  const first = await dir.load(start);
  const end = expiryOf(first.cert) ?? 0;
  expect(await dir.load(end - 31 * DAY_MS)).toEqual(first);
  const renewed = await dir.load(end - 29 * DAY_MS);
  expect(renewed).not.toEqual(first);
  expect(expiryOf(renewed.cert)).toBeGreaterThan(end);
});

test.each([
  { text: "" },
  { text: "no certificate" },
  { text: "-----BEGIN PRIVATE KEY-----\nAA==\n" },
])("a file that holds $text is replaced", async ({ text }) => {
  using dir = directory();
  writeFileSync(dir.file, text);
  const { cert } = await dir.load(start);
  expect(expiryOf(cert)).toBeGreaterThan(start);
});
