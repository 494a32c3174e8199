// circuit-breaker on a real data plane, with a clock of its own: when it opens, what clients get then, how it closes.
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { CounterTable } from "../../../src/shared-memory/counter-table.ts";
import { freePort } from "../../support/data-plane.ts";
import { startOrigin } from "../../support/origin.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { eventually } from "../../support/poll.ts";

const scenes: PluginScene[] = [];
afterEach(async () => {
  for (const scene of scenes.splice(0)) await scene.stop();
});

type Sketch = Parameters<typeof pluginScene>[0];

/** An origin that responds with the status in `?s=`, and to `/hold` when the test releases it. */
async function broken(config: object, sketch: Sketch = {}) {
  const time = { now: 3_600_000_000 };
  const counters = CounterTable.create({ keys: 1000, workers: 1 }, { now: () => time.now });
  const held: ((response: Response) => void)[] = [];
  const scene = await pluginScene({
    counters,
    answer: (request) => {
      const { pathname, searchParams } = new URL(request.url);
      if (pathname !== "/hold")
        return new Response("ok", { status: Number(searchParams.get("s") ?? 200) });
      return new Promise((resolve) => held.push(resolve));
    },
    ...sketch,
    plugins: [{ name: "circuit-breaker", config: config as never }, ...(sketch.plugins ?? [])],
  });
  scenes.push(scene);
  const ask = async (status = 200) => (await scene.get(`/?s=${status}`)).status;
  const often = async (...statuses: number[]) => {
    const all: number[] = [];
    for (const status of statuses) all.push(await ask(status));
    return all;
  };
  /** Asks, and so counts as a request that works unless it is open. */
  const isOpen = async () =>
    (await scene.get("/?s=204")).headers.get("proxy-status")?.includes("circuit_open") === true;
  const counted = counters.forInstance(0, "circuit-breaker");
  return { time, scene, held, ask, often, isOpen, counted };
}

const times = (count: number, status: number) => Array.from({ length: count }, () => status);

