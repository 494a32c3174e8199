// GET /api/v1/stats of the running product: what it says is what was sent, over workers, restarts and changes.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { RELATIVE_ERROR } from "../../../src/shared-memory/histogram.ts";
import { eventually } from "../../support/poll.ts";
import { useGateway } from "../api/client.ts";

const api = useGateway();

interface Row {
  readonly id: string;
  readonly name: string;
  readonly requests: number;
  readonly errors: number;
}

/** Responds with the status in the path, after the milliseconds in the query. */
const origin = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    await Bun.sleep(Number(searchParams.get("wait") ?? 0));
    return new Response("x".repeat(10), { status: Number(pathname.slice(-3)) || 200 });
  },
});
afterAll(() => origin.stop(true));

const send = async (path: string, times = 1) => {
  for (let n = 0; n < times; n++)
    await (await fetch(`http://127.0.0.1:${api.gateway.httpPort}${path}`)).text();
};

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
const stats = async (query = ""): Promise<any> => {
  const { status, body } = await api.call(`GET /stats${query}`);
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body;
};

const service: Record<string, string> = {};
beforeAll(async () => {
  for (const name of ["one", "two"]) {
    const made = await api.create("/services", {
      name,
      retries: { count: 0 },
      targets: [{ host: "127.0.0.1", port: origin.port }],
    });
    service[name] = made.id;
    await api.create("/routes", { name: `to-${name}`, paths: [`/${name}`], service_id: made.id });
  }
});

describe("the figures", () => {
  test("match the requests that were sent, by route, service and target", async () => {
    await Promise.all([
      send("/one/200", 40),
      send("/one/503", 5),
      send("/one/404", 3),
      send("/two/200", 20),
      send("/nowhere", 7),
    ]);
    const body = await eventually(async () => {
      const found = await stats();
      return found.now.requests === 75 ? found : null;
    });
    for (const part of [body.now, body.history]) {
      const names = (rows: Row[]) =>
        Object.fromEntries(rows.map(({ name, requests, errors }) => [name, [requests, errors]]));
      expect(names(part.by_route)).toEqual({ "to-one": [48, 5], "to-two": [20, 0], _none: [7, 0] });
      expect(names(part.by_service)).toEqual({ one: [48, 5], two: [20, 0] });
      expect(part.by_target.map((row: Row) => row.requests)).toEqual([48, 20]);
      expect(part.by_target[0].name).toBe(`127.0.0.1:${origin.port}`);
    }
    expect(body.now).toMatchObject({ errors: 5, client_errors: 10 });
    expect(body.now.error_share).toBeCloseTo(5 / 75, 5);
    expect(body.history.total).toMatchObject({ requests: 75, errors: 5 });
    const points: { requests: number }[] = body.history.points;
    expect(points.reduce((sum, { requests }) => sum + requests, 0)).toBe(75);
  });

  test("of one object are selected by its name or id", async () => {
    const total = async (query: string) => (await stats(query)).history.total.requests;
    expect(await total("?route=to-two")).toBe(20);
    expect(await total("?service=one&range=24h")).toBe(48);
    expect(await total(`?service=${service["one"]}&range=30d`)).toBe(48);
    expect(await total("?target=gone")).toBe(0);
    expect((await stats("?top=1")).now.by_route).toHaveLength(1);
  });

  test("of durations are correct within a bucket", async () => {
    const waits = Array.from({ length: 20 }, (_, n) => 100 + n * 20);
    await Promise.all(waits.map((wait) => send(`/two/200?wait=${wait}`)));
    await send("/two/200", 6);
    const { latency_ms } = (await stats("?route=to-two")).history.total;
    // 26 of the 46 requests did not wait at all; the 44th is the 95th percentile.
    const exact = waits[17] as number;
    expect(latency_ms.p95).toBeGreaterThanOrEqual(exact * (1 - RELATIVE_ERROR));
    expect(latency_ms.p50).toBeLessThan(waits[0] as number);
    expect(latency_ms.p99).toBeGreaterThanOrEqual(latency_ms.p95);
  });

  test("remain after a target is deleted, under its id", async () => {
    const made = await api.create(`/services/${service["one"]}/targets`, {
      host: "127.0.0.2",
      port: 1,
    });
    await api.call(`DELETE /targets/${made.id}`);
    const { by_target } = (await stats()).history;
    expect(by_target[0].requests).toBe(48);
  });

  test("of attempts are separate for each target", async () => {
    const made = await api.create("/services", {
      name: "retrying",
      health: { passive: { enabled: false } },
      targets: [
        { host: "127.0.0.1", port: 1 },
        { host: "127.0.0.1", port: origin.port },
      ],
    });
    await api.create("/routes", { name: "r", paths: ["/retry"], service_id: made.id });
    const before = (await stats()).history.total.retries;
    await send("/retry/200", 10);
    const { history } = await stats("?top=40");
    const dead = history.by_target.find((row: Row) => row.name === "127.0.0.1:1");
    expect(dead.requests).toBe(history.total.retries - before);
    expect(dead.errors).toBe(dead.requests);
    expect(dead.requests).toBeGreaterThan(0);
  });
});

test.each([
  ["?range=1d", "range"],
  ["?range=", "range"],
  ["?range=toString", "range"],
  ["?range=1h&range=24h", "range"],
  ["?top=0", "top"],
  ["?top=41", "top"],
  ["?top=x", "top"],
  ["?route=a&service=b", "service"],
  ["?since=1", "since"],
])("%s is refused by name", async (query, name) => {
  const { status, body } = await api.call(`GET /stats${query}`);
  expect(status).toBe(400);
  expect(body.error).toContain(name);
});

test("the past survives a restart, once, and the last minute starts anew", async () => {
  const before = (await stats()).history.total.requests;
  await api.gateway.restart();
  const { now, history } = await stats();
  expect(history.total.requests).toBe(before);
  expect(now.requests).toBe(0);
  expect(history.by_route.map(({ name }: Row) => name)).toContain("to-one");
});
