// `make soak`: the executable under traffic of every kind for a while; fails when a request does or when what it holds grows.
import { mkdirSync } from "node:fs";
import { parseArgs } from "node:util";
import { startGateway } from "../support/gateway.ts";
import { leftOver, warnings } from "./counters.ts";
import { type Figure, figures, type Growth, growthOf, type Sample, takeSample } from "./samples.ts";
import { setUp } from "./scene.ts";
import { type Counts, kinds, startTraffic } from "./traffic.ts";

const USAGE = `make soak ARGS="[--minutes N] [--only KIND,...] [--source]"
  --minutes N  how long (20); growth of less than 10 minutes says little
  --only KINDS only traffic of these kinds, to find out which of them is to blame:
               ${kinds.join(", ")}
  --source     run Sluice from source instead of dist/sluice`;
const SAMPLE_MS = 5_000;
/** How long the gateway is tried after it was restarted. */
const AGAIN_MS = 20_000;
/** Connections that are kept alive and sessions that time out are gone after this. */
const FEWEST_SAMPLES = 12;

const { values } = parseArgs({
  options: {
    minutes: { type: "string" },
    only: { type: "string" },
    source: { type: "boolean" },
    help: { type: "boolean" },
  },
});
const minutes = Number(values.minutes ?? 20);
const only = values.only?.split(",") ?? kinds;
if (values.help === true || !(minutes > 0) || !only.every((name) => kinds.includes(name))) {
  console.error(USAGE);
  process.exit(2);
}

const gateway = await startGateway({
  workers: 2,
  ...(values.source === true ? {} : { binary: "dist/sluice" }),
});
const samples: Sample[] = [];
const started = performance.now();
const elapsed = () => (performance.now() - started) / 1000;
/** Of each kind, how many reasons were printed. */
const shownFailures = new Map<string, number>();
let isOver = false;
let memoryAfterRestart: number | null = null;
const scene = await setUp(gateway).catch(async (error: unknown) => {
  await gateway.stop();
  throw error;
});
const idle = takeSample(gateway.pid, 0);
const { counts, ended } = startTraffic(scene, { only, isOver: () => isOver });

console.log("   seconds     memory     shared  descriptors  maps  threads  rounds  failed");
while (elapsed() < minutes * 60) {
  await Bun.sleep(SAMPLE_MS);
  const sample = takeSample(gateway.pid, Math.round(elapsed()));
  if (sample === null) break;
  samples.push(sample);
  if (samples.length % 6 !== 1) continue;
  printSample(sample);
  printNewFailures();
}
isOver = true;
await ended;
const isAlive = takeSample(gateway.pid, 0) !== null;
const left = isAlive ? await leftOver(gateway) : new Map<string, number>();
const after = takeSample(gateway.pid, Math.round(elapsed()));
const code = isAlive ? await restart() : await gateway.exited();
const codeAfterwards = await gateway.stop();
await scene.stop();

const growth = growthOf(samples);
const hasFailed = [...counts.values()].some(({ failed }) => failed > 0);
const isTooShort = samples.length < FEWEST_SAMPLES;
printCounts();
printGrowth(growth);
if (idle !== null && after !== null) printIdle(idle, after);
for (const [message, count] of warnings(gateway)) console.log(`in the log ${count}: ${message}`);
for (const [name, value] of left) console.log(`still counted without clients: ${name} ${value}`);
mkdirSync("dist", { recursive: true });
const report = {
  minutes,
  samples,
  growth,
  idle,
  after,
  left: Object.fromEntries(left),
  counts: Object.fromEntries(counts),
  exit_codes: [code, codeAfterwards],
  memory_after_restart: memoryAfterRestart,
};
await Bun.write("dist/soak.json", JSON.stringify(report, null, 1));
await Bun.write("dist/soak.log", gateway.stderr);
if (memoryAfterRestart !== null)
  console.log(`after a restart on the same data: ${(memoryAfterRestart / 1e6).toFixed(1)} MB`);
