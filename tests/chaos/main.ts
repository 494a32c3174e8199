// `make chaos`: a fleet on PostgreSQL under random faults; fails with the seed and the promise that was broken.
import { parseArgs } from "node:util";
import { lackOf } from "../support/needs.ts";
import { kinds } from "./plan.ts";
import { runChaos } from "./run.ts";

const USAGE = `make chaos ARGS="[--seed N] [--minutes M] [--nodes N] [--runs N] [--only KIND,...]"
  --seed N     repeats the faults of a run, their order and their times (by chance)
  --minutes M  of each run (2)
  --nodes N    of the fleet, 3 to 5 (by the seed)
  --runs N     one after the other, each with the next seed (1)
  --only KINDS only faults of these kinds, to find out which of them is to blame:
               ${kinds.join(", ")}`;

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    minutes: { type: "string" },
    nodes: { type: "string" },
    runs: { type: "string" },
    only: { type: "string" },
    help: { type: "boolean" },
  },
});
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const minutes = Number(values.minutes ?? 2);
const runs = Number(values.runs ?? 1);
const nodes = values.nodes === undefined ? undefined : Number(values.nodes);
const only = values.only?.split(",") ?? kinds;
const areFine =
  only.every((kind) => kinds.includes(kind)) &&
  Number.isInteger(seed) &&
  minutes > 0 &&
  Number.isInteger(runs) &&
  runs > 0 &&
  (nodes === undefined || [3, 4, 5].includes(nodes));
if (values.help === true || !areFine) {
  console.error(USAGE);
  process.exit(2);
}
const lack = lackOf("executable", "postgres", "network namespaces", "mount");
if (lack !== null) {
  console.error(`make chaos needs ${lack}`);
  process.exit(2);
}

/** Networks and disks of a run outlive the process: it removes them. */
const interrupt = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => interrupt.abort());

const failed: string[] = [];
for (let run = 0; run < runs && !interrupt.signal.aborted; run++) {
  const { broken, counts } = await runChaos({
    ...{ seed: seed + run, minutes, nodes, only },
    signal: interrupt.signal,
    print: (line) => console.log(line),
  });
  console.log(`seed ${seed + run}: ${JSON.stringify(counts)}`);
  if (broken.length > 0) failed.push(`--seed ${seed + run}: ${broken[0]}`);
}
for (const line of failed) console.log(`broken with ${line}`);
console.log(failed.length === 0 ? "good" : `${failed.length} of ${runs} runs broke a promise`);
process.exit(failed.length === 0 ? 0 : 1);