describe("a circuit opens", () => {
  test("with the defaults when half of twenty requests have failed, and not before", async () => {
    const { scene, often } = await broken({});
    await often(...times(9, 200), ...times(10, 503));
    expect((await scene.get("/")).seen).not.toBeNull();
    const refused = await scene.get("/");
    expect(refused.seen).toBeNull();
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBe("10");
    expect(refused.headers.get("proxy-status")).toBe(
      'sluice; error=destination_unavailable; details="circuit_open"',
    );
    expect(refused.headers.get("cache-control")).toBe("no-store");
  });

  test("not while most requests succeed", async () => {
    const { often, isOpen } = await broken({ min_requests: 4 });
    for (let round = 0; round < 10; round++) await often(200, 200, 500);
    expect(await isOpen()).toBe(false);
  });

  test.each([
    ["counted", 500, {}, true],
    ["not counted", 501, {}, false],
    ["of the client", 404, {}, false],
    ["counted when named", 404, { statuses: [404] }, true],
    ["not counted when others are named", 500, { statuses: [404] }, false],
  ])("by statuses that are %s (%d)", async (_, status, config, wanted) => {
    const { often, isOpen } = await broken({ min_requests: 2, ...config });
    await often(status, status, status);
    expect(await isOpen()).toBe(wanted);
  });

  test("by consecutive failures, however many succeeded before", async () => {
    const { often, isOpen } = await broken({ consecutive: 3, min_requests: 1000 });
    await often(...times(20, 200), 500, 500, 200, 500, 500);
    expect(await isOpen()).toBe(false);
    await often(500, 500, 500);
    expect(await isOpen()).toBe(true);
  });

  test("not by failures older than the window", async () => {
    const { time, often, isOpen } = await broken({ min_requests: 4, window: 10 });
    await often(500, 500, 500);
    time.now += 20_000;
    await often(200, 500);
    expect(await isOpen()).toBe(false);
    await often(500, 500);
    expect(await isOpen()).toBe(true);
  });

  test("by slow responses", async () => {
    const config = { min_requests: 4, latency_ms: 20, latency_quantile: 0.5 };
    const { scene, often, isOpen } = await broken(config, {
      answer: async (request) => {
        if (request.url.includes("slow")) await Bun.sleep(40);
        return new Response("ok");
      },
    });
    await often(200, 200);
    await scene.get("/slow");
    await scene.get("/slow");
    expect(await isOpen()).toBe(false);
    await scene.get("/slow");
    await scene.get("/slow");
    expect(await isOpen()).toBe(true);
  });

  describe("by targets that send no response:", () => {
    const silent = startOrigin({ answer: null });
    const hangingUp = startOrigin({ answer: "close" });
    const noHttp = startOrigin({ answer: "hello\r\n\r\n" });
    afterAll(() => {
      silent.stop();
      hangingUp.stop();
      noHttp.stop();
    });
    const to = (port: number, service = {}) => ({
      services: [{ name: "web", targets: [{ port }], retries: { count: 0 }, ...service }],
    });
    test.each([
      ["connection refused", to(freePort()), 502],
      ["it says nothing", to(silent.port, { response_timeout: 30 }), 504],
      ["it hangs up", to(hangingUp.port), 502],
      ["it speaks no HTTP", to(noHttp.port), 502],
    ])("%s", async (_, sketch, status) => {
      // Whatever statuses are named.
      const { often, isOpen } = await broken(
        { min_requests: 3, statuses: [500] },
        sketch as Sketch,
      );
      expect(await often(1, 1)).toEqual([status, status]);
      expect(await isOpen()).toBe(false);
      expect(await isOpen()).toBe(true);
    });
  });

  test("not by client aborts or requests that no target gets", async () => {
    const { scene, held, isOpen } = await broken(
      { min_requests: 1, error_ratio: 0.01 },
      { plugins: [{ name: "request-size-limit", priority: 1, config: { max_uri_bytes: 20 } }] },
    );
    const abort = new AbortController();
    const gone = fetch(`${scene.plane.url}/hold`, { signal: abort.signal }).catch(() => null);
    await eventually(() => held.length === 1);
    abort.abort();
    await gone;
    expect((await scene.get(`/${"x".repeat(30)}`)).status).toBe(414);
    expect(await isOpen()).toBe(false);
  });
});

