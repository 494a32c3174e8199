// The hub of events: order, roles, replay after a reconnect, and readers that are too slow.
import { describe, expect, test } from "bun:test";
import type { ConfigEvent } from "../../../src/control/config-event.ts";
import {
  EventHub,
  type StreamEvent,
  type SubscribeOptions,
  type Subscription,
} from "../../../src/control/events.ts";
import { type EventKind, eventKindNames } from "../../../src/control/event-kinds.ts";
import type { AuditEntry } from "../../../src/model/audit-entry.ts";

const config = (revision: number): ConfigEvent => ({
  revision,
  at: "",
  actor: "",
  summary: "",
  changes: [],
  more: 0,
});
const audit = (actor: string) => ({ actor }) as AuditEntry;

const hubOf = (events = 1000, bytes = 1_000_000) =>
  new EventHub({ startId: "run", limits: { events, bytes } });

function subscribe(hub: EventHub, options: Partial<SubscribeOptions> = {}, wake = () => {}) {
  const all = { role: "admin", kinds: eventKindNames, lastEventId: null } as const;
  return hub.subscribe({ ...all, ...options }, wake);
}

function readAll(subscription: Subscription): StreamEvent[] {
  const events: StreamEvent[] = [];
  for (let event = subscription.next(); event !== null; event = subscription.next())
    events.push(event);
  return events;
}

const read = (subscription: Subscription) =>
  readAll(subscription).map(({ id, kind }) => `${id} ${kind}`);

describe("a reader", () => {
  test("wakes up and gets every event in order with rising ids", () => {
    const hub = hubOf();
    let woken = 0;
    const reader = subscribe(hub, {}, () => woken++);
    expect(reader.next()).toBeNull();
    for (let revision = 1; revision <= 200; revision++) hub.publish("config", config(revision));
    expect(woken).toBe(200);
    const events = readAll(reader);
    expect(events.map(({ id }) => id)).toEqual(
      Array.from({ length: 200 }, (_, i) => `run-${i + 1}`),
    );
    expect(events.map(({ data }) => JSON.parse(data).revision)).toEqual(
      Array.from({ length: 200 }, (_, i) => i + 1),
    );
    expect(reader.next()).toBeNull();
  });

  test("gets no events from before it subscribed, and none after it closed", () => {
    const hub = hubOf();
    hub.publish("config", config(1));
    let woken = 0;
    const reader = subscribe(hub, {}, () => woken++);
    expect(reader.next()).toBeNull();
    expect(reader.position).toBe("run-1");
    reader.close();
    hub.publish("config", config(2));
    expect(woken).toBe(0);
  });

  const roles = [
    { role: "viewer", kinds: eventKindNames, sees: ["run-2 config"] },
    { role: "editor", kinds: eventKindNames, sees: ["run-2 config"] },
    { role: "viewer", kinds: ["audit"], sees: [] },
    { role: "admin", kinds: eventKindNames, sees: ["run-1 audit", "run-2 config"] },
    { role: "admin", kinds: ["audit"], sees: ["run-1 audit"] },
    { role: "admin", kinds: ["health"], sees: [] },
  ] as const;
  test.each(roles)("with role $role that requests $kinds gets $sees", ({ role, kinds, sees }) => {
    const hub = hubOf();
    const reader = subscribe(hub, { role, kinds: kinds as readonly EventKind[] });
    hub.publish("audit", audit("a"));
    hub.publish("config", config(2));
    expect(read(reader)).toEqual([...sees]);
  });

  test("below admin gets the reduced form", () => {
    const hub = hubOf();
    const readers = (["viewer", "editor", "admin"] as const).map((role) =>
      subscribe(hub, { role }),
    );
    hub.publish("config", config(1), { ...config(1), summary: "less" });
    expect(readers.map((reader) => JSON.parse(reader.next()!.data).summary)).toEqual([
      "less",
      "less",
      "",
    ]);
  });
});

