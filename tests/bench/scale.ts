// `make bench-scale`: what many routes, a start and a long body cost Sluice alone; prints a table, writes its section.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { describeCommit, describeMachine } from "./machine.ts";
import { SIZES } from "./options.ts";
import { startOrigin } from "./origin.ts";
import { writeSection } from "./page.ts";
import { alignColumns, megabytes, type Table, toTable } from "./report.ts";
import { type ConnectionsResult, measureConnections } from "./scale-connections.ts";
import { type ConsumersResult, measureConsumers } from "./scale-consumers.ts";
import { type ImportInput, type ImportResult, measureImport } from "./scale-import.ts";
import { type MemoryResult, measureMemory } from "./scale-memory.ts";
import { measureRoutes, type RoutesResult } from "./scale-routes.ts";

const USAGE = `make bench-scale ARGS="..."
  --routes N     routes to load, at least 8000 (10000)
  --import N     routes to import in one request (100000)
  --consumers N  consumers to load (100000)
  --seconds N    seconds of each of the measurements of request cost (3)
  --bytes N      size of the long bodies (1000000000)
  --connections N  connections to keep open (10000)
  --only WHAT    routes, import, consumers, connections or memory
  --source       run Sluice from source instead of dist/sluice
  --out FILE     where to write the section (docs/benchmarks.md after a full run)`;

interface Row {
  readonly what: string;
  readonly measured: number;
  readonly atMost: number;
  readonly show: (value: number) => string;
}

function memoryRows(result: MemoryResult): Row[] {
  const inMegabytes = (value: number) => `${megabytes(value)} MB`;
  const inMs = (value: number) => `${value.toFixed(0)} ms`;
  const { coldStartMs, idleBytes, downloadBytes, uploadBytes } = result;
  return [
    {
      what: "cold start to /readyz, empty directory",
      measured: coldStartMs,
      atMost: 150,
      show: inMs,
    },
    { what: "idle memory, two workers", measured: idleBytes, atMost: 90e6, show: inMegabytes },
    {
      what: "memory, 1 GB to a slow reader",
      measured: downloadBytes,
      atMost: 160e6,
      show: inMegabytes,
    },
    {
      what: "memory, 1 GB to a slow origin",
      measured: uploadBytes,
      atMost: 160e6,
      show: inMegabytes,
    },
  ];
}

function connectionRows({ bytes }: ConnectionsResult, connections: number): Row[] {
  const show = (value: number) => `${megabytes(value)} MB`;
  const what = `memory, ${connections} connections kept open, two workers`;
  return [{ what, measured: bytes, atMost: 250e6, show }];
}

function routeRows(result: RoutesResult, routes: number): Row[] {
  const inMs = (value: number) => `${value.toFixed(1)} ms`;
  const times = (value: number) => `${value.toFixed(2)}x`;
  const { costByHost, costByPath, mutationP50Ms, mutationP99Ms, startMs } = result;
  const { mutationP99OnFourMs } = result;
  const among = `${routes} routes against one`;
  return [
    { what: `request cost, ${among}, by host`, measured: costByHost, atMost: 1.1, show: times },
    { what: `request cost, ${among}, by path`, measured: costByPath, atMost: 1.1, show: times },
    { what: "change, p50 of 200", measured: mutationP50Ms, atMost: 25, show: inMs },
    { what: "change, p99 of 200", measured: mutationP99Ms, atMost: 25, show: inMs },
    {
      what: "change, p99 of 200, four workers",
      measured: mutationP99OnFourMs,
      atMost: 25,
      show: inMs,
    },
    { what: `start to ready, ${routes} routes`, measured: startMs, atMost: 1_500, show: inMs },
  ];
}

function importRows(result: ImportResult, { routes, workers }: ImportInput): Row[] {
  const inSeconds = (value: number) => `${(value / 1_000).toFixed(1)} s`;
  const inMs = (value: number) => `${value.toFixed(1)} ms`;
  const times = (value: number) => `${value.toFixed(2)}x`;
  const inMegabytes = (value: number) => `${megabytes(value)} MB`;
  const { importMs, proxiedP99, longestHealthMs, bytes, mutationP99Ms, startMs } = result;
  const on = `${workers === 4 ? "four" : "two"} workers`;
  const rows: Row[] = [
    { what: `import of ${routes} routes`, measured: importMs, atMost: 30e3, show: inSeconds },
    { what: "p99 of proxied requests meanwhile", measured: proxiedP99, atMost: 3, show: times },
    { what: "longest wait of /healthz", measured: longestHealthMs, atMost: 1e3, show: inMs },
    { what: "change with them, p99 of 200", measured: mutationP99Ms, atMost: 60, show: inMs },
    { what: "start to ready with them", measured: startMs, atMost: 6e3, show: inMs },
  ];
  const memory = { what: "highest memory", measured: bytes, atMost: 1.2e9, show: inMegabytes };
  // Each further worker has an index of its own.
  if (workers === 2) rows.push(memory);
  return rows.map((row) => ({ ...row, what: `${row.what}, ${on}` }));
}

