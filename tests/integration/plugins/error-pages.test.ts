// error-pages on a real data plane: which page a client gets in which form, what stays of the response, and what clients put into one.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { decode } from "../../../src/model/decode.ts";
import errorPages from "../../../src/plugins/error-pages.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";

let scene: PluginScene;

const HTML = { Accept: "text/html,*/*;q=0.1" };
const JSON_WANTED = { Accept: "application/json" };
const TEXT = { Accept: "text/plain" };

beforeAll(async () => {
  scene = await pluginScene({
    routes: [{ name: "all", service_id: "web" }],
    answer: (request) => {
      const status = Number(new URL(request.url).pathname.slice(1)) || 200;
      return new Response("from the target", {
        status,
        headers: {
          "Content-Encoding": "identity",
          "Content-Language": "de",
          "Content-Type": "text/x-own",
          ETag: '"x"',
          "Retry-After": status === 503 ? "77" : "1",
          "X-Own": "stays",
        },
      });
    },
  });
  // The target is down.
  await scene.apply({
    services: [{ name: "down", targets: [{ port: 1 }], retries: { count: 0 } }],
    routes: [{ name: "down", service_id: "down", paths: ["/down"] }],
  });
});
afterAll(() => scene.stop());

const use = (config: Record<string, unknown>) =>
  scene.apply({ plugins: [{ name: "error-pages", config }] });

const three = (name: string) => ({
  html: `<p title="\${request.header.x}">${name} \${status} \${title}: \${detail}</p>`,
  json: `{"page":"${name}","status":\${status},"x":"\${request.header.x}","id":"\${request.id}"}`,
  text: `${name} \${status} \${request.path} \${request.header.x}`,
});

