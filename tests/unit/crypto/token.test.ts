// Tokens: their form, and that all characters are as likely.
import { expect, test } from "bun:test";
import { createRandomText, createToken } from "../../../src/crypto/token.ts";

test("a token has 43 characters of base64url behind its prefix", () => {
  expect(createToken()).toMatch(/^slt_[A-Za-z0-9_-]{43}$/);
  expect(createToken()).not.toBe(createToken());
});

test("all characters of a random text are as likely", () => {
  const counts = new Map<string, number>();
  const total = 2000 * 43;
  for (let i = 0; i < 2000; i++)
    for (const character of createRandomText())
      counts.set(character, (counts.get(character) ?? 0) + 1);
  expect(counts.size).toBe(64);
  // Eight standard deviations: a wrong result once in 10^13 runs.
  for (const count of counts.values())
    expect(Math.abs(count - total / 64)).toBeLessThan(8 * Math.sqrt(total / 64));
});
