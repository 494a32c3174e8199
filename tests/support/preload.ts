// Runs before the tests: sets their timeout, lets failures print a report, and runs plain `bun test` on several cores.
import { afterAll, setDefaultTimeout } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { plugin } from "bun";
import { beginFile } from "./failure-report.ts";
import { runEnd } from "./run-end.ts";
import { watchTests } from "./watched-tests.ts";

/**
 * For a machine that is busy with other things: a test that takes seconds takes minutes there, and must not fail. At a timeout, Bun
 * ends all processes that the tests have started: the browser and the gateway of every test after it in the file, too.
 */
const TIMEOUT_MS = 900_000;

/** More would start so many gateways at once that they cause each other's timeouts. */
const MOST_PROCESSES = 4;

inParallel();
setDefaultTimeout(TIMEOUT_MS);
watchTests(TIMEOUT_MS);
runEnd.callbacks = [];
afterAll(async () => {
  for (const end of runEnd.callbacks?.splice(0) ?? []) await end();
});
plugin({
  name: "each file of tests",
  setup(build) {
    // Bun 1.4.5 forgets it after the first file, unless each has a process or a global object of its own.
    build.onLoad({ filter: /\.test\.ts$/ }, ({ path, loader }) => {
      setDefaultTimeout(TIMEOUT_MS);
      beginFile();
      return { contents: readFileSync(path, "utf8"), loader };
    });
  },
});

/**
 * Becomes `bun test --parallel`, where it is plain `bun test`: tests wait for each other's gateways and clocks more than they
 * work, and one process for all of them takes twice as long. With any other argument it runs unchanged.
 */
function inParallel(): void {
  const commandLine = "/proc/self/cmdline";
  if (process.execve === undefined || !existsSync(commandLine)) return;
  const words = readFileSync(commandLine, "utf8").split("\0").slice(0, -1);
  if (words.length !== 2 || words[1] !== "test") return;
  console.error(`gateways start from ${process.env["SLUICE_TEST_BINARY"] || "the sources"}`);
  const processes = Math.min(MOST_PROCESSES, availableParallelism() + 1);
  // They would get Bun's five seconds, whatever is set here.
  const more = [`--parallel=${processes}`, `--timeout=${TIMEOUT_MS}`];
  process.execve(process.execPath, [...words, ...more], process.env);
}
