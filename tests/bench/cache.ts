// `make bench-cache`: lookups in small and large response caches, pauses, hit ratios of several threads; prints a table, writes its section.
import { parseArgs } from "node:util";
import { CacheMaintenance } from "../../src/shared-memory/cache/cache-maintenance.ts";
import { Locks } from "../../src/shared-memory/locks.ts";
import type { CacheMemory } from "../../src/shared-memory/cache/cache-memory.ts";
import { createCacheMemory, Views, words } from "../../src/shared-memory/cache/memory.ts";
import { SharedCache } from "../../src/shared-memory/cache/shared-cache.ts";
import { Random } from "../support/random.ts";
import { keyOf, recordOf, type TraceTask } from "./cache-thread.ts";
import { percentile } from "./load.ts";
import { describeCommit, describeMachine } from "./machine.ts";
import { writeSection } from "./page.ts";
import { alignColumns, type FigureRow as Row, type Table, toRows, toTable } from "./report.ts";

const USAGE = `make bench-cache ARGS="..."
  --out FILE     where to write the section (docs/benchmarks.md)`;

const [FEW, MANY] = [1000, 1_000_000];
/** Blocks of 1,536 bytes, and some room. */
const bytesFor = (entries: number) => entries * 1600 + 33_554_432;
const open = (memory: CacheMemory, worker = 0) =>
  new SharedCache(memory, { worker, decode: (bytes) => bytes.byteLength });
const always = () => true;
const none = Number.POSITIVE_INFINITY;

function filled(entries: number) {
  const memory = createCacheMemory({ maxBytes: bytesFor(entries), workers: 1 });
  const cache = open(memory);
  for (let n = 0; n < entries; n++) cache.put(recordOf(cache, n));
  return { memory, cache, entries };
}

type Filled = ReturnType<typeof filled>;

const LOOKUPS = 50_000;
const ROUNDS = 15;

/** The engine takes the shared memory for part of the heap and would collect after gigabytes; workers collect by `garbage.ts`. */
const collect = () => Bun.gc(true);

type Use = (cache: Filled["cache"], key: string) => number;

/** Microseconds of processor time for each of random lookups, median of rounds taken in turn. */
function lookupCosts(caches: readonly Filled[], use: Use): readonly number[] {
  const all = caches.map((): number[] => []);
  const random = new Random(1);
  let used = 0;
  for (let round = 0; round < ROUNDS; round++)
    for (const [at, { cache, entries }] of caches.entries()) {
      const keys = Array.from({ length: LOOKUPS }, () => keyOf(random.between(0, entries)));
      // Strings made of parts are joined at their first use.
      for (const key of keys) used += Bun.hash.crc32(key);
      collect();
      const before = process.cpuUsage();
      for (const key of keys) used += use(cache, key);
      const { user, system } = process.cpuUsage(before);
      all[at]?.push((user + system) / LOOKUPS);
    }
  if (used === 0) throw new Error("nothing was found");
  return all.map((costs) => costs.toSorted((a, b) => a - b)[ROUNDS >> 1] ?? 0);
}

function lookupRows(few: Filled, many: Filled): Row[] {
  const map = new Map(Array.from({ length: MANY }, (_, n) => [keyOf(n), n]));
  const uses: Record<string, Use> = {
    "a lookup": (cache, key) => cache.find(key, always)?.head ?? 0,
    "a lookup with its body": (cache, key) => cache.find(key, always)?.body()?.length ?? 0,
    "a lookup in a Map": (_, key) => map.get(key) ?? 0,
  };
  return Object.entries(uses).flatMap(([what, use]) => {
    const [small = 0, large = 0] = lookupCosts([few, many], use);
    return [
      { what: `${what}, ${FEW} entries of 1 KB`, measured: small, atMost: none, unit: "µs" },
      { what: `${what}, ${MANY} entries of 1 KB`, measured: large, atMost: none, unit: "µs" },
    ];
  });
}