describe("a reader that reconnects", () => {
  test("gets what it missed, nothing twice, and then new events", () => {
    const hub = hubOf();
    for (let revision = 1; revision <= 5; revision++) hub.publish("config", config(revision));
    const reader = subscribe(hub, { lastEventId: "run-3" });
    expect(read(reader)).toEqual(["run-4 config", "run-5 config"]);
    hub.publish("config", config(6));
    expect(read(reader)).toEqual(["run-6 config"]);
  });

  const unknown = [
    { why: "an id of another run", id: "other-3" },
    { why: "an id that was not given out yet", id: "run-99" },
    { why: "words", id: "garbage" },
    { why: "a negative number", id: "run--1" },
    { why: "a number that is none", id: "run-1e3" },
    { why: "a very long id", id: "9".repeat(100_000) },
    { why: "a very large number", id: `run-${"9".repeat(400)}` },
    { why: "a line end", id: "run-1\nevent: config" },
    { why: "nothing but the dash", id: "-" },
    { why: "an id that is too old", id: "run-1" },
  ];
  test.each(unknown)("with $why gets a reset, and then only new events", ({ id }) => {
    const hub = hubOf(3);
    for (let revision = 1; revision <= 5; revision++) hub.publish("config", config(revision));
    const reader = subscribe(hub, { lastEventId: id });
    expect(read(reader)).toEqual(["run-5 reset"]);
    hub.publish("config", config(6));
    expect(read(reader)).toEqual(["run-6 config"]);
  });

  test("at the border of the ring gets everything", () => {
    const hub = hubOf(3);
    for (let revision = 1; revision <= 5; revision++) hub.publish("config", config(revision));
    expect(read(subscribe(hub, { lastEventId: "run-2" }))).toHaveLength(3);
    expect(read(subscribe(hub, { lastEventId: "run-5" }))).toEqual([]);
  });

  test("has missed nothing when only events beyond its role were evicted", () => {
    const hub = hubOf(3);
    hub.publish("config", config(1));
    for (let count = 0; count < 10; count++) hub.publish("audit", audit("a"));
    expect(read(subscribe(hub, { role: "viewer", lastEventId: "run-1" }))).toEqual([]);
    expect(read(subscribe(hub, { role: "admin", lastEventId: "run-1" }))).toEqual(["run-11 reset"]);
    expect(read(subscribe(hub, { role: "viewer", lastEventId: "run-0" }))).toEqual([
      "run-11 reset",
    ]);
  });
});

describe("a reader that is too slow", () => {
  test("gets the number of lost events, once, and then those in the ring", () => {
    const hub = hubOf(3);
    const reader = subscribe(hub);
    for (let revision = 1; revision <= 10; revision++) hub.publish("config", config(revision));
    const [first, ...rest] = readAll(reader);
    expect(first).toEqual({ id: null, kind: "dropped", data: '{"count":7}' });
    expect(rest.map(({ id }) => id)).toEqual(["run-8", "run-9", "run-10"]);
    hub.publish("config", config(11));
    expect(read(reader)).toEqual(["run-11 config"]);
  });

  test("counts only events that it may see as lost", () => {
    const hub = hubOf(3);
    const [viewer, admin] = [subscribe(hub, { role: "viewer" }), subscribe(hub)];
    hub.publish("config", config(1));
    expect(read(viewer)).toEqual(["run-1 config"]);
    for (let count = 0; count < 10; count++) hub.publish("audit", audit("a"));
    hub.publish("config", config(2));
    expect(read(viewer)).toEqual(["run-12 config"]);
    expect(admin.next()).toMatchObject({ kind: "dropped", data: '{"count":9}' });
  });

  test("that reconnects gets the loss as well", () => {
    const hub = hubOf(3);
    for (let revision = 1; revision <= 3; revision++) hub.publish("config", config(revision));
    const reader = subscribe(hub, { lastEventId: "run-1" });
    for (let revision = 4; revision <= 6; revision++) hub.publish("config", config(revision));
    expect(read(reader)).toEqual(["null dropped", "run-4 config", "run-5 config", "run-6 config"]);
  });

  test("uses bounded memory: the ring is limited in bytes too", () => {
    const hub = hubOf(1000, 10_000);
    const reader = subscribe(hub);
    for (let count = 0; count < 100; count++) hub.publish("audit", audit("x".repeat(1000)));
    const [first, ...rest] = readAll(reader);
    expect(first?.kind).toBe("dropped");
    expect(rest.length).toBeLessThan(10);
    hub.publish("audit", audit("x".repeat(100_000)));
    expect(read(reader)).toEqual(["run-101 audit"]);
  });
});
