// Every page of a filled gateway at three widths, light and dark: nothing to complain about, nothing that moves, pictures kept.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { pages } from "../../../src/ui/pages.ts";
import { fillGateway } from "../../support/filled-gateway.ts";
import {
  checkAccessible,
  hasScheme,
  isQuiet,
  SCREENSHOTS,
  startUi,
  type UiPage,
  type UiScene,
} from "../../support/ui-scene.ts";

let scene: UiScene;
let origin: ReturnType<typeof Bun.serve>;
let lanes: readonly UiPage[] = [];

beforeAll(async () => {
  mkdirSync(SCREENSHOTS, { recursive: true });
  origin = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("the shop") });
  scene = await startUi();
  await fillGateway(scene.gateway, origin.port ?? 0);
  await scene.createPeople();
  lanes = await Promise.all([scene.openAs("admin"), scene.openAs("admin")]);
  for (const { page } of lanes) await page.addInitScript({ content: OBSERVE });
});
afterAll(async () => {
  await scene?.stop();
  await origin?.stop(true);
});

/** Adds up every shift of what is drawn already, which is stricter than the usual measure. */
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

const WIDTHS = [380, 768, 1440];
const SCHEMES = ["light", "dark"] as const;
/** Colours and layout are looked at once each. */
const CHECKED: Readonly<Record<number, string>> = { 380: "dark", 1440: "light" };

/** Beside the lists: forms, and pages within pages. */
const more = ["routes/new", "transfer?tab=import", "revisions/3"];
const paths = [
  ...pages.map(({ path }) => (path === "" ? "/" : `/ui/${path}`)),
  ...more.map((path) => `/ui/${path}`),
];

const firstPaints: number[] = [];

/** What is wrong with a page; nothing is what is wanted. */
async function look({ page, complaints }: UiPage, path: string): Promise<string[]> {
  const wrong: string[] = [];
  const name = path === "/" ? "dashboard" : path.slice("/ui/".length).replaceAll(/[/?=]/g, "-");
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
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
    for (const scheme of width === 768 ? SCHEMES.toReversed() : SCHEMES) {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      await hasScheme(page, scheme);
      await page.screenshot({ path: join(SCREENSHOTS, `${name}-${width}-${scheme}.png`) });
      if (CHECKED[width] === scheme)
        wrong.push(
          ...(await checkAccessible(page)).map((line) => `${width} px ${scheme}: ${line}`),
        );
    }
  }
  return [...wrong, ...complaints];
}

const overflowOf = async (page: Page): Promise<number> =>
  (await page.evaluate(
    "document.documentElement.scrollWidth - document.documentElement.clientWidth",
  )) as number;

test("every page is whole at every width, in light and in dark", async () => {
  const queue = [...paths];
  const findings: Record<string, readonly string[]> = {};
  const work = async (lane: UiPage) => {
    for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
      const known = lane.complaints.length;
      const wrong = await look(lane, path);
      if (wrong.length > known) findings[path] = wrong;
    }
  };
  await Promise.all(lanes.map(work));
  const sorted = firstPaints.toSorted((a, b) => a - b);
  console.log(
    `first contentful paint of ${sorted.length} visits: median ${Math.round(sorted[sorted.length >> 1] ?? 0)} ms, slowest ${Math.round(sorted.at(-1) ?? 0)} ms`,
  );
  expect(findings).toEqual({});
}, 300_000);
