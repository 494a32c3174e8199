// Hashes of passwords: their kind, that they fit only their own password, and that nothing makes checking fail.
import { describe, expect, test } from "bun:test";
import { hashPassword, verifyPassword } from "../../../src/crypto/password.ts";

const password = "correct horse battery";

describe("a hash", () => {
  test("is argon2id with a salt of its own and the cost that OWASP asks for", async () => {
    const [one, other] = [await hashPassword(password), await hashPassword(password)];
    expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(one).not.toBe(other);
    expect(one).not.toContain(password);
    expect(await verifyPassword(password, one)).toBe(true);
  });

  test("fits no other password", async () => {
    const hash = await hashPassword(password);
    for (const wrong of ["", " ", "correct horse batterz", `${password}\0`, `${password} `])
      expect(await verifyPassword(wrong, hash)).toBe(false);
  });

  test("fits however a keyboard writes the same letters", async () => {
    const hash = await hashPassword("Schlüssel für alle");
    expect(await verifyPassword("Schlüssel für alle".normalize("NFD"), hash)).toBe(true);
  });
});

describe("no hash", () => {
  test.each([
    { why: "a user without a password", hash: null },
    { why: "an unknown kind", hash: "md5$abc" },
    { why: "nothing", hash: "" },
    { why: "a damaged one", hash: "$argon2id$v=19$m=19456,t=2,p=1$AAAA" },
  ])("fits: $why", async ({ hash }) => {
    for (const text of [password, "", "\0"]) expect(await verifyPassword(text, hash)).toBe(false);
  });
});
