// concurrency-limit on a real data plane: places are taken and given back whatever happens, and who waits is served in order.
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { CounterTable } from "../../../src/shared-memory/counter-table.ts";
import { decode } from "../../../src/model/decode.ts";
import { streamRouteInput } from "../../../src/model/stream-route.ts";
import { freePort } from "../../support/data-plane.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";

const scenes: PluginScene[] = [];
const hangingUp = startOrigin({ answer: () => "close" });
const half = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhalf";
const breakingOff = startOrigin({
  answer: (_, connection) => {
    connection.write(half);
    return "close";
  },
});
afterAll(() => {
  hangingUp.stop();
  breakingOff.stop();
});
afterEach(async () => {
  for (const scene of scenes.splice(0)) await scene.stop();
});

type Sketch = Parameters<typeof pluginScene>[0];

/** An origin that responds to `/hold…` when the test releases it, and to everything else at once. */
async function limited(config: object, sketch: Sketch = {}) {
  const held: { path: string; answer: (response: Response) => void }[] = [];
  const counters = CounterTable.create({ keys: 1000, workers: 1 });
  const scene = await pluginScene({
    settings: { trusted_proxies: ["127.0.0.1"] },
    counters,
    answer: (request) => {
      const path = new URL(request.url).pathname;
      if (!path.startsWith("/hold")) return new Response("ok");
      return new Promise((resolve) => held.push({ path, answer: resolve }));
    },
    ...sketch,
    plugins: [{ name: "concurrency-limit", config: config as never }, ...(sketch.plugins ?? [])],
  });
  scenes.push(scene);
  const inside = (key: string) => counters.forInstance(0, "concurrency-limit").inside(key);
  const release = (count = 1) => {
    for (const { answer } of held.splice(0, count)) answer(new Response("done"));
  };
  return { scene, held, inside, release };
}

const status = async (answer: Promise<{ status: number }>) => (await answer).status;

test("a request above the limit gets 503 until another has ended", async () => {
  const { scene, held, inside, release } = await limited({ max: 2 });
  const both = [scene.get("/hold"), scene.get("/hold")];
  await eventually(() => held.length === 2);
  const refused = await scene.get("/");
  expect(refused.status).toBe(503);
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(refused.headers.get("proxy-status")).toStartWith("sluice; error=connection_limit_reached");
  expect(scene.requests).toHaveLength(2);
  release();
  await Promise.race(both);
  expect(await status(scene.get("/"))).toBe(200);
  release();
  await Promise.all(both);
  await eventually(() => inside("web") === 0);
});

test.each([
  ["ip", 429],
  ["consumer", 429],
  [["route", "header:X-App"], 429],
  ["route", 503],
])("with the key %p the refusal is %d", async (key, wanted) => {
  const { scene, held, release } = await limited({ max: 1, key });
  const first = scene.get("/hold", { "X-Forwarded-For": "192.0.2.1", "X-App": "a" });
  await eventually(() => held.length === 1);
  const same = await scene.get("/", { "X-Forwarded-For": "192.0.2.1", "X-App": "a" });
  expect([same.status, same.headers.get("retry-after")]).toEqual([wanted, "1"]);
  const other = await scene.get("/", { "X-Forwarded-For": "192.0.2.2", "X-App": "b" });
  expect(other.status).toBe(wanted === 429 ? 200 : 503);
  release();
  await first;
});

describe("a slot is released", () => {
  const ends: [string, Sketch, (scene: PluginScene) => Promise<unknown>][] = [
    ["after an ordinary answer", {}, (scene) => scene.get("/")],
    ["after HEAD", {}, (scene) => scene.send("HEAD", "/")],
    ["after a body", {}, (scene) => scene.send("POST", "/", { body: "x".repeat(100_000) })],
    [
      "when there is no target",
      { services: [{ name: "web", targets: [] }] },
      (scene) => scene.get("/"),
    ],
    [
      "when the target cannot be reached",
      { services: [{ name: "web", targets: [{ port: 1 }] }] },
      (scene) => scene.get("/"),
    ],
    [
      "when another plugin refuses",
      { plugins: [{ name: "request-size-limit", priority: 1, config: { max_uri_bytes: 1 } }] },
      (scene) => scene.get("/long"),
    ],
    [
      "when another plugin answers",
      { plugins: [{ name: "respond", priority: 1, config: { status: 418 } }] },
      (scene) => scene.get("/"),
    ],
    [
      "when the body is too long",
      { listener: { max_body_bytes: 10 } as never },
      (scene) =>
        scene.send("POST", "/", {
          body: new ReadableStream({
            start(controller) {
              controller.enqueue(new Uint8Array(100_000));
              controller.close();
            },
          }),
        }),
    ],
    [
      "when the target hangs up",
      { services: [{ name: "web", targets: [{ port: hangingUp.port }] }] },
      (scene) => scene.get("/"),
    ],
    [
      "when the answer breaks off",
      { services: [{ name: "web", targets: [{ port: breakingOff.port }] }] },
      (scene) => scene.get("/"),
    ],
  ];
  test.each(ends)("%s", async (_, sketch, ask) => {
    const { scene, inside } = await limited({ max: 1 }, sketch);
    for (let round = 0; round < 5; round++) await ask(scene).catch(() => null);
    await eventually(() => inside("web") === 0);
  });

  test("when the client disconnects, at any time", async () => {
    const { scene, inside, release } = await limited({ max: 100, queue: 100 });
    const clients: Promise<unknown>[] = [];
    for (let moment = 0; moment < 60; moment++) {
      const abort = new AbortController();
      const isLong = moment % 3 === 0;
      const body = new ReadableStream({
        pull(controller) {
          controller.enqueue(new Uint8Array(1000));
          return Bun.sleep(1);
        },
      });
      const call = fetch(`${scene.plane.url}/hold`, {
        signal: abort.signal,
        ...(isLong ? { method: "POST", body } : {}),
      });
      clients.push(call.then((response) => response.text()).catch(() => null));
      setTimeout(() => abort.abort(), moment);
    }
    await Promise.all(clients);
    await eventually(() => inside("web") === 0);
    release(1000);
  });

  test("when a WebSocket is closed, and not before", async () => {
    const origin = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: (request, server) =>
        server.upgrade(request) ? undefined : new Response("no", { status: 400 }),
      websocket: { message() {} },
    });
    const { scene, inside } = await limited(
      { max: 1 },
      { services: [{ name: "web", targets: [{ port: origin.port ?? 0 }] }] },
    );
    const socket = new WebSocket(scene.plane.webSocketUrl);
    await new Promise((resolve) => {
      socket.onopen = resolve;
    });
    expect(inside("web")).toBe(1);
    expect(await status(scene.get("/"))).toBe(503);
    socket.close();
    await eventually(() => inside("web") === 0);
    await origin.stop(true);
  });

  test("also by an instance that was replaced meanwhile", async () => {
    const { scene, held, inside, release } = await limited({ max: 1 });
    const first = scene.get("/hold");
    await eventually(() => held.length === 1);
    await scene.apply({ plugins: [{ name: "concurrency-limit", config: { max: 2 } }] });
    expect(await status(scene.get("/"))).toBe(200);
    expect(inside("web")).toBe(1);
    release();
    await first;
    await eventually(() => inside("web") === 0);
  });
});

