// Lists in header fields: short whatever their length.
import { expect, test } from "bun:test";
import { shortList } from "../../../src/model/short-list.ts";

const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index + 1};away`);

test.each([
  ["none", [], ""],
  ["one", ["a"], "a"],
  ["ten are shown", names(10), names(10).join(", ")],
  ["eleven are one more", names(11), `${names(10).join(", ")} and 1 more`],
  ["a long one is cut", ["x".repeat(3000), "y"], `${"x".repeat(1997)}... and 1 more`],
  [
    "long ones are fewer",
    Array(5).fill("z".repeat(900)),
    `${"z".repeat(900)}, ${"z".repeat(900)} and 3 more`,
  ],
])("%s", (_, items, text) => {
  expect(shortList(items)).toBe(text);
});

test("of 20,000 nodes with the longest names the field has about 2 KB", () => {
  const nodes = Array.from({ length: 20_000 }, (_, index) => `${"n".repeat(240)}${index};away`);
  expect(shortList(nodes).length).toBeLessThan(2100);
  expect(shortList(nodes)).toEndWith(" more");
});
