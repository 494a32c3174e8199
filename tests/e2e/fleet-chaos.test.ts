// Faults of every kind, one upon the other, under writers at all nodes of a fleet; SLUICE_FLEET_KILLS (5) is their number.
import { cleanupsOf } from "../support/cleanups.ts";
import { checkNames, startWriters } from "../support/fleet-writers.ts";
import { isServing, settled, statesOn, TestFleet } from "../support/fleet.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { Random, seedOfRun } from "../support/random.ts";

const { afterEach, test } = needs("executable", "postgres");

const FAULTS = Number(process.env["SLUICE_FLEET_KILLS"] ?? 5);
/** Of the choice of faults; the moments at which they meet the writers are chance. */
const SEED = seedOfRun();

const cleanups = cleanupsOf(afterEach);

type End = () => unknown;

/** Each begins a fault, and returns what ends it. */
function faultsOf({ nodes, wires, postgres }: TestFleet) {
  return {
    "killed node": async (index: number) => {
      await nodes[index]!.kill9();
      return () => nodes[index]!.start();
    },
    "restarted node": async (index: number) => {
      await nodes[index]!.restart();
      return () => undefined;
    },
    "stopped node": (index: number) => {
      nodes[index]!.signal("SIGSTOP");
      return () => nodes[index]!.signal("SIGCONT");
    },
    "dropped packets": (index: number) => {
      wires[index]!.hold();
      return () => wires[index]!.heal();
    },
    "broken connections": (index: number) => {
      wires[index]!.cut();
      return () => wires[index]!.heal();
    },
    "slow connections": (index: number) => {
      wires[index]!.delayMs = 30;
      return () => {
        wires[index]!.delayMs = 0;
      };
    },
    "killed database": async () => {
      // There is only one: without it no change is made.
      await postgres.kill();
      await Bun.sleep(1500);
      await postgres.start();
      return () => undefined;
    },
  } satisfies Record<string, (index: number) => End | Promise<End>>;
}

test(
  `no answered change is lost, whatever fails (SLUICE_TEST_SEED=${SEED})`,
  async () => {
    const fleet = await TestFleet.start(3, { wired: true });
    cleanups.push(() => fleet.stop());
    const random = new Random(SEED);
    const writers = startWriters(fleet.nodes);
    const faults = Object.values(faultsOf(fleet));
    /** What ends the faults that go on, by the node that they are of: one lasts while the next one begins. */
    const lasting = new Map<number, End>();
    const endAll = async () => {
      for (const end of lasting.values()) await end();
      lasting.clear();
    };
    for (let round = 0; round < FAULTS; round++) {
      await writers.answers(random.between(5, 15));
      const index = random.between(0, 3);
      if (lasting.has(index)) await endAll();
      lasting.set(index, await random.pick(faults)(index));
      // Long enough for some of them to be noticed.
      await Bun.sleep(random.between(0, 4) * 800);
      if (lasting.size > 1) await endAll();
    }
    await endAll();
    await writers.answers(5);
    const written = await writers.stop();
    await eventually(async () => (await statesOn(fleet.nodes[0]!)).every(isServing));
    checkNames(await settled(fleet.nodes), written);
  },
  60_000 + FAULTS * 8000,
);