describe("a queue", () => {
  test("serves requests in order of arrival", async () => {
    const { scene, held, release } = await limited({ max: 1, queue: 3, queue_timeout: 60_000 });
    const all = [scene.get("/hold/0")];
    await eventually(() => held.length === 1);
    for (let index = 1; index <= 3; index++) {
      all.push(scene.get(`/hold/${index}`));
      // Behind the one before: its place in the queue is taken.
      await eventually(() => scene.plane.board.get(0, "active_requests") >= index);
    }
    expect(await status(scene.get("/"))).toBe(503);
    const order: string[] = [];
    for (let index = 0; index <= 3; index++) {
      await eventually(() => held.length === 1);
      order.push(held[0]?.path ?? "");
      release();
    }
    expect(order).toEqual(["/hold/0", "/hold/1", "/hold/2", "/hold/3"]);
    expect(await Promise.all(all.map(status))).toEqual([200, 200, 200, 200]);
  });

  test("ends with its timeout", async () => {
    const { scene, held, release } = await limited({ max: 1, queue: 1, queue_timeout: 30 });
    const first = scene.get("/hold");
    await eventually(() => held.length === 1);
    const late = await scene.get("/");
    expect([late.status, late.headers.get("retry-after")]).toEqual([503, "1"]);
    release();
    await first;
    expect(await status(scene.get("/"))).toBe(200);
  });

  test("loses clients that disconnect, and the next one gets their slot", async () => {
    const { scene, held, inside, release } = await limited({
      max: 1,
      queue: 1,
      queue_timeout: 60_000,
    });
    const first = scene.get("/hold");
    await eventually(() => held.length === 1);
    const abort = new AbortController();
    const gone = fetch(`${scene.plane.url}/`, { signal: abort.signal }).catch(() => null);
    await eventually(() => inside("\nqueue web") === 1);
    abort.abort();
    await gone;
    await eventually(() => inside("\nqueue web") === 0);
    const next = scene.get("/");
    await eventually(() => inside("\nqueue web") === 1);
    release();
    expect(await status(next)).toBe(200);
    expect(await status(first)).toBe(200);
    expect(scene.requests).toHaveLength(2);
  });
});

test("connections of stream routes are counted, surplus ones are closed", async () => {
  const origin = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket, data) {
        socket.write(data);
      },
    },
  });
  const { scene } = await limited({ max: 1 });
  const port = freePort();
  const fields = {
    name: "echo",
    listen_address: "127.0.0.1",
    listen_port: port,
    service_id: "tcp",
  };
  const at = "2026-01-01T00:00:00.000Z";
  await scene.apply({
    services: [{ name: "tcp", protocol: "tcp", targets: [{ port: origin.port }] }],
    streamRoutes: [
      {
        id: "echo",
        ports: [port],
        tls: null,
        route: { ...decode(streamRouteInput, fields), id: "echo", created_at: at, updated_at: at },
      },
    ],
  });
  const talk = () =>
    new Promise<{ text: string; end: () => void }>((resolve) => {
      const socket = connect({ host: "127.0.0.1", port });
      const end = () => socket.destroy();
      socket.on("error", () => {});
      socket.on("close", () => resolve({ text: "", end }));
      socket.on("data", (data) => resolve({ text: String(data), end }));
      socket.write("hello");
    });
  const first = await talk();
  expect(first.text).toBe("hello");
  expect((await talk()).text).toBe("");
  first.end();
  await eventually(async () => {
    const { text, end } = await talk();
    end();
    return text === "hello";
  });
  origin.stop(true);
});
