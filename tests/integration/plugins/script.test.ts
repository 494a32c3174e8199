// script on a real data plane: what handlers can do, what they cannot reach, and that nothing they do hurts the worker.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { reasonsProbe } from "../../support/probe-plugin.ts";

let scene: PluginScene;
let reasons: readonly string[] = [];

/** Sees what was noted. */
const probe = reasonsProbe((noted) => {
  reasons = noted;
});

beforeAll(async () => {
  scene = await pluginScene({
    ownPlugins: [probe],
    plugins: [{ name: "probe" }],
    answer: () => new Response("ok", { headers: { "X-Origin": "1" } }),
  });
});
afterAll(() => scene.stop());
beforeEach(() => {
  reasons = [];
});

const use = (source: string, rest: Record<string, unknown> = {}, onError?: "open" | "closed") =>
  scene.apply({
    plugins: [
      {
        name: "script",
        config: { source, timeout_ms: 50, ...rest },
        ...(onError === undefined ? {} : { onError }),
      },
    ],
  });
const onRequest = (body: string) => `export function onRequest(request: any): void { ${body} }`;
/** What an expression is inside, as the origin sees it. */
async function valueInside(expression: string): Promise<string | undefined> {
  await use(onRequest(`request.setHeader("X-Value", String(${expression}))`));
  return (await scene.get("/p?q=1", { Cookie: "c=d" })).seen?.headers["x-value"];
}

test.each([
  ["request.method", "GET"],
  ["request.path + request.query", "/pq=1"],
  ["request.scheme", "http"],
  ["request.host", "127.0.0.1"],
  ["request.clientAddress", "127.0.0.1"],
  ["request.id.length", "36"],
  ["request.country", "null"],
  ["request.route + request.service", "allweb"],
  ["request.consumer", "null"],
  ["JSON.stringify(request.groups)", "[]"],
  ["request.headers.cookie", "c=d"],
  ["request.header('COOKIE')", "c=d"],
  ["request.header('x-none')", "null"],
  ["request.cookie('c')", "d"],
  ["request.queryValue('q')", "1"],
  ["request.result", "null"],
])("%s is %s", async (expression, value) => {
  expect(await valueInside(expression)).toBe(value);
});

test("a request can be changed", async () => {
  await use(
    onRequest(`request.setHeader("X-A", "1"); request.addHeader("X-A", "2"); request.removeHeader("X-B");
      request.setQuery("q", "a b"); request.setQuery("gone", null); request.setPath("/new"); request.setMethod("PUT");
      request.setHost("other.example");`),
  );
  const { seen } = await scene.get("/p?q=1&gone=1", { "X-B": "1" });
  expect(seen).toMatchObject({ method: "PUT", target: "/new?q=a%20b" });
  expect(seen?.headers).toMatchObject({ "x-a": "1, 2", host: "other.example" });
  expect(seen?.headers["x-b"]).toBeUndefined();
});

