// `make bench-fleet-simulation`: how far fleets go, by a simulation with constants that it measures before; prints tables, writes its section.
import { readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { lackOf } from "../support/needs.ts";
import { type FleetConstants, type Measured, measureConstants } from "./fleet-constants.ts";
import { measureChanges } from "./fleet-measure.ts";
import {
  type Outcome,
  p50,
  p99,
  type RelayOutcome,
  simulate,
  simulateFaults,
} from "./fleet-scenes.ts";
import { describeCommit, describeMachine } from "./machine.ts";
import { writeSection } from "./page.ts";
import { alignColumns, megabytes, type Table, toTable } from "./report.ts";

const USAGE = `make bench-fleet-simulation ARGS="..."
  --changes N    changes in each scene (100)
  --checked N    changes that compiled nodes make to check the model (200)
  --seed N       of the simulation (1)
  --out FILE     where to write the section (docs/benchmarks.md)`;

const SCENES = [
  { nodes: 50, relays: 0 },
  { nodes: 200, relays: 0 },
  { nodes: 1000, relays: 0 },
  { nodes: 200, relays: 20 },
  { nodes: 1000, relays: 20 },
  { nodes: 1000, relays: 50 },
] as const;

/** Fleets that can be measured on this machine. */
const CHECKED = [3, 10] as const;

const PAGE = "docs/benchmarks.md";

const inMs = (ms: number) => (Number.isFinite(ms) ? `${ms.toFixed(ms < 1 ? 3 : 1)} ms` : "never");

function constantRows({ constants, appends, beatsPerSecond }: Measured): Table {
  const { statements, perListener, perRow, change, idleCpuShare, backendBytes } = constants;
  const costs = Object.entries(statements).map(([name, { serverMs, clientMs }]) => [
    `CPU of one \`${name}\`, PostgreSQL / node`,
    `${inMs(serverMs)} / ${inMs(clientMs)}`,
  ]);
  const writerMs = p50(change.writerMs.toSorted((one, other) => one - other));
  return [
    ["what", "measured"],
    ...appends.map(([listeners, ms, cpu]) => [
      `append with ${listeners} listening connections, p50 / CPU of PostgreSQL`,
      `${inMs(ms)} / ${inMs(cpu)}`,
    ]),
    [
      "each further listening connection, until the commit / after it",
      `${inMs(perListener.commitMs)} / ${inMs(perListener.wakeMs)}`,
    ],
    ...costs,
    [
      "each row of a look at all nodes, PostgreSQL / node",
      `${inMs(perRow.serverMs)} / ${inMs(perRow.clientMs)}`,
    ],
    ["heartbeats per second over three connections", beatsPerSecond.toFixed(0)],
    ["memory of a connection", `${megabytes(backendBytes)} MB`],
    ["change on one node without its statements, p50", inMs(writerMs)],
    [
      "CPU of a change, on the node that makes it / that follows",
      `${inMs(change.writerCpuMs)} / ${inMs(change.followerCpuMs)}`,
    ],
    [
      "CPU of a node without changes and requests",
      `${(idleCpuShare * 100).toFixed(1)} % of a core`,
    ],
  ];
}

async function checkRows(
  constants: FleetConstants,
  { changes, checked, seed }: Settings,
): Promise<Table> {
  const page = readFileSync(PAGE, "utf8");
  const rows: string[][] = [];
  for (const nodes of CHECKED) {
    const scene = { nodes, relays: 0, changes, isOneMachine: true, seed };
    const predicted = p50((await simulate(scene, constants)).replyMs);
    const { p50Ms } = await measureChanges(nodes, checked);
    const known = Number(
      new RegExp(`change live on ${nodes}/${nodes} nodes, p50 \\|[^|]*\\| ([\\d.]+) ms`).exec(
        page,
      )?.[1],
    );
    const errorOf = (real: number) => `${(((predicted - real) / real) * 100).toFixed(0)} %`;
    rows.push([
      `${nodes} nodes`,
      ...[inMs(predicted), inMs(p50Ms), errorOf(p50Ms), inMs(known), errorOf(known)],
    ]);
  }
  const head = ["change live on all, p50", "simulated", "measured now", "error"];
  return [[...head, "section Fleet", "error"], ...rows];
}

function sceneRow(
  { nodes, relays }: (typeof SCENES)[number],
  outcome: Outcome,
  constants: FleetConstants,
): string[] {
  const { replyMs, liveMs, refused, statementsPerSecond, databaseCores, backends } = outcome;
  const isAlive = replyMs.length > 0;
  const both = (times: readonly number[]) =>
    isAlive ? `${inMs(p50(times))} / ${inMs(p99(times))}` : `${refused} of ${refused} refused`;
  return [
    `${nodes}, ${relays === 0 ? "flat" : `${relays} relays`}`,
    ...[both(liveMs), both(replyMs)],
    ...[statementsPerSecond.toFixed(0), databaseCores.toFixed(2)],
    `${backends}, ${megabytes(backends * constants.backendBytes)} MB`,
    Number.isFinite(outcome.largeMs)
      ? `${megabytes(outcome.largeBytes)} MB, ${inMs(outcome.largeMs)}`
      : "never",
  ];
}

function faultRow(relays: number, { movedMs, slowReplyMs, slowLiveMs }: RelayOutcome): string[] {
  return [
    `1000 nodes, ${relays} relays`,
    `${inMs(p50(movedMs))} / ${inMs(movedMs.at(-1) ?? Number.NaN)} (${movedMs.length} leaves)`,
    `${inMs(slowReplyMs)} / ${inMs(slowLiveMs)}`,
  ];
}

interface Settings {
  readonly changes: number;
  readonly checked: number;
  readonly seed: number;
  /** Processes of other programs that want a core: the measured times grow with them. */
  readonly load: number;
}

async function run(settings: Settings): Promise<readonly Table[]> {
  const show = (table: Table) => {
    console.log(`${alignColumns(table)}\n`);
    return table;
  };
  const measured = await measureConstants();
  const { constants } = measured;
  const tables = [show(constantRows(measured)), show(await checkRows(constants, settings))];
  const head = [
    "nodes",
    "live on all, p50 / p99",
    "reply, p50 / p99",
    "statements/s",
    "busy cores",
  ];
  const scenes: string[][] = [[...head, "connections", "entry of 1 MB: sent, on all"]];
  const faults: string[][] = [
    [
      "",
      "leaves of a silent relay serve again, p50 / last",
      "one leaf 5 s late: reply / live on the others",
    ],
  ];
  const { changes, seed } = settings;
  for (const scene of SCENES) {
    const whole = { ...scene, changes, isOneMachine: false, seed };
    scenes.push(sceneRow(scene, await simulate(whole, constants), constants));
    if (scene.nodes === 1000 && scene.relays > 0)
      faults.push(faultRow(scene.relays, await simulateFaults(whole, constants)));
  }
  return [...tables, show(scenes), show(faults)];
}

function toMarkdown(tables: readonly Table[], { changes, seed, load }: Settings): string {
  const facts = [
    ...describeMachine(),
    `Load of the machine before the run: ${load.toFixed(1)} processes`,
    `Date: ${new Date().toISOString().slice(0, 10)}, commit ${describeCommit()}, ${changes} changes in each scene, seed ${seed}`,
  ];
  return `## Fleet simulation

${facts.map((line) => `- ${line}`).join("\n")}

Measured before the simulation, with the statements of the product and two compiled nodes; of three batches the quietest one:

${toTable(tables[0] ?? [])}

The model against compiled nodes that share this machine:

${toTable(tables[1] ?? [])}

Simulated: the product's own code on a virtual clock, two cores for each node and for PostgreSQL, a network with 0.1 ms in each
direction and 1 Gbit/s. The product refuses more than 50 nodes and has no relays. Without changes: statements and busy cores.

${toTable(tables[2] ?? [])}

${toTable(tables[3] ?? [])}`;
}

const { values } = parseArgs({
  options: {
    changes: { type: "string", default: "100" },
    checked: { type: "string", default: "200" },
    seed: { type: "string", default: "1" },
    out: { type: "string", default: PAGE },
    help: { type: "boolean", default: false },
  },
});

if (values.help) {
  console.log(USAGE);
} else {
  const missing = lackOf("executable", "postgres");
  if (missing !== null) throw new Error(`not here: ${missing}`);
  const { changes, checked, seed } = values;
  const [load = 0] = loadavg();
  const counts = { changes: Number(changes), checked: Number(checked), seed: Number(seed) };
  const settings = { ...counts, load };
  const tables = await run(settings);
  writeSection(values.out, { name: "fleet-simulation", text: toMarkdown(tables, settings) });
  console.log(`written to ${values.out}`);
}
