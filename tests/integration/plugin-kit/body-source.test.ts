// Replies whose body a plugin reads piece by piece: pace, framing, transforms, and that every source is closed.
import { afterEach, expect, test } from "bun:test";
import { definePlugin, httpScopes } from "../../../src/pdk/definition.ts";
import { config, flag } from "../../../src/pdk/fields.ts";
import type { BodySource, Reply } from "../../../src/pdk/response.ts";
import { type PluginScene, pluginScene } from "../../support/plugin-scene.ts";
import { eventually } from "../../support/poll.ts";
import { probePlugin, Trail } from "../../support/probe-plugin.ts";
import { connectRaw, sendRaw } from "../../support/raw-http.ts";

const PIECE = 65_536;

/** `count` pieces; the one at `failsAt` cannot be read. */
class Pieces implements BodySource {
  readonly byteLength: number;
  reads = 0;
  isClosed = false;
  readonly #count: number;
  readonly #failsAt: number;

  constructor(count: number, failsAt = Number.POSITIVE_INFINITY) {
    this.#count = count;
    this.#failsAt = failsAt;
    this.byteLength = count * PIECE;
  }

  async read(): Promise<Uint8Array | null> {
    await Bun.sleep(0);
    if (this.isClosed) throw new Error("it is closed");
    if (this.reads === this.#failsAt) throw new Error("it cannot be read");
    return this.reads++ < this.#count ? new Uint8Array(PIECE).fill(97) : null;
  }

  close(): void {
    this.isClosed = true;
  }
}

/** What the plugin of the test gives for each request. */
let next: () => Pieces = () => new Pieces(1);
let last = new Pieces(0);
/** The reply waits for it. */
let gate: Promise<void> | null = null;

function give(): Pieces {
  last = next();
  return last;
}

const giver = definePlugin({
  name: "giver",
  summary: "",
  description: "",
  group: "content",
  order: 10,
  phases: ["access", "response"],
  scopes: httpScopes,
  onError: "closed",
  example: {},
  config: config({ replaces: flag(false, "Whether it replaces the body of the service") }),
  create: (own) => ({
    access() {
      if (own.replaces) return undefined;
      const source = give();
      const headers = new Headers({ "Content-Length": String(source.byteLength) });
      const given: Reply = { kind: "reply", status: 200, reason: "", headers, body: source };
      return gate === null ? given : gate.then(() => given);
    },
    response(_, draft) {
      if (!own.replaces) return;
      const source = give();
      draft.headers.set("Content-Length", String(source.byteLength));
      draft.replaceBody(source);
    },
  }),
});

const trail = new Trail();
const probe = probePlugin(trail, "outer", { order: 20, phases: ["response", "log"] });

let scene: PluginScene | null = null;
afterEach(async () => {
  await scene?.stop();
  scene = null;
  gate = null;
  last = new Pieces(0);
  next = () => new Pieces(1);
});

async function start(options: { body?: string; replaces?: boolean; settings?: object } = {}) {
  trail.take();
  const { body = "", replaces = false, settings = {} } = options;
  scene = await pluginScene({
    ownPlugins: [giver, probe],
    plugins: [
      { name: "giver", config: { replaces } },
      { name: "outer", config: { body } },
    ],
    settings,
  });
  return scene;
}

const GET = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
const closing = (method: string) =>
  `${method} / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n`;

test.each([false, true])("the client gets all of it, replaced: %p", async (replaces) => {
  const { plane } = await start({ replaces });
  next = () => new Pieces(20);
  const response = await fetch(plane.url);
  expect(response.status).toBe(200);
  expect(await response.text()).toBe("a".repeat(20 * PIECE));
  await eventually(() => last.isClosed);
  await eventually(() => trail.steps.includes("outer.log 200"));
});

test("HEAD reads nothing, and closes it", async () => {
  const { plane } = await start();
  next = () => new Pieces(20);
  const text = await sendRaw(closing("HEAD"), { port: plane.port });
  expect(text).toMatch(new RegExp(`^content-length: ${20 * PIECE}\r$`, "im"));
  expect([last.reads, last.isClosed]).toEqual([0, true]);
});

test("transforms of other plugins see it", async () => {
  const { plane } = await start({ body: "async" });
  next = () => new Pieces(3);
  const upper = await (await fetch(plane.url)).text();
  expect(upper).toBe(`${"A".repeat(3 * PIECE)}!`);
  await scene?.apply({ plugins: [{ name: "outer", config: { body: "count" } }] });
  const response = await fetch(plane.url);
  expect(await response.text()).toBe("a".repeat(3 * PIECE));
  // The plugin hears of the end when the client has the body.
  await eventually(() => trail.steps.includes(`${3 * PIECE} bytes`));
});

test("another plugin's body replaces and closes it", async () => {
  const { plane } = await start({ body: "replace" });
  expect(await (await fetch(plane.url)).text()).toBe("replaced");
  expect([last.reads, last.isClosed]).toEqual([0, true]);
});

test.each([false, true])(
  "the gateway reads no further than the client, which may stop and go on, replaced: %p",
  async (replaces) => {
    const { plane } = await start({ replaces });
    // More than buffers of the kernel hold.
    next = () => new Pieces(1024);
    const client = await connectRaw({ port: plane.port });
    client.pause();
    client.write(closing("GET"));
    let before = -1;
    await eventually(
      () => {
        const isStill = last.reads > 0 && last.reads === before;
        before = last.reads;
        return isStill;
      },
      { intervalMs: 200 },
    );
    expect(last.reads).toBeLessThan(300);
    client.resume();
    expect((await client.untilClosed()).length).toBeGreaterThan(1024 * PIECE);
    expect([last.reads, last.isClosed]).toEqual([1025, true]);
  },
);

test.each([false, true])("a client that goes away closes it, replaced: %p", async (replaces) => {
  const { plane } = await start({ replaces });
  next = () => new Pieces(1024);
  const client = await connectRaw({ port: plane.port });
  client.pause();
  client.write(GET);
  await eventually(() => last.reads > 3);
  client.reset();
  await eventually(() => last.isClosed);
  expect(last.reads).toBeLessThan(1000);
  await eventually(() => trail.steps.includes("outer.log 200"));
  expect(plane.board.get(0, "active_requests")).toBe(0);
});

test("a client that reads nothing for response_write_timeout loses the connection", async () => {
  const { plane } = await start({ settings: { limits: { response_write_timeout: 300 } } });
  next = () => new Pieces(1024);
  const client = await connectRaw({ port: plane.port });
  client.pause();
  client.write(GET);
  await eventually(() => last.isClosed);
  await eventually(() => trail.steps.includes("outer.log 200"));
});

test.each([false, true])(
  "a failed read is visible to the client, replaced: %p",
  async (replaces) => {
    const { plane } = await start({ replaces });
    next = () => new Pieces(20, 5);
    const text = await sendRaw(closing("GET"), { port: plane.port });
    expect(text.length).toBeLessThan(10 * PIECE);
    expect(last.isClosed).toBe(true);
    await eventually(() => trail.steps.includes("outer.log 200"));
  },
);

test("it is closed when the client goes away before the plugin replies", async () => {
  const { plane } = await start();
  const opened = Promise.withResolvers<void>();
  gate = opened.promise;
  last = new Pieces(0);
  const before = last;
  const client = await connectRaw({ port: plane.port });
  client.write(GET);
  await eventually(() => last !== before);
  client.reset();
  await eventually(
    () => trail.steps.includes("outer.log 499") || plane.board.get(0, "active_requests") === 0,
  );
  opened.resolve();
  await eventually(() => last.isClosed);
  expect(last.reads).toBe(0);
});
