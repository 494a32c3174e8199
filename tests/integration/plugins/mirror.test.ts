// mirror on a real data plane: what is copied, where to, and that clients are not affected.
import { afterEach, describe, expect, test } from "bun:test";
import { CounterTable } from "../../../src/shared-memory/counter-table.ts";
import mirror from "../../../src/plugins/mirror.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import { freePort } from "../../support/data-plane.ts";
import { startOrigin } from "../../support/origin.ts";
import { pluginScene, type PluginScene, type Seen } from "../../support/plugin-scene.ts";
import { eventually } from "../../support/poll.ts";

const cleanups = cleanupsOf(afterEach);

type Sketch = Parameters<typeof pluginScene>[0];

/** Where copies go. */
function copies(answer: () => Response | Promise<Response> = () => new Response("copy")) {
  const seen: Seen[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const body = await request.text();
      const headers = Object.fromEntries(request.headers);
      seen.push({ method: request.method, target: pathname + search, headers, body });
      return answer();
    },
  });
  cleanups.push(() => server.stop(true));
  return { seen, port: server.port ?? 0 };
}

async function mirrored(config: object, port: number, sketch: Sketch = {}) {
  const counters = CounterTable.create({ keys: 100, workers: 1 });
  const scene: PluginScene = await pluginScene({
    counters,
    ...sketch,
    plugins: [{ name: "mirror", config: config as never }, ...(sketch.plugins ?? [])],
  });
  cleanups.push(() => scene.stop());
  await scene.apply({
    services: [
      { name: "web", targets: [{ port: scene.originPort }] },
      { name: "copy", targets: [{ port }], path: "/base" },
    ],
  });
  const metric = mirror.metrics?.[0];
  const counted = () => {
    const instance = { id: "mirror", name: "mirror", scope: "global" as const };
    const all = metric?.read(
      { ...instance, service: null, route: null, services: [] },
      counters.forInstance(0, "mirror"),
    );
    return Object.fromEntries((all ?? []).map(({ labels, value }) => [labels["result"], value]));
  };
  return { scene, counted };
}

