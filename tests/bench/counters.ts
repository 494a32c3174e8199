// `make bench-counters`: what limits over several nodes cost with a Redis server; prints a table, writes its section.
import { parseArgs } from "node:util";
import { ExactStore } from "../../src/plugins/rate-limit/exact-store.ts";
import { LeaseStore } from "../../src/plugins/rate-limit/lease-store.ts";
import { type Demand, type LimitStore, SharedStore } from "../../src/plugins/rate-limit/store.ts";
import { WorkerCounters } from "../../src/shared-counters/worker-counters.ts";
import { CounterTable } from "../../src/shared-memory/counter-table.ts";
import { WorkerBoard } from "../../src/shared-memory/worker-board.ts";
import { lackOf } from "../support/needs.ts";
import { Redis } from "../support/redis.ts";
import { percentile } from "./load.ts";
import { describeCommit, describeMachine } from "./machine.ts";
import { writeSection } from "./page.ts";
import { alignColumns, type FigureRow as Row, type Table, toRows, toTable } from "./report.ts";

const USAGE = `make bench-counters ARGS="..."
  --seconds N    for each load (5)
  --out FILE     where to write the section (docs/benchmarks.md)`;

interface Node {
  readonly board: WorkerBoard;
  readonly local: SharedStore;
  readonly lease: LeaseStore;
  readonly exact: ExactStore;
}

async function nodesOf(redis: Redis, count: number, timeoutMs = 50): Promise<Node[]> {
  return await Promise.all(
    Array.from({ length: count }, async () => {
      const board = WorkerBoard.create(1);
      board.nodes = count;
      const files = { ca: null, cert: null, key: null };
      const command = { url: redis.url, ...files, timeoutMs, scope: "bench" };
      const parts = { board, worker: 0, log: () => undefined, key: "bench" };
      const worker = new WorkerCounters(command, parts);
      await worker.tried;
      const counters = CounterTable.create({ workers: 1 }).forInstance(0, "limit");
      const shared = worker.forInstance("limit");
      const local = new SharedStore(counters);
      const options = { shared, local, onError: "node" } as const;
      const lease = new LeaseStore({ ...options, counters });
      return { board, local, lease, exact: new ExactStore(options) };
    }),
  );
}

function demandOf(
  capacity: number,
  windowMs: number,
  algorithm: Demand["rule"]["algorithm"],
): Demand {
  const rule = { name: "bench", algorithm, capacity, windowMs, policy: "" };
  const perSecond = (capacity * 1000) / windowMs;
  return { rule: { ...rule, perSecond }, key: `${algorithm} ${capacity}`, cost: 1 };
}

const isAllowed = (verdicts: Awaited<ReturnType<LimitStore["take"]>>) =>
  verdicts?.every((verdict) => verdict.isAllowed) === true;

const ROUNDS = 7;
const CALLS = 400_000;

/** Microseconds of a call that asks no server, least of some rounds. */
async function localCost(store: LimitStore, demand: Demand): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const begun = performance.now();
    for (let call = 0; call < CALLS; call++) {
      const verdicts = store.take([demand]);
      if (verdicts instanceof Promise) await verdicts;
    }
    least = Math.min(least, ((performance.now() - begun) * 1000) / CALLS);
  }
  return least;
}

async function localRows([node]: readonly Node[]): Promise<Row[]> {
  if (node === undefined) return [];
  const demand = demandOf(1_000_000_000, 3_600_000, "sliding");
  const here = await localCost(node.local, demand);
  const leased = await localCost(node.lease, demand);
  const none = Number.POSITIVE_INFINITY;
  return [
    { what: "a request counted by one node alone", measured: here, atMost: none, unit: "µs" },
    { what: "a request with a leased unit", measured: leased, atMost: none, unit: "µs" },
    { what: "more than alone", measured: leased - here, atMost: 0.5, unit: "µs" },
  ];
}

const EXACT_CALLS = 60_000;
const IN_FLIGHT = 16;

async function exactRows([node]: readonly Node[]): Promise<Row[]> {
  if (node === undefined) return [];
  const demand = demandOf(1_000_000_000, 3_600_000, "sliding");
  const waits: number[] = [];
  const run = async (calls: number) => {
    let left = calls;
    const client = async () => {
      while (left-- > 0) {
        const begun = performance.now();
        await node.exact.take([demand]);
        waits.push(performance.now() - begun);
      }
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, client));
  };
  await run(EXACT_CALLS / 4);
  waits.length = 0;
  const before = process.cpuUsage();
  await run(EXACT_CALLS);
  const { user, system } = process.cpuUsage(before);
  const sorted = waits.toSorted((a, b) => a - b);
  return [
    {
      what: "an exact count, CPU of the gateway",
      measured: (user + system) / EXACT_CALLS,
      atMost: 20,
      unit: "µs",
    },
    {
      what: `an exact count, p50 with ${IN_FLIGHT} in flight`,
      measured: percentile(sorted, 0.5),
      atMost: 0.5,
      unit: "ms",
    },
  ];
}