test("a request can be refused or get a response", async () => {
  await use(onRequest(`request.reject(418, "no tea", "tea.none")`));
  const refused = await scene.get("/", { Accept: "application/json" });
  expect([refused.status, refused.seen, reasons]).toEqual([418, null, ["tea.none"]]);
  expect(refused.body).toContain("no tea");
  await use(
    onRequest(
      `request.reply(201, { headers: { "X-Own": "1", "Set-Cookie": ["a=1", "b=2"] }, body: "hé" })`,
    ),
  );
  const replied = await scene.get("/");
  expect([replied.status, replied.body, replied.headers.get("X-Own")]).toEqual([201, "hé", "1"]);
  expect(replied.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
  expect(reasons).toEqual(["script.replied"]);
});

test("a response can be changed", async () => {
  await use(`export const onResponse = (request, response) => {
    response.setHeader("X-Was", response.status + response.source + response.header("x-origin"));
    response.removeHeader("X-Origin"); response.addHeader("X-Two", "1"); response.addHeader("X-Two", "2");
    response.status = 202;
  }`);
  const { status, headers } = await scene.get("/");
  expect([status, headers.get("X-Was"), headers.get("X-Origin"), headers.get("X-Two")]).toEqual([
    202,
    "200upstream1",
    null,
    "1, 2",
  ]);
});

test("events can be noted and logged", async () => {
  await use(`${onRequest(`request.note("a.b")`)}
    export function onLog(request: { result: { status: number } }) {
      for (let line = 0; line < 100; line++) (request as any).log("status " + request.result.status);
    }`);
  const before = scene.plane.log.length;
  await scene.get("/");
  const lines = () =>
    scene.plane.log.slice(before).filter(({ fields }) => fields["plugin"] === "script");
  await eventually(() => lines().length > 0);
  expect(lines().map(({ message }) => message)).toEqual(Array(10).fill("status 200"));
  expect(reasons).toEqual(["a.b"]);
});

describe("invalid messages are refused in the script", () => {
  test.each([
    `request.setHeader("X A", "1")`,
    `request.setHeader("X-A", "1\\r\\nX-B: 2")`,
    `request.setHeader("Content-Length", "5")`,
    `request.setPath("/../x")`,
    `request.setMethod("A B")`,
    `request.setHost("a b")`,
    `request.reject(200)`,
    `request.reject(NaN)`,
    `request.reply(99)`,
    `request.reply(200, { headers: { "Transfer-Encoding": "chunked" } })`,
    `request.reply(200, { headers: { "X-A": "1\\n2" } })`,
    `request.note("has spaces")`,
    `request.path = "/x"`,
    `response.status = 201`,
  ])("%s", async (statement) => {
    await use(
      onRequest(`try { ${statement} } catch (error) { request.setHeader("X-Error", error.name) }`),
    );
    const { status, seen } = await scene.get("/");
    expect([status, seen?.headers["x-error"]]).toEqual([
      200,
      statement.startsWith("response") ? "ReferenceError" : "TypeError",
    ]);
  });
});

describe("the sandbox exposes nothing of the host", () => {
  test.each([
    "typeof Bun",
    "typeof process",
    "typeof fetch",
    "typeof globalThis.require",
    "typeof globalThis.module",
    "typeof setTimeout",
    "typeof console",
    "typeof WebAssembly",
    "typeof XMLHttpRequest",
    "typeof host",
    "typeof Function('return this')().process",
    "typeof request.header.constructor('return typeof Bun')().length",
    "typeof (0, eval)('this').Bun",
    "typeof request.setHeader.constructor.constructor('return this')().Bun",
    "typeof Object.getPrototypeOf(request)?.constructor",
  ])("%s", async (expression) => {
    expect(await valueInside(expression)).toBe(
      expression.endsWith(".length") ? "number" : "undefined",
    );
  });

  test("errors of the gateway expose nothing of it", async () => {
    const value = await valueInside(
      `(() => { try { request.setHeader("a b", "") } catch (e) { return e.stack + e.constructor.constructor("return typeof Bun")() } })().replace(/\\s+/g, " ").trim()`,
    );
    expect(value).not.toContain("host-functions");
    expect(value).not.toContain("/src/");
    expect(value).toEndWith("undefined");
  });

  test("modules cannot be imported later either", async () => {
    await use(onRequest(`Function("return import('fs')")(); request.setHeader("X-On", "1")`));
    expect((await scene.get("/")).seen?.headers["x-on"]).toBe("1");
  });
});

/** The script fails for /bad only, and must continue to work. */
const bad = (body: string) =>
  `let calls = 0;\n${onRequest(`calls++; if (request.path === "/bad") { ${body} } request.setHeader("X-Calls", String(calls))`)}`;

describe("a handler that", () => {
  test.each([
    ["never ends", "for (;;);"],
    [
      "never ends and catches everything",
      "for (;;) try { for (;;); } catch {} finally { continue }",
    ],
    ["throws", "throw new Error('no')"],
    ["throws what is no text", "throw { toString() { throw 1 } }"],
    ["throws what takes for ever", "throw { toString() { for (;;); } }"],
    ["takes all memory", "const a = []; for (let i = 0; ; i++) a.push('x'.repeat(100000) + i)"],
    ["takes all memory in one piece", "new ArrayBuffer(1 << 28)"],
    [
      "catches that there is no memory",
      "const a = []; for (;;) try { for (;;) a.push(new Array(1000).fill(a)) } catch {}",
    ],
    ["calls itself for ever", "const f = () => f() + 1; f()"],
    ["nests deeply", "JSON.parse('['.repeat(100000))"],
    ["matches for ever", "/(a+)+$/.test('a'.repeat(40) + 'b')"],
    ["joins a list without end", "new Array(1e9).join('x')"],
    ["counts a list that is none", "Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)"],
    ["searches long texts", "'a'.repeat(2e6).indexOf('a'.repeat(1e6) + 'b')"],
    ["repeats long texts", "for (;;) 'x'.repeat(7e6)"],
    ["raises a whole number to a high power", "3n ** 660000n"],
    ["writes out a number of a million bits", "(2n ** 1000000n).toString()"],
    ["reads a number of many digits", "BigInt('9'.repeat(300000))"],
    ["multiplies large numbers for ever", "const a = 3n ** 300000n; for (;;) a * a"],
    [
      "compares long texts for ever",
      "const a = 'x'.repeat(3e6), b = 'x'.repeat(3e6); for (;;) a === b",
    ],
    ["makes a text of a list that is none", "String.raw({ raw: { length: 1e9 } })"],
    ["makes a long expression", "new RegExp('[\\\\p{L}]'.repeat(20000), 'u')"],
    ["makes a long function", "Function('a;'.repeat(1e6))"],
    ["is async", "return Promise.resolve()"],
  ])("%s is stopped and refused, and the next request works", async (_, body) => {
    await use(bad(body), { timeout_ms: 20 });
    const { status, seen } = await scene.get("/bad");
    expect([status, seen, reasons]).toEqual([500, null, ["script.error"]]);
    await eventually(async () => (await scene.get("/good")).seen?.headers["x-calls"] !== undefined);
  });

  test("fails allows the request when configured", async () => {
    await use(bad("for (;;);"), {}, "open");
    expect((await scene.get("/bad")).status).toBe(200);
    expect(reasons).toEqual(["script.error"]);
  });

  test("was stopped restarts, with its variables", async () => {
    await use(bad("for (;;);"));
    const calls = async (path: string) => (await scene.get(path)).seen?.headers["x-calls"];
    expect([await calls("/"), await calls("/")]).toEqual(["1", "2"]);
    await calls("/bad");
    expect(await calls("/")).toBe("1");
  });

  test("fails for the response or afterwards changes nothing for the client", async () => {
    await use(`export function onResponse(request, response) { response.setHeader("X-A", "1"); for (;;); }
      export function onLog() { throw 1 }`);
    const { status, body } = await scene.get("/");
    expect([status, body]).toEqual([200, "ok"]);
    await eventually(() => reasons.length > 0);
  });

  test("changes prototypes and built-ins affects only itself", async () => {
    await use(
      onRequest(`JSON.parse = JSON.stringify = () => { throw 1 }; String = () => "s"; Object.freeze = (x) => x;
        Object.prototype.reason = "evil"; Object.prototype.then = 1; Array.prototype.map = null; Reflect.apply = null;
        Object.defineProperty(Object.prototype, "status", { get() { throw 1 }, configurable: true });
        request.setHeader("X-Cookie", request.headers.cookie); try { request.extra = 1 } catch {}
        request.reply(200, { body: "x".toUpperCase() + request.extra + "".concat(request.groups.length), reason: "a.b" })`),
    );
    for (let round = 0; round < 3; round++) {
      const answer = await scene.get("/", { Cookie: "c=d" });
      expect([answer.status, answer.body]).toEqual([200, "Xundefined0"]);
    }
    expect(({} as { reason?: string }).reason).toBeUndefined();
  });
});

test("a custom memory limit applies", async () => {
  const fill = onRequest(
    `const a = []; try { for (let i = 0; i < 640; i++) a.push("x".repeat(50000) + i) } catch {}
     const count = a.length; a.length = 0; request.setHeader("X-Count", String(count))`,
  );
  const mib = async (memory: number) => {
    await use(fill, { memory_mb: memory, timeout_ms: 1000 });
    return Number((await scene.get("/")).seen?.headers["x-count"]) * 0.05;
  };
  const [small, large] = [await mib(4), await mib(16)];
  expect(small).toBeGreaterThan(2);
  expect(small).toBeLessThan(7);
  expect(large).toBeGreaterThan(12);
  expect(large).toBeLessThan(20);
});

test("many requests leave nothing behind in memory", async () => {
  await use(
    onRequest(`const a: any = { text: "x".repeat(10000) }; a.self = a; request.header("a"); request.headers;
      try { request.find() } catch {} request.setHeader("X-A", "1")`),
    { memory_mb: 2, timeout_ms: 1000 },
  );
  for (let round = 0; round < 60; round++) {
    const answers = await Promise.all(Array.from({ length: 50 }, () => scene.get("/")));
    for (const { status } of answers) expect(status).toBe(200);
  }
});

test("two instances are isolated", async () => {
  const count = onRequest(`(globalThis as any).n = ((globalThis as any).n ?? 0) + 1;
    request.setHeader("X-N", String((globalThis as any).n))`);
  await use(count);
  await scene.get("/");
  await scene.apply({
    plugins: [{ name: "script", label: "other", routeId: "all", config: { source: count } }],
  });
  expect((await scene.get("/")).seen?.headers["x-n"]).toBe("1");
  await scene.apply({ removedPlugins: ["other"] });
});
