// Each recipe says its way in the browser too, by names that the web UI has.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "../..");
const page = readFileSync(join(root, "docs/recipes.md"), "utf8");
/** What every recipe shares, and what none of them is about. */
const OTHERS = ["Common settings", "Other applications"];
const recipes = page
  .split(/^## /m)
  .slice(1)
  .map((text) => ({ title: text.slice(0, text.indexOf("\n")), text }))
  .filter(({ title }) => !OTHERS.includes(title));

const texts = ["src/ui", "src/model"].flatMap((folder) =>
  [...new Bun.Glob("**/*.{ts,tsx}").scanSync(join(root, folder))]
    .filter((path) => !path.endsWith(".d.ts"))
    .map((path) => readFileSync(join(root, folder, path), "utf8")),
);
const isShown = (label: string): boolean =>
  texts.some((text) => text.includes(`"${label}"`) || text.includes(`>${label}<`)) ||
  // The button of a list has the word of its objects.
  (label.startsWith("New ") && texts.some((text) => text.includes(`"${label.slice(4)}"`)));

const wayOf = (text: string) => /^In the browser: [^\n]*(?:\n[^\n]+)*/m.exec(text)?.[0] ?? "";

test.each(recipes.map(({ title, text }) => [title, text] as const))(
  "%s names what the pages have",
  (_, text) => {
    const labels = [...wayOf(text).matchAll(/"([^"]+)"/g)].map(([, label = ""]) =>
      label.replace(/\s+/g, " "),
    );
    expect(labels.length).toBeGreaterThan(1);
    expect(labels.filter((label) => !isShown(label))).toEqual([]);
  },
);

test("a name that no page has is noticed", () => {
  expect(isShown("New application")).toBe(true);
  expect(isShown("Request buffering")).toBe(true);
  expect(isShown("Request Buffering of Everything")).toBe(false);
  expect(isShown("New thing")).toBe(false);
});
