// The parts of the web UI that need no browser: errors, patches, places, search.
import { describe, expect, test } from "bun:test";
import { ApiError, toFormPath } from "../../../src/ui/api/error.ts";
import { differences, mergePatch, withValueAt } from "../../../src/ui/api/merge-patch.ts";
import { haystackOf, hasWords } from "../../../src/ui/parts/list-filter.ts";
import { problemsOf } from "../../../src/ui/parts/schema/problems.ts";

describe("an error of the API", () => {
  test.each([
    {
      why: "a field in a list",
      status: 400,
      message: "targets[0].port: must be an integer",
      field: "targets[0].port",
      detail: "must be an integer",
    },
    {
      why: "a name that is taken",
      status: 409,
      message: "name: is taken",
      field: "name",
      detail: "is taken",
    },
    {
      why: "a sentence with a colon in it",
      status: 400,
      message: "this is wrong: really",
      field: null,
      detail: "this is wrong: really",
    },
  ])("names its field: $why", ({ status, message, field, detail }) => {
    const error = new ApiError(status, message);
    expect([error.field, error.detail]).toEqual([field, detail]);
  });

  test("has its field where forms look for it", () => {
    expect(toFormPath("targets[12].tls.name")).toBe("targets.12.tls.name");
  });
});

describe("a merge patch", () => {
  test.each([
    { why: "nothing changed", before: { a: [1] }, after: { a: [1] }, patch: {} },
    { why: "a field", before: { a: 1, b: 2 }, after: { a: 1, b: 3 }, patch: { b: 3 } },
    { why: "a list as a whole", before: { a: [1, 2] }, after: { a: [2] }, patch: { a: [2] } },
    {
      why: "a field that is gone",
      before: { h: { x: "1", y: "2" } },
      after: { h: { y: "2" } },
      patch: { h: { x: null } },
    },
    { why: "null instead of a value", before: { a: 1 }, after: { a: null }, patch: { a: null } },
  ])("contains the difference: $why", ({ before, after, patch }) => {
    expect(mergePatch(before, after)).toEqual(patch);
  });

  test("differences have paths, and can be applied one by one", () => {
    const [one, other] = [{ a: { b: 1, c: [1] } }, { a: { b: 2, c: [1, 2] } }];
    expect(differences(one, other)).toEqual([
      ["a", "b"],
      ["a", "c"],
    ]);
    expect(withValueAt(one, ["a", "b"], 2)).toEqual({ a: { b: 2, c: [1] } });
  });
});

test("a list is searched by words in any order, in names, tags and targets", () => {
  const haystack = haystackOf({
    name: "Web",
    tags: ["Home"],
    targets: [{ host: "10.0.0.5", port: 80 }],
    secret: "hidden",
  });
  expect(hasWords(haystack, "home web")).toBe(true);
  expect(hasWords(haystack, "10.0.0.5")).toBe(true);
  expect(hasWords(haystack, "hidden")).toBe(false);
});

test("a form from a schema shows errors at the field", () => {
  const schema = {
    type: "object",
    required: ["limit"],
    properties: { limit: { type: "integer", minimum: 1 }, list: { type: "array", items: {} } },
  } as const;
  const check = (data: unknown) =>
    problemsOf(schema, data).map(({ path, message }) => [`.${path}`, message]);
  expect(check({ limit: 1, list: [undefined] })).toEqual([]);
  expect(check({})).toEqual([[".limit", "Limit is required"]]);
  expect(check({ limit: 0 })[0]?.[0]).toBe(".limit");
});
