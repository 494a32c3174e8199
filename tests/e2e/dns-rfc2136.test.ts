// Dynamic updates of a real BIND: records added, checked and deleted; keys of two kinds, wrong ones, aliases, CAA.
import { testDialer } from "../support/dialer.ts";
import { expect } from "bun:test";
import type { DnsParts } from "../../src/acme/dns/definition.ts";
import rfc2136 from "../../src/acme/dns/rfc2136.ts";
import { decode } from "../../src/model/decode.ts";
import { type Bind, startBind, type TsigKey } from "../support/bind.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";

const { afterAll, beforeAll, describe, test } = needs("named");

const keyOf = (name: string, algorithm: TsigKey["algorithm"], byte: string): TsigKey => ({
  name,
  algorithm,
  secret: Buffer.from(byte.repeat(32)).toString("base64"),
});
const short = keyOf("short-key", "hmac-sha256", "a");
const long = keyOf("Long-Key.", "hmac-sha512", "b");

let bind: Bind;
let gateway: Gateway;

beforeAll(async () => {
  bind = await startBind({
    keys: [short, long],
    zones: [
      {
        name: "example.test",
        key: "short-key",
        records: [
          "www A 127.0.0.1",
          'www CAA 0 issue "letsencrypt.org"',
          "elsewhere A 192.0.2.7",
          "_acme-challenge.delegated CNAME delegated.proofs.test.",
          'closed CAA 0 issue "other-authority.test"',
          'closed CAA 0 issuewild ";"',
        ],
      },
      { name: "deep.example.test", key: "Long-Key" },
      { name: "proofs.test", key: "short-key" },
      { name: "frozen.test" },
      { name: "test" },
    ],
  });
  gateway = await startGateway({ workers: 1, args: ["--dns-servers", bind.address] });
});
afterAll(async () => {
  await gateway?.stop();
  await bind?.stop();
});

const settings = (key: TsigKey, more: Record<string, unknown> = {}) => ({
  server: bind.address,
  tsig_key_name: key.name,
  tsig_algorithm: key.algorithm,
  tsig_secret: key.secret,
  ...more,
});

const create = (name: string, config: object, more: object = {}) =>
  gateway.ok("POST", "/api/v1/dns-providers", {
    name,
    type: "rfc2136",
    config,
    propagation_timeout: 10,
    ...more,
  });

interface Check {
  readonly name: string;
  readonly status: string;
  readonly message: string;
}

const failed = (checks: readonly Check[]) => checks.filter(({ status }) => status !== "ok");

