// The line of an error, in JSON and in YAML as people and programs write them.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseJson } from "../../../../src/api/json-body.ts";
import { readSource } from "../../../../src/import/transfer/source.ts";
import { seedOfRun } from "../../../support/random.ts";

const json = `{
  "format": 1,
  "routes": [
    { "name": "a", "hosts": ["x, \\"y\\" {"] },
    {
      "name": "b",
      "paths": [
        { "type": "prefix",
          "value": "/" }
      ]
    }
  ],
  "settings": {
    "limits": { "shutdown_timeout": 5 }
  }
}`;

const yaml = `# of the shop
format: 1
routes:
  - name: a
    description: |
      hosts: not these
        - nor this
    hosts:
    - x
    - y
  -
    name: b   # the second

    paths:
      - type: prefix
        value: /
      - { type: exact, value: /x }
"settings":
  limits:
    shutdown_timeout: 5
`;

const lineOf = async (text: string, type: "json" | "yaml", path: string) =>
  (await (await readSource(text, type, parseJson)).positionOf(path))?.line;

describe("the line of a member", () => {
  test.each([
    { path: "format", inJson: 2, inYaml: 2 },
    { path: "routes", inJson: 3, inYaml: 3 },
    { path: "routes[0]", inJson: 4, inYaml: 4 },
    { path: "routes[0].hosts", inJson: 4, inYaml: 8 },
    { path: "routes[0].hosts[0]", inJson: 4, inYaml: 9 },
    { path: "routes[1]", inJson: 5, inYaml: 11 },
    { path: "routes[1].name", inJson: 6, inYaml: 12 },
    { path: "routes[1].paths[0].value", inJson: 9, inYaml: 16 },
    { path: "settings.limits.shutdown_timeout", inJson: 14, inYaml: 20 },
    // A missing member has the line of its parent.
    { path: "routes[1].service_id", inJson: 5, inYaml: 11 },
  ])("$path", async ({ path, inJson, inYaml }) => {
    expect(await lineOf(json, "json", path)).toBe(inJson);
    expect(await lineOf(yaml, "yaml", path)).toBe(inYaml);
  });

  test("inside braces in YAML is the line of the braces", async () => {
    expect(await lineOf(yaml, "yaml", "routes[1].paths[1].value")).toBe(17);
  });
});

test.each([
  {
    why: "a bracket that stays open",
    text: "format: 1\nroutes: [\nservices: []\n",
    at: "3, column 1",
  },
  { why: "a tab", text: "format: 1\nroutes:\n\t- name: a\n", at: "3, column 1" },
  { why: "an alias of nothing", text: "format: 1\nroutes: *all\n", at: "2, column 10" },
])("YAML with $why is rejected with line and column", async ({ text, at }) => {
  await expect(readSource(text, "yaml", parseJson)).rejects.toThrow(
    new RegExp(`the configuration file is not valid YAML at line ${at}: `),
  );
});

test.each([
  {
    why: "a list that is given twice",
    text: "routes: []\nroutes: []\n",
    says: /^routes: is given twice \(line 2, column 1\)/,
  },
  { why: "infinity", text: "settings:\n  x: .inf\n", says: /^settings.x: is a number beyond/ },
  {
    why: "a member that objects inherit from",
    text: "settings:\n  __proto__: {}\n",
    says: /__proto__: is not a known field/,
  },
  { why: "several documents", text: "a: 1\n---\na: 2\n", says: /holds several documents$/ },
  { why: "an anchor that contains itself", text: "a: &a [*a, *a]\n", says: /nested deeper/ },
  {
    why: "deep nesting",
    text: `a: ${"[".repeat(100)}${"]".repeat(100)}`,
    says: /nested deeper than 64/,
  },
])("YAML with $why is rejected", async ({ text, says }) => {
  await expect(readSource(text, "yaml", parseJson)).rejects.toThrow(says);
});

test("a member that YAML could merge, but has in quotes, stays a member", async () => {
  const text = Bun.YAML.stringify({ a: { "<<": [1], b: 2 } }, null, 2);
  expect((await readSource(text, "yaml", parseJson)).value).toEqual({ a: { "<<": [1], b: 2 } });
});

test.each(["password: *hunter2\n", "password: !hunter2 x\n", "password: !!hunter2 x\n"])(
  "an error of YAML does not quote %j, which may be a secret",
  async (text) => {
    await expect(readSource(text, "yaml", parseJson)).rejects.toThrow(
      /^(?!.*hunter2).*at line 1, column 1/,
    );
  },
);

