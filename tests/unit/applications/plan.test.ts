// The plan of an application: which names are public, where an upstream leads, which certificates it needs when.
import { beforeAll, describe, expect, test } from "bun:test";
import { covers, isPublicName } from "../../../src/applications/domains.ts";
import { httpsWarnings, planHttps } from "../../../src/applications/https-plan.ts";
import { parseUpstream } from "../../../src/applications/upstream.ts";
import { createSelfSigned } from "../../../src/crypto/x509.ts";
import { applicationInput, type HttpsState } from "../../../src/model/application.ts";
import type { Certificate } from "../../../src/model/certificate.ts";
import { decode } from "../../../src/model/decode.ts";
import type { GatewayConfig } from "../../../src/model/gateway-config.ts";
import { emptyConfiguration } from "../../../src/store/first-configuration.ts";
import { decodeRecord } from "../../../src/model/records.ts";

const NOW = Date.parse("2026-06-01T00:00:00Z");
const DAY_MS = 86_400_000;

describe("a name", () => {
  test.each([
    ["shop.example.com", true, "an ordinary name"],
    ["*.example.com", true, "a wildcard"],
    ["local.example.com", true, "only the end counts"],
    ["mylocal", false, "a single label"],
    ["localhost", false, "this machine"],
    ["app.localhost", false, "RFC 6761"],
    ["printer.local", false, "RFC 6762"],
    ["nas.lan", false, "used in homes"],
    ["db.Internal", false, "reserved for private use, in any case"],
    ["tv.home.arpa", false, "RFC 8375"],
    ["x.test", false, "RFC 6761"],
    ["*.test", false, "a wildcard below one"],
    ["10.0.0.1", false, "an address"],
    ["nolan.com", true, "not the word lan"],
    ["notlan", false, "a single label again"],
  ])("%s: public is %p (%s)", (name, isPublic) => {
    expect(isPublicName(name)).toBe(isPublic);
  });

  test.each([
    ["a.example.com", true],
    ["example.com", false],
    ["a.b.example.com", false],
    ["*.example.com", true],
  ])("%s is covered by *.example.com: %p", (name, isCovered) => {
    expect(covers(["*.example.com"], name)).toBe(isCovered);
  });
});

describe("an upstream", () => {
  test.each([
    ["http://10.0.0.5:3000/base", ["http", "10.0.0.5", 3000, "/base"]],
    ["http://app", ["http", "app", 80, ""]],
    ["https://app/", ["https", "app", 443, ""]],
    ["https://[fd00::1]:8443/a/b//", ["https", "fd00::1", 8443, "/a/b"]],
    ["http://App.Example", ["http", "App.Example", 80, ""]],
  ])("%s", (text, parts) => {
    const { protocol, host, port, path } = parseUpstream(text);
    expect([protocol, host, port, path]).toEqual(parts);
  });

  test.each([
    "http://:80",
    "http://a:0",
    "http://a:65536",
    "http://a:b",
    "http://[::1",
    "http://::1",
  ])("%s is rejected", (text) => {
    expect(() => parseUpstream(text)).toThrow("upstream: ");
  });
});

