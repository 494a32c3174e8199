// Measures what metrics, the list of recent requests and ids of requests cost, against a copy of Sluice that has none of them.
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import {
  compare,
  type ManyTargetsInput,
  type ManyTargetsResult,
  startWith,
  targetsOf,
} from "./many-targets.ts";
import type { RunningSluice } from "./sluice.ts";

/** Parts to remove from the copy. Settings disable all but the counters. */
export const CUTS = [
  {
    file: "src/dataplane/traffic-recorder.ts",
    text: "  finished(request: RecordedRequest, status: number, now: number): void {\n",
    instead:
      "  finished(_request: RecordedRequest, _status: number, _now: number): void {}\n  unused(request: RecordedRequest, status: number, now: number): void {\n",
  },
  {
    file: "src/dataplane/request/client-request.ts",
    text: "  readonly startedAt: number = performance.now();\n",
    instead: "  readonly startedAt: number = 0;\n",
  },
  {
    file: "src/dataplane/request/client-request.ts",
    text: "    const now = performance.now();\n    if (this.attempts === 0) this.upstreamAt = now;\n",
    instead: "    const now = 0;\n    if (this.attempts === 0) this.upstreamAt = now;\n",
  },
] as const;

/** Both run from source, so that they differ in nothing else. */
export async function measureObservation(input: ManyTargetsInput): Promise<ManyTargetsResult> {
  const service = { targets: targetsOf(input, 1) };
  const commandIn = (directory: string) => [process.execPath, join(directory, "src/main.ts")];
  const copy = copyWithout(join(input.scratch, "unobserved-source"));
  const off = await startWith({ ...input, command: commandIn(copy) }, "unobserved", service);
  try {
    await off.api.send("PATCH", "/api/v1/settings", {
      retention: { requests: 0 },
      requests: { ids: false },
    });
    const on = await startWith({ ...input, command: commandIn(resolve(".")) }, "observed", service);
    try {
      // What compiles their code takes processor time as well, for some seconds.
      await compare([off, on], { ...input, seconds: 4, rounds: 1 });
      const all = await compare([off, on], input);
      await tellParts([off, on], input);
      return all;
    } finally {
      await on.program.stop();
    }
  } finally {
    await off.program.stop();
  }
}

/** Breakdown of the cost: one part after the other is disabled. */
async function tellParts(
  pair: readonly [RunningSluice, RunningSluice],
  input: ManyTargetsInput,
): Promise<void> {
  const parts = [
    { left: "without ids of requests", off: { requests: { ids: false } } },
    { left: "without the list as well: counting alone", off: { retention: { requests: 0 } } },
  ];
  for (const { left, off } of parts) {
    await pair[1].api.send("PATCH", "/api/v1/settings", off);
    const { ratio } = await compare(pair, input);
    console.log(`  ${left}: ${ratio.toFixed(3)}x`);
  }
}

function copyWithout(directory: string): string {
  mkdirSync(directory, { recursive: true });
  for (const name of ["src", "drizzle", "package.json", "tsconfig.json"])
    cpSync(name, join(directory, name), { recursive: true });
  symlinkSync(resolve("node_modules"), join(directory, "node_modules"));
  for (const { file, text, instead } of CUTS) {
    const path = join(directory, file);
    const source = readFileSync(path, "utf8");
    if (!source.includes(text)) throw new Error(`${file} is another one: what counts is not found`);
    writeFileSync(path, source.replace(text, instead));
  }
  return directory;
}
