// The docs against the program: links, commands, flags, paths, the tests that they name, badges.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize, resolve } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { badgesOf } from "../../scripts/badges.ts";
import { accessTable } from "../../src/api/access.ts";

const root = resolve(import.meta.dir, "../..");
const pages = [
  ...["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"],
  ...new Bun.Glob("docs/**/*.md").scanSync(root),
].map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));

const prose = (text: string) => text.replaceAll(/^```.*?^```/gms, "");

/** Anchors of headings, as sites that render Markdown derive them. */
const anchorsOf = (text: string): ReadonlySet<string> =>
  new Set(
    [...prose(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
      heading
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );

const linksOf = ({ path, text }: { path: string; text: string }) =>
  [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = ""]) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [to = "", anchor = ""] = link.split("#");
      return { link, to: to === "" ? path : normalize(join(dirname(path), to)), anchor };
    });

/** What the reference says of each command. */
const help = new Map(
  [
    ...readFileSync(join(root, "docs/configuration.md"), "utf8").matchAll(
      /^### sluice ([\w-]+)\n\n```text\n(.*?)^```/gms,
    ),
  ].map(([, name = "", text = ""]) => [name, text] as const),
);

describe("links", () => {
  test("between pages lead to a page and a heading that exist", () => {
    const broken: string[] = [];
    for (const page of pages)
      for (const { link, to, anchor } of linksOf(page)) {
        const target = pages.find(({ path }) => path === to);
        const isMissing = !existsSync(join(root, to));
        const lacksHeading =
          anchor !== "" && target !== undefined && !anchorsOf(target.text).has(anchor);
        if (isMissing || lacksHeading) broken.push(`${page.path}: ${link}`);
      }
    expect(broken).toEqual([]);
  });

  test("lead to every page", () => {
    const reached = new Set(
      pages.flatMap((page) =>
        linksOf(page).flatMap(({ to }) => (to === page.path ? [] : [to, join(to, "README.md")])),
      ),
    );
    const lonely = pages.map(({ path }) => path).filter((path) => !reached.has(path));
    expect(lonely).toEqual([]);
  });
});

describe("commands", () => {
  test("all have their help text in the reference", () => {
    const sources = [...new Bun.Glob("src/cli/*.ts").scanSync(root)]
      .map((path) => readFileSync(join(root, path), "utf8"))
      .filter((text) => /\bCommand\b/.test(text));
    const names = sources.flatMap((text) =>
      [...text.matchAll(/^ +name: "([\w-]+)",\n +summary:/gm)].map(([, name = ""]) => name),
    );
    expect(["help", ...help.keys()].toSorted()).toEqual(names.toSorted());
  });

  test("and flags that a page names exist", () => {
    const names = [...help.keys()].join("|");
    const line = new RegExp(`sluice (${names})\\b([^\`\\n|;&#]*)`, "g");
    const unknown: string[] = [];
    let found = 0;
    for (const { path, text } of pages)
      for (const [words, name = "", rest = ""] of text.matchAll(line))
        for (const [flag] of rest.matchAll(/--[a-z][a-z-]+/g)) {
          found++;
          if (!help.get(name)?.includes(`\n  ${flag}`)) unknown.push(`${path}: ${words}`);
        }
    expect(unknown).toEqual([]);
    expect(found).toBeGreaterThan(30);
  });

  test("of make exist", () => {
    const targets = readFileSync(join(root, "Makefile"), "utf8");
    for (const { path, text } of pages)
      for (const [, target = ""] of text.matchAll(/(?:`|^)make ([a-z0-9-]+)/gm))
        expect([path, target, new RegExp(`^${target}:`, "m").test(targets)]).toEqual([
          ...[path, target],
          true,
        ]);
  });
});

test("API requests that a page names exist", () => {
  const rows = accessTable.map(({ path, methods }) => ({
    pattern: new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}$`),
    methods: Object.keys(methods),
  }));
  const unknown: string[] = [];
  let found = 0;
  for (const { path, text } of pages)
    for (const [line, method = "", where = ""] of text.matchAll(
      /\b(GET|POST|PUT|PATCH|DELETE) (\/api\/v1\/[^\s`"',;)|?…]*)/g,
    )) {
      found++;
      const plain = where.replace(/[.:]$/, "").replaceAll(/\{[^}]*\}|:\w+/g, "x");
      if (!rows.some((row) => row.methods.includes(method) && row.pattern.test(plain)))
        unknown.push(`${path}: ${line}`);
    }
  expect(unknown).toEqual([]);
  expect(found).toBeGreaterThan(50);
});

test("every test that the security model names exists", () => {
  const { text = "" } = pages.find(({ path }) => path === "docs/security.md") ?? {};
  const named = [
    ...text.matchAll(
      /`((?:integration|unit|e2e|http|listeners|plugins|security|fuzz|bench)\/[\w./-]*)`/g,
    ),
  ].map(([, name = ""]) => name);
  expect(named.length).toBeGreaterThan(30);
  const isThere = (name: string) =>
    ["", ".test.ts"].some((end) =>
      [name, `integration/${name}`].some((path) => existsSync(join(root, "tests", path + end))),
    );
  expect(named.filter((name) => !isThere(name))).toEqual([]);
});

test("badges say what package.json says, and the README shows them all", () => {
  const { text = "" } = pages.find(({ path }) => path === "README.md") ?? {};
  for (const [name, svg] of badgesOf(manifest)) {
    expect(readFileSync(join(root, "docs/images/badges", name), "utf8")).toBe(svg);
    expect(text).toContain(`(docs/images/badges/${name})`);
  }
});
