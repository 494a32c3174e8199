// Self-signed certificates: how another parser reads them, and that they can be served.
import { expect, test } from "bun:test";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSelfSigned, expiryOf } from "../../../src/crypto/x509.ts";

const now = Date.parse("2026-06-01T12:00:00.500Z");
const options = {
  names: ["gate.example", "*.gate.example"],
  addresses: ["192.0.2.1", "2001:db8::1"],
  now,
  validDays: 90,
};

test("a certificate has the requested fields, and its own key signed it", async () => {
  const pair = await createSelfSigned(options);
  const certificate = new X509Certificate(pair.cert);
  expect(certificate.subject).toBe("CN=gate.example");
  expect(certificate.issuer).toBe("CN=gate.example");
  expect(certificate.subjectAltName).toBe(
    "DNS:gate.example, DNS:*.gate.example, IP Address:192.0.2.1, IP Address:2001:DB8:0:0:0:0:0:1",
  );
  expect(certificate.ca).toBe(false);
  expect(certificate.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
  expect(Date.parse(certificate.validFrom)).toBe(Date.parse("2026-05-31T12:00:00Z"));
  expect(Date.parse(certificate.validTo)).toBe(Date.parse("2026-08-30T12:00:00Z"));
  expect(expiryOf(pair.cert)).toBe(Date.parse(certificate.validTo));
  expect(certificate.checkPrivateKey(createPrivateKey(pair.key))).toBe(true);
  expect(certificate.verify(certificate.publicKey)).toBe(true);
});

test("no two have the same serial number or key", async () => {
  const pairs = await Promise.all([options, options].map(createSelfSigned));
  const [a, b] = pairs.map(({ cert }) => new X509Certificate(cert));
  expect(a?.serialNumber).not.toBe(b?.serialNumber);
  expect(a?.serialNumber.length).toBe(32);
  expect(pairs[0]?.key).not.toBe(pairs[1]?.key);
});

test("one that ends after 2049 has a year of four digits", async () => {
  const pair = await createSelfSigned({ ...options, now: Date.parse("2049-12-01T00:00:00Z") });
  const { validFrom, validTo } = new X509Certificate(pair.cert);
  expect(Date.parse(validFrom)).toBe(Date.parse("2049-11-30T00:00:00Z"));
  expect(Date.parse(validTo)).toBe(Date.parse("2050-03-01T00:00:00Z"));
});

test.each([1, 5, 12, 500])("one with %i names contains them all", async (count) => {
  const names = Array.from({ length: count }, (_, i) => `host-${i}.example`);
  const { cert } = await createSelfSigned({ ...options, names, addresses: [] });
  const { subjectAltName } = new X509Certificate(cert);
  expect(subjectAltName).toBe(names.map((name) => `DNS:${name}`).join(", "));
});

test("clients that trust it connect to a server that uses it", async () => {
  const pair = await createSelfSigned({ ...options, names: ["localhost"], now: Date.now() });
  using server = Bun.serve({ port: 0, tls: pair, fetch: () => new Response("served") });
  const response = await fetch(`https://localhost:${server.port}/`, { tls: { ca: pair.cert } });
  expect(await response.text()).toBe("served");
});
