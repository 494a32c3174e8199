// The list of phases against the docs, the plugin kit, the chain of plugins and the files that it names.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { withPhases } from "../../scripts/request-life.ts";
import { requestPhases } from "../../src/dataplane/plugin/plugin-set.ts";
import { phases } from "../../src/dataplane/request/phases.ts";
import { phaseHandlers, type PhaseName, phaseNames } from "../../src/pdk/definition.ts";

const root = join(import.meta.dir, "../..");

/** Without what only aligns columns. */
const plain = (text: string) => text.replaceAll(/-{3,}/g, "---").replaceAll(/ +/g, " ");

test("docs/request-life.md shows the list; `make docs` writes it", () => {
  const page = readFileSync(join(root, "docs/request-life.md"), "utf8");
  expect(plain(page)).toBe(plain(withPhases(page)));
});

test("plugins have exactly the phases that the plugin kit offers, in its order", () => {
  const ofPlugins = phases.filter(({ isForPlugins }) => isForPlugins).map(({ name }) => name);
  // `connect` is that of stream connections.
  expect(ofPlugins).toEqual(phaseNames.filter((name) => name !== "connect"));
});

test("the chain runs the phases before the exchange in this order", () => {
  const names = phases.map(({ name }) => name);
  const before = names.slice(0, names.indexOf("exchange"));
  const handlers = before
    .filter((name) => Object.hasOwn(phaseHandlers, name))
    .map((name) => phaseHandlers[name as PhaseName]);
  expect(handlers).toEqual([...requestPhases]);
});

test.each(phases.map(({ name, file }) => [name, file]))("%s: %s exists", (_name, file) => {
  expect(existsSync(join(root, "src/dataplane", file))).toBe(true);
});
