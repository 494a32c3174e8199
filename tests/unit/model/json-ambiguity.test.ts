// JSON texts that two parsers could read differently.
import { describe, expect, test } from "bun:test";
import { findAmbiguity } from "../../../src/model/json-ambiguity.ts";
import { parseJson } from "../../../src/api/json-body.ts";

describe("a text that every parser reads the same", () => {
  test.each([
    ["{}", "nothing is in it"],
    ['{"a":{"a":1},"b":[{"a":1},{"a":2}]}', "the same name in different objects"],
    ['["a","a",1,1]', "a list may repeat what it holds"],
    ['{"a":"a","b":"{\\"x\\":1,\\"x\\":2}"}', "JSON inside a text is a text"],
    ['{"a":"\\\\","b":"}","c":"\\",\\"a\\":1"}', "quotation marks and brackets inside texts"],
    ['{"n":9007199254740991,"m":-9007199254740991}', "the largest exact integers"],
    ['{"a":"\\ud83d\\ude00 \\u00e9"}', "a whole pair of escapes"],
    ['{"n":0.1,"m":1e3,"o":-0,"p":1.5e-7}', "fractions are near enough"],
  ])("%s", (text) => {
    expect(findAmbiguity(text)).toBeNull();
    expect(parseJson(text)).toEqual(JSON.parse(text));
  });
});

describe("a text that parsers read differently", () => {
  test.each([
    ['{"role":"viewer","role":"admin"}', "role: is given twice"],
    ['{"role":"viewer", "\\u0072ole" : "admin"}', "role: is given twice"],
    ['{"a":{"b":[1,{"c":1,"d":{},"c":2}]}}', "a.b[1].c: is given twice"],
    ['{"a":1,"A":2,"a":1}', "a: is given twice"],
    ['{"":1,"":2}', "is given twice"],
    ['{"a":[],"b":{},"a":{}}', "a: is given twice"],
    ['{"port":9007199254740993}', "port: is a number beyond what can be represented exactly"],
    ['{"a":[1,-18446744073709551617]}', "a[1]: is a number beyond what can be represented exactly"],
    ['{"a":1e400}', "a: is a number beyond what can be represented exactly"],
    ['{"a":["\\ud800"]}', "a[0]: holds a lone surrogate"],
    ['{"a\\udc00":1}', "holds a lone surrogate"],
    ['{"a":1e20}', "a: is a number beyond what can be represented exactly"],
  ])("%s", (text, message) => {
    expect(() => parseJson(text)).toThrow(message);
  });
});

test("a long text is checked fast", () => {
  const text = JSON.stringify(Array.from({ length: 20_000 }, (_, index) => ({ index, name: "x" })));
  expect(findAmbiguity(text)).toBeNull();
  const twice = `${text.slice(0, -2)},"name":"y"}]`;
  expect(findAmbiguity(twice)?.path).toBe("[19999].name");
  const longValues = JSON.stringify({ a: "x".repeat(20_000_000), b: '\\"'.repeat(5_000_000) });
  expect(findAmbiguity(`${longValues.slice(0, -1)},"a":1}`)?.path).toBe("a");
});