const REQUESTS = 3000;
const IN_FLIGHT = 16;

/** Microseconds of processor time for each request, with its client in this process, that a server answers from the cache. */
async function requestRow(few: Filled, many: Filled): Promise<Row> {
  const random = new Random(2);
  let current = few;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () =>
      new Response(
        current.cache
          .find(keyOf(random.between(0, current.entries)), always)
          ?.body() as Uint8Array<ArrayBuffer>,
      ),
  });
  const costs = [few, many].map(() => [] as number[]);
  for (let round = 0; round < ROUNDS; round++)
    for (const [at, each] of [few, many].entries()) {
      current = each;
      collect();
      const before = process.cpuUsage();
      let left = REQUESTS;
      const client = async () => {
        while (left-- > 0) await (await fetch(server.url)).arrayBuffer();
      };
      await Promise.all(Array.from({ length: IN_FLIGHT }, client));
      const { user, system } = process.cpuUsage(before);
      costs[at]?.push((user + system) / REQUESTS);
    }
  await server.stop(true);
  const [small = 1, large = 0] = costs.map((all) => all.toSorted((a, b) => a - b)[ROUNDS >> 1]);
  const what = `more CPU for a request over HTTP, ${MANY} entries against ${FEW}`;
  return { what, measured: (large / small - 1) * 100, atMost: 10, unit: "%" };
}

const OPERATIONS = 100_000;
const REPEATS = 3;

/**
 * The same operations in caches that were filled in the same way: the least of each operation's times is its own, because other
 * programs do not interrupt the same one each time.
 */
function pauseRows(): Row[] {
  const least = new Map<string, Float64Array>();
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    const { cache } = filled(MANY);
    const random = new Random(3);
    const time = (what: string, n: number, work: () => void) => {
      const begun = performance.now();
      work();
      const ms = performance.now() - begun;
      const times = least.get(what) ?? new Float64Array(OPERATIONS).fill(none);
      least.set(what, times);
      times[n] = Math.min(times[n] ?? 0, ms);
    };
    for (let n = 0; n < OPERATIONS; n++) {
      // From the middle on of all sizes, so that segments change their class.
      const length = n < OPERATIONS / 2 ? 1024 : random.between(100, 40_000);
      const record = { ...recordOf(cache, MANY + n), body: Buffer.alloc(length) };
      const key = keyOf(random.between(0, MANY));
      time("put, with eviction", n, () => void cache.put(record));
      time("find", n, () => void cache.find(key, always)?.body());
      if (n % 100 === 0)
        time("invalidate", n, () => void cache.invalidate(recordOf(cache, n).resource));
    }
  }
  return [...least].map(([what, times]) => ({
    what: `longest pause of ${what}, ${MANY} entries`,
    measured: times.filter((ms) => ms !== none).reduce((most, ms) => Math.max(most, ms), 0),
    atMost: 5,
    unit: "ms",
  }));
}

interface Turns {
  /** Milliseconds, as `total`. */
  readonly turns: readonly number[];
  readonly total: number;
}

/** Turns of the event loop during some work in slices. */
async function turnsOf(work: () => Promise<unknown>): Promise<Turns> {
  const turns: number[] = [];
  let isRunning = true;
  const begun = performance.now();
  const watching = (async () => {
    for (let last = begun; isRunning;) {
      await new Promise((resolve) => setImmediate(resolve));
      const now = performance.now();
      turns.push(now - last);
      last = now;
    }
  })();
  await work();
  isRunning = false;
  await watching;
  return { turns: turns.toSorted((a, b) => a - b), total: performance.now() - begun };
}