const hasEndedBadly = !isAlive || code !== 0 || codeAfterwards !== 0;
if (hasEndedBadly)
  console.log(`the gateway ended with code ${code || codeAfterwards}:\n${gateway.stderr}`);
if (isTooShort) console.log("too short to say anything about growth");
const isWrong =
  hasFailed || hasEndedBadly || left.size > 0 || growth.some((each) => each.isTooMuch);
console.log(isWrong ? "not good: see above, dist/soak.json and dist/soak.log" : "good");
process.exit(isWrong ? 1 : 0);

/** With what the soak has left in the data directory the gateway must serve as before. Returns the code with which it ended. */
async function restart(): Promise<number> {
  const ended = gateway.exited();
  await gateway.restart();
  let isOverAgain = false;
  const again = startTraffic(scene, { only, isOver: () => isOverAgain });
  await Bun.sleep(AGAIN_MS);
  memoryAfterRestart = takeSample(gateway.pid, 0)?.memory ?? null;
  isOverAgain = true;
  await again.ended;
  for (const [name, value] of await leftOver(gateway)) left.set(`${name} after the restart`, value);
  for (const [name, { done, failed, why }] of again.counts) {
    const count = counts.get(name);
    if (count === undefined) continue;
    count.done += done;
    count.failed += failed;
    count.why.push(...why.map((each) => `after the restart: ${each}`));
  }
  return await ended;
}

function shown(figure: Figure, value: number): string {
  const isBytes = figure === "memory" || figure === "shared";
  return isBytes ? `${(value / 1e6).toFixed(1)} MB` : value.toFixed(0);
}

function sum(what: (count: Counts) => number): number {
  return [...counts.values()].reduce((total, count) => total + what(count), 0);
}

function printSample({ seconds, memory, shared, descriptors, maps, threads }: Sample): void {
  const columns = [
    [String(seconds), 10],
    ...[memory, shared].map((bytes) => [`${(bytes / 1e6).toFixed(1)} MB`, 11] as const),
    [String(descriptors), 13],
    [String(maps), 6],
    ...[threads].map((value) => [String(value), 8] as const),
    [String(sum(({ done }) => done)), 9],
    [String(sum(({ failed }) => failed)), 7],
  ] as const;
  console.log(columns.map(([text, width]) => text.padStart(width)).join(""));
}

function printNewFailures(): void {
  for (const [name, { why }] of counts) {
    for (const each of why.slice(shownFailures.get(name) ?? 0)) console.log(`  ${name}: ${each}`);
    shownFailures.set(name, why.length);
  }
}

function printCounts(): void {
  console.log("\nwhat                     rounds   failed");
  for (const [name, { done, failed, why }] of counts) {
    const numbers = `${String(done).padStart(9)}${String(failed).padStart(9)}`;
    console.log([`${name.padEnd(22)}${numbers}`, ...why.map((each) => `    ${each}`)].join("\n"));
  }
}

/** Before the first client and after the last; what was made once and kept stays in it. */
function printIdle(before: Sample, since: Sample): void {
  console.log("\nidle          before       after");
  for (const figure of figures) {
    const values = [before, since].map((sample) => shown(figure, sample[figure]).padStart(11));
    console.log(`${figure.padEnd(12)}${values.join(" ")}`);
  }
}

function printGrowth(all: readonly Growth[]): void {
  console.log("\nsecond half        from          to   growth   highest");
  for (const { figure, from, to, highest, share, isTooMuch } of all) {
    const show = (value: number) => shown(figure, value).padStart(11);
    const percent = `${(share * 100).toFixed(1)} %`.padStart(9);
    const verdict = isTooMuch ? "  too much (at most 5 %)" : "";
    console.log(
      `${figure.padEnd(12)}${show(from)} ${show(to)}${percent}${show(highest)}${verdict}`,
    );
  }
}
