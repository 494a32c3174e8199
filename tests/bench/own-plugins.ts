// Measures what a plugin from a directory costs a request against the same file as a built-in one; knows no other proxy.
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { ScratchTree } from "../support/scratch-tree.ts";
import { loadWithH2load, percentile } from "./load.ts";
import { describeCommit, describeMachine } from "./machine.ts";
import { startOrigin } from "./origin.ts";
import { PROXY_CORE, processorTimeUs } from "./processes.ts";
import { alignColumns, type Table, toTable } from "./report.ts";
import { type RunningSluice, startSluice } from "./sluice.ts";

export interface OwnPluginsInput {
  readonly scratch: string;
  /** The executable, which is built again with the plugins; or the words before "serve", which run from source. */
  readonly command: readonly string[];
  /** Measured seconds of each turn, about. */
  readonly seconds: number;
  /** Turns of each, in each set of processes. */
  readonly rounds: number;
}

/** Sets one header; has handlers in three phases; returns a promise. */
const PLUGINS = ["own-header", "own-phases", "own-async"] as const;

/** `again` is a second instance of the built-in plugin: how far it is from the first one is noise. */
const VARIANTS = ["built-in", "again", "directory"] as const;
type Variant = (typeof VARIANTS)[number];

/** Processes of one program differ by some percent, which no number of turns evens out: in one process nothing else differs. */
const PLACES = ["one process", "a process each"] as const;

/** Sets of new processes. */
const SETS = 3;
const WARM_UP_SECONDS = 10;
const TRIAL_REQUESTS = 2000;

/** Processor time per request from a directory, as a multiple of that of the built-in plugin in the same process. */
const AT_MOST = 1.02;

export interface OwnPluginsRow {
  readonly plugin: string;
  readonly place: (typeof PLACES)[number];
  /** Microseconds of the built-in plugin, median. */
  readonly cpuUs: number;
  /** Of all turns of all sets, as multiples of the built-in plugin in the same turn, sorted. */
  readonly ratios: Readonly<Record<Exclude<Variant, "built-in">, readonly number[]>>;
  readonly errors: number;
}

export async function measureOwnPlugins(input: OwnPluginsInput): Promise<readonly OwnPluginsRow[]> {
  const { command, tree } = withPlugins(input);
  const files = Object.fromEntries(VARIANTS.map((variant) => [variant, 64]));
  const origin = await startOrigin(input.scratch, files);
  const parts = { ...input, command, originPort: origin.port };
  try {
    const rows: OwnPluginsRow[] = [];
    for (const plugin of PLUGINS)
      for (const place of PLACES) rows.push(await measureRow(parts, { plugin, place }));
    return rows;
  } finally {
    await origin.program.stop();
    tree.remove();
  }
}

const fixtures = resolve(import.meta.dir, "../fixtures/plugins/bench");
const fixture = (plugin: string) => readFileSync(join(fixtures, `${plugin}.ts`), "utf8");
const inDirectory = (plugin: string) => `${plugin}-dir`;
const directoryIn = (scratch: string) => join(scratch, "own-plugins");

/** Sources with the plugins as built-in ones, and how they are started. The same files go into a directory, under other names. */
function withPlugins({ scratch, command }: OwnPluginsInput) {
  const tree = new ScratchTree();
  mkdirSync(directoryIn(scratch));
  const lines = PLUGINS.map((plugin) => {
    const text = fixture(plugin);
    tree.add(`src/plugins/${plugin}.ts`, text);
    const renamed = text.replace(`name: "${plugin}"`, `name: "${inDirectory(plugin)}"`);
    writeFileSync(join(directoryIn(scratch), `${inDirectory(plugin)}.ts`), renamed);
    return `  "${plugin}": () => import("./${plugin}.ts"),\n`;
  });
  tree.edit("src/plugins/index.ts", [["\n};", `\n${lines.join("")}};`]]);
  if (command[0] === process.execPath)
    return { tree, command: [process.execPath, join(tree.path, "src/main.ts")] };
  const flags = (process.env["BUILD_FLAGS"] ?? "").split(/\s+/).filter((word) => word !== "");
  if (flags.length === 0) throw new Error("BUILD_FLAGS is empty: `make bench` sets it");
  mkdirSync(join(tree.path, "dist"));
  for (const part of ["ui", "packed"])
    symlinkSync(resolve("dist", part), join(tree.path, "dist", part));
  const executable = join(tree.path, "dist/sluice");
  const entries = ["main", "worker", "importer", "plugin-reader", "regex-checker"].map(
    (name) => `src/${name}.ts`,
  );
  tree.run(process.execPath, "build", ...flags, ...entries, "--outfile", executable);
  return { tree, command: [executable] };
}

