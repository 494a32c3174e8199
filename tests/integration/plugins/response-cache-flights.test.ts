// response-cache in several worker threads with one store: one fetch for the clients of all of them, whatever becomes of it.
import { afterEach, expect, test } from "bun:test";
import { createLog } from "../../../src/log.ts";
import { CounterTable } from "../../../src/shared-memory/counter-table.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";
import { TrafficMetrics } from "../../../src/shared-memory/traffic-metrics.ts";
import { WorkerBoard } from "../../../src/shared-memory/worker-board.ts";
import { diff, diffRoutes } from "../../../src/snapshot/diff.ts";
import { PluginCaches } from "../../../src/supervisor/plugin-caches.ts";
import { RouteStore } from "../../../src/supervisor/route-store.ts";
import { WorkerThread } from "../../../src/supervisor/worker-thread.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type OriginConnection, reply, startOrigin } from "../../support/origin.ts";
import { plugins } from "../../support/plugins.ts";
import { DEADLINE_MS, eventually } from "../../support/poll.ts";
import {
  at,
  compiled,
  configOf,
  listener,
  route,
  service,
  target,
} from "../../unit/control/fixture.ts";
import { freePort } from "../../thorough/supervisor/fixture.ts";

const cleanups = cleanupsOf(afterEach);

const WORKERS = 3;
const unscoped = { service_id: null, route_id: null, consumer_id: null, stream_route_id: null };

/** A version with the cache for all requests to the origin. */
function versionFor(originPort: number) {
  const config = configOf({
    services: [service("s", { retries: { count: 0 } })],
    targets: [target("t", { service_id: "s", host: "127.0.0.1", port: originPort })],
    routes: [route("r", { service_id: "s" })],
    listeners: [listener("l", { address: "127.0.0.1", port: 1 })],
  });
  const plugin = {
    ...{ id: "p", name: "response-cache", label: null, ...unscoped, config: {}, priority: null },
    ...{ when: null, on_error: null, enabled: true, tags: [], description: "" },
    ...{ created_at: at, updated_at: at },
  };
  return compiled({ ...config, plugins: new Map([["p", plugin]]) }).snapshot;
}

/** Threads, each with an address of its own, so that a test chooses the worker of a request; the port is part of cache keys. */
async function start(originPort: number) {
  const snapshot = versionFor(originPort);
  const caches = new PluginCaches({
    workers: WORKERS,
    definitionOf: (name) => plugins.find((plugin) => plugin.name === name),
    log: createLog({ level: "error", format: "json", sink: () => {} }),
  });
  const port = freePort();
  const routes = await new RouteStore().write(diffRoutes(new Map(), snapshot.routes));
  const withShared = caches.withCache.bind(caches);
  const [workers, targets] = [WorkerBoard.create(WORKERS), TargetBoard.create(WORKERS)];
  const shared = {
    workers: workers.buffer,
    targets: targets.buffer,
    counters: CounterTable.create({ keys: 1024, workers: WORKERS }).buffer,
    traffic: TrafficMetrics.create(WORKERS).memory,
    targetTraffic: TrafficMetrics.create(WORKERS).memory,
    requests: null,
  };
  return await Promise.all(
    Array.from({ length: WORKERS }, async (_, worker) => {
      const address = `127.0.0.${worker + 1}`;
      const change = structuredClone(diff(null, snapshot, { routes, consumers: null, withShared }));
      for (const { listener: own } of change.listeners.upserts)
        Object.assign(own, { address, port });
      const { promise: gone, resolve } = Promise.withResolvers<void>();
      const number = worker + 1;
      const url = new URL("../../../src/worker.ts", import.meta.url);
      const thread = new WorkerThread({ url, onEvent() {}, onEnd() {}, onGone: resolve });
      cleanups.push(() => thread.terminate());
      const names = { instanceId: "test", cookieId: "test", stickyKey: "test", pluginKey: "test" };
      const none = {
        sessions: [],
        logDirectories: null,
        dnsServers: [],
        managementAddresses: [],
        sharedCounters: null,
      };
      thread.post({
        ...{ kind: "start", worker, workers: WORKERS, thread: number, shared },
        ...names,
        ...none,
      });
      await thread.ask({ kind: "prepare", change }, ["prepared"], DEADLINE_MS);
      await thread.ask({ kind: "activate", revision: snapshot.revision }, ["active"], DEADLINE_MS);
      /** Ends like a crash; then what the supervisor does. */
      const end = async () => {
        thread.terminate();
        await gone;
        caches.forgetThread(number);
      };
      return { url: `http://${address}:${port}`, end };
    }),
  );
}

