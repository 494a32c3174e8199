// Rows of targets come and go with the configuration; overrides and reports of health; no workers.
import { describe, expect, test } from "bun:test";
import { type HealthEvent, HealthWatch } from "../../../src/control/health/health-watch.ts";
import { createLog } from "../../../src/log.ts";
import { TargetBoard } from "../../../src/shared-memory/target-board.ts";
import {
  checkFailed,
  checkSucceeded,
  forgetChecks,
} from "../../../src/shared-memory/target-health.ts";
import { PassiveCheck } from "../../../src/dataplane/health/passive-check.ts";
import { serviceOf } from "../health/fixture.ts";
import { controlPlane, options } from "./fixture.ts";

const START = Date.parse("2026-01-01T00:00:00.000Z");

/** A control plane over a board of its own, and a clock that a test can set. */
function scene(capacity = 100) {
  const clock = { now: START };
  const board = TargetBoard.create(2, { now: START, capacity });
  const plane = controlPlane(undefined, () => clock.now, board);
  const { targets, health } = plane.control;
  const { services } = plane.control.resources;
  const create = async (name: string, ports: readonly number[], fields: object = {}) => {
    const list = ports.map((port) => ({ host: "10.0.0.1", port }));
    return (await services.create({ name, targets: list, ...fields }, options)).view;
  };
  const rowsOf = (service: { id: string; targets: readonly { id: string }[] }, index = 0) => ({
    service: board.rowOf(service.id),
    target: board.rowOf(service.targets[index]?.id ?? ""),
  });
  const remove = (id: string) => services.remove(id, { ...options, cascade: true });
  return { ...plane, board, clock, services, targets, health, create, rowsOf, remove };
}

const thresholds = { healthy: 1, unhealthy: 1 };
const failure = "the target refused the connection";

describe("rows", () => {
  test("are released when their objects are deleted, however often", async () => {
    const { create, remove, board } = scene(10);
    for (let cycle = 0; cycle < 30; cycle++) {
      const service = await create("s", [1, 2, 3, 4]);
      expect(board.inUse).toBe(5);
      await remove(service.id);
      expect(board.inUse).toBe(0);
    }
  });

  test("stay while requests are in flight on them, and are released afterwards", async () => {
    const { create, remove, board, rowsOf } = scene();
    const service = await create("s", [1, 2]);
    const { target } = rowsOf(service);
    board.enter(target, 1);
    await remove(service.id);
    expect(board.inUse).toBe(1);
    expect(board.active(target)).toBe(1);
    board.leave(target, 1);
    const other = await create("other", []);
    expect(board.inUse).toBe(1);
    expect(board.findRow(service.targets[0]?.id ?? "")).toBeNull();
    await remove(other.id);
  });

  test("reject a change that needs too many before any worker prepares it", async () => {
    const { create, services, targets, board, steps } = scene(4);
    const service = await create("s", [1, 2]);
    const before = steps.steps.length;
    const list = [1, 2].map((port) => ({ host: "10.0.0.2", port }));
    const refused = await services
      .create({ name: "t", targets: list }, options)
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({
      status: 409,
      message: "there is no room for so many targets and services: 4 may be enabled together",
    });
    expect(steps.steps.slice(before)).not.toContain("prepare 3");
    // None of its rows remain, and a change that fits is accepted.
    await services.create({ name: "t" }, options);
    expect(board.inUse).toBe(4);
    // Disabled ones use no rows.
    const disabled = { service_id: service.id, host: "10.0.0.3", port: 3, enabled: false };
    await targets.create(disabled, options);
    const one = targets.create({ ...disabled, port: 4, enabled: true }, options);
    expect(await one.catch(({ status }: { status: number }) => status)).toBe(409);
  });

  test("of a change that was rejected later are released too", async () => {
    const { services, board, steps } = scene();
    steps.fail.prepare = new Error("dead");
    await services.create({ name: "s", targets: [{ host: "a", port: 1 }] }, options).catch(() => 0);
    delete steps.fail.prepare;
    await services.create({ name: "t" }, options);
    expect(board.inUse).toBe(1);
  });

  test("retain the health of targets through changes of everything else", async () => {
    const { create, services, board, rowsOf, targets, clock } = scene(200);
    const service = await create("s", [1, 2]);
    const rows = rowsOf(service);
    checkFailed(board, rows, { thresholds, failure, now: clock.now });
    for (let change = 0; change < 50; change++) await create(`s${change}`, [change + 1]);
    await services.patch(service.id, { description: "other", slow_start: 5000 }, options);
    await targets.patch(service.targets[0]?.id ?? "", { weight: 7 }, options);
    expect(rowsOf(service)).toEqual(rows);
    expect(targets.get(service.targets[0]?.id ?? "").view.health).toMatchObject({
      state: "unhealthy",
      last_error: failure,
    });
  });

  test("forget that passive checks ejected a target when they are off", async () => {
    const { create, board, rowsOf, services, targets, clock } = scene();
    const service = await create("s", [1, 2]);
    board.set(rowsOf(service).target, "ejected_until", 1_000_000_000);
    clock.now = Date.now();
    const state = () => targets.get(service.targets[0]?.id ?? "").view.health.state;
    await services.patch("s", { health: { passive: { consecutive_failures: 1 } } }, options);
    expect(state()).toBe("unhealthy");
    await services.patch("s", { health: { passive: { enabled: false } } }, options);
    clock.now = Date.now() + 1000;
    expect(state()).toBe("unknown");
  });

  test("reset the health of a target that has a new address", async () => {
    const { create, board, rowsOf, targets, clock } = scene();
    const service = await create("s", [1]);
    checkFailed(board, rowsOf(service), { thresholds, failure, now: clock.now });
    const id = service.targets[0]?.id ?? "";
    const { view } = await targets.patch(id, { port: 2 }, options);
    expect(view.id).toBe(id);
    expect(targets.get(id).view.health).toMatchObject({ state: "unknown", last_error: null });
  });
});