describe("HTTPS", () => {
  const input = (fields: object) =>
    decode(applicationInput, { name: "a", domains: ["a.com"], upstream: "http://x", ...fields });
  const empty = emptyConfiguration(new Date(NOW).toISOString());
  const identity = { id: "1", created_at: "", updated_at: "" };
  const account = { ...decodeRecord.acme_accounts({ name: "le", sealed_key: "k" }), ...identity };
  const withAccount: GatewayConfig = { ...empty, acme_accounts: new Map([["1", account]]) };
  const secured: HttpsState = { ordered: ["a.com"], local: [], self_signed: [], secured: true };
  const pending: HttpsState = {
    ordered: ["a.com"],
    local: [],
    self_signed: ["a.com"],
    secured: false,
  };
  let issued: Certificate;
  beforeAll(async () => {
    const pair = await createSelfSigned({
      names: ["a.com"],
      addresses: [],
      now: NOW,
      validDays: 90,
    });
    issued = {
      ...decodeRecord.certificates({ name: "a", source: "acme", domains: ["a.com"] }),
      ...identity,
      certificate: pair.cert,
      sealed_key: "sealed",
      not_before: new Date(NOW - DAY_MS).toISOString(),
      not_after: new Date(NOW + 90 * DAY_MS).toISOString(),
    };
  });
  const isSigned = (name: string) => name.endsWith(".lan") || name === "10.0.0.1";
  const plan = (fields: object, situation: object = {}) =>
    planHttps(input(fields), {
      config: empty,
      now: NOW,
      ordered: undefined,
      previous: null,
      isPermitted: isSigned,
      ...situation,
    });

  test("no certificate is planned when it is off", () => {
    expect(plan({ https: { mode: "off" } })).toEqual({
      ordered: [],
      local: [],
      self_signed: [],
      secured: false,
    });
  });

  test("without an account a public name has a self-signed certificate, with a warning", () => {
    const state = plan({});
    expect(state).toEqual({ ordered: [], local: [], self_signed: ["a.com"], secured: false });
    expect(httpsWarnings({ ...input({}), https_state: state }, empty)).toHaveLength(1);
    expect(httpsWarnings({ ...input({}), https_state: pending }, withAccount)).toEqual([]);
  });

  test("with an account a certificate is requested, and self-signed until it is issued", () => {
    expect(plan({}, { config: withAccount })).toEqual(pending);
  });

  test("an issued certificate replaces the self-signed one, name by name", () => {
    const situation = { config: withAccount, ordered: issued };
    expect(plan({}, situation)).toEqual(secured);
    expect(plan({ domains: ["a.com", "b.com", "c.lan"] }, situation)).toEqual({
      ordered: ["a.com", "b.com"],
      local: ["c.lan"],
      self_signed: ["b.com"],
      secured: false,
    });
  });

  test("an expired certificate counts as missing, unless clients are already redirected to HTTPS", () => {
    const situation = { config: withAccount, ordered: issued, now: NOW + 91 * DAY_MS };
    expect(plan({}, { ...situation, previous: pending }).secured).toBe(false);
    expect(plan({}, { ...situation, previous: secured }).secured).toBe(true);
    expect(plan({}, { ...situation, now: NOW - 2 * DAY_MS, previous: pending }).secured).toBe(
      false,
    );
  });

  test("a requested certificate stays so when the account is deleted", () => {
    expect(plan({}, { previous: pending }).ordered).toEqual(["a.com"]);
  });

  test("wildcards wait for a DNS provider, addresses have a certificate of the local CA", () => {
    const domains = ["*.a.com", "10.0.0.1"];
    expect(plan({ domains }, { config: withAccount })).toEqual({
      ordered: [],
      local: ["10.0.0.1"],
      self_signed: ["*.a.com"],
      secured: false,
    });
  });

  test("only private names: clients are never redirected to HTTPS", () => {
    expect(plan({ domains: ["a.lan"] }, { config: withAccount })).toEqual({
      ordered: [],
      local: ["a.lan"],
      self_signed: [],
      secured: false,
    });
    expect(plan({ domains: ["a.lan"] }, { isPermitted: () => false })).toMatchObject({
      local: [],
      self_signed: ["a.lan"],
    });
  });

  test("the mode local_ca uses the local CA for all names, and redirects clients", () => {
    const fields = { domains: ["a.lan", "home.example.com"], https: { mode: "local_ca" } };
    const whole = { ordered: [], local: fields.domains, self_signed: [], secured: true };
    expect(plan(fields, { config: withAccount, isPermitted: () => true })).toEqual(whole);
    expect(plan(fields)).toEqual({
      ordered: [],
      local: ["a.lan"],
      self_signed: ["home.example.com"],
      secured: false,
    });
  });
});
