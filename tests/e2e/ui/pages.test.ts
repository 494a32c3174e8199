// Every page of a filled gateway at three widths, light and dark: no errors, no layout shifts, screenshots saved.
import { expect } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { pagePath } from "../../../src/ui/page-path.ts";
import { pages } from "../../../src/ui/pages.ts";
import { fillGateway } from "../../support/filled-gateway.ts";
import {
  checkAccessible,
  hasScheme,
  isQuiet,
  SAVES_SCREENSHOTS,
  SCREENSHOTS,
  useUi,
  type UiPage,
} from "../../support/ui-scene.ts";

const { afterAll, beforeAll, scene, test } = useUi();

let origin: Bun.Server<undefined>;
let lanes: readonly UiPage[] = [];

beforeAll(async () => {
  mkdirSync(SCREENSHOTS, { recursive: true });
  origin = scene.serve(() => new Response("the shop"));
  await fillGateway(scene.gateway, origin.port ?? 0);
  await scene.createPeople();
  lanes = await Promise.all([scene.openAs("admin"), scene.openAs("admin")]);
  for (const { page } of lanes) await page.addInitScript({ content: OBSERVE });
});
afterAll(async () => {
  const sorted = firstPaints.toSorted((a, b) => a - b);
  const at = (index: number) => Math.round(sorted.at(index) ?? 0);
  console.log(
    `first contentful paint of ${sorted.length} visits: median ${at(sorted.length >> 1)} ms, slowest ${at(-1)} ms`,
  );
});

/** Sums every shift of visible content, which is stricter than the usual layout-shift score. */
const OBSERVE = `
  window.measured = { shift: 0, firstPaint: 0, moved: [] };
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries())
      if (!hadRecentInput) {
        measured.shift += value;
        for (const { node } of sources) if (node) measured.moved.push(String((node.outerHTML ?? node.data)).slice(0, 120));
      }
  }).observe({ type: "layout-shift", buffered: true });
  new PerformanceObserver((list) => {
    for (const { name, startTime } of list.getEntries())
      if (name === "first-contentful-paint") measured.firstPaint = startTime;
  }).observe({ type: "paint", buffered: true });
`;

interface Measured {
  readonly shift: number;
  readonly firstPaint: number;
  readonly moved: readonly string[];
}

type Scheme = "light" | "dark";
/** The page opens in the first one: content out of sight may keep the colors that it was drawn in. */
const ORDER: Readonly<Record<number, readonly Scheme[]>> = {
  380: ["dark", "light"],
  768: ["light", "dark"],
  1440: ["light", "dark"],
};
/** Colors and layout are checked once each. */
const CHECKED: Readonly<Record<number, Scheme>> = { 380: "dark", 1440: "light" };

/** Beside the lists: forms, and pages within pages. */
const more = ["routes/new", "export-import?tab=import", "revisions/3"];
const paths = [...pages.map(({ path }) => pagePath(path)), ...more.map((path) => `/ui/${path}`)];

const firstPaints: number[] = [];

/** Problems of a page at these widths; expected to be empty. */
async function look(lane: UiPage, path: string, widths: readonly number[]): Promise<string[]> {
  const { page, complaints } = lane;
  const known = complaints.length;
  const wrong: string[] = [];
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 });
    await wear(page, ORDER[width]?.[0] ?? "light");
    await page.goto(`${scene.gateway.admin}${path}`);
    await isQuiet(page);
    const measured = (await page.evaluate("measured")) as Measured;
    firstPaints.push(measured.firstPaint);
    if (measured.shift > 0.1)
      wrong.push(
        `${width} px: layout shift ${measured.shift.toFixed(3)}: ${measured.moved.join(" | ")}`,
      );
    const beyond = await overflowOf(page);
    if (beyond > 0) wrong.push(`${width} px: ${beyond} px wider than the window`);
    for (const scheme of ORDER[width] ?? [])
      wrong.push(...(await lookIn(page, scheme, { width, path })));
  }
  return [...wrong, ...complaints.slice(known)];
}

async function lookIn(
  page: Page,
  scheme: Scheme,
  { width, path }: { readonly width: number; readonly path: string },
): Promise<string[]> {
  await wear(page, scheme);
  const name = path === "/" ? "dashboard" : path.slice("/ui/".length).replaceAll(/[/?=]/g, "-");
  if (SAVES_SCREENSHOTS)
    await page.screenshot({ path: join(SCREENSHOTS, `${name}-${width}-${scheme}.png`) });
  if (CHECKED[width] !== scheme) return [];
  return (await checkAccessible(page)).map((line) => `${width} px ${scheme}: ${line}`);
}

async function wear(page: Page, scheme: Scheme): Promise<void> {
  await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
  await hasScheme(page, scheme);
}

const overflowOf = async (page: Page): Promise<number> =>
  (await page.evaluate(
    "document.documentElement.scrollWidth - document.documentElement.clientWidth",
  )) as number;

test.each(paths)("%s has no errors at any width, in light and in dark", async (path) => {
  const [narrow, wide] = lanes;
  if (narrow === undefined || wide === undefined) throw new Error("no browser");
  const found = await Promise.all([look(narrow, path, [380, 768]), look(wide, path, [1440])]);
  expect(found.flat()).toEqual([]);
});
