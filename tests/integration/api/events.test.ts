// GET /api/v1/events against the running product: order, completeness, reconnects, limits, and the end.
import { afterEach, describe, expect, test } from "bun:test";
import { type EventClient, openEvents } from "../../support/event-client.ts";
import { startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw } from "../../support/raw-http.ts";
import { useGateway } from "./client.ts";

const api = useGateway();
const open: EventClient[] = [];

async function follow(query = "", headers: Record<string, string> = {}): Promise<EventClient> {
  const client = await openEvents(`${api.url}/api/v1/events${query}`, headers);
  open.push(client);
  return client;
}

afterEach(() => {
  for (const client of open.splice(0)) client.close();
});

const names = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, n) => `${prefix}-${n}`);

describe("a stream", () => {
  test("has its media type and retry time, and is not cached", async () => {
    const stream = await follow();
    expect(stream.status).toBe(200);
    expect(stream.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(stream.headers.get("cache-control")).toBe("no-store");
    expect(stream.headers.get("x-accel-buffering")).toBe("no");
    await api.create("/services", { name: "opening" });
    await stream.receives(2);
    expect(stream.text).toMatch(/^retry: 3000\nid: [0-9a-f]{8}-\d+\n\nid: /);
  });

  test("sends a change when all workers serve it, and its audit entry", async () => {
    const stream = await follow();
    const { id } = await api.create("/services", { name: "told" });
    const [audit, config] = await stream.receives(2);
    expect(audit).toMatchObject({
      kind: "audit",
      data: { action: "create", kind: "service", object_id: id, result: "ok" },
    });
    expect(config).toMatchObject({
      kind: "config",
      data: {
        revision: audit!.data.revision,
        actor: "anonymous",
        summary: 'create service "told"',
        changes: [{ action: "create", kind: "service", id, name: "told" }],
        more: 0,
      },
    });
    expect(config!.data.at).toBe(audit!.data.at);
  });

  test("sends 200 changes, each once and in order, to every reader", async () => {
    const streams = await Promise.all([follow("?kinds=config"), follow("?kinds=config,audit")]);
    const wanted = names("all", 200);
    await Promise.all(wanted.map((name) => api.create("/services", { name })));
    const first = await streams[0]!.receives(200);
    expect(first.map(({ data }) => data.changes[0].name).toSorted()).toEqual(wanted.toSorted());
    const revisions = first.map(({ data }) => data.revision);
    expect(revisions).toEqual(Array.from({ length: 200 }, (_, n) => revisions[0] + n));
    const numbers = first.map(({ id }) => Number(id.split("-")[1]));
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    const second = await streams[1]!.receives(400);
    const ids = second.map(({ id }) => Number(id.split("-")[1]));
    expect(ids).toEqual(Array.from({ length: 400 }, (_, n) => ids[0]! + n));
    expect(second.filter(({ kind }) => kind === "config").map(({ data }) => data)).toEqual(
      first.map(({ data }) => data),
    );
  });

  test("with selected types gets no others", async () => {
    const [config, audit] = await Promise.all([follow("?kinds=config"), follow("?kinds=audit")]);
    await api.create("/services", { name: "kinds" });
    await Promise.all([config!.receives(1), audit!.receives(1)]);
    expect(config!.events.map(({ kind }) => kind)).toEqual(["config"]);
    expect(audit!.events.map(({ kind }) => kind)).toEqual(["audit"]);
  });

  const wrong = [
    { query: "?kinds=nope", status: 400, error: "kinds: each must be one of config, audit" },
    { query: "?kinds=config,", status: 200, error: "" },
    { query: "?kind=config", status: 400, error: 'unknown query parameter "kind"' },
  ];
  test.each(wrong)("with $query is $status", async ({ query, status, error }) => {
    const stream = await follow(query);
    expect(stream.status).toBe(status);
    if (status === 200) return;
    await stream.ends();
    expect(JSON.parse(stream.text).error).toContain(error);
  });

  test("cannot be changed: other methods are 405, HEAD has no body", async () => {
    expect((await api.call("POST /events", { body: {} })).status).toBe(405);
    const head = await api.call("HEAD /events");
    expect(head.status).toBe(200);
    expect(head.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  });
});

describe("a client that reconnects", () => {
  test("gets what it missed, by header or query", async () => {
    const before = await follow("?kinds=config");
    await api.create("/services", { name: "seen" });
    await before.receives(1);
    before.close();
    for (const name of names("missed", 3)) await api.create("/services", { name });
    const ways = [
      await follow("?kinds=config", { "last-event-id": before.lastId }),
      await follow(`?kinds=config&last_event_id=${before.lastId}`),
      // The header is what the browser knows best.
      await follow("?kinds=config&last_event_id=old", { "last-event-id": before.lastId }),
    ];
    await api.create("/services", { name: "after" });
    for (const stream of ways) {
      const events = await stream.receives(4);
      expect(events.map(({ data }) => data.changes[0].name)).toEqual([
        ...names("missed", 3),
        "after",
      ]);
    }
  });

  test("loses nothing when disconnected before the first event", async () => {
    const before = await follow("?kinds=config");
    await eventually(() => before.lastId);
    before.close();
    await api.create("/services", { name: "between" });
    const after = await follow("?kinds=config", { "last-event-id": before.lastId });
    expect((await after.receives(1))[0]!.data.changes[0].name).toBe("between");
  });

  const garbage = [
    { why: "a word", id: "x" },
    { why: "a number", id: "-1" },
    { why: "an id of another run", id: "ffffffff-1" },
    { why: "a long text", id: "a".repeat(5000) },
    { why: "an escape", id: "%00" },
    { why: "SQL", id: "1'; DROP TABLE audit" },
  ];
  test.each(garbage)("with $why for an id gets a reset", async ({ id }) => {
    const stream = await follow("?kinds=config", { "last-event-id": id });
    const [reset] = await stream.receives(1);
    expect(reset).toMatchObject({ kind: "reset", data: {} });
    await api.create("/services", { name: `reset-${Bun.hash(id)}` });
    expect((await stream.receives(2))[1]!.kind).toBe("config");
    expect(stream.events).toHaveLength(2);
  });

  test("with an empty id is new", async () => {
    const stream = await follow("?kinds=config&last_event_id=");
    await api.create("/services", { name: "empty-id" });
    expect((await stream.receives(1))[0]!.kind).toBe("config");
  });

  test("after a restart of the gateway gets a reset", async () => {
    const gateway = await startGateway();
    try {
      const before = await openEvents(`${gateway.admin}/api/v1/events`);
      await gateway.ok("POST", "/api/v1/services", { name: "web" });
      await before.receives(2);
      await gateway.restart();
      await before.ends();
      const after = await openEvents(`${gateway.admin}/api/v1/events`, {
        "last-event-id": before.lastId,
      });
      expect((await after.receives(1))[0]!.kind).toBe("reset");
    } finally {
      await gateway.stop();
    }
  });
});

describe("many streams", () => {
  test("do not delay the gateway's stop, even when no client reads them", async () => {
    const gateway = await startGateway();
    const port = Number(new URL(gateway.admin).port);
    const streams = await Promise.all(
      names("", 5).map(() => openEvents(`${gateway.admin}/api/v1/events`)),
    );
    const silent = await connectRaw({ port });
    silent.write("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await silent.until("retry: 3000");
    await gateway.ok("POST", "/api/v1/services", { name: "web" });
    expect(await gateway.stop()).toBe(0);
    for (const stream of streams) {
      await stream.ends();
      expect(stream.events).toHaveLength(2);
    }
    silent.close();
  });
});
