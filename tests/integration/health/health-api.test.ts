// Health through the whole product with two workers: overrides and check results apply to both at once and across changes.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";

const WORKERS = 2;
let gateway: Gateway;
const cleanups = cleanupsOf(afterEach);

beforeAll(async () => {
  gateway = await startGateway({ workers: WORKERS });
  await gateway.ok("PATCH", "/api/v1/settings", { debug_headers: true });
});
afterAll(() => gateway.stop());

function origins(...names: string[]): Origin[] {
  return names.map((name) => {
    const origin = startOrigin({ answer: reply(name) });
    cleanups.push(() => origin.stop());
    return origin;
  });
}

/** A service in front of the origins, behind a route for a host of its own. */
async function serve(name: string, targets: readonly Origin[], fields: object = {}) {
  const service = await gateway.ok("POST", "/api/v1/services", {
    name,
    ...fields,
    targets: targets.map(({ port }) => ({ host: "127.0.0.1", port })),
  });
  const host = `${name}.example`;
  await gateway.ok("POST", "/api/v1/routes", { name, service_id: name, hosts: [host] });
  cleanups.push(() => gateway.ok("DELETE", `/api/v1/services/${name}?cascade=1`));
  const ids: string[] = service.targets.map(({ id }: { id: string }) => id);
  return {
    ids,
    ask: () =>
      fetch(`http://127.0.0.1:${gateway.httpPort}/`, {
        // A new connection each time: the system gives it to any worker.
        headers: { host, connection: "close" },
      }),
    health: () => gateway.ok("GET", `/api/v1/services/${name}/health`),
  };
}

/** Sends requests until every worker has responded `least` times; returns all responses. */
async function fromEveryWorker(ask: () => Promise<Response>, least = 10): Promise<Set<string>> {
  const counts = new Map<string, number>();
  const bodies = new Set<string>();
  await eventually(
    async () => {
      const response = await ask();
      const worker = response.headers.get("x-sluice-worker") ?? "";
      counts.set(worker, (counts.get(worker) ?? 0) + 1);
      bodies.add(await response.text());
      return counts.size === WORKERS && [...counts.values()].every((count) => count >= least);
    },
    { intervalMs: 0 },
  );
  return bodies;
}

const order = (id: string, body: object) =>
  gateway.api("PUT", `/api/v1/targets/${id}/health`, body);