/** All workers get the same host. */
const headers = { Host: "any.test" };

/** An origin that holds its responses back, and clients of each worker. */
async function scene() {
  const origin = startOrigin({ answer: null });
  cleanups.push(() => origin.stop());
  const workers = await start(origin.port);
  const get = (worker: number, path: string, init: RequestInit = {}) => {
    const response = fetch(`${workers[worker]?.url}${path}`, {
      headers,
      keepalive: false,
      ...init,
    });
    // Some are still waited for when a test ends.
    response.catch(() => undefined);
    return response;
  };
  /** Requests for the path that have reached the origin, in order. */
  const fetches = (path: string) => origin.requests.filter(({ target }) => target === path);
  const connectionOf = (path: string, index: number) =>
    origin.connections[fetches(path)[index]?.connection ?? -1] as OriginConnection;
  /** Responds to the nth fetch of the path. */
  const respond = (path: string, index: number, bytes: string) =>
    connectionOf(path, index).write(bytes);
  const arrived = (path: string, count: number) => eventually(() => fetches(path).length === count);
  /** A request of worker 0 that has reached the origin, and so many of each worker that wait for it. */
  const crowd = async (path: string, count = 4, init: RequestInit = {}) => {
    const leader = get(0, path, init);
    await arrived(path, 1);
    const followers = workers.map((_, worker) =>
      Array.from({ length: count }, () => get(worker, path)),
    );
    await settled(path);
    return { leader, followers };
  };
  /** Later requests for something else have arrived from all workers: these have looked at all before. */
  const settled = async (path: string) => {
    const ping = `${path}-after-${origin.requests.length}`;
    for (const [worker] of workers.entries()) void get(worker, `${ping}-${worker}`);
    await eventually(
      () => origin.requests.filter(({ target }) => target.startsWith(ping)).length === WORKERS,
    );
  };
  return { origin, workers, get, fetches, respond, arrived, crowd, settled, connectionOf };
}

const cached = (body: string, control = "max-age=60") =>
  reply(body, { headers: `Cache-Control: ${control}\r\n` });
const textsOf = async (responses: readonly Promise<Response>[]) =>
  await Promise.all(responses.map(async (response) => await (await response).text()));
const wordsOf = async (responses: readonly Promise<Response>[]) =>
  (await Promise.all(responses)).map(({ headers }) => headers.get("x-cache-status"));

test("one fetch serves the clients of all workers", async () => {
  const { crowd, respond, fetches, get } = await scene();
  const { leader, followers } = await crowd("/one");
  expect(fetches("/one").length).toBe(1);
  respond("/one", 0, cached("for all"));
  const all = [leader, ...followers.flat()];
  expect(await wordsOf(all)).toEqual(["MISS", ...Array(12).fill("HIT")]);
  expect(await textsOf(all)).toEqual(Array(13).fill("for all"));
  const later = await get(2, "/one");
  expect(later.headers.get("x-cache-status")).toBe("HIT");
  expect(fetches("/one").length).toBe(1);
});

test("each of 300 new paths is fetched once, though clients of all workers ask for 25 at a time, eight for each", async () => {
  const { origin, get, fetches } = await scene();
  origin.answer = cached("for all");
  const paths = Array.from({ length: 300 }, (_, index) => `/new-${index}`);
  const words: (string | null)[] = [];
  for (let from = 0; from < paths.length; from += 25) {
    const asked = paths
      .slice(from, from + 25)
      .flatMap((path) => Array.from({ length: 8 }, (_, client) => get(client % WORKERS, path)));
    words.push(...(await wordsOf(asked)));
    await textsOf(asked);
  }
  expect(paths.filter((path) => fetches(path).length !== 1)).toEqual([]);
  expect(words.filter((word) => word === "MISS").length).toBe(300);
  expect(words.filter((word) => word === "HIT").length).toBe(2100);
});