describe("the reported health", () => {
  test("of a target is the current one, and no ETag depends on it", async () => {
    const { create, services, targets, board, rowsOf, clock } = scene();
    const service = await create("s", [1]);
    const id = service.targets[0]?.id ?? "";
    const rows = rowsOf(service);
    expect(targets.get(id).view).toMatchObject({
      health: { state: "unknown", last_error: null },
      active_requests: 0,
    });
    const tags = [targets.get(id).tag, services.get("s").tag, services.list([]).tag];
    clock.now += 5000;
    checkFailed(board, rows, { thresholds, failure, now: clock.now });
    board.enter(rows.target, 0);
    board.enter(rows.target, 1);
    const state = {
      health: { state: "unhealthy", since: "2026-01-01T00:00:05.000Z", last_error: failure },
      active_requests: 2,
    };
    expect(targets.get(id).view).toMatchObject(state);
    expect(services.get("s").view.targets[0]).toMatchObject(state);
    expect(targets.listIn("s", []).view[0]).toMatchObject(state);
    expect([targets.get(id).tag, services.get("s").tag, services.list([]).tag]).toEqual(tags);
    await targets.patch(id, { weight: 0 }, options);
    expect(targets.get(id).view).toMatchObject({
      health: { state: "draining" },
      active_requests: 2,
    });
    await targets.patch(id, { enabled: false }, options);
    expect(targets.get(id).view).toMatchObject({
      health: { state: "disabled" },
      active_requests: 2,
    });
  });

  test("of a service follows from its targets", async () => {
    const { create, health, targets, board, rowsOf, clock } = scene();
    const service = await create("s", [1, 2, 3]);
    const state = () => health.ofService("s").state;
    const [first, second, third] = [0, 1, 2].map((index) => rowsOf(service, index));
    const fail = (rows = first) =>
      checkFailed(board, rows!, { thresholds, failure, now: clock.now });
    const succeed = (rows = first) => checkSucceeded(board, rows!, { thresholds, now: clock.now });
    expect(state()).toBe("unknown");
    succeed(first);
    expect(state()).toBe("healthy");
    fail(second);
    expect(state()).toBe("degraded");
    // One that is drained does not count.
    await targets.patch(service.targets[1]?.id ?? "", { weight: 0 }, options);
    expect(state()).toBe("healthy");
    fail(first);
    fail(third);
    expect(state()).toBe("unhealthy");
    for (const rows of [first, third]) forgetChecks(board, rows!, clock.now);
    expect(state()).toBe("unknown");
    expect(health.ofService(service.id)).toEqual({
      service: { id: service.id, name: "s" },
      state: "unknown",
      targets: health.ofService("s").targets,
    });
    expect(health.ofService("s").targets[1]).toEqual({
      id: service.targets[1]?.id ?? "",
      host: "10.0.0.1",
      port: 2,
      state: "draining",
      since: expect.any(String),
      last_error: failure,
      by: "active",
      override: null,
      observed_state: "unhealthy",
      weight: 0,
      priority: 0,
      active_requests: 0,
    });
    await create("empty", []);
    expect(health.ofService("empty").state).toBe("unknown");
    expect(() => health.ofService("none")).toThrow('service "none" does not exist');
  });
});