describe("a health override", () => {
  test("applies on every worker once acknowledged, makes no revision, and can be reverted", async () => {
    const { ids, ask, health } = await serve("ordered", origins("a", "b"));
    expect([...(await fromEveryWorker(ask))].sort()).toEqual(["a", "b"]);
    const tag = (await gateway.api("GET", "/api/v1/services/ordered")).headers.get("etag");
    const before = await gateway.ok("GET", "/api/v1/admin/status");

    const answer = await order(ids[0] ?? "", { state: "unhealthy" });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ id: ids[0], health: { state: "unhealthy" } });
    expect([...(await fromEveryWorker(ask))]).toEqual(["b"]);
    expect(await health()).toMatchObject({
      state: "degraded",
      targets: [
        { state: "unhealthy", by: "override" },
        { state: "healthy", by: "passive" },
      ],
    });

    for (let change = 0; change < 10; change++)
      await gateway.ok("PATCH", "/api/v1/services/ordered", { description: `${change}` });
    expect([...(await fromEveryWorker(ask))]).toEqual(["b"]);
    await gateway.ok("PATCH", "/api/v1/services/ordered", { description: "" });

    await order(ids[0] ?? "", { state: "auto" });
    expect([...(await fromEveryWorker(ask))].sort()).toEqual(["a", "b"]);
    const after = await gateway.ok("GET", "/api/v1/admin/status");
    expect(after.revision).toBe(before.revision + 11);
    expect((await gateway.api("GET", "/api/v1/services/ordered")).headers.get("etag")).not.toBe(
      tag,
    );
  });

  test("changes no ETag, and an earlier If-Match still matches", async () => {
    const { ids } = await serve("tagged", origins("a"));
    const path = `/api/v1/targets/${ids[0]}`;
    const tag = (await gateway.api("GET", path)).headers.get("etag") ?? "";
    await order(ids[0] ?? "", { state: "unhealthy" });
    expect((await gateway.api("GET", path)).headers.get("etag")).toBe(tag);
    const patch = await gateway.api("PATCH", path, { weight: 50 }, { "if-match": tag });
    expect(patch.status).toBe(200);
  });

  test("expires automatically", async () => {
    const { ids, ask } = await serve("timed", origins("a", "b"));
    await order(ids[0] ?? "", { state: "unhealthy", ttl: 1 });
    expect([...(await fromEveryWorker(ask, 1))]).toEqual(["b"]);
    await eventually(async () => (await (await ask()).text()) === "a");
    expect([...(await fromEveryWorker(ask))].sort()).toEqual(["a", "b"]);
  });

  test("is logged and sent as an event", async () => {
    const { ids } = await serve("told", origins("a"));
    const stream = await fetch(`${gateway.admin}/api/v1/events?kinds=health`);
    expect(stream.status).toBe(200);
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    cleanups.push(() => reader?.cancel());
    await order(ids[0] ?? "", { state: "unhealthy" });
    let text = "";
    await eventually(
      async () => {
        text += (await reader?.read())?.value ?? "";
        return text.includes("event: health") && text.includes(ids[0] ?? "");
      },
      { intervalMs: 0 },
    );
    expect(text).toContain('"state":"unhealthy","reason":"an override sets it to unhealthy"');
    await eventually(() => gateway.log.some(({ message }) => message === "a target is unhealthy"));
    const lines = gateway.log.filter(({ target }) => target === ids[0]);
    expect(lines).toMatchObject([{ level: "warn", service: "told" }]);
  });

  const refused = [
    { why: "an unknown target", body: { state: "auto" }, status: 404 },
    { why: "an unknown word", body: { state: "down" }, status: 400, id: true },
    { why: "a query", body: { state: "auto" }, status: 400, id: true, query: "?dry_run=1" },
  ];
  test.each(refused)("$why is rejected with $status", async ({ body, status, id, query = "" }) => {
    const { ids } = await serve("refused", origins("a"));
    const key = id === true ? ids[0] : crypto.randomUUID();
    const path = `/api/v1/targets/${key}/health${query}`;
    expect((await gateway.api("PUT", path, body)).status).toBe(status);
  });
});

test("an ejected target stays ejected on every worker through 50 unrelated changes", async () => {
  const [bad, good] = origins("bad", "good");
  if (!bad || !good) throw new Error("no origins");
  bad.answer = reply("bad", { status: "503 Busy" });
  const { ask, health, ids } = await serve("ejected", [bad, good], {
    retries: { count: 0 },
    health: { passive: { consecutive_failures: 3, ejection_seconds: 300 } },
  });
  await eventually(
    async () => {
      await (await ask()).text();
      return (await health()).targets[0].state === "unhealthy";
    },
    { intervalMs: 0 },
  );
  bad.answer = reply("bad");
  const since = (await health()).targets[0].since;
  for (let change = 0; change < 25; change++) {
    await gateway.ok("POST", "/api/v1/services", {
      name: `other ${change}`,
      targets: [{ host: "127.0.0.1", port: 1 }],
    });
    await gateway.ok("PATCH", "/api/v1/services/ejected", { description: `${change}` });
  }
  expect([...(await fromEveryWorker(ask, 20))]).toEqual(["good"]);
  expect((await health()).targets[0]).toMatchObject({
    id: ids[0],
    state: "unhealthy",
    by: "passive",
    last_error: "the target responded with status 503",
    since,
  });
  for (let change = 0; change < 25; change++)
    await gateway.ok("DELETE", `/api/v1/services/other ${change}?cascade=1`);
});

