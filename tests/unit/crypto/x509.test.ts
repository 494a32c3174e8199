// Self-signed certificates: how another parser reads them, and that they can be served.
import { describe, expect, test } from "bun:test";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { checkServerIdentity, connect, type PeerCertificate } from "node:tls";
import {
  createRoot,
  createSelfSigned,
  createSigned,
  expiryOf,
  type KeyPair,
  type NameConstraints,
} from "../../../src/crypto/x509.ts";

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

describe("a root", () => {
  const root = (constraints: NameConstraints | null) =>
    createRoot({
      commonName: "Sluice Local CA 00000000",
      constraints,
      now: Date.now(),
      validDays: 10,
    });

  /** Whether a client that trusts the root accepts a certificate for `names` as that of `host`. */
  async function accepts(
    signer: KeyPair,
    names: readonly string[],
    host = names[0] ?? "",
  ): Promise<boolean> {
    const isAddress = (name: string) => /^[\d.]+$|:/.test(name);
    const pair = await createSigned(
      {
        names: names.filter((name) => !isAddress(name)),
        addresses: names.filter(isAddress),
        now: Date.now(),
        validDays: 90,
      },
      signer,
    );
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      tls: pair,
      fetch: () => new Response(),
    });
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const { port } = server;
    const options = {
      port,
      host: "127.0.0.1",
      ca: signer.cert,
      servername: isAddress(host) ? "" : host,
      checkServerIdentity: (_: string, peer: PeerCertificate) => checkServerIdentity(host, peer),
    };
    const socket = connect(options, () => resolve(socket.authorized));
    socket.on("error", () => resolve(false));
    const isAccepted = await promise;
    socket.destroy();
    return isAccepted;
  }

  test("signs names and addresses that its clients accept, and nothing that outlives it", async () => {
    const pair = await root(null);
    expect(await accepts(pair, ["nas.lan", "192.0.2.1"], "nas.lan")).toBe(true);
    expect(await accepts(pair, ["bank.example.com"])).toBe(true);
    expect(await accepts(pair, ["nas.lan"], "other.lan")).toBe(false);
    expect(await accepts(await root(null), ["nas.lan"], "nas.lan")).toBe(true);
    const content = { names: ["nas.lan"], addresses: [], now: Date.now(), validDays: 90 };
    const leaf = await createSigned(content, pair);
    const [issued, issuer] = [new X509Certificate(leaf.cert), new X509Certificate(pair.cert)];
    expect(issued.checkIssued(issuer)).toBe(true);
    expect(issued.verify(issuer.publicKey)).toBe(true);
    expect(issued.validTo).toBe(issuer.validTo);
    expect([issued.ca, issuer.ca]).toEqual([false, true]);
    expect(issuer.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
  });

  test.each([
    ["nas.lan", true, "below a permitted name"],
    ["a.b.lan", true, "any number of labels below it"],
    ["*.home.example.com", true, "a wildcard below it"],
    ["home.example.com", true, "a permitted name itself"],
    ["bank.example.com", false, "another name beside it"],
    ["nolan", false, "not the word lan"],
    ["evil-lan", false, "only whole labels count"],
    ["203.0.113.7", false, "another network"],
    ["2001:db8::1", false, "another one of IPv6"],
  ])("with constraints: clients accept %s: %p (%s)", async (name, isAccepted) => {
    const constraints = {
      names: ["lan", "home.example.com"],
      networks: ["192.168.0.0/16", "fd00::/8"],
    };
    const host = name.replace("*", "x");
    expect(await accepts(await root(constraints), [name], host)).toBe(isAccepted);
  });

  test("whose constraints permit no address or no name excludes all of them", async () => {
    const named = await root({ names: ["lan"], networks: [] });
    expect(await accepts(named, ["nas.lan"])).toBe(true);
    expect(await accepts(named, ["192.168.1.5"])).toBe(false);
    expect(await accepts(named, ["fd00::5"])).toBe(false);
    const numbered = await root({ names: [], networks: ["192.168.1.5/32"] });
    expect(await accepts(numbered, ["192.168.1.6"])).toBe(false);
    expect(await accepts(numbered, ["nas.lan"])).toBe(false);
  });

  test("signs a name that is too long for a subject", async () => {
    const long = `${"a".repeat(60)}.${"b".repeat(20)}.lan`;
    expect(await accepts(await root(null), [long])).toBe(true);
  });
});
