// Request ids: target and client get the same one, unless the settings turn them off.
import { afterEach, describe, expect, test } from "bun:test";
import { type PluginScene, pluginScene } from "../../support/plugin-scene.ts";

let scene: PluginScene | null = null;
afterEach(async () => {
  await scene?.stop();
  scene = null;
});

describe("the id of a request", () => {
  test("goes to the target and to the client, also when the target sends another one", async () => {
    scene = await pluginScene({
      answer: () => new Response("ok", { headers: { "X-Request-Id": "of the target" } }),
    });
    const one = await scene.get("/");
    const other = await scene.get("/");
    expect(one.headers.get("x-request-id")).toBe(one.seen?.headers["x-request-id"] ?? "");
    expect(one.headers.get("x-request-id")).not.toBe(other.headers.get("x-request-id"));
  });

  test.each([0, 20_000, 2_000_000])(
    "is each request's own where many get the same head at the same time: %i bytes more",
    async (more) => {
      scene = await pluginScene({
        answer: (request) =>
          new Response(`${request.headers.get("x-request-id")}${"x".repeat(more)}`, {
            headers: { Date: "Sat, 21 Nov 2026 00:00:00 GMT" },
          }),
      });
      const answers = await Promise.all(Array.from({ length: 60 }, () => scene?.get("/")));
      const ids = answers.map((answer) => answer?.headers.get("x-request-id") ?? "");
      expect(new Set(ids).size).toBe(60);
      expect(answers.map((answer) => answer?.body.slice(0, 36) ?? "")).toEqual(ids);
    },
  );

  test("is on the gateway's own responses", async () => {
    scene = await pluginScene({
      routes: [
        { name: "https", hosts: ["localhost"], https_redirect: true },
        { name: "gone", service_id: "nowhere" },
      ],
    });
    const page = await scene.get("/");
    expect(page.status).toBe(503);
    expect(page.body).toContain(page.headers.get("x-request-id") ?? "no id");
    const redirect = await fetch(`http://localhost:${scene.plane.port}/`, { redirect: "manual" });
    expect(redirect.status).toBe(308);
    expect(redirect.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  });

  test("is omitted when disabled, and then a client's id is forwarded", async () => {
    scene = await pluginScene({ settings: { requests: { ids: false } } });
    const { headers, seen } = await scene.get("/", { "X-Request-Id": "mine" });
    expect(headers.has("x-request-id")).toBe(false);
    expect(seen?.headers["x-request-id"]).toBe("mine");
  });

  test("is that of the plugin where request-id runs", async () => {
    scene = await pluginScene({
      plugins: [{ name: "request-id", config: { header: "X-Correlation-Id" } }],
    });
    const { headers, seen } = await scene.get("/", { "X-Request-Id": "mine" });
    expect(headers.get("x-correlation-id")).toBe(seen?.headers["x-correlation-id"] ?? "");
    expect(headers.has("x-request-id")).toBe(false);
    expect(seen?.headers["x-request-id"]).toBe("mine");
  });
});

test("a client's trace reaches the target unchanged, without any plugin", async () => {
  scene = await pluginScene({});
  const trace = {
    traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    tracestate: "a=b,c=d",
  };
  expect((await scene.get("/", trace)).seen?.headers).toMatchObject(trace);
});
