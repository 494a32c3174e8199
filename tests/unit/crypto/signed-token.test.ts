// Which texts are canonical signed tokens, and which id tokens are rejected despite a valid signature.
import { expect, test } from "bun:test";
import { idTokenProblem, isCanonicalToken } from "../../../src/crypto/signed-token.ts";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

test("a part is canonical exactly when encoding its bytes gives it again", () => {
  for (const start of ["", "A", "Ab", "Abc", "Abcd"])
    for (const last of ALPHABET) {
      const part = start + last;
      const isSame = Buffer.from(part, "base64url").toString("base64url") === part;
      for (const token of [`${part}.e30.AA`, `e30.${part}.AA`, `e30.e30.${part}`])
        expect([token, isCanonicalToken(token)]).toEqual([token, isSame]);
    }
});

test.each([
  "",
  "e30",
  "e30.e30",
  "e30.e30.AA.AA",
  "e30.e30.AA=",
  "e30.e30.AA==",
  "e30=.e30.AA",
  " e30.e30.AA",
  "e30.e30.AA\n",
  "e30.e\n30.AA",
  "e30.e30.+/AA",
  "e30.e30.\u212aAA",
  "e30.e30.AAAA\0",
])("%j is not a canonical token", (token) => {
  expect(isCanonicalToken(token)).toBe(false);
});

test("a long token is checked in linear time", () => {
  const part = "A".repeat(1_000_000);
  expect(isCanonicalToken(`${part}.${part}.${part}`)).toBe(true);
  expect(isCanonicalToken(`${part}.${part}.${part}=`)).toBe(false);
});

const clock = { nowS: 1000, toleranceS: 30 };
test.each([
  { header: {}, iat: 1030, problem: null },
  { header: {}, iat: 1030.5, problem: "iat of the id token is missing or in the future" },
  { header: {}, iat: 1031, problem: "iat of the id token is missing or in the future" },
  { header: {}, iat: undefined, problem: "iat of the id token is missing or in the future" },
  { header: { typ: "JWT" }, iat: 0, problem: null },
  { header: { typ: "jwt" }, iat: 0, problem: null },
  { header: { typ: "at+jwt" }, iat: 0, problem: "typ of the id token is not JWT" },
  { header: { typ: undefined }, iat: 0, problem: null },
  { header: { typ: null }, iat: 0, problem: "typ of the id token is not JWT" },
])("case %#: $problem", ({ header, iat, problem }) => {
  expect(idTokenProblem({ header, claims: { iat } }, clock)).toBe(problem);
});