test("YAML that expands when it is read is rejected", async () => {
  const rows = [..."bcdefghi"].map((name, index) => {
    const before = "abcdefgh"[index];
    return `${name}: &${name} [${Array(9).fill(`*${before}`).join(",")}]`;
  });
  const text = `a: &a [x,x,x,x,x,x,x,x,x]\n${rows.join("\n")}\n`;
  await expect(readSource(text, "yaml", parseJson)).rejects.toThrow(/excessive aliasing/);
});

test("what the gateway writes as YAML is read as it was", async () => {
  const text = fc.oneof(
    fc.string({ unit: "grapheme" }),
    fc.string({ unit: "binary-ascii" }),
    fc.stringMatching(/^[-+.0-9exo_:~#&*!|>'"%@`{}[\], \n\t]{1,8}$/),
    fc.constantFrom("yes", "null", "0x1F", "0o17", "1e3", ".inf", "12:30", "<<", "---", "? a"),
  );
  const number = fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      text,
      number.map((given) => given + 0),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie("value")),
      fc.dictionary(
        text.filter((name) => name !== "__proto__"),
        tie("value"),
      ),
    ),
  }));
  const check = async (given: unknown) => {
    const written = Bun.YAML.stringify(given, null, 2);
    expect((await readSource(written, "yaml", parseJson)).value).toEqual(given);
  };
  await fc.assert(fc.asyncProperty(value, check), { seed: seedOfRun(), numRuns: 1000 });
});

describe("a duplicate member in YAML", () => {
  test.each([
    { why: "at the top", text: "a: 1\nb: 2\na: 3\n", name: "a", line: 3 },
    { why: "deeper", text: "a:\n  b: 1\n  c:\n    d: 1\n  b: 2\n", name: "b", line: 5 },
    { why: "in an item", text: "a:\n- b: 1\n- b: 1\n  c: 2\n  b: 3\n", name: "b", line: 5 },
    { why: "in an indented item", text: "a:\n  - b: 1\n    b: 2\n", name: "b", line: 3 },
    { why: "after a text", text: "a:\n  b: |\n    b: 1\n  b: 2\n", name: "b", line: 4 },
    { why: "in quotes", text: 'a:\n  b: 1\n  "b": 2\n', name: "b", line: 3 },
    { why: "in braces", text: "a:\n  - { b: 1, c: [2], b: 3 }\n", name: "b", line: 2 },
    { why: "in JSON", text: '{"a": {"b": 1,\n "c": "}", "b": 2}}\n', name: "b", line: 2 },
    { why: "after braces", text: "a: { b: 1,\n  c: 2 }\na: 3\n", name: "a", line: 3 },
    { why: "after quotes", text: 'a: "x\n  a: y"\nb: 1\nb: 2\n', name: "b", line: 4 },
  ])("$why is found", async ({ text, name, line }) => {
    expect(Bun.YAML.parse(text)).toBeObject();
    await expect(readSource(text, "yaml", parseJson)).rejects.toThrow(
      `${name}: is given twice (line ${line}, `,
    );
  });

  test.each([
    "a:\n  b: 1\nc:\n  b: 1\n",
    "a:\n- b: 1\n- b: 2\n",
    "a:\n  - - b: 1\n    - b: 2\n  - b: 3\n",
    "a: |\n  b: 1\n  b: 2\nc: >-\n  b: 1\n\n  b: 2\n",
    "a:\n  - |\n    b: 1\n    b: 2\n  - b: 1\n",
    'a: "b: 1\n  b: 2\n  b: 3"\nb: 1\n',
    "a: 'it''s\n  b: 1\n  b: 2'\nb: 1\n",
    "a: [{ b: 1 }, { b: 1 }]\nb: { a: { b: 1 }, b: 2 }\n",
    'a: {\n  b: 1, # b: 2\n  c: "b: 1, b: 2", d: x:b }\nb: 1 # b: 2\n# b: 3\n',
    "a: one\n  two\n  'three\nb: 1\n",
    "a: &x\n  b: 1\nc: *x\nd: !!map\n  b: 1\n",
    "a: https://x.test/?b=1\nb: http://x.test\n",
  ])("%j has none", async (text) => {
    expect(Bun.YAML.parse(text)).toBeObject();
    expect(await readSource(text, "yaml", parseJson)).toBeObject();
  });

  test("what is written as JSON or YAML by the gateway has none", async () => {
    const value = {
      a: [
        { b: "x: |\n b: 1\n b: 2", c: ["- d: 1", "'", '"'] },
        { b: "#", e: {} },
      ],
      b: [],
    };
    for (const text of [JSON.stringify(value, null, 2), Bun.YAML.stringify(value, null, 2)])
      expect((await readSource(text, "yaml", parseJson)).value).toEqual(value);
  });
});
