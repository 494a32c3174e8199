// The text of a configuration file, made object by object, is that of the whole document made at once.
import { expect, test } from "bun:test";
import { textSteps } from "../../../../src/import/transfer/document-text.ts";
import { finish } from "../../../../src/pace.ts";

const documents: readonly (readonly [string, object])[] = [
  ["nothing", {}],
  ["no lists", { format: 1, program: "sluice", settings: { a: { b: [] } } }],
  ["an empty list, and one of texts", { format: 1, routes: [], tags: ["a", "b: c"] }],
  [
    "objects with everything in them",
    {
      format: 1,
      routes: [
        { id: "1", name: "a\nb", hosts: ["x", "y"], none: null, n: true, empty: {} },
        { id: "2", paths: [{ type: "regex", value: "^/\\d+$" }, { deep: [[1], { x: [{}] }] }] },
        {},
      ],
      certificates: [{ certificate: "-----BEGIN\nline\n\n-----END\n" }],
      last: { yes: "no", text: "# none" },
    },
  ],
];

test.each(documents)("JSON: %s", (_, document) => {
  const whole = Object.keys(document).length === 0 ? "{\n\n}" : JSON.stringify(document, null, 2);
  expect(finish(textSteps(document, "json"))).toBe(`${whole}\n`);
});

test.each(documents.slice(1))("YAML: %s", (_, document) => {
  const text = finish(textSteps(document, "yaml"));
  expect(text.trimEnd()).toBe(Bun.YAML.stringify(document, null, 2).trimEnd());
  expect(Bun.YAML.parse(text)).toEqual(document);
});
