// Measures a fleet: how long changes take, what faults of the database cost, and how long nodes take to start and join.
import { create, isServing, namesOn, send, statesOn, TestFleet } from "../support/fleet.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { LastingClients, startLastingOrigin } from "../support/lasting-clients.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";
import { percentile } from "./load.ts";
import { routeOf } from "./scale-routes.ts";

const WORKERS = 2;

async function withFleet<T>(
  count: number,
  use: (fleet: TestFleet) => Promise<T>,
  options: Parameters<typeof TestFleet.start>[1] = {},
): Promise<T> {
  const fleet = await TestFleet.start(count, { workers: WORKERS, ...options });
  try {
    return await use(fleet);
  } finally {
    await fleet.stop();
  }
}

const sorted = (times: readonly number[]) => times.toSorted((a, b) => a - b);

export interface ChangesResult {
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Replies that did not say that all nodes serve it. */
  readonly incomplete: number;
}

/** One change after the other, each to the next node. */
export const measureChanges = (count: number, changes: number): Promise<ChangesResult> =>
  withFleet(count, async ({ nodes }) => {
    const times: number[] = [];
    let incomplete = 0;
    for (let round = -count * 3; round < changes; round++) {
      const node = nodes[(round + count * 3) % count] as Gateway;
      const reply = await create(node, `s${round + count * 3}`);
      // The first ones warm the nodes up.
      if (round < 0) continue;
      times.push(reply.ms);
      if (reply.nodes !== `${count}/${count}`) incomplete++;
    }
    const [p50Ms, p99Ms] = [0.5, 0.99].map((part) => percentile(sorted(times), part));
    return { p50Ms: p50Ms ?? 0, p99Ms: p99Ms ?? 0, incomplete };
  });

export interface OutageResult {
  /** Of a change that comes when the database is away already, and no one knows. */
  readonly firstMs: number;
  /** p99 of those after the node has noticed. */
  readonly laterMs: number;
  /** From the end of the fault until the node serves the changes that were made meanwhile. */
  readonly backMs: number;
}

const LATER = 100;

async function refusals(node: Gateway): Promise<Omit<OutageResult, "backMs">> {
  const first = await create(node, "refused");
  if (first.status === 200) throw new Error("a change was made without the database");
  await eventually(async () => (await create(node, "refused")).text.includes("cut off"));
  const later: number[] = [];
  for (let round = 0; round < LATER; round++) later.push((await create(node, "refused")).ms);
  return { firstMs: first.ms, laterMs: percentile(sorted(later), 0.99) };
}

/** No packet reaches one of three nodes. */
export const measurePartition = (): Promise<OutageResult> =>
  withFleet(
    3,
    async ({ nodes, wires }) => {
      const [first, second] = nodes as [Gateway, Gateway];
      wires[1]?.hold();
      const refused = await refusals(second);
      await eventually(async () => (await statesOn(first)).includes("n2 away"));
      await create(first, "meanwhile");
      wires[1]?.heal();
      const begun = performance.now();
      await eventually(async () => (await namesOn(second)).includes("meanwhile"), {
        intervalMs: 2,
      });
      const backMs = performance.now() - begun;
      return { ...refused, backMs };
    },
    { wired: true },
  );

/** The database ends, and starts again. */
export const measureDatabaseEnd = (): Promise<OutageResult> =>
  withFleet(3, async ({ nodes, postgres }) => {
    const [first] = nodes as [Gateway];
    await postgres.kill();
    const refused = await refusals(first);
    await postgres.start();
    const begun = performance.now();
    await eventually(async () => (await create(first, `after ${Math.random()}`)).nodes === "3/3", {
      intervalMs: 2,
    });
    return { ...refused, backMs: performance.now() - begun };
  });

export interface StartResult {
  /** Without --store, median. */
  readonly aloneMs: number;
  /** With --store and without the database, median. */
  readonly cutOffMs: number;
  /** With --store and the database, median. */
  readonly memberMs: number;
}

async function restart(node: Gateway): Promise<number> {
  node.signal("SIGTERM");
  await node.exited();
  const begun = performance.now();
  await node.start();
  return performance.now() - begun;
}

/** In turn, so that all have the same machine. */
export async function measureStarts(rounds: number): Promise<StartResult> {
  const alone = await startGateway({ binary: executable, workers: WORKERS });
  try {
    for (const name of ["http", "https"]) await alone.ok("DELETE", `/api/v1/listeners/${name}`);
    return await withFleet(1, async ({ nodes, postgres }) => {
      const [node] = nodes as [Gateway];
      const times = { alone: [] as number[], cutOff: [] as number[], member: [] as number[] };
      for (let round = 0; round < rounds; round++) {
        times.alone.push(await restart(alone));
        times.member.push(await restart(node));
        await postgres.kill();
        times.alone.push(await restart(alone));
        times.cutOff.push(await restart(node));
        await postgres.start();
        await eventually(async () => (await statesOn(node)).every(isServing));
      }
      const median = (list: readonly number[]) => percentile(sorted(list), 0.5);
      return {
        aloneMs: median(times.alone),
        cutOffMs: median(times.cutOff),
        memberMs: median(times.member),
      };
    });
  } finally {
    await alone.stop();
  }
}

export interface JoinResult {
  /** From the start of the program until it serves all changes. */
  readonly joinMs: number;
  /** The import itself, until the other node serves it. */
  readonly importMs: number;
}