function consumerRows(result: ConsumersResult, consumers: number): Row[] {
  const inMs = (value: number) => `${value.toFixed(1)} ms`;
  const times = (value: number) => `${value.toFixed(2)}x`;
  const inMegabytes = (value: number) => `${megabytes(value)} MB`;
  const { startMs, twoWorkersBytes, furtherWorkerBytes } = result;
  const { costOfOneKey, costOfAllKeys, mutationP50Ms, mutationP99Ms } = result;
  const among = `${consumers} consumers against one`;
  return [
    { what: `request cost, ${among}, one key`, measured: costOfOneKey, atMost: 1.05, show: times },
    { what: `request cost, ${among}, all keys`, measured: costOfAllKeys, atMost: 1.1, show: times },
    { what: "change of a consumer, p50 of 300", measured: mutationP50Ms, atMost: 25, show: inMs },
    { what: "change of a consumer, p99 of 300", measured: mutationP99Ms, atMost: 25, show: inMs },
    { what: `start to ready, ${consumers} consumers`, measured: startMs, atMost: 3e3, show: inMs },
    {
      what: `memory of ${consumers} consumers, two workers`,
      measured: twoWorkersBytes,
      atMost: 150e6,
      show: inMegabytes,
    },
    {
      what: `memory of ${consumers} consumers, each further worker`,
      measured: furtherWorkerBytes,
      atMost: 25e6,
      show: inMegabytes,
    },
  ];
}

function toRows(rows: readonly Row[]): Table {
  const cells = rows.map(({ what, measured, atMost, show }) => [
    what,
    show(atMost),
    show(measured),
    measured <= atMost ? "reached" : "missed",
  ]);
  return [["what", "at most", "measured", "verdict"], ...cells];
}

function toMarkdown(table: Table): string {
  const facts = [
    ...describeMachine(),
    `Date: ${new Date().toISOString().slice(0, 10)}, commit ${describeCommit()}`,
  ];
  return `## Scale, start and memory

${facts.map((line) => `- ${line}`).join("\n")}

${toTable(table)}

Routes are created one by one through the management API: half differ in their host, half in the path below one host.
The import is one request into an empty gateway; four clients ask for a page through it and one for its health, every 20 ms each.
Consumers have one key each; all keys means that each request shows the key of another one.
Request cost is processor time per request of one worker on core 0, measured in turn against a gateway with one route.
A change is a POST, PATCH or DELETE of a route or consumer, timed until its response, with two workers. Start is the median of three,
cold start of five. Memory is the resident memory of the process with two workers: idle three seconds after the start,
the highest of a sample every 50 ms while 1 GB passes to a side that reads 64 MB/s at most, and three seconds after the last of two
requests on each of the connections that are kept open.`;
}

const { values } = parseArgs({
  options: {
    routes: { type: "string", default: "10000" },
    import: { type: "string", default: "100000" },
    consumers: { type: "string", default: "100000" },
    connections: { type: "string", default: "10000" },
    seconds: { type: "string", default: "3" },
    bytes: { type: "string", default: "1000000000" },
    only: { type: "string" },
    source: { type: "boolean", default: false },
    out: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

async function run(scratch: string): Promise<Row[]> {
  const command = values.source ? [process.execPath, "src/main.ts"] : ["dist/sluice"];
  const rows: Row[] = [];
  const wants = (what: string) => values.only === undefined || values.only === what;
  if (wants("memory"))
    rows.push(
      ...memoryRows(await measureMemory({ scratch, command, bytes: Number(values.bytes) })),
    );
  if (wants("connections")) {
    const connections = Number(values.connections);
    const result = await measureConnections({ scratch, command, connections });
    rows.push(...connectionRows(result, connections));
  }
  if (wants("routes") || wants("import") || wants("consumers")) {
    const origin = await startOrigin(scratch, SIZES);
    const shared = {
      scratch,
      command,
      originPort: origin.port,
      seconds: Number(values.seconds),
    };
    const [routes, consumers] = [Number(values.routes), Number(values.consumers)];
    try {
      if (wants("routes"))
        rows.push(...routeRows(await measureRoutes({ ...shared, routes }), routes));
      for (const workers of wants("import") ? [2, 4] : []) {
        const task = { ...shared, workers, routes: Number(values.import) };
        rows.push(...importRows(await measureImport(task), task));
      }
      if (wants("consumers"))
        rows.push(...consumerRows(await measureConsumers({ ...shared, consumers }), consumers));
    } finally {
      await origin.program.stop();
    }
  }
  return rows;
}

if (values.help) {
  console.log(USAGE);
} else {
  const missing = ["taskset", "nginx", "wrk"].filter((name) => !Bun.which(name));
  if (missing.length > 0) throw new Error(`not installed: ${missing.join(", ")}`);
  const scratch = mkdtempSync(join(tmpdir(), "sluice-scale-"));
  try {
    const table = toRows(await run(scratch));
    console.log(alignColumns(table));
    const out = values.out ?? (values.only === undefined ? "docs/benchmarks.md" : undefined);
    if (out !== undefined) {
      writeSection(out, { name: "scale", text: toMarkdown(table) });
      console.log(`\nwritten to ${out}`);
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