describe("through the management API", () => {
  test("a test adds a record, finds it at the zone's server and deletes it", async () => {
    await create("short", settings(short));
    const report = await gateway.ok("POST", "/api/v1/dns-providers/short/test", {
      zone: "example.test",
    });
    expect(failed(report.checks)).toEqual([]);
    expect(report.checks.map(({ name }: Check) => name)).toEqual([
      "configuration",
      "write",
      "visible",
      "remove",
    ]);
    expect(await bind.texts("_acme-challenge-test.example.test")).toEqual([]);
  });

  test.each([
    {
      why: "a wrong secret",
      more: { tsig_secret: Buffer.from("wrong").toString("base64") },
      zone: "example.test",
      words: /rejects the signature/,
    },
    {
      why: "an unknown key",
      more: { tsig_key_name: "nobody" },
      zone: "example.test",
      words: /does not know the key/,
    },
    { why: "a key that may not write", more: {}, zone: "deep.example.test", words: /REFUSED/ },
    { why: "a zone that takes no updates", more: {}, zone: "frozen.test", words: /REFUSED|NOTIMP/ },
    {
      why: "no zone of that name",
      more: {},
      zone: "elsewhere.example",
      words: /has no zone|REFUSED/,
    },
  ])("$why is reported with a message", async ({ why, more, zone, words }) => {
    const name = why.replaceAll(" ", "-");
    await create(name, settings(short, more));
    const report = await gateway.ok("POST", `/api/v1/dns-providers/${name}/test`, { zone });
    expect(report.ok).toBe(false);
    expect(report.checks.find((check: Check) => check.name === "write").message).toMatch(words);
    await gateway.ok("DELETE", `/api/v1/dns-providers/${name}`);
  });

  test("a name and its wildcard are validated in one zone, an alias in its target's zone", async () => {
    const domains = ["www.example.test", "*.www.example.test", "delegated.example.test"];
    const report = await gateway.ok("POST", "/api/v1/certificates/preflight", {
      domains,
      dns_provider_id: "short",
    });
    const zone = report.checks.filter(({ name }: Check) => name === "zone");
    expect(failed(zone)).toEqual([]);
    expect(zone).toHaveLength(3);
    expect(await bind.texts("_acme-challenge.www.example.test")).toEqual([]);
  });

  test("of several providers the one with the longest zone is used", async () => {
    await create("long", settings(long), { zones: ["deep.example.test"] });
    await gateway.ok("PATCH", "/api/v1/dns-providers/short", { zones: ["example.test"] });
    const report = await gateway.ok("POST", "/api/v1/certificates/preflight", {
      domains: ["a.deep.example.test", "www.example.test"],
      challenge: "dns-01",
    });
    expect(failed(report.checks.filter(({ name }: Check) => name === "zone"))).toEqual([]);
  });

  test("CAA records are compared with the CAs of the accounts", async () => {
    await gateway.ok("POST", "/api/v1/acme/accounts", {
      name: "unreachable",
      directory_url: "https://acme.letsencrypt.org.localhost:1/directory",
      terms_agreed: true,
    });
    const caa = async (domain: string) => {
      const report = await gateway.ok("POST", "/api/v1/certificates/preflight", {
        domains: [domain],
        challenge: "dns-01",
      });
      return report.checks.find(({ name }: Check) => name === "caa") as Check;
    };
    expect(await caa("elsewhere.example.test")).toMatchObject({ status: "ok" });
    expect(await caa("www.example.test")).toMatchObject({ status: "warning" });
    expect(await caa("closed.example.test")).toMatchObject({
      message: expect.stringContaining("other-authority.test"),
    });
  });

  test("addresses are compared with those of the machine", async () => {
    const report = await gateway.ok("POST", "/api/v1/certificates/preflight", {
      domains: ["www.example.test", "elsewhere.example.test", "nothing.example.test"],
      challenge: "dns-01",
    });
    const addresses = report.checks.filter(({ name }: Check) => name === "address");
    expect(addresses.map(({ status }: Check) => status)).toEqual(["ok", "warning", "warning"]);
  });
});

describe.each(["tcp", "udp"])("over %s", (protocol) => {
  const open = (key: TsigKey, more: Record<string, unknown> = {}) => {
    const parts: DnsParts = {
      dialer: testDialer,
      zones: [],
      programs: [],
      remembered: new Map(),
      inTurn: (_, run) => run(),
    };
    return rfc2136.create(decode(rfc2136.config, settings(key, { protocol, ...more })), parts);
  };

  test.each([
    { why: "HMAC-SHA256", key: short, fqdn: "_acme-challenge.two.example.test" },
    { why: "HMAC-SHA512", key: long, fqdn: "_acme-challenge.two.deep.example.test" },
  ])(
    "records of one name are added and deleted one by one, signed with $why",
    async ({ key, fqdn }) => {
      const client = open(key);
      await client.present({ fqdn, value: "one" });
      await client.present({ fqdn, value: "one" });
      await client.present({ fqdn, value: "two" });
      expect(await bind.texts(fqdn)).toEqual(["one", "two"]);
      await client.cleanUp({ fqdn, value: "one" });
      await client.cleanUp({ fqdn, value: "one" });
      expect(await bind.texts(fqdn)).toEqual(["two"]);
      await client.cleanUp({ fqdn, value: "two" });
      expect(await bind.texts(fqdn)).toEqual([]);
    },
  );

  test("a configured zone is not looked up, and must be right", async () => {
    const client = open(short, { zone: "deep.example.test" });
    const work = client.present({ fqdn: "_acme-challenge.deep.example.test", value: "x" });
    expect(work).rejects.toThrow("REFUSED");
    expect(await open(short, { zone: "example.test" }).zones?.()).toEqual(["example.test"]);
  });
});
