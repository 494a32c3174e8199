// respond on a real data plane: the response in the place of the service, to whom, how often and how late.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import respond from "../../../src/plugins/respond.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { eventually } from "../../support/poll.ts";

let scene: PluginScene;
beforeAll(async () => {
  scene = await pluginScene({
    plugins: [{ name: "respond" }],
    settings: { trusted_proxies: ["127.0.0.1"] },
  });
});
afterAll(() => scene.stop());

const configure = (config: Record<string, unknown>) =>
  scene.apply({ plugins: [{ name: "respond", config }] });

describe("the response", () => {
  test("is the gateway's page with 503 by default, in the client's preferred format", async () => {
    await configure({});
    const answer = await scene.get("/", { Accept: "application/json" });
    expect(answer.status).toBe(503);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(answer.headers.get("retry-after")).toBe("5");
    expect(answer.seen).toBeNull();
  });

  test("is a text", async () => {
    await configure({ status: 200, body: "grüezi", headers: { "X-A": "1" }, retry_after: 7 });
    const answer = await scene.get("/");
    expect(answer).toMatchObject({ status: 200, body: "grüezi", seen: null });
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "x-a": "1",
      "retry-after": "7",
    });
  });

  test("is a JSON value", async () => {
    await configure({ status: 418, json: { a: [1, null] } });
    const answer = await scene.get("/");
    expect(answer).toMatchObject({ status: 418, body: '{"a":[1,null]}' });
    expect(answer.headers.get("content-type")).toBe("application/json");
    await configure({ status: 200, json: null });
    expect((await scene.get("/")).body).toBe("null");
  });

  test.each([
    ["text/plain", "<b>&\"'"],
    ["text/html; charset=utf-8", "&lt;b&gt;&amp;&quot;&#x27;"],
    ["application/problem+json", "<b>&\\\"'"],
  ])("is a text with variables, escaped for %s", async (type, shown) => {
    await configure({
      status: 200,
      template: 'id=${request.id} "${request.query.q}"',
      headers: { "Content-Type": type },
    });
    const { body } = await scene.get(`/?q=${encodeURIComponent("<b>&\"'")}`);
    expect(body).toMatch(/^id=[\da-f-]{36} /);
    expect(body.slice(40)).toBe(`"${shown}"`);
  });

  test("has no body for statuses without one", async () => {
    await configure({ status: 204 });
    expect(await scene.get("/")).toMatchObject({ status: 204, body: "", seen: null });
    await configure({ status: 200, body: "x" });
    expect(await scene.send("HEAD", "/")).toMatchObject({ status: 200, body: "" });
  });

  test("replaces Retry-After with the configured time", async () => {
    await configure({ retry_after: 600 });
    expect((await scene.get("/")).headers.get("retry-after")).toBe("600");
  });
});

describe("some reach the service all the same", () => {
  const bypass = {
    cidr: ["10.1.0.0/16", "2001:db8::/32"],
    header: { "X-Preview": "s3cret", "X-Any": "*" },
    cookie: { preview: "yes" },
  };
  beforeAll(() => configure({ bypass }));
  test.each([
    [{}, 503],
    [{ "X-Forwarded-For": "10.1.2.3" }, 200],
    [{ "X-Forwarded-For": "2001:db8::1" }, 200],
    [{ "X-Forwarded-For": "10.2.2.3" }, 503],
    [{ "X-Preview": "s3cret" }, 200],
    [{ "X-Preview": "s3cre" }, 503],
    [{ "X-Preview": "" }, 503],
    [{ "X-Any": "x" }, 200],
    [{ Cookie: "a=b; preview=yes" }, 200],
    [{ Cookie: "preview=no" }, 503],
  ])("%j gets %d", async (headers, status) => {
    expect((await scene.get("/", headers as Record<string, string>)).status).toBe(status);
  });
});

test.each([
  [100, 20],
  [50, 10],
  [5, 1],
  [0, 0],
])("%d percent of 20 requests are %d", async (percent, hits) => {
  await configure({ percent });
  let count = 0;
  for (let request = 0; request < 20; request++) if ((await scene.get("/")).status === 503) count++;
  expect(count).toBe(hits);
});

describe("a delay", () => {
  test("comes before the response", async () => {
    await configure({ delay_ms: 30, body: "late" });
    expect((await scene.get("/")).body).toBe("late");
  });

  test("ends when the client disconnects", async () => {
    await configure({ delay_ms: 600_000 });
    const gone = new AbortController();
    const request = fetch(scene.plane.url, { signal: gone.signal });
    await eventually(() => {
      const { board } = scene.plane;
      return board.get(0, "active_requests") > 0;
    });
    gone.abort();
    await expect(request).rejects.toThrow();
    await eventually(() => scene.plane.board.get(0, "active_requests") === 0);
  });

  test("ends when the instance does", async () => {
    await configure({ delay_ms: 600_000, body: "old" });
    const request = scene.get("/");
    await eventually(() => scene.plane.board.get(0, "active_requests") > 0);
    await configure({ body: "new" });
    expect((await request).body).toBe("old");
  });
});

test.each([
  [{ body: "x", json: 1 }, ""],
  [{ body: "x", template: "x" }, ""],
  [{ headers: { "Content-Length": "1" } }, "headers.Content-Length"],
  [{ headers: { "transfer-encoding": "chunked" } }, "headers.transfer-encoding"],
  [{ headers: { "a b": "1" } }, "headers.a b"],
])("%j is refused when it is written", (config, path) => {
  const problems = respond.check?.({ headers: {}, body: null, template: null, ...config } as never);
  expect(problems?.map((problem) => problem.path)).toEqual([path]);
});

describe("after_authentication", () => {
  const login = { Authorization: `Basic ${btoa("inline:secret")}` };
  let guarded: PluginScene;
  beforeAll(async () => {
    const password_hash = await Bun.password.hash("secret", { algorithm: "bcrypt", cost: 4 });
    const users = [{ username: "inline", password_hash }];
    guarded = await pluginScene({
      consumers: [{ username: "staff" }],
      plugins: [{ name: "basic-auth", config: { users } }],
    });
  });
  afterAll(() => guarded.stop());
  const answering = (config: object) =>
    guarded.apply({
      plugins: [{ name: "respond", config: { status: 200, body: "inside", ...config } }],
    });

  test("without it, for every client", async () => {
    await answering({});
    expect(await guarded.get("/")).toMatchObject({ status: 200, body: "inside", seen: null });
  });

  test("with it, only for clients that the route's authentication plugins allow", async () => {
    await answering({ after_authentication: true });
    expect(await guarded.get("/")).toMatchObject({ status: 401, seen: null });
    expect((await guarded.get("/")).body).not.toContain("inside");
    expect(await guarded.get("/", login)).toMatchObject({
      status: 200,
      body: "inside",
      seen: null,
    });
  });

  test("and rejections of other plugins stay when they come after them", async () => {
    await guarded.apply({
      plugins: [
        {
          name: "respond",
          priority: -1,
          config: { status: 200, body: "inside", after_authentication: true },
        },
        { name: "acl", config: { allow: ["staff"] } },
      ],
    });
    expect((await guarded.get("/", login)).status).toBe(403);
    await guarded.apply({ removedPlugins: ["acl"] });
  });
});
