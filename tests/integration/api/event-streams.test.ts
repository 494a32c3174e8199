// Event streams over real sockets, with every kind of caller: disconnects, comments, slow readers, limits.
import { afterEach, describe, expect, test } from "bun:test";
import { EventStreams, type EventStreamsOptions } from "../../../src/api/event-stream.ts";
import { EventHub } from "../../../src/control/events.ts";
import { eventKindNames } from "../../../src/control/event-kinds.ts";
import type { Principal, Role } from "../../../src/control/principal.ts";
import type { AuditEntry } from "../../../src/model/audit-entry.ts";
import type { ApiError } from "../../../src/model/error.ts";
import { type EventClient, openEvents } from "../../support/event-client.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw } from "../../support/raw-http.ts";

const user = (userId: string, role: Role = "viewer"): Principal => ({
  role,
  userId,
  actor: userId,
  method: "session",
  address: "127.0.0.1",
  sessionId: `session of ${userId}`,
  tokenId: null,
  expiresAt: null,
});

/** Streams on a listener of their own; `/name` opens one for the caller of that name. */
function scene(callers: Record<string, Principal>, options: Partial<EventStreamsOptions> = {}) {
  const hub = new EventHub({ startId: "run", limits: { events: 100, bytes: 1_000_000_000 } });
  const shutOut = new Set<string>();
  const streams = new EventStreams({
    hub,
    clock: { now: () => Date.now() },
    isStillValid: ({ userId }) => !shutOut.has(userId ?? ""),
    ...options,
  });
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch({ url }) {
      try {
        const principal = callers[new URL(url).pathname.slice(1)]!;
        return streams.open(principal, { kinds: eventKindNames, lastEventId: null });
      } catch (error) {
        return new Response(null, { status: (error as ApiError).status });
      }
    },
  });
  const clients: EventClient[] = [];
  running.push({
    async stop() {
      for (const client of clients) client.close();
      streams.close();
      await server.stop(true);
    },
  });
  return {
    hub,
    streams,
    shutOut,
    server,
    async open(name: string) {
      const client = await openEvents(`${server.url}${name}`);
      clients.push(client);
      if (client.status === 200) await eventually(() => client.lastId);
      return client;
    },
  };
}

const running: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of running.splice(0)) await one.stop();
});

const entry = (actor: string) => ({ actor }) as AuditEntry;
const change = { revision: 2, at: "", actor: "", summary: "create user", changes: [], more: 0 };

test("a viewer never sees admin events, an admin sees everything", async () => {
  const { hub, open } = scene({ v: user("v"), e: user("e", "editor"), a: user("a", "admin") });
  const [viewer, editor, admin] = await Promise.all(["v", "e", "a"].map(open));
  for (let count = 0; count < 20; count++) hub.publish("audit", entry("canary"));
  hub.publish("config", change, { ...change, summary: "less" });
  await admin!.receives(21);
  for (const client of [viewer!, editor!]) {
    await client.receives(1);
    expect(client.text).not.toContain("canary");
    expect(client.text).not.toContain("create user");
    expect(client.events).toMatchObject([{ kind: "config", data: { summary: "less" } }]);
  }
});