test("when the response cannot be stored, the clients of all workers fetch at once", async () => {
  const { origin, crowd, respond, arrived } = await scene();
  const { leader, followers } = await crowd("/private");
  const head = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nCache-Control: private\r\n\r\n";
  origin.answer = `${head}own`;
  respond("/private", 0, head);
  await arrived("/private", 13);
  expect(await textsOf(followers.flat())).toEqual(Array(12).fill("own"));
  respond("/private", 0, "one");
  expect(await textsOf([leader])).toEqual(["one"]);
});

test("when the worker of the fetch ends, a client of another one fetches for all", async () => {
  const { workers, crowd, respond, arrived, fetches } = await scene();
  const { followers } = await crowd("/ended");
  await workers[0]?.end();
  await arrived("/ended", 2);
  respond("/ended", 1, cached("second"));
  const [, ...others] = followers;
  expect(await textsOf(others.flat())).toEqual(Array(8).fill("second"));
  expect(fetches("/ended").length).toBe(2);
});

test("when the client of the fetch disconnects, another one of any worker fetches for all", async () => {
  const { crowd, respond, arrived, fetches } = await scene();
  const leaving = new AbortController();
  const { followers } = await crowd("/left", 4, { signal: leaving.signal });
  leaving.abort();
  await arrived("/left", 2);
  respond("/left", 1, cached("for the rest"));
  expect(await textsOf(followers.flat())).toEqual(Array(12).fill("for the rest"));
  expect(fetches("/left").length).toBe(2);
});

test("when the fetch fails, each client fetches", async () => {
  const { origin, crowd, connectionOf, fetches } = await scene();
  const { leader, followers } = await crowd("/down");
  origin.answer = reply("up again");
  connectionOf("/down", 0).reset();
  expect((await leader).status).toBe(502);
  expect(await textsOf(followers.flat())).toEqual(Array(12).fill("up again"));
  expect(fetches("/down").length).toBe(13);
});

test("after an invalidation by another worker no client waits for a fetch from before it, nor is that stored", async () => {
  const { origin, crowd, get, respond, arrived, settled, fetches } = await scene();
  const { leader, followers } = await crowd("/page");
  origin.answer = ({ method }) => (method === "POST" ? reply("changed") : null);
  expect(await textsOf([get(1, "/page", { method: "POST" })])).toEqual(["changed"]);
  const later = get(2, "/page");
  await arrived("/page", 3);
  const alsoLater = [get(0, "/page"), get(1, "/page")];
  await settled("/page");
  expect(fetches("/page").length).toBe(3);
  respond("/page", 2, cached("new"));
  expect(await textsOf([later, ...alsoLater])).toEqual(["new", "new", "new"]);
  respond("/page", 0, cached("old"));
  expect(await textsOf([leader])).toEqual(["old"]);
  expect(new Set(await textsOf(followers.flat()))).not.toContain("old");
  expect(await textsOf([get(0, "/page"), get(1, "/page"), get(2, "/page")])).toEqual(
    Array(3).fill("new"),
  );
});

test("one worker refreshes a stale response, while all of them serve it", async () => {
  const { origin, get, respond, settled, fetches } = await scene();
  origin.answer = cached("first", "max-age=1, stale-while-revalidate=60");
  expect(await textsOf([get(0, "/stale")])).toEqual(["first"]);
  origin.answer = null;
  const wordsOfAll = () => wordsOf([get(0, "/stale"), get(1, "/stale"), get(2, "/stale")]);
  await eventually(async () => (await wordsOfAll()).every((word) => word === "STALE"));
  for (let round = 0; round < 5; round++)
    expect(await wordsOfAll()).toEqual(["STALE", "STALE", "STALE"]);
  await settled("/stale");
  expect(fetches("/stale").length).toBe(2);
  respond("/stale", 1, cached("second"));
  await eventually(async () => (await wordsOfAll()).every((word) => word === "HIT"));
  expect(await textsOf([get(0, "/stale"), get(1, "/stale"), get(2, "/stale")])).toEqual(
    Array(3).fill("second"),
  );
  expect(fetches("/stale").length).toBe(2);
});
