// The documentation as a site: all links lead to pages, search works without a server, and nothing is asked of others.
import { expect } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { needs } from "../support/needs.ts";
import { openBrowser } from "../support/browser.ts";

const { afterAll, beforeAll, test } = needs("node", "chromium");
const root = resolve(import.meta.dir, "../..");
const site = join(root, "dist/docs-site");
let server: Bun.Server<undefined>;

beforeAll(async () => {
  const child = Bun.spawn(["make", "docs-site"], { cwd: root, stdout: "pipe", stderr: "pipe" });
  const [code, errors] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  if (code !== 0) throw new Error(`make docs-site: ${errors}`);
  server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const path = decodeURIComponent(new URL(request.url).pathname);
      return new Response(Bun.file(join(site, fileOf(path) ?? "404.html")));
    },
  });
});
afterAll(() => server?.stop(true));

/** As servers of static files find pages: `/` is index.html, `/fleet` is fleet.html. */
function fileOf(path: string): string | null {
  const candidates = path.endsWith("/") ? [`${path}index.html`] : [path, `${path}.html`];
  return candidates.find((name) => isFile(join(site, name))) ?? null;
}

const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;

test("links between pages lead to pages", () => {
  const pages = readdirSync(site, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".html"),
  );
  expect(pages.length).toBeGreaterThan(90);
  const dead = pages.flatMap((page) =>
    [...readFileSync(join(site, page), "utf8").matchAll(/<a [^>]*href="(\/[^"#]*)/g)]
      .map(([, link]) => link ?? "")
      // Sources and examples are in the repository only.
      .filter((link) => !/^\/(?:src|tests|examples|scripts|LICENSE)/.test(link))
      .filter((link) => fileOf(decodeURIComponent(link)) === null)
      .map((link) => `${page}: ${link}`),
  );
  expect(dead).toEqual([]);
});

test("a reader searches and follows a result", async () => {
  const browser = await openBrowser();
  try {
    const page = await browser.newPage();
    const requested: string[] = [];
    page.on("request", (request) => requested.push(request.url()));
    await page.goto(server.url.href);
    expect(await page.textContent("h1")).toContain("Sluice");
    await page.click(".DocSearch-Button");
    await page.fill("#localsearch-input", "hmac signature");
    await page.click("a.result");
    await page.waitForURL(/\/plugins\/hmac-auth/);
    expect(requested.filter((url) => !url.startsWith(server.url.origin))).toEqual([]);
  } finally {
    await browser.close();
  }
});
