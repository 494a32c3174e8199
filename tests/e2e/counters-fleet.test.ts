// Shared counters of three nodes over Redis: one limit for all under a load far above it, and faults of the server under load.
import { expect } from "bun:test";
import { cleanupsOf } from "../support/cleanups.ts";
import { TestFleet } from "../support/fleet.ts";
import type { Gateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { Redis } from "../support/redis.ts";

const { afterEach, test } = needs("executable", "postgres", "redis-server", "network namespaces");

const cleanups = cleanupsOf(afterEach);

const PORT = 8080;

/** Three nodes with a site and counters. */
async function scene() {
  const servers: Redis[] = [];
  cleanups.push(() => Promise.all(servers.map((server) => server.stop())));
  const fleet = await TestFleet.start(3, {
    ...{ networks: true, workers: 2 },
    counters: async (hostname) => {
      const server = await Redis.create({ hostname });
      servers.push(server);
      return server.url;
    },
  });
  cleanups.push(() => fleet.stop());
  await fleet.createSite();
  const [first] = fleet.nodes as [Gateway];
  return { fleet, first, redis: servers[0]! };
}

const limit = (node: Gateway, config: Record<string, unknown>) =>
  node.ok("POST", "/api/v1/plugins", { name: "rate-limit", config });

/** The next request of a client; the wait for it. */
interface Answered {
  readonly status: number;
  readonly at: number;
  readonly ms: number;
}

/** Requests without a pause to all nodes, on so many connections to each, until `isOver`. */
async function load(
  addresses: readonly string[],
  isOver: () => boolean,
  clients = 8,
): Promise<Answered[]> {
  const answered: Answered[] = [];
  await Promise.all(
    addresses.flatMap((address) =>
      Array.from({ length: clients }, async () => {
        while (!isOver()) {
          const begun = performance.now();
          const response = await fetch(`http://${address}:${PORT}/`);
          await response.arrayBuffer();
          const ms = performance.now() - begun;
          answered.push({ status: response.status, at: Date.now(), ms });
        }
      }),
    ),
  );
  return answered;
}

const statuses = (answered: readonly Answered[]) =>
  Object.fromEntries(
    Map.groupBy(answered, ({ status }) => status)
      .entries()
      .map(([status, of]) => [status, of.length]),
  );

/** The sum over all nodes. */
async function metric(fleet: TestFleet, name: string): Promise<number> {
  const texts = await Promise.all(
    fleet.nodes.map(async (node) => (await node.api("GET", "/metrics")).text()),
  );
  return texts.reduce(
    (sum, text) => sum + Number(new RegExp(`^${name} (\\d+)`, "m").exec(text)?.[1] ?? Number.NaN),
    0,
  );
}

/** What a busy machine exceeds as well. */
const LIMIT = 200;

test("a limit of 200 a second for three nodes is never exceeded, far above it, with few questions", async () => {
  const { fleet, first } = await scene();
  const limits = [{ requests: LIMIT, window: 1, algorithm: "fixed", key: "ip" }];
  // A machine that stops Redis for 50 ms must not let anything through.
  await limit(first, { limits, on_shared_error: "closed" });
  const SECONDS = 6;
  const until = Date.now() + SECONDS * 1000;
  const begun = Math.floor(Date.now() / 1000);
  const answered = await load(fleet.addresses, () => Date.now() > until);
  const windows = Math.floor(Date.now() / 1000) - begun + 1;
  const seen = statuses(answered);
  expect(seen[429]).toBeGreaterThan(0);
  expect(seen[200]).toBeLessThanOrEqual(windows * LIMIT);
  // A busy machine sends less than the limit in some windows.
  expect(seen[200]).toBeGreaterThan(Math.min((windows - 2) * LIMIT * 0.9, answered.length / 2));
  const asked = await metric(fleet, "sluice_counters_operations_total");
  // Each of six workers asks about three times a window, however many requests there are.
  expect(asked).toBeLessThan(windows * 6 * 6);
});

test.each(["killed", "stopped"])(
  "while the server of counters is %s, every request gets the answer of the policy, and the limit is back with it",
  async (fault) => {
    const { fleet, first, redis } = await scene();
    const limits = [{ requests: 1_000_000, window: 3600, key: "ip" }];
    await limit(first, { limits, shared: "exact" });
    let isOver = false;
    const loading = load(fleet.addresses, () => isOver, 4);
    const operations = () => metric(fleet, "sluice_counters_operations_total");
    const up = () => metric(fleet, "sluice_counters_up");
    await eventually(async () => (await operations()) > 300);
    if (fault === "killed") await redis.kill();
    else redis.signal("SIGSTOP");
    await eventually(async () => (await up()) === 0);
    expect(await metric(fleet, "sluice_counters_errors_total")).toBeGreaterThan(0);
    const fallbacks = await metric(fleet, "sluice_counters_fallbacks_total");
    // Nodes are as healthy as before.
    for (const node of fleet.nodes) expect((await node.api("GET", "/readyz")).status).toBe(200);
    await eventually(
      async () => (await metric(fleet, "sluice_counters_fallbacks_total")) > fallbacks + 300,
    );
    if (fault === "killed") await redis.start();
    else redis.signal("SIGCONT");
    await eventually(async () => (await up()) === 3);
    const before = await operations();
    await eventually(async () => (await operations()) > before + 300);
    isOver = true;
    expect(Object.keys(statuses(await loading))).toEqual(["200"]);
    for (const node of fleet.nodes) {
      const messages = node.log.map(({ message }) => message).join("\n");
      expect(messages).toContain("the server of the shared counters is away");
      expect(messages).toContain("the server of the shared counters is back");
    }
  },
);