describe("of a failed request", () => {
  test.each([
    ["HTML", HTML, "text/html; charset=utf-8", /^<p title="">five 502 Bad Gateway: .+<\/p>$/],
    ["JSON", JSON_WANTED, "application/json", /^\{"page":"five","status":502,/],
    [
      "problem+json",
      { Accept: "application/problem+json" },
      "application/problem+json",
      /^\{"page"/,
    ],
    ["text", TEXT, "text/plain; charset=utf-8", /^five 502 \/down $/],
    ["anything", { Accept: "*/*" }, "text/plain; charset=utf-8", /^five 502/],
  ])("the page is %s when the client prefers that", async (_, headers, type, pattern) => {
    await use({ pages: { "5xx": three("five"), "404": three("four") } });
    const answer = await scene.get("/down", headers);
    expect(answer.status).toBe(502);
    expect(answer.body).toMatch(pattern);
    expect(answer.headers.get("content-type")).toBe(type);
    expect(answer.headers.get("content-length")).toBe(String(Buffer.byteLength(answer.body)));
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(answer.headers.get("vary")).toBe("Accept");
    expect(answer.headers.get("proxy-status")).toStartWith("sluice; error=");
    expect(answer.headers.get("x-request-id")).toMatch(/^[\da-f-]{36}$/);
  });

  test("a page of the status goes before that of its class", async () => {
    await use({ pages: { "5xx": three("class"), "502": three("exact") } });
    expect((await scene.get("/down", TEXT)).body).toStartWith("exact");
    await use({ pages: { "4xx": three("class") } });
    expect((await scene.get("/down", TEXT)).body).toStartWith("502 Bad Gateway");
  });

  test("a missing format uses the gateway's own page", async () => {
    await use({ pages: { "5xx": { html: "<p>own</p>" } } });
    expect((await scene.get("/down", JSON_WANTED)).headers.get("content-type")).toBe(
      "application/problem+json",
    );
    expect((await scene.get("/down", { Accept: "*/*" })).body).toBe("<p>own</p>");
    expect((await scene.get("/down", { Accept: "image/png" })).body).not.toContain("own");
  });

  test("rejections of plugins get one, with their headers", async () => {
    await scene.apply({
      plugins: [
        { name: "error-pages", config: { pages: { "401": three("who") } } },
        { name: "basic-auth", routeId: "all", config: { users: [] } },
      ],
    });
    const answer = await scene.get("/x", TEXT);
    expect(answer.body).toBe("who 401 /x ");
    expect(answer.headers.get("www-authenticate")).toStartWith("Basic");
    await scene.apply({ plugins: [], removedPlugins: ["basic-auth"] });
  });

  test("paths without a route get one of a global instance", async () => {
    await scene.apply({ removedRoutes: ["all"] });
    await use({ pages: { "404": three("nowhere") } });
    expect((await scene.get("/nope", TEXT)).body).toBe("nowhere 404 /nope ");
    await scene.apply({ routes: [{ name: "all", service_id: "web" }] });
  });

  test("HEAD gets the length of the page and nothing else", async () => {
    await use({ pages: { "5xx": { text: "12345" } } });
    const { headers, body } = await scene.send("HEAD", "/down", { headers: TEXT });
    expect(body).toBe("");
    expect(headers.get("content-length")).toBe("5");
  });

  test("client input becomes neither a tag nor a member", async () => {
    await use({ pages: { "5xx": three("x") } });
    const x = `"><script>alert(1)</script>\\", "admin": true, "y": "`;
    const html = (await scene.get("/down", { ...HTML, x })).body;
    expect(html).not.toContain("<script");
    expect(html).toContain('title="&quot;&gt;&lt;script');
    const json = JSON.parse((await scene.get("/down", { ...JSON_WANTED, x })).body);
    expect(json.x).toBe(x);
    expect(json).not.toHaveProperty("admin");
  });
});

describe("of a target's response", () => {
  test("there is none by default", async () => {
    await use({ pages: { "404": three("own") } });
    expect((await scene.get("/404", TEXT)).body).toBe("from the target");
  });

  test("the page replaces the body and its headers, and nothing else", async () => {
    await use({ pages: { "404": three("own") }, replace_upstream: true });
    const { status, body, headers } = await scene.get("/404", TEXT);
    expect(status).toBe(404);
    expect(body).toBe("own 404 /404 ");
    expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(headers.get("x-own")).toBe("stays");
    expect(headers.get("retry-after")).toBe("1");
    for (const name of ["etag", "content-language", "content-encoding"])
      expect(headers.has(name)).toBe(false);
    expect((await scene.get("/200", TEXT)).body).toBe("from the target");
    expect((await scene.get("/410", TEXT)).body).toBe("from the target");
  });

  test("the connection continues after a page", async () => {
    await use({ pages: { "4xx": three("own") }, replace_upstream: true });
    for (let at = 0; at < 5; at++) expect((await scene.get("/404", TEXT)).body).toStartWith("own");
    expect((await scene.get("/200", TEXT)).body).toBe("from the target");
  });
});

describe("a browser reloads by itself", () => {
  const pages = { "5xx": { html: "<p>${refresh}</p>" } };

  test.each([
    ["after 5 s", {}, "/down", "5"],
    ["after another time", { auto_refresh_s: 9 }, "/down", "9"],
    ["not when that is off", { auto_refresh_s: 0 }, "/down", null],
    ["after a Retry-After that is longer", { replace_upstream: true }, "/503", "77"],
    ["not after 500", { replace_upstream: true }, "/500", null],
  ])("%s", async (_, config, path, refresh) => {
    await use({ pages, ...config });
    const { headers, body } = await scene.get(path, HTML);
    expect(headers.get("refresh")).toBe(refresh);
    expect(body).toBe(`<p>${refresh ?? 0}</p>`);
  });

  test("not after a request with a body", async () => {
    await use({ pages });
    const { headers } = await scene.send("POST", "/down", { headers: HTML, body: "x" });
    expect(headers.get("refresh")).toBeNull();
  });

  test.each([
    [0, false],
    [30, true],
  ])("with the gateway's own page as well: %i", async (seconds, hasMeta) => {
    await use({ auto_refresh_s: seconds });
    const { body } = await scene.get("/down", HTML);
    expect(body).toContain("<h1>502 Bad Gateway</h1>");
    expect(body.includes(`http-equiv="refresh" content="${seconds}"`)).toBe(hasMeta);
    expect(body.includes('content="5"')).toBe(false);
  });
});

test.each([
  [{ pages: { "404": { html: null } } }, "pages.404", "one form"],
  [{ pages: { "404": { html: "${nope}" } } }, "pages.404.html", "known"],
  [{ pages: { "404": { html: null, json: "{", text: null } } }, "pages.404.json", "must be JSON"],
])("refuses %j", (config, path, message) => {
  const check = errorPages.check as unknown as (
    config: unknown,
  ) => { readonly path: string; readonly message: string }[];
  const [problem] = check(decode(errorPages.config, config));
  expect(problem?.path).toBe(path);
  expect(problem?.message).toContain(message);
});