/** Offers requests at a rate to all nodes in turn. */
async function offer(
  nodes: readonly Node[],
  demand: Demand,
  { perSecond, seconds }: { readonly perSecond: number; readonly seconds: number },
) {
  const windows = new Map<number, number>();
  const begun = Date.now();
  const pending: Promise<unknown>[] = [];
  const operations = () =>
    nodes.reduce((sum, { board }) => sum + board.sum("counters_operations"), 0);
  const before = operations();
  let sent = 0;
  while (Date.now() - begun < seconds * 1000) {
    for (const due = ((Date.now() - begun) * perSecond) / 1000; sent < due; sent++) {
      const { lease } = nodes[sent % nodes.length] as Node;
      const window = Math.floor(Date.now() / 1000);
      const count = (isOne: boolean) =>
        windows.set(window, (windows.get(window) ?? 0) + (isOne ? 1 : 0));
      const verdicts = lease.take([demand]);
      if (verdicts instanceof Promise) pending.push(verdicts.then((all) => count(isAllowed(all))));
      else count(isAllowed(verdicts));
    }
    await Bun.sleep(1);
  }
  await Promise.all(pending);
  return { perRequest: (operations() - before) / sent, most: Math.max(...windows.values()) };
}

async function leaseRows(nodes: readonly Node[], seconds: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const algorithm of ["fixed", "sliding"] as const)
    for (const perSecond of [1050, 15_000]) {
      const demand = demandOf(1000, 1000, algorithm);
      const { perRequest, most } = await offer(nodes, demand, { perSecond, seconds });
      const what = `limit 1000/s (${algorithm}) on ${nodes.length} nodes, ${perSecond}/s offered`;
      rows.push(
        { what: `${what}: commands for a request`, measured: perRequest, atMost: 0.05, unit: "" },
        { what: `${what}: most allowed in a window`, measured: most, atMost: 1000, unit: "" },
      );
    }
  return rows;
}

/** Longest wait of a request while the server stops, and goes on. */
async function waitRows(redis: Redis, [node]: readonly Node[]): Promise<Row[]> {
  if (node === undefined) return [];
  const demand = demandOf(1_000_000_000, 3_600_000, "fixed");
  let longest = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const end = performance.now() + 600;
    const client = async () => {
      while (performance.now() < end) {
        const begun = performance.now();
        await node.exact.take([demand]);
        longest = Math.max(longest, performance.now() - begun);
        await Bun.sleep(1);
      }
    };
    setTimeout(() => redis.signal("SIGSTOP"), 200);
    await Promise.all(Array.from({ length: IN_FLIGHT }, client));
    redis.signal("SIGCONT");
    while (node.board.sum("counters_lost") > 0) await Bun.sleep(5);
  }
  return [
    {
      what: "longest wait of a request when Redis is stopped",
      measured: longest,
      atMost: 60,
      unit: "ms",
    },
  ];
}

const toMarkdown = (table: Table) => `## Shared counters

${[...describeMachine(), `Date: ${new Date().toISOString().slice(0, 10)}, commit ${describeCommit()}`].map((line) => `- ${line}`).join("\n")}

${toTable(table)}

The stores of \`rate-limit\` with Debian's Redis on the same machine, without HTTP around them; the three nodes are in one process.
Times of calls are the least of ${ROUNDS} rounds.`;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "5" },
    out: { type: "string", default: "docs/benchmarks.md" },
    help: { type: "boolean", default: false },
  },
});

if (values.help) {
  console.log(USAGE);
} else {
  const missing = lackOf("redis-server");
  if (missing !== null) throw new Error(`not here: ${missing}`);
  const redis = await Redis.create();
  try {
    const [one, three] = [await nodesOf(redis, 1), await nodesOf(redis, 3, 1000)];
    const rows = [
      ...(await localRows(one)),
      ...(await exactRows(one)),
      ...(await leaseRows(three, Number(values.seconds))),
      ...(await waitRows(redis, one)),
    ];
    const table = toRows(rows);
    console.log(alignColumns(table));
    writeSection(values.out, { name: "counters", text: toMarkdown(table) });
    console.log(`\nwritten to ${values.out}`);
  } finally {
    await redis.stop();
  }
  process.exit(0);
}