async function sweepRows({ memory }: Filled): Promise<Row[]> {
  const maintenance = new CacheMaintenance(memory);
  const rows: Row[] = [];
  const add = async (what: string, work: () => Promise<unknown>) => {
    let [longest, usual, total] = [none, none, none];
    for (let repeat = 0; repeat < 7; repeat++) {
      const each = await turnsOf(work);
      longest = Math.min(longest, each.turns.at(-1) ?? 0);
      usual = Math.min(usual, percentile(each.turns, 0.99));
      total = Math.min(total, each.total);
    }
    const of = `${what}, ${MANY} entries`;
    rows.push(
      { what: `99 % of the turns of ${of}`, measured: usual, atMost: 5, unit: "ms" },
      { what: `longest turn of ${of}`, measured: longest, atMost: 5, unit: "ms" },
      { what: `time of ${of}`, measured: total / 1000, atMost: none, unit: "s" },
    );
  };
  await add("a purge by tag", () => maintenance.purge({ by: "tag", value: "x" }, { soft: false }));
  await add("a repair", async () => {
    // As if the worker had ended with the lock.
    new Locks(new Views(memory).words, 1).acquire(words.lock, 1000);
    await maintenance.forgetWorker(0);
  });
  await maintenance.close();
  return rows;
}

const TRACE = { requests: 400_000, keys: 200_000 };
/** Of 20,000 entries. */
const TRACE_BYTES = 20_000 * 1536;

async function hitRatio(threads: number, memories: readonly CacheMemory[]): Promise<number> {
  const hits = await Promise.all(
    Array.from({ length: threads }, (_, worker) => {
      const thread = new Worker(new URL("./cache-thread.ts", import.meta.url));
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      thread.addEventListener("message", ({ data }: MessageEvent<number>) => resolve(data));
      thread.addEventListener("error", ({ message }) => reject(new Error(message)));
      const memory = memories[worker % memories.length] as CacheMemory;
      const requests = TRACE.requests / threads;
      thread.postMessage({ ...TRACE, requests, worker, memory } satisfies TraceTask);
      return promise.finally(() => thread.terminate());
    }),
  );
  return (hits.reduce((sum, each) => sum + each, 0) / TRACE.requests) * 100;
}

async function ratioRows(): Promise<Row[]> {
  const create = (maxBytes: number) => createCacheMemory({ maxBytes, workers: 4 });
  const one = await hitRatio(1, [create(TRACE_BYTES)]);
  const four = await hitRatio(4, [create(TRACE_BYTES)]);
  const apart = await hitRatio(
    4,
    Array.from({ length: 4 }, () => create(TRACE_BYTES / 4)),
  );
  return [
    { what: "hit ratio of a Zipf trace, one thread", measured: one, atMost: none, unit: "%" },
    { what: "the same with four threads", measured: four, atMost: none, unit: "%" },
    { what: "one thread better than four by", measured: one - four, atMost: 1, unit: "points" },
    { what: "four threads, a cache each", measured: apart, atMost: none, unit: "%" },
  ];
}

const toMarkdown = (table: Table) => `## Response cache

${[...describeMachine(), `Date: ${new Date().toISOString().slice(0, 10)}, commit ${describeCommit()}`].map((line) => `- ${line}`).join("\n")}

${toTable(table)}

The store of \`response-cache\` in shared memory, without a gateway around it. Lookups are processor time, the median of ${ROUNDS} rounds;
a lookup among many entries waits for the memory, as that in the Map with a million keys does (the first figure uses 1,000 of them). Pauses are each operation's least of ${REPEATS} runs.`;

const { values } = parseArgs({
  options: { out: { type: "string", default: "docs/benchmarks.md" }, help: { type: "boolean" } },
});
if (values.help) {
  console.log(USAGE);
  process.exit(0);
}
const ratios = await ratioRows();
const pauses = pauseRows();
const [few, many] = [filled(FEW), filled(MANY)];
const rows = [
  ...lookupRows(few, many),
  await requestRow(few, many),
  ...pauses,
  ...(await sweepRows(many)),
  ...ratios,
];
const table = toRows(rows);
console.log(alignColumns(table));
writeSection(values.out, { name: "cache", text: toMarkdown(table) });
console.log(`\nwritten to ${values.out}`);
process.exit(0);
