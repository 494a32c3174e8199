// Hashes of passwords: their algorithm, that they match only their own password, and that checking never throws.
import { describe, expect, test } from "bun:test";
import { hashPassword, verifyPassword } from "../../../src/crypto/password.ts";

const password = "correct horse battery";

describe("a hash", () => {
  test("is argon2id with its own salt and the cost that OWASP recommends", async () => {
    const [one, other] = [await hashPassword(password), await hashPassword(password)];
    expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(one).not.toBe(other);
    expect(one).not.toContain(password);
    expect(await verifyPassword(password, one)).toBe(true);
  });

  test("matches no other password", async () => {
    const hash = await hashPassword(password);
    for (const wrong of ["", " ", "correct horse batterz", `${password}\0`, `${password} `])
      expect(await verifyPassword(wrong, hash)).toBe(false);
  });

  test("matches the same letters in every Unicode normalization", async () => {
    const hash = await hashPassword("Schlüssel für alle");
    expect(await verifyPassword("Schlüssel für alle".normalize("NFD"), hash)).toBe(true);
  });
});

describe("an invalid hash", () => {
  test.each([
    { why: "a user without a password", hash: null },
    { why: "an unknown kind", hash: "md5$abc" },
    { why: "nothing", hash: "" },
    { why: "a damaged one", hash: "$argon2id$v=19$m=19456,t=2,p=1$AAAA" },
  ])("never matches: $why", async ({ hash }) => {
    for (const text of [password, "", "\0"]) expect(await verifyPassword(text, hash)).toBe(false);
  });
});
