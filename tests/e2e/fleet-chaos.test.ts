// Faults of every kind, one upon the other, under writers and clients of a fleet: two short runs of `make chaos`.
import { expect } from "bun:test";
import { runChaos } from "../chaos/run.ts";
import { needs } from "../support/needs.ts";
import { seedOfRun } from "../support/random.ts";

const { test } = needs("executable", "postgres", "network namespaces", "mount");

/** Seeds of runs that broke a promise before it was mended. */
const MENDED: readonly number[] = [13, 102];

const seed = seedOfRun();
/** With 100 kills and more, as in `make test-fleet`, runs are longer. */
const minutes = Number(process.env["SLUICE_FLEET_KILLS"] ?? 5) >= 100 ? 5 : 1;

test.each([...new Set([...MENDED, seed, seed + 1])])(
  "a fleet keeps its promises, whatever fails (make chaos ARGS='--seed %d')",
  async (each) => {
    const lines: string[] = [];
    const { broken, counts } = await runChaos({
      ...{ seed: each, minutes },
      print: (line) => lines.push(line),
    });
    if (broken.length > 0) console.error(lines.join("\n"));
    expect(broken).toEqual([]);
    // All were at work.
    expect(counts.acknowledged).toBeGreaterThan(0);
    expect(counts.verified).toBe(counts.acknowledged);
    expect(counts.requests).toBeGreaterThan(counts.excused_requests);
  },
);