test("an unresponsive only target is failing, still gets every request, and recovers", async () => {
  const [only] = origins("only");
  if (!only) throw new Error("no origin");
  only.answer = reply("busy", { status: "503 Busy" });
  const { ask, health, ids } = await serve("alone", [only], { retries: { count: 0 } });
  const path = `/api/v1/targets/${ids[0]}`;
  expect((await health()).state).toBe("unknown");
  await (await ask()).text();
  expect(await health()).toMatchObject({
    state: "failing",
    targets: [
      { state: "failing", by: "passive", last_error: "the target responded with status 503" },
    ],
  });
  for (let count = 1; count < 12; count++) expect((await ask()).status).toBe(503);
  expect(only.requests).toHaveLength(12);
  expect((await gateway.ok("GET", path)).health).toMatchObject({
    state: "failing",
    last_error: "the target responded with status 503",
  });
  const up = async () =>
    /sluice_target_up\{service="alone",.*\} ([01])\n/.exec(
      await (await gateway.api("GET", "/metrics")).text(),
    )?.[1];
  expect(await up()).toBe("0");
  await eventually(() =>
    gateway.log.some(
      ({ message, target }) =>
        message === "a target fails but still receives traffic" && target === ids[0],
    ),
  );
  only.answer = reply("only");
  expect(await (await ask()).text()).toBe("only");
  expect(await health()).toMatchObject({ state: "healthy", targets: [{ state: "healthy" }] });
  expect(await up()).toBe("1");
  await eventually(() =>
    gateway.log.some(
      ({ message, target }) => message === "a target succeeds again" && target === ids[0],
    ),
  );
});

test("one worker makes active checks, and their results apply to all", async () => {
  const [sick, well] = origins("sick", "well");
  if (!sick || !well) throw new Error("no origins");
  sick.answer = ({ target }) =>
    target === "/up" ? reply("", { status: "500 No" }) : reply("sick");
  const { ask, health } = await serve("checked", [sick, well], {
    health: { active: { enabled: true, path: "/up", unhealthy_threshold: 1, interval: 1 } },
  });
  await eventually(async () => (await health()).state === "degraded");
  expect([...(await fromEveryWorker(ask))]).toEqual(["well"]);
  expect((await health()).targets).toMatchObject([
    { state: "unhealthy", by: "active", last_error: "the target responded with status 500" },
    { state: "healthy", by: "active", last_error: null },
  ]);
  await gateway.ok("PATCH", "/api/v1/services/checked", { health: { active: { enabled: false } } });
  expect([...(await fromEveryWorker(ask))].sort()).toEqual(["sick", "well"]);
});

test("a request beyond the limit of every target is 503 with that reason", async () => {
  const [slow] = origins("slow");
  if (!slow) throw new Error("no origin");
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  slow.answer = async () => {
    await gate;
    return reply("done");
  };
  const { ask, health } = await serve("full", [slow], { max_connections_per_target: 2 });
  const waiting = [ask(), ask()];
  await slow.untilRequests(2);
  expect((await health()).targets[0].active_requests).toBe(2);
  const refused = await ask();
  expect(refused.status).toBe(503);
  expect(refused.headers.get("proxy-status")).toContain("error=connection_limit_reached");
  open();
  for (const response of await Promise.all(waiting)) expect(await response.text()).toBe("done");
  await eventually(async () => (await health()).targets[0].active_requests === 0);
  expect((await ask()).status).toBe(200);
});

describe("an active check that cannot be sent is rejected on write", () => {
  const cases = [
    { active: { path: "/a b" }, path: "path", why: "a space" },
    { active: { path: "/a\r\nx: y" }, path: "path", why: "a line break in the path" },
    { active: { headers: { "X-A": "1\r\nX-B: 2" } }, path: "headers", why: "a line break" },
    { active: { headers: { "X A": "1" } }, path: "headers", why: "no name of a header" },
    { active: { headers: { "Content-Length": "1" } }, path: "headers", why: "a header of framing" },
    { active: { expect_statuses: ["300-200"] }, path: "expect_statuses[0]", why: "an empty range" },
    {
      active: { method: "HEAD", expect_body: "x" },
      path: "expect_body",
      why: "no body to look at",
    },
  ];
  test.each(cases)("$why", async ({ active, path }) => {
    const response = await gateway.api("POST", "/api/v1/services", {
      name: "wrong",
      health: { active },
    });
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error: string }).error).toStartWith(
      `health.active.${path}: `,
    );
  });
});
