// What importers cannot do: a list beside each of them, from which the docs are made.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gapsOf, withGaps } from "../../../scripts/migrating.ts";
import { importSources } from "../../../src/import/programs.ts";

test("docs/migrating.md shows the lists; `make docs` writes them", () => {
  const page = readFileSync(join(import.meta.dir, "../../../docs/migrating.md"), "utf8");
  const cells = (text: string) => text.replaceAll(/ *\| */g, "|").replaceAll(/-+/g, "-");
  expect(cells(withGaps(page))).toBe(cells(page));
});

test.each([...importSources])("%s has a list, whose entries say what happens", (program) => {
  const gaps = gapsOf(program);
  expect(gaps.length).toBeGreaterThan(2);
  for (const gap of gaps) {
    expect(Object.keys(gap)).toEqual(["part", "result", "why"]);
    expect(["closed", "omitted", "changed"]).toContain(gap.result);
  }
});