describe("a caller who loses access", () => {
  test("is disconnected at once, before events of the same turn; others continue", async () => {
    const { hub, streams, shutOut, open } = scene({ a: user("a", "admin"), b: user("b", "admin") });
    const [a, b] = await Promise.all(["a", "b"].map(open));
    hub.publish("audit", entry("before"));
    await Promise.all([a!.receives(1), b!.receives(1)]);
    hub.publish("audit", entry("demotion of a"));
    shutOut.add("a");
    streams.recheck();
    await a!.ends();
    hub.publish("audit", entry("after"));
    await b!.receives(3);
    expect(a!.text).not.toContain("demotion");
    expect(b!.isEnded).toBe(false);
  });

  test("is disconnected although it reads nothing", async () => {
    const { hub, streams, shutOut, open, server } = scene({ a: user("a", "admin") });
    const silent = await connectRaw({ port: server.port! });
    silent.write("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await silent.until("retry");
    hub.publish("audit", entry("x".repeat(1000)));
    shutOut.add("a");
    streams.recheck();
    await silent.until("\r\n0\r\n\r\n");
    shutOut.clear();
    expect((await open("a")).status).toBe(200);
    silent.close();
  });

  test("without a notification is disconnected before the next comment", async () => {
    const { shutOut, open } = scene({ a: user("a") }, { commentMs: 5 });
    const a = await open("a");
    shutOut.add("a");
    await a.ends();
  });

  test("is disconnected when the session or token expires", async () => {
    const soon = new Date(Date.now() + 50).toISOString();
    const far = new Date(Date.now() + 3_000_000_000).toISOString();
    const past = new Date(Date.now() - 1).toISOString();
    const { open, server } = scene({
      soon: { ...user("soon"), expiresAt: soon },
      far: { ...user("far"), expiresAt: far },
      past: { ...user("past"), expiresAt: past },
    });
    const [first, second] = await Promise.all(["soon", "far"].map(open));
    await first!.ends();
    expect(second!.isEnded).toBe(false);
    const third = await openEvents(`${server.url}past`);
    await third.ends();
    expect(third.events).toEqual([]);
  });
});

describe("comments", () => {
  test("keep a silent stream open, and end with it", async () => {
    const { hub, open } = scene({ a: user("a") }, { commentMs: 5 });
    const client = await open("a");
    await eventually(() => client.text.split(":\n\n").length > 4);
    expect(client.events).toEqual([]);
    hub.publish("config", change);
    await client.receives(1);
    expect(client.text.replaceAll(":\n\n", "")).toBe(
      `retry: 3000\nid: run-0\n\nid: run-1\nevent: config\ndata: ${JSON.stringify(change)}\n\n`,
    );
  });
});

describe("a reader that is too slow", () => {
  test("learns how many events it lost once it reads again, and memory stays bounded", async () => {
    const { hub, server } = scene({ a: user("a", "admin") });
    const response = await fetch(`${server.url}a`);
    const reader = response.body!.getReader();
    await reader.read();
    // More than the buffers of both sockets hold.
    const total = 2000;
    for (let count = 1; count <= total; count++) {
      hub.publish("audit", entry("x".repeat(20_000)));
      // Each in a turn of its own, so that it could be sent.
      if (count % 20 === 0) await new Promise(setImmediate);
    }
    let text = "";
    while (!text.includes(`id: run-${total}\n`)) {
      const { value } = await reader.read();
      text += Buffer.from(value!).toString();
    }
    await reader.cancel();
    const told = [...text.matchAll(/^event: audit$/gm)].length;
    const dropped = [...text.matchAll(/^event: dropped\ndata: (.*)$/gm)];
    const lost = dropped.reduce((sum, [, data]) => sum + JSON.parse(data!).count, 0);
    expect(lost).toBeGreaterThan(0);
    expect(told + lost).toBe(total);
  });
});

describe("limits", () => {
  test("apply per caller and in total, and a stream that ends makes room", async () => {
    const callers = Object.fromEntries(["a", "b", "c"].map((name) => [name, user(name)]));
    const { open, streams } = scene(callers, { limits: { all: 5, each: 2 } });
    const first = await open("a");
    expect((await open("a")).status).toBe(200);
    expect((await open("a")).status).toBe(429);
    for (const name of ["b", "b", "c"]) expect((await open(name)).status).toBe(200);
    expect((await open("c")).status).toBe(429);
    first.close();
    await eventually(async () => (await open("c")).status === 200);
    streams.close();
    expect((await open("a")).status).toBe(429);
  });

  test("a disconnected client leaves nothing behind", async () => {
    const { hub, open } = scene({ a: user("a") }, { limits: { all: 1, each: 1 }, commentMs: 5 });
    for (let round = 0; round < 10; round++) {
      const client = await eventually(async () => {
        const next = await open("a");
        return next.status === 200 ? next : null;
      });
      hub.publish("config", change);
      await client.receives(1);
      client.close();
    }
  });
});
