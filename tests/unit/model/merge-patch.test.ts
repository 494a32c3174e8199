// JSON Merge Patch: the examples of RFC 7396, appendix A, and what must not happen to prototypes.
import { expect, test } from "bun:test";
import { mergePatch } from "../../../src/model/merge-patch.ts";

test.each([
  [{ a: "b" }, { a: "c" }, { a: "c" }],
  [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
  [{ a: "b" }, { a: null }, {}],
  [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
  [{ a: ["b"] }, { a: "c" }, { a: "c" }],
  [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
  [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
  [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
  [
    ["a", "b"],
    ["c", "d"],
    ["c", "d"],
  ],
  [{ a: "b" }, ["c"], ["c"]],
  [{ a: "foo" }, null, null],
  [{ a: "foo" }, "bar", "bar"],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: "b", c: null }, { a: "b" }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
])("%j patched with %j is %j", (target, patch, result) => {
  const before = JSON.stringify(target);
  expect(JSON.parse(JSON.stringify(mergePatch(target, patch)))).toEqual(result as object);
  expect(JSON.stringify(target)).toBe(before);
});

test("a member called __proto__ is data like any other", () => {
  const patch: unknown = JSON.parse('{"__proto__": {"admin": true}}');
  const result = mergePatch({}, patch) as Record<string, unknown>;
  expect(result["admin"]).toBeUndefined();
  expect(Object.keys(result)).toEqual(["__proto__"]);
  expect(({} as Record<string, unknown>)["admin"]).toBeUndefined();
});
