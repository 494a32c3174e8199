// What looks like a value that the gateway has encrypted is refused in every body, however it is spelled.
import { describe, expect, test } from "bun:test";
import { parseJson } from "../../../src/api/json-body.ts";

describe("a body with what looks like an encrypted value", () => {
  test.each([
    '{"username":"sealed:1:00000000:x"}',
    '{"headers":{"sealed":"sealed:1:00000000:x"}}',
    '["\\u0073ealed\\u003a1:0a0b0c0d:xyz"]',
  ])("is refused: %s", (text) => {
    expect(() => parseJson(text)).toThrow("looks like a value encrypted by the gateway");
  });

  test.each([
    '{"description":"a text about sealed:1:00000000:x"}',
    '{"description":"sealed:1:"}',
    '{"sealed":"with wax"}',
  ])("and what only speaks of one is not: %s", (text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text));
  });
});