interface RowParts extends OwnPluginsInput {
  readonly originPort: number;
}

/** A gateway in which one variant is served, at the path of its name. */
interface Contestant {
  readonly variant: Variant;
  readonly sluice: RunningSluice;
}

async function measureRow(
  parts: RowParts,
  { plugin, place }: Pick<OwnPluginsRow, "plugin" | "place">,
): Promise<OwnPluginsRow> {
  const turns: Turn[] = [];
  for (let set = 0; set < SETS; set++) {
    console.log(`measuring ${plugin}, ${place}, set ${set + 1} of ${SETS}`);
    const running: RunningSluice[] = [];
    const start = async (name: string) => {
      const sluice = await startGateway(parts, `${plugin}-${place}-${set}-${name}`);
      running.push(sluice);
      return sluice;
    };
    try {
      const shared = place === "one process" ? await start("all") : null;
      const contestants: Contestant[] = [];
      for (const variant of VARIANTS) {
        const sluice = shared ?? (await start(variant));
        await serveVariant(sluice, { plugin, variant });
        contestants.push({ variant, sluice });
      }
      turns.push(...(await takeTurns(contestants, parts)));
    } finally {
      for (const { program } of running) await program.stop();
    }
  }
  return rowOf({ plugin, place }, turns);
}

async function startGateway(
  { scratch, command, originPort: port }: RowParts,
  name: string,
): Promise<RunningSluice> {
  const dataDir = join(scratch, name.replaceAll(" ", "-"));
  const args = ["--plugins-dir", directoryIn(scratch)];
  const sluice = await startSluice({ command, dataDir, workers: 1, core: PROXY_CORE, args });
  await sluice.api.createService("origin", port);
  return sluice;
}

/** Throws unless the plugin comes from where it should, and runs. */
async function serveVariant(
  sluice: RunningSluice,
  { plugin, variant }: { readonly plugin: string; readonly variant: Variant },
): Promise<void> {
  const isFile = variant === "directory";
  const name = isFile ? inDirectory(plugin) : plugin;
  const { api } = sluice;
  const { source } = await api.send<{ source: string }>("GET", `/api/v1/plugins/schemas/${name}`);
  if (source !== (isFile ? "directory" : "built_in")) throw new Error(`${name} is ${source}`);
  const paths = [`/${variant}`];
  await api.send("POST", "/api/v1/routes", { name: variant, service_id: "origin", paths });
  await api.send("POST", "/api/v1/plugins", { name, route_id: variant, config: {} });
  const response = await fetch(urlOf({ sluice, variant }));
  await response.bytes();
  if (!response.ok || response.headers.get("x-own") !== "one")
    throw new Error(`${name} does not run: ${response.status}`);
}

const urlOf = ({ sluice, variant }: Contestant) =>
  `http://127.0.0.1:${sluice.ports.http}/${variant}`;

/** Microseconds per request of each variant, measured one right after the other. */
interface Turn {
  readonly costs: ReadonlyMap<Variant, number>;
  readonly errors: number;
}

async function takeTurns(
  contestants: readonly Contestant[],
  { scratch, seconds, rounds }: RowParts,
): Promise<Turn[]> {
  const load = (contestant: Contestant, requests: number) =>
    loadWithH2load(urlOf(contestant), requests, { protocol: "http", scratch });
  let rate = Number.POSITIVE_INFINITY;
  for (const contestant of contestants) {
    const trial = await load(contestant, TRIAL_REQUESTS);
    const warm = await load(contestant, Math.ceil(trial.requestsPerSecond * WARM_UP_SECONDS));
    rate = Math.min(rate, warm.requestsPerSecond);
  }
  const requests = Math.ceil(rate * seconds);
  const turns: Turn[] = [];
  for (let round = 0; round < rounds; round++) {
    const costs = new Map<Variant, number>();
    let errors = 0;
    for (const contestant of inOrder(contestants, round)) {
      const { pid } = contestant.sluice.program;
      const before = processorTimeUs(pid);
      const result = await load(contestant, requests);
      costs.set(contestant.variant, (processorTimeUs(pid) - before) / requests);
      errors += result.errors;
    }
    turns.push({ costs, errors });
  }
  return turns;
}

