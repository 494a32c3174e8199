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
])("rejected: %s (%s)", (source, says) => {
  expect(regexProblem(source)).toContain(says);
  expect(regexProblem(source)).toBe(regexProblem(source));
});

test("the attack string is named, so that users can verify it", () => {
  expect(regexProblem("^(a|a)*$")).toMatch(/exponential time on 'a'.*repeat/);
});

test("on a machine that is so busy that a check takes ten times as long, a safe expression is not rejected", () => {
  const [now, date] = [performance.now.bind(performance), Date.now];
  const [from, since] = [now(), date()];
  const begun = process.threadCpuUsage();
  /** Milliseconds, independent of the load of this machine. */
  const passed = () => {
    const { user, system } = process.threadCpuUsage(begun);
    return (user + system) / 100;
  };
  try {
    performance.now = () => from + passed();
    Date.now = () => since + passed();
    expect(regexProblem("^/(?!private/)[a-z]+/.*$")).toBeNull();
  } finally {
    performance.now = now;
    Date.now = date;
  }
});
