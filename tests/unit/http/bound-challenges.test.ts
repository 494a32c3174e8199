// Which challenges are for a connection: schemes, parameters and quoted strings in one list (RFC 9110 section 11.6.1).
import { expect, test } from "bun:test";
import { boundChallenges } from "../../../src/http/bound-challenges.ts";

test.each([
  ["NTLM", "all"],
  ["negotiate", "all"],
  ["Negotiate YIIB==,NTLM", "all"],
  ["NTLM, ,", "all"],
  ["Negotiate, Basic realm=x", "some"],
  ['Basic realm="a, NTLM", charset="UTF-8"', "none"],
  ['Basic realm="a\\", NTLM", x = "y"', "none"],
  ['Digest realm="a", qop="auth", negotiate=1', "none"],
  ["NTLMv2", "none"],
  ["", "none"],
])("%p: %s", (value, bound) => {
  expect(boundChallenges(value)).toBe(bound as ReturnType<typeof boundChallenges>);
});