/** A passive check over the targets of a service, as in a worker. */
function trafficTo(
  board: TargetBoard,
  rows: readonly { readonly target: number; readonly service: number }[],
) {
  const { passive } = serviceOf().health;
  const targets = rows.map(({ target }) => target);
  return new PassiveCheck(passive, board, () => ({ service: rows[0]!.service, targets }));
}

test("a service whose targets all fail is failing, and degraded while one of them works", async () => {
  const { create, health, board, rowsOf, clock } = scene();
  clock.now = Date.now();
  const service = await create("s", [1, 2]);
  const rows = [rowsOf(service, 0), rowsOf(service, 1)];
  const traffic = trafficTo(board, rows);
  const state = () => health.ofService("s").state;
  traffic.responded(rows[1]!.target, 200);
  traffic.failed(rows[0]!.target, failure);
  expect(state()).toBe("degraded");
  traffic.failed(rows[1]!.target, failure);
  expect(state()).toBe("failing");
  expect(health.ofService("s").targets).toMatchObject([
    { state: "failing", by: "passive", last_error: failure },
    { state: "failing", by: "passive", last_error: failure },
  ]);
  // One is ejected, and the other one receives all requests.
  for (const { target } of rows)
    for (let count = 0; count < 9; count++) traffic.failed(target, failure);
  expect(
    health
      .ofService("s")
      .targets.map((target) => target.state)
      .toSorted(),
  ).toEqual(["failing", "unhealthy"]);
  expect(state()).toBe("failing");
  traffic.responded(rows[0]!.target, 200);
  traffic.responded(rows[1]!.target, 200);
  expect(state()).toBe("degraded");
});

describe("an override", () => {
  test("takes precedence over checks, expires, and is in the audit log", async () => {
    const { create, health, targets, board, rowsOf, clock, steps } = scene();
    const service = await create("s", [1]);
    const id = service.targets[0]?.id ?? "";
    const see = () => targets.get(id).view.health.state;
    const { target, warning } = await health.order(id, { state: "unhealthy", ttl: 60 }, options.by);
    expect([target.health.state, warning]).toEqual(["unhealthy", null]);
    expect(health.ofService("s").targets[0]).toMatchObject({
      by: "override",
      override: { state: "unhealthy", until: "2026-01-01T00:01:00.000Z" },
      observed_state: "unknown",
    });
    clock.now += 59_900;
    expect(see()).toBe("unhealthy");
    clock.now += 100;
    expect(see()).toBe("unknown");
    checkFailed(board, rowsOf(service), { thresholds, failure, now: clock.now });
    await health.order(id, { state: "healthy" }, options.by);
    expect(see()).toBe("healthy");
    // Both are visible: what was ordered, and what checks say.
    expect(health.ofService("s").targets[0]).toMatchObject({
      override: { state: "healthy", until: null },
      observed_state: "unhealthy",
    });
    clock.now += 86_400_000;
    expect(see()).toBe("healthy");
    await health.order(id, { state: "auto" }, options.by);
    expect(see()).toBe("unhealthy");
    expect(steps.recorded).toHaveLength(3);
    expect(steps.recorded[0]).toMatchObject({
      actor: "tester",
      action: "override_health",
      kind: "target",
      object_id: id,
      object_name: "10.0.0.1:1",
      result: "ok",
      revision: null,
      detail: { state: "unhealthy", ttl: 60 },
    });
    // It is no change of the configuration.
    expect(steps.steps.filter((step) => step.startsWith("prepare"))).toHaveLength(1);
  });

  const wrong = [
    { why: "no state", body: {}, message: /^state: / },
    { why: "another word", body: { state: "sick" }, message: /^state: / },
    { why: "no time at all", body: { state: "healthy", ttl: 0 }, message: /^ttl: / },
    { why: "a time for auto", body: { state: "auto", ttl: 5 }, message: /^ttl: / },
    { why: "an unknown field", body: { state: "auto", until: 5 }, message: /^until: / },
  ];
  test.each(wrong)("with $why is rejected", async ({ body, message }) => {
    const { create, health } = scene();
    const service = await create("s", [1]);
    const id = service.targets[0]?.id ?? "";
    expect(health.order(id, body, options.by)).rejects.toThrow(message);
  });

  test("of a target without traffic is rejected", async () => {
    const { create, health, targets, services } = scene();
    const service = await create("s", [1, 2]);
    const [first, second] = service.targets.map(({ id }) => id);
    await targets.patch(first ?? "", { enabled: false }, options);
    const order = (id: string) => health.order(id, { state: "healthy" }, options.by);
    await expect(order(first ?? "")).rejects.toThrow("it or its service is disabled");
    await services.patch("s", { enabled: false }, options);
    await expect(order(second ?? "")).rejects.toThrow("it or its service is disabled");
    await expect(order(crypto.randomUUID())).rejects.toThrow("does not exist");
  });
});

