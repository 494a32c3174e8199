// Names and texts of DNS records in the formats of DNS providers, and what CAA records allow.
import { describe, expect, test } from "bun:test";
import { caaRefusal } from "../../../../src/acme/caa.ts";
import {
  longestZone,
  quoteTxt,
  relativeName,
  suffixesOf,
  unquoteTxt,
} from "../../../../src/acme/dns/names.ts";

test("zones of a name are tried from the longest to one below the top", () => {
  expect(suffixesOf("_acme-challenge.A.example.com.")).toEqual([
    "_acme-challenge.a.example.com",
    "a.example.com",
    "example.com",
  ]);
});

test.each([
  {
    why: "the longest wins",
    zones: ["example.com", "a.example.com"],
    name: "x.a.example.com",
    zone: "a.example.com",
  },
  {
    why: "case and dots do not matter",
    zones: ["EXAMPLE.com."],
    name: "x.example.com",
    zone: "example.com",
  },
  { why: "only whole labels count", zones: ["ple.com"], name: "example.com", zone: null },
  {
    why: "a name is in its own zone",
    zones: ["example.com"],
    name: "example.com",
    zone: "example.com",
  },
])("$why", ({ zones, name, zone }) => {
  expect(longestZone(zones, name)).toBe(zone);
});

test("names are relative to their zone", () => {
  expect(relativeName("_acme-challenge.a.example.com", "example.com")).toBe("_acme-challenge.a");
  expect(relativeName("example.com", "example.com")).toBe("");
});

test.each([
  ["plain", "plain"],
  ['"quoted"', "quoted"],
  ['"two" "parts"', "twoparts"],
  ['"with \\" and \\\\"', 'with " and \\'],
])("%p is unquoted to %p", (written, text) => {
  expect(unquoteTxt(written)).toBe(text);
  expect(unquoteTxt(quoteTxt(text))).toBe(text);
});

describe("CAA", () => {
  const ask = (records: readonly object[], more: object = {}) =>
    caaRefusal({
      records: records.map((record) => ({ critical: 0, ...record })),
      isWildcard: false,
      challenge: "http-01",
      identities: ["letsencrypt.org"],
      ...more,
    });

  test.each([
    { why: "nothing restricts", records: [], more: {}, refusal: null },
    {
      why: "only mail is spoken of",
      records: [{ iodef: "mailto:a@b.c" }],
      more: {},
      refusal: null,
    },
    {
      why: "one of several is ours",
      records: [{ issue: "a.b" }, { issue: "LetsEncrypt.org" }],
      more: {},
      refusal: null,
    },
    {
      why: "another authority",
      records: [{ issue: "a.b" }],
      more: {},
      refusal: "they only permit a.b",
    },
    { why: "nobody", records: [{ issue: ";" }], more: {}, refusal: "they permit no CA" },
    {
      why: "wildcards follow issue",
      records: [{ issue: "a.b" }],
      more: { isWildcard: true },
      refusal: "they only permit a.b",
    },
    {
      why: "issuewild goes before issue",
      records: [{ issue: "a.b" }, { issuewild: "letsencrypt.org" }],
      more: { isWildcard: true },
      refusal: null,
    },
    { why: "issuewild is for wildcards", records: [{ issuewild: ";" }], more: {}, refusal: null },
    {
      why: "another challenge",
      records: [{ issue: "letsencrypt.org; validationmethods=dns-01,tls-alpn-01" }],
      more: {},
      refusal: "they do not permit the challenge http-01",
    },
    {
      why: "this challenge",
      records: [{ issue: "letsencrypt.org; accounturi=x; validationmethods=http-01" }],
      more: {},
      refusal: null,
    },
  ])("$why", ({ records, more, refusal }) => {
    expect(ask(records, more)).toBe(refusal);
  });
});
