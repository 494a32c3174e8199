// Which regular expressions may run on what clients send.
import { expect, test } from "bun:test";
import { regexProblem } from "../../../src/snapshot/regex-safety.ts";

test.each(["^/users/\\d+$", "^/[a-z0-9-]+/(?:x|y)/", "\\.(?:png|jpg)$", "^(?!/admin).*$", ""])(
  "safe: %s",
  (source) => {
    expect(regexProblem(source)).toBeNull();
  },
);

test.each([
  ["(a|a)*$", "exponential", "alternatives that overlap, which simpler checkers miss"],
  ["^(a+)+$", "exponential", "nested repetition"],
  [".*a.*b.*c$", "polynomial", "several stars in a row"],
  ["(", "must be a regular expression", "it is none"],
  [
    "a".repeat(1025),
    "must not be longer than 1024",
    "a check takes longer the longer the source is",
  ],
])("refused: %s (%s)", (source, says) => {
  expect(regexProblem(source)).toContain(says);
  expect(regexProblem(source)).toBe(regexProblem(source));
});

test("the attack string is named, so that people can see for themselves", () => {
  expect(regexProblem("^(a|a)*$")).toMatch(/exponential time on 'a'.*repeat/);
});