/** A third node joins two that serve many routes. */
export const measureJoin = (routes: number): Promise<JoinResult> =>
  withFleet(2, async (fleet) => {
    const [first] = fleet.nodes as [Gateway];
    const targets = [{ host: "127.0.0.1", port: 9 }];
    await first.ok("POST", "/api/v1/services", { name: "origin", targets });
    const list = Array.from({ length: routes }, (_, index) => ({
      ...routeOf(index, routes / 2),
      paths: [{ type: "prefix", value: index < routes / 2 ? "/" : `/part-${index}/` }],
    }));
    const imported = await send(first, "POST", ["/api/v1/import", { format: 1, routes: list }]);
    if (imported.status !== 200) throw new Error(imported.text.slice(0, 500));
    await eventually(async () => (await statesOn(first)).every(isServing), { deadlineMs: 60_000 });
    const begun = performance.now();
    const third = await fleet.add();
    await eventually(async () => (await statesOn(third)).every(isServing), { deadlineMs: 60_000 });
    return { joinMs: performance.now() - begun, importMs: imported.ms };
  });

/** What clients of three nodes say was failed or closed by faults of the database; needs networks for the nodes. */
export const measureFaults = (): Promise<string[]> =>
  withFleet(
    3,
    async (fleet) => {
      const origin = startLastingOrigin(fleet.hostname);
      const [first, second] = fleet.nodes as [Gateway, Gateway];
      const targets = [{ host: fleet.hostname, port: origin.port }];
      await first.ok("POST", "/api/v1/services", { name: "site", targets });
      await first.ok("POST", "/api/v1/routes", { name: "site", service_id: "site" });
      const clients = await Promise.all(
        fleet.addresses.map((address) => LastingClients.connect(address, 8080)),
      );
      const isCutOff = async (node: Gateway) =>
        (await create(node, `f${Math.random()}`)).text.includes("cut off");
      const areServing = () => eventually(async () => (await statesOn(first)).every(isServing));
      for (const fault of ["hold", "cut"] as const) {
        fleet.wires[1]?.[fault]();
        await eventually(() => isCutOff(second));
        for (const client of clients) await client.progress();
        fleet.wires[1]?.heal();
        await areServing();
      }
      await fleet.postgres.kill();
      await eventually(() => isCutOff(first));
      for (const client of clients) await client.progress();
      await fleet.postgres.start();
      await areServing();
      const failures = await Promise.all(clients.map((client) => client.stop()));
      origin.stop(true);
      return failures.flat();
    },
    { networks: true },
  );

/** From the stop (SIGSTOP) of the leader until another node leads, the longest of `rounds`. */
export const measureTakeover = (rounds: number): Promise<number> =>
  withFleet(3, async ({ nodes }) => {
    const times: number[] = [];
    const leads = async (node: Gateway) => {
      const metrics = await (await node.api("GET", "/metrics")).text();
      return /^sluice_fleet_leader 1$/m.test(metrics);
    };
    const leaderOf = async (among: readonly Gateway[]) => {
      for (const node of among) if (await leads(node)) return node;
      return null;
    };
    for (let round = 0; round < rounds; round++) {
      const leader = await eventually(() => leaderOf(nodes));
      leader.signal("SIGSTOP");
      const began = performance.now();
      await eventually(() => leaderOf(nodes.filter((node) => node !== leader)));
      times.push(performance.now() - began);
      leader.signal("SIGCONT");
      await eventually(async () => (await statesOn(leader)).every(isServing));
    }
    return Math.max(...times);
  });

export interface ViewResult {
  /** What was read. */
  readonly read: string;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Requests in the ring of each node. */
const RECENT = 2000;

/** Reads of all nodes through one of them, one after the other; each node has recent requests. */
export const measureViews = (count: number, reads: number): Promise<ViewResult[]> =>
  withFleet(
    count,
    async ({ nodes, addresses }) => {
      const [first] = nodes as [Gateway];
      await first.ok("POST", "/api/v1/routes", {
        name: "all",
        ...{
          paths: ["/"],
          service_id: (await first.ok("POST", "/api/v1/services", { name: "s" })).id,
        },
      });
      for (const address of addresses)
        for (let sent = 0; sent < RECENT; sent += 50)
          await Promise.all(
            Array.from({ length: 50 }, async () =>
              (await fetch(`http://${address}:8080/of-${address}`)).text(),
            ),
          );
      await eventually(
        async () => (await first.ok("GET", "/api/v1/stats?node=all")).nodes.length === count,
      );
      const results: ViewResult[] = [];
      for (const [read, path] of [
        ["200 requests", "requests?node=all&limit=200"],
        ["statistics of an hour", "stats?node=all"],
        ["health of a service", "services/s/health?node=all"],
      ] as const) {
        const times: number[] = [];
        for (let round = -10; round < reads; round++) {
          const begun = performance.now();
          const { partial } = await first.ok("GET", `/api/v1/${path}`);
          if (partial !== false) throw new Error(`${path}: a node is missing`);
          if (round >= 0) times.push(performance.now() - begun);
        }
        const [p50Ms = 0, p99Ms = 0] = [0.5, 0.99].map((part) => percentile(sorted(times), part));
        results.push({ read, p50Ms, p99Ms });
      }
      return results;
    },
    { networks: true },
  );