describe("the watch", () => {
  function watched() {
    const parts = scene();
    const lines: { level: string; message: string; reason: string }[] = [];
    const events: HealthEvent[] = [];
    const watch = new HealthWatch({
      board: parts.board,
      changes: parts.control.changes,
      clock: { now: () => parts.clock.now },
      log: createLog({
        level: "info",
        format: "json",
        sink: (line) => lines.push(JSON.parse(line)),
      }),
      publish: (event) => events.push(event),
    });
    return { ...parts, watch, lines, events };
  }

  test("reports each change once, in the log and as an event, with its reason", async () => {
    const { create, watch, lines, events, board, rowsOf, clock } = watched();
    const service = await create("s", [1, 2]);
    watch.check();
    expect(events).toBeEmpty();
    const rows = rowsOf(service);
    checkFailed(board, rows, { thresholds, failure, now: clock.now });
    watch.check();
    watch.check();
    expect(lines).toMatchObject([
      { level: "warn", message: "a target is unhealthy", reason: failure, service: "s" },
    ]);
    checkSucceeded(board, rows, { thresholds, now: clock.now });
    watch.check();
    expect(lines[1]).toMatchObject({
      level: "info",
      message: "a target receives traffic again",
      reason: "active checks succeed",
    });
    expect(events).toEqual(
      [
        { state: "unhealthy" as const, reason: failure },
        { state: "healthy" as const, reason: "active checks succeed" },
      ].map((line) => ({
        target_id: service.targets[0]?.id ?? "",
        service_id: service.id,
        host: "10.0.0.1",
        port: 1,
        ...line,
      })),
    );
  });

  test("reports what expires", async () => {
    const { create, watch, events, health, clock } = watched();
    const service = await create("s", [1]);
    watch.check();
    const id = service.targets[0]?.id ?? "";
    await health.order(id, { state: "unhealthy", ttl: 10 }, options.by);
    watch.check();
    clock.now += 9_900;
    watch.check();
    expect(events.map(({ reason }) => reason)).toEqual(["an override sets it to unhealthy"]);
    clock.now += 200;
    watch.check();
    expect(events[1]).toMatchObject({
      state: "unknown",
      reason: "no failure is known any more",
    });
  });

  test("reports a target that fails but still receives traffic when that is certain, and its end", async () => {
    const { create, watch, lines, events, board, rowsOf, clock } = watched();
    clock.now = Date.now();
    const service = await create("s", [1]);
    const rows = rowsOf(service);
    const traffic = trafficTo(board, [rows]);
    watch.check();
    for (let round = 0; round < 5; round++) {
      traffic.responded(rows.target, 200);
      for (let count = 0; count < 4; count++) traffic.failed(rows.target, failure);
      watch.check();
    }
    // The first check reports that it responds; single failures are not reported.
    expect(events.filter(({ state }) => state === "failing")).toBeEmpty();
    expect(lines).toBeEmpty();
    for (let count = 0; count < 9; count++) traffic.failed(rows.target, failure);
    watch.check();
    watch.check();
    expect(events.at(-1)).toMatchObject({ state: "failing", reason: failure });
    expect(lines).toMatchObject([
      { level: "warn", message: "a target fails but still receives traffic", reason: failure },
    ]);
    traffic.responded(rows.target, 200);
    watch.check();
    expect(events.at(-1)).toMatchObject({ state: "healthy", reason: "it responds to requests" });
    expect(lines[1]).toMatchObject({ level: "info", message: "a target succeeds again" });
    expect(events.filter(({ state }) => state === "failing")).toHaveLength(1);
  });

  test("reports no target because something else was changed", async () => {
    const { create, watch, events, board, rowsOf, clock, targets } = watched();
    const service = await create("s", [1, 2]);
    checkFailed(board, rowsOf(service), { thresholds, failure, now: clock.now });
    watch.check();
    expect(events).toHaveLength(1);
    await create("other", [1]);
    await targets.patch(service.targets[1]?.id ?? "", { weight: 5 }, options);
    watch.check();
    expect(events).toHaveLength(1);
    // Removed and added again it is a new one.
    await targets.patch(service.targets[0]?.id ?? "", { enabled: false }, options);
    watch.check();
    await targets.patch(service.targets[0]?.id ?? "", { enabled: true }, options);
    watch.check();
    expect(events).toHaveLength(1);
    expect(targets.get(service.targets[0]?.id ?? "").view.health.state).toBe("unknown");
  });
});
