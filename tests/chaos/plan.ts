// Which faults a run of chaos has, and when: the same for the same seed; knows no fleet.
import { Random } from "../support/random.ts";

const OF_NODE = [
  "kill -9",
  "SIGSTOP",
  "restart",
  "broken connections",
  "dropped packets",
  "dropped to the database",
  "dropped from the database",
  "delay of 80 ms",
  "delay of 2 s",
  "disk full",
  "clock an hour fast",
  "clock an hour slow",
  "copied node",
  "upgrade",
  "rotation of the key",
] as const;

const OF_DATABASE = [
  "database stopped",
  "database killed",
  "database restarted",
  "failover",
  "restored to the past",
] as const;

export type FaultKind = (typeof OF_NODE)[number] | (typeof OF_DATABASE)[number];

export interface PlannedFault {
  readonly kind: FaultKind;
  /** Index of the node; null: of the database. */
  readonly node: number | null;
  /** Milliseconds after the beginning of the round. */
  readonly afterMs: number;
  readonly lastsMs: number;
}

/** Faults that overlap; the next round begins when all nodes serve again. */
export interface Round {
  readonly faults: readonly PlannedFault[];
  readonly quietMs: number;
}

export interface Plan {
  readonly seed: number;
  readonly nodes: number;
  readonly rounds: readonly Round[];
}

export interface PlanOptions {
  readonly seed: number;
  readonly minutes: number;
  /** Default: 3 to 5, by the seed. */
  readonly nodes?: number | undefined;
  /** Faults of these kinds only, to find out which of them is to blame. */
  readonly only?: readonly string[] | undefined;
}

export const kinds: readonly string[] = [...OF_NODE, ...OF_DATABASE];

/** What a round takes besides its faults: starts, and until all nodes serve again. */
const HEALING_MS = 3000;

export function drawPlan({ seed, minutes, nodes: given, only = kinds }: PlanOptions): Plan {
  const random = new Random(seed);
  const some = random.between(3, 6);
  const nodes = given ?? some;
  const rounds: Round[] = [];
  for (let left = minutes * 60_000; left > 0;) {
    const drawn = drawRound(random, nodes);
    const faults = drawn.faults.filter(({ kind }) => only.includes(kind));
    if (faults.length === 0) continue;
    const round = { ...drawn, faults };
    rounds.push(round);
    const ends = round.faults.map(({ afterMs, lastsMs }) => afterMs + lastsMs);
    left -= Math.max(...ends) + round.quietMs + HEALING_MS;
  }
  return { seed, nodes, rounds };
}

/** One to three faults, each of another node or of the database. */
function drawRound(random: Random, nodes: number): Round {
  const places: (number | null)[] = [null, ...Array.from({ length: nodes }, (_, index) => index)];
  const count = random.pick([1, 1, 2, 2, 3]);
  const faults = Array.from({ length: count }, () => {
    const [node = null] = places.splice(random.between(0, places.length), 1);
    return {
      kind: node === null ? random.pick(OF_DATABASE) : random.pick(OF_NODE),
      node,
      afterMs: random.between(0, 2000),
      // Some are over before anyone notices, some last longer than a node may be silent.
      lastsMs: random.pick([random.between(200, 1500), random.between(1500, 8000)]),
    };
  });
  return { faults, quietMs: random.between(300, 1500) };
}

const seconds = (ms: number) => (ms / 1000).toFixed(1);

export const describeFault = ({ kind, node, afterMs, lastsMs }: PlannedFault): string =>
  `${kind}${node === null ? "" : ` of n${node + 1}`} after ${seconds(afterMs)} s for ${seconds(lastsMs)} s`;

export const describePlan = ({ seed, nodes, rounds }: Plan): string[] => [
  `seed ${seed}: ${nodes} nodes, ${rounds.length} rounds`,
  ...rounds.map(({ faults }, index) => `  ${index + 1}. ${faults.map(describeFault).join("; ")}`),
];
