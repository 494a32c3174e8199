// A run of chaos: a fleet under writers and clients, the faults of a plan, and what the history says of the promises.
import { randomBytes } from "node:crypto";
import { isServing, settled, statesOn, TestFleet } from "../support/fleet.ts";
import { eventually } from "../support/poll.ts";
import { startClients, watchLease, Writers } from "./clients.ts";
import { decide, faults, mountDisk, pidOf, type Scene } from "./faults.ts";
import { History } from "./history.ts";
import { describeFault, describePlan, drawPlan, type PlanOptions, type Round } from "./plan.ts";

/** A fleet is whole within 5 s; a busy machine takes longer. */
const SOON_MS = 5000;
const HEALED_MS = 30_000;

export interface ChaosOptions extends PlanOptions {
  readonly print: (line: string) => void;
  /** Ends the run after the present round. */
  readonly signal?: AbortSignal;
}

export interface Outcome {
  readonly broken: readonly string[];
  readonly counts: Readonly<History["counts"]>;
}

export async function runChaos({ print, signal, ...options }: ChaosOptions): Promise<Outcome> {
  const plan = drawPlan(options);
  for (const line of describePlan(plan)) print(line);
  const cleanups: (() => unknown)[] = [];
  const history = new History(print);
  try {
    const scene = await startScene(plan.nodes, { history, cleanups });
    const writers = new Writers(scene, plan.seed);
    scene.onRewind.push(() => writers.rewind());
    const others = [startClients(scene), watchLease(scene)];
    const until = performance.now() + options.minutes * 60_000;
    for (const [index, round] of plan.rounds.entries()) {
      // On a busy machine rounds take longer.
      if (signal?.aborted === true || performance.now() > until) {
        history.note(`the time is over after ${index} of ${plan.rounds.length} rounds`);
        break;
      }
      await play(scene, round);
      await writers.decided();
    }
    await writers.stop();
    await settled(scene.fleet.nodes, { history: false });
    await writers.checkRoutes();
    for (const other of others) await other.stop();
  } catch (error) {
    history.breaks(`the run ended: ${error instanceof Error ? error.stack : String(error)}`);
  } finally {
    for (const cleanup of cleanups.reverse()) await cleanup();
  }
  return { broken: history.broken, counts: history.counts };
}

async function startScene(
  count: number,
  { history, cleanups }: Pick<Scene, "history" | "cleanups">,
): Promise<Scene> {
  const key = randomBytes(32);
  const environments = Array.from({ length: count }, (): Record<string, string> => ({}));
  const fleet = await TestFleet.start(count, {
    networks: true,
    keyIn: "file",
    node: (name) => ({
      dataDir: mountDisk(key, cleanups),
      env: environments[Number(name.slice(1)) - 1] ?? {},
    }),
  });
  cleanups.push(() => fleet.stop());
  cleanups.push(() => {
    // Processes that have taken over are not those of the fleet.
    for (const node of fleet.nodes) {
      const pid = pidOf(node);
      if (pid !== null) process.kill(pid, "SIGKILL");
    }
  });
  await fleet.createSite();
  await fleet.nodes[0]?.ok("PATCH", "/api/v1/routes/site", { paths: ["/site"] });
  const { wrap } = fleet.addNetwork();
  const rest = { choice: null, rotations: 0, onRewind: [] };
  const scene = { fleet, history, cleanups, environments, spare: wrap, ...rest };
  await settled(fleet.nodes);
  return { ...scene, database: fleet.postgres };
}

/** All faults of a round, and until all nodes serve again. */
async function play(scene: Scene, { faults: planned, quietMs }: Round): Promise<void> {
  const { history } = scene;
  const after = await Promise.all(
    planned.map(async (fault) => {
      await Bun.sleep(fault.afterMs);
      history.note(`begins: ${describeFault(fault)}`);
      history.counts.faults++;
      const begun = performance.now();
      const end = await faults[fault.kind](scene, fault.node ?? -1, fault.lastsMs);
      await Bun.sleep(Math.max(0, fault.lastsMs - (performance.now() - begun)));
      const whenWhole = await end();
      history.note(`ended: ${fault.kind}`);
      return whenWhole;
    }),
  );
  await heal(scene);
  for (const end of after) if (typeof end === "function") end();
  await Bun.sleep(quietMs);
}

/** While changes go on, a node is behind for moments. */
const isWhole = (state: string) => isServing(state) || state.endsWith(" lagging");

/** Measures the time until each node says that none is away, and all of them serve a change with its reply. */
async function heal(scene: Scene): Promise<void> {
  const { fleet, history } = scene;
  const begun = performance.now();
  const count = fleet.nodes.length;
  let last = "";
  await eventually(async () => {
    const states = await Promise.all(fleet.nodes.map(statesOn));
    const areThere = states.every((each) => each.length === count && each.every(isWhole));
    if (areThere && history.wholeAt > begun) return true;
    if (scene.choice !== null && states.flat().some((one) => one.endsWith(" diverged")))
      await decide(scene, scene.choice);
    last = states
      .map(
        (each, index) =>
          `n${index + 1}: ${each.filter((one) => !isServing(one)).join(", ") || "whole"}`,
      )
      .join("; ");
    throw new Error(`the fleet is not whole, by ${last}`);
  });
  scene.choice = null;
  const ms = Math.round(performance.now() - begun);
  history.counts.longest_healing_ms = Math.max(history.counts.longest_healing_ms, ms);
  history.note(`whole after ${ms} ms${ms > SOON_MS ? `; before, by ${last}` : ""}`);
  if (ms > HEALED_MS) history.breaks(`the fleet was whole only after ${ms} ms`);
}