describe("an open circuit", () => {
  const trip = { min_requests: 1, error_ratio: 1, open_for: 10, close_after: 2 };

  test("reports the remaining time", async () => {
    const { time, scene, often } = await broken(trip);
    await often(500);
    time.now += 3500;
    expect((await scene.get("/")).headers.get("retry-after")).toBe("7");
    time.now += 6499;
    expect((await scene.get("/")).headers.get("retry-after")).toBe("1");
    time.now += 1;
    expect((await scene.get("/")).seen).not.toBeNull();
  });

  test("closes after enough successful requests, and forgets earlier ones", async () => {
    const { time, often, isOpen } = await broken({ ...trip, min_requests: 2, error_ratio: 0.6 });
    await often(500, 500);
    time.now += 10_000;
    expect(await often(200, 200)).toEqual([200, 200]);
    // Closed: one failure of two is not enough, and those of before are gone.
    expect(await often(500, 200)).toEqual([500, 200]);
    expect(await isOpen()).toBe(false);
  });

  test("doubles its time after each failed probe, up to 300 seconds", async () => {
    const { time, scene, often } = await broken(trip);
    await often(500);
    const waits: number[] = [];
    for (let round = 0; round < 8; round++) {
      const wait = Number((await scene.get("/")).headers.get("retry-after"));
      waits.push(wait);
      time.now += wait * 1000;
      expect((await scene.get("/?s=500")).seen).not.toBeNull();
    }
    expect(waits).toEqual([10, 20, 40, 80, 160, 300, 300, 300]);
    time.now += 300_000;
    expect(await often(200, 200, 500)).toEqual([200, 200, 500]);
    // From the beginning again.
    expect((await scene.get("/")).headers.get("retry-after")).toBe("10");
  });

  test("allows only a few probes at a time", async () => {
    const { time, scene, held, often, counted } = await broken({ ...trip, half_open_requests: 2 });
    await often(500);
    time.now += 10_000;
    const both = [scene.get("/hold"), scene.get("/hold")];
    await eventually(() => held.length === 2);
    const refused = await scene.get("/");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
    for (const answer of held.splice(0)) answer(new Response("ok"));
    await Promise.all(both);
    expect(await often(200)).toEqual([200]);
    expect(counted.inside("probes web")).toBe(0);
  });

  test("ignores requests that began before it opened", async () => {
    const { time, scene, held, often } = await broken({ ...trip, close_after: 1 });
    const early = scene.get("/hold");
    await eventually(() => held.length === 1);
    await often(500);
    for (const answer of held.splice(0)) answer(new Response("", { status: 500 }));
    await early;
    expect((await scene.get("/")).headers.get("retry-after")).toBe("10");
    time.now += 10_000;
    expect(await often(200, 200)).toEqual([200, 200]);
  });

  test("releases the probe of a client that disconnects", async () => {
    const { time, scene, held, often, counted } = await broken({ ...trip, half_open_requests: 1 });
    await often(500);
    time.now += 10_000;
    const abort = new AbortController();
    const gone = fetch(`${scene.plane.url}/hold`, { signal: abort.signal }).catch(() => null);
    await eventually(() => held.length === 1);
    abort.abort();
    await gone;
    await eventually(() => counted.inside("probes web") === 0);
    expect(await often(200, 200)).toEqual([200, 200]);
  });

  test("has the configured response", async () => {
    const response = {
      status: 502,
      body: '{"sorry":true}',
      headers: {
        "Content-Type": "application/json",
        "X-Why": "broken",
        "cache-control": "max-age=1",
      },
    };
    const { scene, often } = await broken({ ...trip, response });
    await often(500);
    const answer = await scene.get("/");
    expect([answer.status, answer.body]).toEqual([502, '{"sorry":true}']);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "application/json",
      "x-why": "broken",
      "cache-control": "max-age=1",
      "retry-after": "10",
      "proxy-status": 'sluice; error=destination_unavailable; details="circuit_open"',
    });
  });
});

describe("circuits are separate", () => {
  const config = { min_requests: 1, error_ratio: 1 };
  const sketch = (port: number): Sketch => ({
    services: [
      { name: "web", targets: [{ port }] },
      { name: "other", targets: [{ port }] },
    ],
    routes: [
      { name: "a", service_id: "web", paths: ["/a"] },
      { name: "b", service_id: "web", paths: ["/b"] },
      { name: "c", service_id: "other", paths: ["/c"] },
    ],
  });
  const origin = startOrigin({
    answer: ({ target }) =>
      `HTTP/1.1 ${target.includes("fail") ? 500 : 200} X\r\nContent-Length: 0\r\n\r\n`,
  });
  afterAll(() => origin.stop());

  test("by service when the instance is global", async () => {
    const { scene } = await broken(config, sketch(origin.port));
    await scene.get("/a/fail");
    const statuses: number[] = [];
    for (const path of ["/a", "/b", "/c"]) statuses.push((await scene.get(path)).status);
    expect(statuses).toEqual([503, 503, 200]);
  });

  test("by route when it is on a route", async () => {
    const { scene } = await broken(config, {
      ...sketch(origin.port),
      plugins: [{ name: "circuit-breaker", label: "of a", routeId: "a", config }],
    });
    await scene.get("/a/fail");
    const statuses: number[] = [];
    for (const path of ["/a", "/b", "/c"]) statuses.push((await scene.get(path)).status);
    expect(statuses).toEqual([503, 200, 200]);
  });
});

test("without a service there is no circuit", async () => {
  const { scene } = await broken(
    { min_requests: 1 },
    { routes: [{ name: "none", hosts: ["elsewhere.example"], service_id: "web" }] },
  );
  for (let round = 0; round < 3; round++) expect((await scene.get("/")).status).toBe(404);
});
