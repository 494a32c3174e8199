// axe on every page and dialog over a filled gateway: for each role, in light and dark.
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { fillGateway } from "../../support/filled-gateway.ts";
import { checkAccessible, hasScheme, isQuiet, type UiRole, useUi } from "../../support/ui-scene.ts";
import { allViews, type View } from "../../support/ui-views.ts";

const { beforeAll, scene, test } = useUi();

beforeAll(async () => {
  const origin = scene.serve(() => new Response("the shop"));
  await fillGateway(scene.gateway, origin.port ?? 0);
  await scene.createPeople();
});

/** Findings in both color schemes; the page stays open between them. */
async function look(page: Page, { name, path, prepare }: View): Promise<string[]> {
  await page.evaluate("sessionStorage.clear()");
  await page.goto(`${scene.gateway.admin}${path}`);
  await isQuiet(page);
  await prepare?.(page);
  const found: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await hasScheme(page, colorScheme);
    await isQuiet(page);
    found.push(...(await checkAccessible(page)).map((line) => `${name} ${colorScheme}: ${line}`));
  }
  return found;
}

test.each([
  ["admin", 1440],
  ["editor", 1440],
  ["viewer", 390],
] satisfies [UiRole, number][])("as %s: axe finds nothing, %d pixels wide", async (role, width) => {
  // Pages that the role may not open, and the dry run of a deletion, which names what is in use.
  const open = () => scene.openAs(role, { width, expects: [403, 409] });
  const lanes = await Promise.all([open(), open()]);
  const views = [...(await allViews(lanes[0].page))].filter(
    ({ needsEditor }) => role !== "viewer" || needsEditor !== true,
  );
  const found = await Promise.all(
    lanes.map(async ({ page, complaints, close }) => {
      const lines: string[] = [];
      for (let view = views.shift(); view !== undefined; view = views.shift())
        lines.push(...(await look(page, view)));
      await close();
      return [...lines, ...complaints];
    }),
  );
  expect(found.flat()).toEqual([]);
});