describe("a copy", () => {
  test("to a service equals the upstream request, marked", async () => {
    const { seen, port } = copies();
    const { scene, counted } = await mirrored({ service_id: "copy" }, port, {
      routes: [{ name: "all", service_id: "web", paths: ["/app"], strip_path: true }],
    });
    const answer = await scene.get("/app/x?a=1", { "X-Own": "yes", Cookie: "c=1" });
    expect([answer.status, answer.body]).toEqual([200, "ok"]);
    expect(answer.seen?.headers).not.toHaveProperty("x-mirrored");
    const [copy] = await eventually(() => (seen.length === 1 ? seen : null));
    expect([copy?.method, copy?.target]).toEqual(["GET", "/base/x?a=1"]);
    expect(copy?.headers).toMatchObject({ "x-mirrored": "1", "x-own": "yes", cookie: "c=1" });
    await eventually(() => counted()["sent"] === 1);
  });

  test("to an address equals the upstream request too", async () => {
    const { seen, port } = copies();
    const { scene, counted } = await mirrored({ url: `http://127.0.0.1:${port}/else/` }, 1);
    await scene.get("/x?a=1", {
      "X-Own": "yes",
      Connection: "X-Hop",
      "X-Hop": "no",
      // Only the gateway sets it.
      "X-Mirrored": "0",
    });
    const [copy] = await eventually(() => (seen.length === 1 ? seen : null));
    expect([copy?.method, copy?.target]).toEqual(["GET", "/else/x?a=1"]);
    expect(copy?.headers).toMatchObject({
      "x-mirrored": "1",
      "x-own": "yes",
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-proto": "http",
    });
    expect(copy?.headers).not.toHaveProperty("x-hop");
    expect(copy?.headers["host"]).toBe(`127.0.0.1:${port}`);
    await eventually(() => counted()["sent"] === 1);
  });

  test.each(["service_id", "url"])("has a body when configured (%s)", async (to) => {
    const { seen, port } = copies();
    const where = to === "url" ? { url: `http://127.0.0.1:${port}` } : { service_id: "copy" };
    const { scene } = await mirrored(
      { ...where, methods: ["POST"], include_body: true, max_body: 100_000 },
      port,
    );
    for (const body of ["short", "x".repeat(90_000)]) {
      const headers = { "Content-Type": "text/x-own" };
      const answer = await scene.send("POST", "/", { body, headers });
      expect(answer.seen?.body).toBe(body);
      await eventually(() => seen.at(-1)?.body === body);
      expect(seen.at(-1)?.headers["content-type"]).toBe("text/x-own");
    }
    // Of unknown length.
    const stream = new Blob(["streamed"]).stream();
    expect((await scene.send("POST", "/", { body: stream })).seen?.body).toBe("streamed");
    await eventually(() => seen.at(-1)?.body === "streamed");
    // Too long, by what it says and by what it is: nothing is copied, and the request goes its way.
    const long = "y".repeat(200_000);
    expect((await scene.send("POST", "/", { body: long })).seen?.body).toBe(long);
    const longStream = new Blob([long]).stream();
    expect((await scene.send("POST", "/", { body: longStream })).seen?.body).toBe(long);
    await scene.send("POST", "/", { body: "last" });
    await eventually(() => seen.at(-1)?.body === "last");
    expect(seen.map(({ body }) => body.length)).toEqual([5, 90_000, 8, 4]);
  });

  test.each([false, true])(
    "of two instances on one route reach both (with a body: %p)",
    async (hasBody) => {
      const [first, second] = [copies(), copies()];
      const config = { methods: ["GET", "POST"], include_body: true };
      const { scene } = await mirrored({ ...config, service_id: "copy" }, first.port, {
        plugins: [
          {
            name: "mirror",
            label: "second",
            routeId: "all",
            config: { ...config, url: `http://127.0.0.1:${second.port}` },
          },
        ],
      });
      const body = hasBody ? "x".repeat(90_000) : null;
      const answer = await scene.send(hasBody ? "POST" : "GET", "/x", { body });
      expect([answer.status, answer.seen?.body]).toEqual([200, body ?? ""]);
      await eventually(() => first.seen.length === 1 && second.seen.length === 1);
      expect([first.seen[0]?.target, second.seen[0]?.target]).toEqual(["/base/x", "/x"]);
      expect([first.seen[0]?.body, second.seen[0]?.body]).toEqual([body ?? "", body ?? ""]);
    },
  );

  test("has the body that another plugin has read before", async () => {
    const { seen, port } = copies();
    const { scene } = await mirrored(
      { service_id: "copy", methods: ["POST"], include_body: true },
      port,
      {
        plugins: [{ name: "key-auth", config: { key_in_body: true, anonymous_consumer: "guest" } }],
        consumers: [{ username: "guest" }],
      },
    );
    const headers = { "Content-Type": "application/json" };
    const answer = await scene.send("POST", "/", { body: '{"a":1}', headers });
    expect(answer.seen?.body).toBe('{"a":1}');
    await eventually(() => seen.at(-1)?.body === '{"a":1}');
  });

  test("has no body otherwise", async () => {
    const { seen, port } = copies();
    const { scene } = await mirrored({ service_id: "copy", methods: ["POST"] }, port);
    expect((await scene.send("POST", "/", { body: "secret" })).seen?.body).toBe("secret");
    const [copy] = await eventually(() => (seen.length === 1 ? seen : null));
    expect([copy?.method, copy?.body]).toEqual(["POST", ""]);
  });

  test("is limited to configured methods and a percentage of requests", async () => {
    const { seen, port } = copies();
    const { scene } = await mirrored({ service_id: "copy" }, port);
    for (const method of ["POST", "GET", "DELETE", "HEAD"]) await scene.send(method, "/");
    await eventually(() => seen.length === 2);
    expect(seen.map(({ method }) => method).sort()).toEqual(["GET", "HEAD"]);
    await scene.apply({
      plugins: [{ name: "mirror", config: { service_id: "copy", percent: 0 } }],
    });
    for (let index = 0; index < 20; index++) await scene.get("/");
    await scene.apply({
      plugins: [{ name: "mirror", config: { service_id: "copy", percent: 50 } }],
    });
    for (let index = 0; index < 100; index++) await scene.get("/");
    await eventually(() => seen.length > 12);
    expect(seen.length).toBeLessThan(102 - 10);
  });
});

