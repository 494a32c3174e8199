// One-time passwords against the vectors of RFC 4226 and RFC 6238, and against another implementation.
import { describe, expect, test } from "bun:test";
import {
  codesNear,
  createTotpKey,
  findStep,
  looksLikeCode,
  stepAt,
  toBase32,
  totpUri,
} from "../../../src/crypto/one-time-password.ts";
import { hotp } from "../../support/one-time-password.ts";

const key = new TextEncoder().encode("12345678901234567890");

describe("a one-time password", () => {
  // RFC 4226, appendix D.
  const counters = [
    "755224",
    "287082",
    "359152",
    "969429",
    "338314",
    "254676",
    "287922",
    "162583",
    "399871",
    "520489",
  ].map((code, counter) => ({ counter, code }));
  test.each(counters)("of counter $counter is $code", async ({ counter, code }) => {
    expect(hotp(key, counter)).toBe(code);
    expect(await codesNear(key, counter * 30_000)).toContainEqual({ step: counter, code });
  });

  // RFC 6238, appendix B, the rows of SHA-1.
  const times = [
    { seconds: 59, code: "94287082" },
    { seconds: 1_111_111_109, code: "07081804" },
    { seconds: 1_111_111_111, code: "14050471" },
    { seconds: 1_234_567_890, code: "89005924" },
    { seconds: 2_000_000_000, code: "69279037" },
    { seconds: 20_000_000_000, code: "65353130" },
  ];
  test.each(times)("at $seconds s is $code", async ({ seconds, code }) => {
    const valid = await codesNear(key, seconds * 1000);
    const found = findStep(valid, code.slice(2), 0);
    expect(found).toBe(stepAt(seconds * 1000));
  });

  test("is the one that another implementation computes from the same key and counter", async () => {
    for (let counter = 0; counter < 200; counter++) {
      const random = createTotpKey();
      const far = counter * 40_000_003;
      for (const { step, code } of await codesNear(random, far * 30_000))
        expect(code).toBe(hotp(random, step));
    }
  });
});

describe("the step of a code", () => {
  const timeMs = 1_700_000_000_000;
  const now = stepAt(timeMs);
  const cases = [
    { why: "now", offset: 0, lastStep: 0, found: now },
    { why: "one step ago", offset: -1, lastStep: 0, found: now - 1 },
    { why: "one step ahead", offset: 1, lastStep: 0, found: now + 1 },
    { why: "two steps ago: too old", offset: -2, lastStep: 0, found: null },
    { why: "two steps ahead: too early", offset: 2, lastStep: 0, found: null },
    { why: "used already", offset: 0, lastStep: now, found: null },
    { why: "earlier than one that was used", offset: -1, lastStep: now, found: null },
    { why: "later than one that was used", offset: 1, lastStep: now, found: now + 1 },
  ];
  test.each(cases)("$why", async ({ offset, lastStep, found }) => {
    const valid = await codesNear(key, timeMs);
    expect(findStep(valid, hotp(key, now + offset), lastStep)).toBe(found);
  });

  test.each(["", "12345", "1234567", "12345a", "１２３４５６", "12345\n", "-12345", "123 456"])(
    "%j is not a code",
    async (text) => {
      expect(looksLikeCode(text)).toBe(false);
      expect(findStep(await codesNear(key, timeMs), text, 0)).toBeNull();
    },
  );

  test("exists at time 0", async () => {
    expect(findStep(await codesNear(key, 0), hotp(key, 0), -1)).toBe(0);
  });
});

test("a key is 160 random bits in base32, as apps expect it", () => {
  const [one, other] = [createTotpKey(), createTotpKey()];
  expect(one).toHaveLength(20);
  expect(one).not.toEqual(other);
  expect(toBase32(one)).toMatch(/^[A-Z2-7]{32}$/);
  expect(toBase32(key)).toBe("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
  const uri = new URL(totpUri("Sluice", "a+b@x.example", key));
  expect(uri.protocol).toBe("otpauth:");
  expect(uri.href).toContain("totp/Sluice:a%2Bb%40x.example?");
  expect(Object.fromEntries(uri.searchParams)).toEqual({
    secret: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ",
    issuer: "Sluice",
  });
});