/** None always goes first, or after the same one: machines get slower and faster. */
function inOrder<T>(all: readonly T[], round: number): readonly T[] {
  const first = Math.floor(round / 2) % all.length;
  const turned = [...all.slice(first), ...all.slice(0, first)];
  return round % 2 === 0 ? turned : turned.toReversed();
}

export function rowOf(
  what: Pick<OwnPluginsRow, "plugin" | "place">,
  turns: readonly Turn[],
): OwnPluginsRow {
  const costsOf = (variant: Variant) => turns.map(({ costs }) => costs.get(variant) ?? Number.NaN);
  const builtIn = costsOf("built-in");
  const ratiosOf = (variant: Variant) =>
    costsOf(variant)
      .map((cost, turn) => cost / (builtIn[turn] ?? Number.NaN))
      .sort((one, other) => one - other);
  return {
    ...what,
    cpuUs: percentile(
      [...builtIn].sort((one, other) => one - other),
      0.5,
    ),
    ratios: { again: ratiosOf("again"), directory: ratiosOf("directory") },
    errors: turns.reduce((sum, { errors }) => sum + errors, 0),
  };
}

/** The middle one, with the quartiles. */
function spread(ratios: readonly number[]): string {
  const [low, middle, high] = [0.25, 0.5, 0.75].map((share) =>
    percentile(ratios, share).toFixed(3),
  );
  return `${middle}x (${low} to ${high})`;
}

/** Two processes differ for other reasons: what they show is no verdict. */
function verdictOf({ place, ratios, errors }: OwnPluginsRow): string {
  if (errors > 0) return `${errors} errors`;
  if (place !== "one process") return "for information";
  return percentile(ratios.directory, 0.5) <= AT_MOST ? "reached" : "missed";
}

function tableOf(rows: readonly OwnPluginsRow[]): Table {
  const head = [
    ...["plugin", "in", "CPU µs/request, built-in"],
    ...["built-in again", "from a directory", "at most", "verdict"],
  ];
  return [
    head,
    ...rows.map((row) => [
      row.plugin,
      row.place,
      row.cpuUs.toFixed(1),
      spread(row.ratios.again),
      spread(row.ratios.directory),
      row.place === "one process" ? `${AT_MOST}x` : "–",
      verdictOf(row),
    ]),
  ];
}

export const ownPluginsToText = (rows: readonly OwnPluginsRow[]): string =>
  alignColumns(tableOf(rows));

/** The part of docs/benchmarks.md. */
export const ownPluginsToMarkdown = (
  rows: readonly OwnPluginsRow[],
  { seconds, rounds }: Pick<OwnPluginsInput, "seconds" | "rounds">,
): string => `## Plugins from a directory

${[
  ...describeMachine(),
  `Date: ${new Date().toISOString().slice(0, 10)}, commit ${describeCommit()}`,
]
  .map((line) => `- ${line}`)
  .join("\n")}

${toTable(tableOf(rows))}

An executable has the plugin as a built-in one and loads the same file from \`--plugins-dir\`, under another name. Each variant has a route of
its own, 64 B, plain HTTP/1.1, one worker on core 0. \`own-header\` sets a response header, \`own-phases\` has handlers in three phases,
\`own-async\` returns a promise for each request. The variants take turns of about ${seconds} s with the same number of requests, ${rounds} turns in
alternating order, in each of ${SETS} sets of new processes, after ${WARM_UP_SECONDS} s of warm-up each. A ratio is that of processor time (\`/proc\`) per request to
the built-in plugin in the same turn: the median of all turns, with the quartiles. \`built-in again\` is a second instance of the built-in plugin,
whose distance from 1 is noise.
`;