describe("clients are not affected", () => {
  test.each(["service_id", "url"])("by an unreachable mirror (%s)", async (to) => {
    const port = freePort();
    const where = to === "url" ? { url: `http://127.0.0.1:${port}` } : { service_id: "copy" };
    const { scene, counted } = await mirrored(where, port);
    for (let index = 0; index < 5; index++) expect((await scene.get("/")).status).toBe(200);
    await eventually(() => counted()["failed"] === 5);
  });

  test.each(["service_id", "url"])("by slow mirror responses (%s)", async (to) => {
    const silent = startOrigin({ answer: null });
    cleanups.push(() => silent.stop());
    const where =
      to === "url" ? { url: `http://127.0.0.1:${silent.port}` } : { service_id: "copy" };
    const { scene, counted } = await mirrored({ ...where, timeout: 50 }, silent.port);
    expect((await scene.get("/")).status).toBe(200);
    await eventually(() => counted()["failed"] === 1);
  });

  test("by too many copies in flight: more are dropped", async () => {
    const waiting: ((response: Response) => void)[] = [];
    const { port } = copies(() => new Promise((resolve) => waiting.push(resolve)));
    const { scene, counted } = await mirrored({ service_id: "copy", timeout: 60_000 }, port);
    for (let index = 0; index < 120; index++) expect((await scene.get("/")).status).toBe(200);
    await eventually(() => waiting.length === 100);
    expect(counted()).toEqual({ sent: 0, failed: 0, dropped: 20 });
    for (const answer of waiting) answer(new Response("late"));
    await eventually(() => counted()["sent"] === 100);
    expect((await scene.get("/")).status).toBe(200);
    await eventually(() => waiting.length === 101);
    waiting.at(-1)?.(new Response("ok"));
  });

  test("by incomplete bodies: their copies time out", async () => {
    const { seen, port } = copies();
    const { scene, counted } = await mirrored(
      { service_id: "copy", methods: ["POST"], include_body: true },
      port,
    );
    await scene.apply({ services: [{ name: "web", targets: [{ port: freePort() }] }] });
    for (let index = 0; index < 120; index++)
      expect((await scene.send("POST", "/", { body: "x" })).status).toBe(502);
    expect(counted()["dropped"]).toBe(0);
    expect(seen).toEqual([]);
  });
});

test("WebSockets are not copied", async () => {
  const { seen, port } = copies();
  const { scene } = await mirrored({ service_id: "copy" }, port);
  const socket = new WebSocket(scene.plane.webSocketUrl);
  await new Promise((resolve) => {
    socket.onerror = resolve;
    socket.onclose = resolve;
  });
  await scene.get("/after");
  await eventually(() => seen.length === 1);
  expect(seen[0]?.target).toBe("/base/after");
});

describe("client headers in a copy", () => {
  test.each(["to an address", "to a service"])(
    "come from the gateway, not from the client: %s",
    async (way) => {
      const { seen, port } = copies();
      const config =
        way === "to an address" ? { url: `http://127.0.0.1:${port}` } : { service_id: "copy" };
      const { scene } = await mirrored(config, port, {
        plugins: [
          {
            name: "forward-auth",
            config: { url: "http://127.0.0.1:9", response_headers_to_upstream: ["X-Who"] },
            when: { path: ["/private"] },
          },
        ],
      });
      await scene.get("/", {
        "X-Consumer-ID": "admin",
        "X-Consumer-Username": "admin",
        X_Consumer_Username: "admin",
        "X.Consumer!Username": "admin",
        Proxy: "admin",
        "X-Consumer-Groups": "admin",
        "X-Credential-Identifier": "admin",
        "Client-Cert": ":admin:",
        "X-Who": "admin",
        X_Who: "admin",
        "X+Who": "admin",
        Forwarded: "for=admin",
        "X-Real-IP": "admin",
        "X-Forwarded-For": "admin",
        "X-Forwarded-User": "admin",
        "X-Own": "mine",
      });
      const copy = await eventually(() => seen[0]);
      expect(copy?.headers["x-own"]).toBe("mine");
      const spoofed = Object.entries(copy?.headers ?? {}).filter(([, value]) =>
        value.includes("admin"),
      );
      expect(spoofed).toEqual([]);
    },
  );
});
