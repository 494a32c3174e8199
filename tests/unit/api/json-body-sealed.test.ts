// Every body that contains what looks like an encrypted value is rejected, whatever its JSON escapes.
import { describe, expect, test } from "bun:test";
import { parseJson } from "../../../src/api/json-body.ts";

describe("a body with what looks like an encrypted value", () => {
  test.each([
    '{"username":"sealed:1:00000000:x"}',
    '{"headers":{"sealed":"sealed:1:00000000:x"}}',
    '["\\u0073ealed\\u003a1:0a0b0c0d:xyz"]',
  ])("is rejected: %s", (text) => {
    expect(() => parseJson(text)).toThrow("looks like a value encrypted by the gateway");
  });

  test.each([
    '{"description":"a text about sealed:1:00000000:x"}',
    '{"description":"sealed:1:"}',
    '{"sealed":"with wax"}',
  ])("is accepted when a text only mentions one: %s", (text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text));
  });
});
