// What the web UI loads and from where, and that its files are found by their exact names only.
import { expect } from "bun:test";
import { pages } from "../../../src/ui/pages.ts";
import { pagePath } from "../../../src/ui/page-path.ts";
import { sendRaw } from "../../support/raw-http.ts";
import { isQuiet, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

beforeAll(async () => {
  await scene.createPeople();
});

const fetchText = async (path: string) => {
  const response = await scene.gateway.api("GET", path);
  return { response, text: await response.text() };
};

test.each(["/", "/ui/services", "/ui/services/new", "/ui/a/b/c", "/ui/%3Cscript%3E"])(
  "the document at %s runs only its own files and contains no text of the URL",
  async (path) => {
    const { response, text } = await fetchText(path);
    expect(response.status).toBe(200);
    const policy = response.headers.get("content-security-policy") ?? "";
    const directives = new Map(
      policy.split("; ").map((part) => [part.split(" ")[0] ?? "", part.split(" ").slice(1)]),
    );
    expect(directives.get("script-src")).toEqual(["'self'"]);
    expect(directives.get("default-src")).toEqual(["'self'"]);
    expect(directives.get("connect-src")).toEqual(["'self'"]);
    expect(directives.get("frame-ancestors")).toEqual(["'none'"]);
    expect(policy).not.toContain("unsafe-eval");
    // Every script is a file, and no attribute runs code.
    for (const [, attributes = "", content = ""] of text.matchAll(
      /<script([^>]*)>(.*?)<\/script>/gs,
    ))
      expect([/ src="\/assets\//.test(attributes), content.trim()]).toEqual([true, ""]);
    expect(text).not.toMatch(/\son\w+\s*=/i);
    expect(text).not.toContain("<script>");
    expect(text).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
  },
);

test("the browser enforces the policy: an injected inline script does not run", async () => {
  const { page, complaints, close } = await scene.open();
  await page.locator("h1").first().waitFor();
  await page.evaluate(`
    const script = document.createElement("script");
    script.textContent = "window.broken = true";
    document.body.append(script);
    document.body.insertAdjacentHTML("beforeend", '<img src="x:" onerror="window.broken = true">');
  `);
  expect(await page.evaluate("window.broken ?? false")).toBe(false);
  expect(complaints.some((line) => line.includes("Content Security Policy"))).toBe(true);
  await close();
});

test("no page requests another origin, sets other cookies or logs errors", async () => {
  const { page, complaints, close } = await scene.openAs("admin");
  const asked = new Set<string>();
  page.on("request", (request) => asked.add(new URL(request.url()).origin));
  for (const { path } of pages)
    for (const address of [
      pagePath(path),
      ...(path === "dashboard" ? [] : [pagePath(path, "new")]),
    ]) {
      await page.goto(`${scene.gateway.admin}${address}`);
      await isQuiet(page);
    }
  asked.delete("null");
  expect([...asked]).toEqual([scene.gateway.admin]);
  const own = complaints.filter((line) => !/\b404\b/.test(line));
  expect(own).toEqual([]);
  const cookies = await page.context().cookies();
  expect(cookies.map(({ name, httpOnly }) => [name, httpOnly])).toEqual([
    [expect.stringMatching(/^sluice_session_[0-9a-f]{8}$/), true],
  ]);
  expect(await page.evaluate("document.cookie")).toBe("");
  await close();
});

const sequences = [
  ["/assets/../index.html", "dots are not followed"],
  ["/assets/..%2f..%2f..%2fetc%2fpasswd", "encoded slashes are no slashes"],
  ["/assets/%2e%2e/%2e%2e/etc/passwd", "encoded dots"],
  ["/assets/....//....//etc/passwd", "dots that a careless filter makes"],
  ["/assets/..\\..\\etc\\passwd", "backslashes"],
  ["/assets/%5c..%5c..%5cetc%5cpasswd", "encoded backslashes"],
  ["/assets//etc/passwd", "an absolute path"],
  ["/assets/%2fetc%2fpasswd", "an encoded absolute path"],
  ["/assets/%252e%252e%252fetc%252fpasswd", "encoded twice"],
  ["/assets/main.js%00.html", "a null byte"],
  ["/assets/index.html", "the document is no asset: its policy would be missing"],
  ["/assets/embedded.js", "the list of files is none of them"],
  ["/assets/__proto__", "what every object has is no file"],
  ["/assets/constructor", "what every object has is no file"],
  ["/assets/toString", "what every object has is no file"],
  ["/assets/", "no name"],
  ["/assets", "no folder"],
  ["/assets/%zz", "what cannot be decoded"],
  ["/assets/%c0%ae%c0%ae/etc/passwd", "dots in overlong UTF-8"],
  [`/assets/${"a".repeat(4000)}`, "a long name"],
] as const;

test.each(sequences)("over a raw socket %s finds nothing: %s", async (path) => {
  const { port, host } = new URL(scene.gateway.admin);
  const answer = await sendRaw(
    `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n`,
    { port: Number(port) },
  );
  const [, status = ""] = /^HTTP\/1\.1 (\d{3}) /.exec(answer) ?? [];
  expect(["400", "401", "404"]).toContain(status);
  expect(answer).not.toContain("root:");
  expect(answer).not.toContain("<!doctype html>");
  expect(answer).not.toMatch(/cache-control: public/i);
});

test("an asset is immutable, has its content type and forbids sniffing", async () => {
  const { text } = await fetchText("/");
  const [, name = ""] = /src="(\/assets\/[^"]+\.js)"/.exec(text) ?? [];
  const { response } = await fetchText(name);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  expect(response.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect(response.headers.get("x-content-type-options")).toBe("nosniff");
  const head = await scene.gateway.api("HEAD", name);
  expect([head.status, await head.text()]).toEqual([200, ""]);
  const post = await scene.gateway.api("POST", name, {});
  expect([401, 403, 404, 405]).toContain(post.status);
});
