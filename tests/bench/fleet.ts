// `make bench-fleet`: how long changes of a fleet take and what faults of its database cost; prints a table, writes its section.
import { parseArgs } from "node:util";
import { lackOf } from "../support/needs.ts";
import {
  measureChanges,
  measureDatabaseEnd,
  measureFaults,
  measureJoin,
  measurePartition,
  measureStarts,
  measureTakeover,
  measureViews,
  type OutageResult,
} from "./fleet-measure.ts";
import { describeCommit, describeMachine } from "./machine.ts";
import { writeSection } from "./page.ts";
import { alignColumns, type Table, toTable } from "./report.ts";

const USAGE = `make bench-fleet ARGS="..."
  --changes N    changes to measure (500)
  --routes N     routes of the fleet that a node joins (100000)
  --starts N     starts of each kind (7)
  --only WHAT    changes, faults, views, starts, join or leader
  --out FILE     where to write the section (docs/benchmarks.md after a full run)`;

interface Row {
  readonly what: string;
  readonly measured: number;
  /** Infinity: no bound, for comparison. */
  readonly atMost: number;
  readonly show: (value: number) => string;
}

const inMs = (value: number) => `${value.toFixed(1)} ms`;
const inSeconds = (value: number) => `${(value / 1000).toFixed(1)} s`;
const asCount = (value: number) => String(value);

async function changeRows(changes: number): Promise<Row[]> {
  const bounds = [
    { count: 3, p50: 15, p99: 60 },
    { count: 10, p50: 40, p99: Number.POSITIVE_INFINITY },
  ];
  const rows: Row[] = [];
  for (const { count, p50, p99 } of bounds) {
    const { p50Ms, p99Ms, incomplete } = await measureChanges(count, changes);
    const what = `change live on ${count}/${count} nodes`;
    rows.push({ what: `${what}, p50`, measured: p50Ms, atMost: p50, show: inMs });
    rows.push({ what: `${what}, p99`, measured: p99Ms, atMost: p99, show: inMs });
    const others = `replies of ${changes} that say less than ${count}/${count}`;
    rows.push({ what: others, measured: incomplete, atMost: 0, show: asCount });
  }
  return rows;
}

function outageRows(fault: string, { firstMs, laterMs, backMs }: OutageResult): Row[] {
  return [
    { what: `first refusal, ${fault}`, measured: firstMs, atMost: 2500, show: inMs },
    { what: `p99 of refusals after it, ${fault}`, measured: laterMs, atMost: 5, show: inMs },
    { what: `served again after it, ${fault}`, measured: backMs, atMost: 2000, show: inMs },
  ];
}

async function faultRows(): Promise<Row[]> {
  const rows = [
    ...outageRows("packets dropped", await measurePartition()),
    ...outageRows("database killed", await measureDatabaseEnd()),
  ];
  const lack = lackOf("network namespaces");
  if (lack !== null) {
    console.log(`not measured: requests failed by faults of the database, which needs ${lack}`);
    return rows;
  }
  const failures = await measureFaults();
  for (const failure of failures) console.log(failure);
  const what = "requests and connections failed by faults of the database";
  return [...rows, { what, measured: failures.length, atMost: 0, show: asCount }];
}

async function startRows(starts: number): Promise<Row[]> {
  const { aloneMs, cutOffMs, memberMs } = await measureStarts(starts);
  const none = Number.POSITIVE_INFINITY;
  return [
    { what: "start without --store", measured: aloneMs, atMost: none, show: inMs },
    {
      what: "start with --store, without the database",
      measured: cutOffMs,
      atMost: aloneMs * 1.05,
      show: inMs,
    },
    { what: "start with --store and the database", measured: memberMs, atMost: none, show: inMs },
  ];
}

async function joinRows(routes: number): Promise<Row[]> {
  const { joinMs, importMs } = await measureJoin(routes);
  const none = Number.POSITIVE_INFINITY;
  return [
    {
      what: `join of a fleet with ${routes} routes`,
      measured: joinMs,
      atMost: 8e3,
      show: inSeconds,
    },
    { what: `import of them into two nodes`, measured: importMs, atMost: none, show: inSeconds },
  ];
}

async function leaderRows(): Promise<Row[]> {
  const what = "another node leads after the leader was stopped, the longest of 5";
  return [{ what, measured: await measureTakeover(5), atMost: 4000, show: inMs }];
}

async function viewRows(): Promise<Row[]> {
  const lack = lackOf("network namespaces");
  if (lack !== null) {
    console.log(`not measured: views of several nodes, which needs ${lack}`);
    return [];
  }
  const results = await measureViews(3, 200);
  return results.flatMap(({ read, p50Ms, p99Ms }) => [
    { what: `${read} of 3 nodes, p50`, measured: p50Ms, atMost: Infinity, show: inMs },
    { what: `${read} of 3 nodes, p99`, measured: p99Ms, atMost: 200, show: inMs },
  ]);
}

function toRows(rows: readonly Row[]): Table {
  const cells = rows.map(({ what, measured, atMost, show }) => [
    what,
    Number.isFinite(atMost) ? show(atMost) : "–",
    show(measured),
    Number.isFinite(atMost) ? (measured <= atMost ? "reached" : "missed") : "–",
  ]);
  return [["what", "at most", "measured", "verdict"], ...cells];
}

function toMarkdown(table: Table): string {
  const facts = [
    ...describeMachine(),
    `Date: ${new Date().toISOString().slice(0, 10)}, commit ${describeCommit()}`,
  ];
  return `## Fleet

${facts.map((line) => `- ${line}`).join("\n")}

${toTable(table)}

All nodes, two workers each, and Debian's PostgreSQL run on this one machine. A change creates a service, is timed until its
response, and goes to another node each time. Dropped packets: nothing passes between one of three nodes and the database while
all connections stay open. Served again: from the end of the fault until that node serves what the others changed meanwhile,
or until a change is live on 3/3 again. Starts are medians, from the start of the program until it is ready.`;
}

const { values } = parseArgs({
  options: {
    changes: { type: "string", default: "500" },
    routes: { type: "string", default: "100000" },
    starts: { type: "string", default: "7" },
    only: { type: "string" },
    out: { type: "string" },
    help: { type: "boolean", default: false },
  },
});

async function run(): Promise<Row[]> {
  const parts: Record<string, () => Promise<Row[]>> = {
    changes: () => changeRows(Number(values.changes)),
    faults: faultRows,
    views: viewRows,
    starts: () => startRows(Number(values.starts)),
    join: () => joinRows(Number(values.routes)),
    leader: leaderRows,
  };
  const rows: Row[] = [];
  for (const [name, measure] of Object.entries(parts)) {
    if (values.only !== undefined && values.only !== name) continue;
    const added = await measure();
    console.log(alignColumns(toRows(added)));
    rows.push(...added);
  }
  return rows;
}

if (values.help) {
  console.log(USAGE);
} else {
  const missing = lackOf("executable", "postgres");
  if (missing !== null) throw new Error(`not here: ${missing}`);
  const table = toRows(await run());
  const out = values.out ?? (values.only === undefined ? "docs/benchmarks.md" : undefined);
  if (out !== undefined) {
    writeSection(out, { name: "fleet", text: toMarkdown(table) });
    console.log(`\nwritten to ${out}`);
  }
}
