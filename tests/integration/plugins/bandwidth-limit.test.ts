// bandwidth-limit on a real data plane, with a clock of its own: no byte passes before its time, and none is lost.
import { afterEach, describe, expect, test } from "bun:test";
import { CounterTable } from "../../../src/shared-memory/counter-table.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { eventually } from "../../support/poll.ts";

const cleanups = cleanupsOf(afterEach);

type Sketch = Parameters<typeof pluginScene>[0];

/** Bytes in a tenth of a second of the limits here. */
const PIECE = 1000;
const RATE = PIECE * 10;

const pattern = (length: number) => Buffer.from(Array.from({ length }, (_, at) => at % 251));

async function limited(config: object, sketch: Sketch = {}) {
  const time = { now: 3_600_000_000 };
  const counters = CounterTable.create({ keys: 100, workers: 1 }, { now: () => time.now });
  const scene: PluginScene = await pluginScene({
    counters,
    settings: { trusted_proxies: ["127.0.0.1"] },
    ...sketch,
    plugins: [{ name: "bandwidth-limit", config: config as never }, ...(sketch.plugins ?? [])],
  });
  cleanups.push(() => scene.stop());
  return { time, scene };
}

/** Reads a response as it comes. */
function download(scene: PluginScene, path = "/", headers: Record<string, string> = {}) {
  const abort = new AbortController();
  const got: Uint8Array[] = [];
  const state = { size: 0, isOver: false };
  const whole = (async () => {
    const response = await fetch(scene.plane.url + path, { headers, signal: abort.signal });
    for await (const piece of response.body ?? []) {
      got.push(piece);
      state.size += piece.byteLength;
    }
    state.isOver = true;
    return Buffer.concat(got);
  })();
  whole.catch(() => null);
  return { state, whole, abort };
}

describe("a response", () => {
  const body = pattern(PIECE * 5 + 10);
  const answers: [string, Sketch][] = [
    ["of a target, whose length is known", { answer: () => new Response(body) }],
    [
      "of a target, as it comes",
      {
        answer: () =>
          new Response(
            new ReadableStream({
              start(controller) {
                controller.enqueue(body.subarray(0, 3));
                controller.enqueue(body.subarray(3));
                controller.close();
              },
            }),
          ),
      },
    ],
    [
      "of a plugin",
      {
        plugins: [
          {
            name: "respond",
            priority: 6700,
            config: { status: 200, body: body.toString("latin1") },
          },
        ],
      },
    ],
  ];
  test.each(answers)("%s passes no faster than the limit", async (_, sketch) => {
    const { time, scene } = await limited({ download_bps: RATE }, sketch);
    const { state, whole } = download(scene);
    // Nothing is there but what may go at once.
    await eventually(() => state.size > 0);
    for (let tenth = 1; tenth <= 4; tenth++) {
      expect(state.size).toBeLessThanOrEqual(PIECE * tenth);
      await eventually(() => state.size > PIECE * (tenth - 1));
      time.now += 100;
    }
    while (!state.isOver) {
      time.now += 100;
      await Bun.sleep(0);
    }
    const all = await whole;
    if (sketch.plugins === undefined) expect(all.equals(body)).toBe(true);
    else expect(all.toString()).toBe(body.toString("latin1"));
  });

  test("pauses with the clock, and shares the bandwidth", async () => {
    const { time, scene } = await limited(
      { download_bps: RATE },
      { answer: () => new Response(body) },
    );
    const { state, whole } = download(scene);
    await eventually(() => state.size === PIECE);
    // Another client with the same address shares the limit.
    const other = download(scene);
    time.now += 100;
    await eventually(() => state.size + other.state.size === PIECE * 2);
    while (!state.isOver || !other.state.isOver) {
      time.now += 100;
      await Bun.sleep(0);
    }
    expect((await whole).equals(body)).toBe(true);
    expect((await other.whole).equals(body)).toBe(true);
  });

  test("may begin with a burst", async () => {
    const { scene } = await limited(
      { download_bps: RATE, burst: PIECE * 4 },
      { answer: () => new Response(body) },
    );
    const { state, abort } = download(scene);
    await eventually(() => state.size === PIECE * 4);
    abort.abort();
  });

  test("of another key is not delayed by it", async () => {
    const { scene } = await limited(
      { download_bps: RATE, key: "header:X-Who" },
      { answer: () => new Response(body) },
    );
    const all = ["a", "b", "c"].map((who) => download(scene, "/", { "X-Who": who }));
    await eventually(() => all.every(({ state }) => state.size === PIECE));
    for (const { abort } of all) abort.abort();
  });

  test("without a body passes at once", async () => {
    const { scene } = await limited({ download_bps: 1 }, { answer: () => new Response(body) });
    const { status, headers } = await scene.send("HEAD", "/");
    expect([status, headers.get("content-length")]).toEqual([200, String(body.length)]);
  });

  test("whose client disconnects leaves nothing behind", async () => {
    const { scene } = await limited({ download_bps: RATE }, { answer: () => new Response(body) });
    const { state, abort, whole } = download(scene);
    await eventually(() => state.size === PIECE);
    abort.abort();
    await whole.catch(() => null);
    await eventually(() => scene.plane.board.get(0, "active_requests") === 0);
  });
});

describe("a body from a client", () => {
  const body = pattern(PIECE * 4 + 10);

  test.each([
    ["whose length is known", () => body],
    ["of unknown length", () => new Blob([body]).stream()],
  ])("%s passes no faster than the limit", async (_, made) => {
    let arrived = 0;
    const got: Uint8Array[] = [];
    const origin = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      async fetch(request) {
        for await (const piece of request.body ?? []) {
          arrived += piece.byteLength;
          got.push(piece);
        }
        return new Response(String(arrived));
      },
    });
    cleanups.push(() => origin.stop(true));
    const { time, scene } = await limited(
      { upload_bps: RATE },
      { services: [{ name: "web", targets: [{ port: origin.port ?? 0 }] }] },
    );
    const answer = scene.send("POST", "/", { body: made() });
    for (let tenth = 1; tenth <= 3; tenth++) {
      await eventually(() => arrived === PIECE * tenth || arrived === 0);
      expect(arrived).toBeLessThanOrEqual(PIECE * tenth);
      time.now += 100;
    }
    let isOver = false;
    const done = answer.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      time.now += 100;
      await Bun.sleep(0);
    }
    expect((await done).body).toBe(String(body.length));
    expect(Buffer.concat(got).equals(body)).toBe(true);
  });

  test("is not delayed by a limit on responses only", async () => {
    const { scene } = await limited({ download_bps: RATE });
    expect((await scene.send("POST", "/", { body })).seen?.body.length).toBeGreaterThan(0);
  });

  test("of a client that disconnects leaves nothing behind", async () => {
    const { scene } = await limited({ upload_bps: 10 });
    const abort = new AbortController();
    const call = fetch(scene.plane.url, { method: "POST", body, signal: abort.signal });
    call.catch(() => null);
    await eventually(() => scene.plane.board.get(0, "active_requests") === 1);
    abort.abort();
    await eventually(() => scene.plane.board.get(0, "active_requests") === 0);
  });
});
