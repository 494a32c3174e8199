// Fuzzes parsers and the router with random inputs, a million by default, and prints failures as tests.
import { parseArgs } from "node:util";
import { type FuzzTarget, testOf } from "./target.ts";
import { targets } from "./targets.ts";

const USAGE = `make fuzz ARGS="[--cases N] [--seed N] [--only NAME[,NAME]]"
names: ${targets.map(({ name }) => name).join(", ")}`;

const { values } = parseArgs({
  options: {
    cases: { type: "string" },
    seed: { type: "string" },
    only: { type: "string" },
    help: { type: "boolean" },
  },
});
if (values.help === true) {
  console.log(USAGE);
  process.exit(0);
}

const cases = wholeNumber("cases", values.cases ?? "1000000");
const seed = wholeNumber("seed", values.seed ?? String(Math.floor(Math.random() * 2 ** 31)));
const chosen = chooseFrom(values.only);
const shares = chosen.reduce((sum, { share }) => sum + share, 0);

console.log(`seed ${seed}`);
let failures = 0;
for (const target of chosen) if (!(await runOne(target))) failures++;
if (failures > 0) process.exit(1);

async function runOne(target: FuzzTarget): Promise<boolean> {
  const wanted = Math.max(1, Math.round((cases * target.share) / shares));
  const start = performance.now();
  const failure = await target.run({ cases: wanted, seed });
  const seconds = (performance.now() - start) / 1000;
  const done = failure === null ? wanted : failure.passed;
  const speed = Math.round(done / seconds).toLocaleString("en");
  const name = target.name.padEnd(16);
  console.log(
    `${name} ${done.toLocaleString("en").padStart(9)} cases ${speed.padStart(9)} per second`,
  );
  if (failure === null) return true;
  console.log(
    `\n${failure.error}\n\n// ${target.name}, seed ${failure.seed}\n${testOf(target, failure)}`,
  );
  return false;
}

function wholeNumber(option: string, text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  return refuse(`--${option} takes a whole number, not ${text}`);
}

function chooseFrom(only: string | undefined): readonly FuzzTarget[] {
  if (only === undefined) return targets;
  return only.split(",").map((name) => {
    const found = targets.find((target) => target.name === name);
    return found ?? refuse(`there is no target ${name}`);
  });
}

function refuse(message: string): never {
  console.error(`${message}\n${USAGE}`);
  process.exit(2);
}
