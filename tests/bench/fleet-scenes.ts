// Scenes of large fleets on a virtual clock: nodes at one database, nodes behind relays, and what fails there.
import { EntryCodec } from "../../src/fleet/entry.ts";
import { queryTimes } from "../../src/fleet/postgres-connection.ts";
import { defaultTimes } from "../../src/fleet/times.ts";
import { Random } from "../support/random.ts";
import { LeafSource, Relay } from "../support/relay.ts";
import { VirtualTime } from "../support/virtual-time.ts";
import type { FleetConstants } from "./fleet-constants.ts";
import { Database, Machine, type Network, type Place, SimulatedNode } from "./fleet-model.ts";
import { percentile } from "./load.ts";

export interface Scene {
  readonly nodes: number;
  /** 0: all nodes use the database. The relays are nodes as well. */
  readonly relays: number;
  readonly changes: number;
  /** All run on one machine with the database, as in the other benchmarks. */
  readonly isOneMachine: boolean;
  readonly seed: number;
}

export interface Outcome {
  /** Until the reply; sorted. */
  readonly replyMs: readonly number[];
  /** Until the last node serves it; sorted. Infinity: not within 30 seconds. */
  readonly liveMs: readonly number[];
  /** Changes that the node refused, because it was cut off. */
  readonly refused: number;
  /** Per second, without changes. */
  readonly statementsPerSecond: number;
  /** Cores that the database keeps busy without changes; more than it has: it falls behind. */
  readonly databaseCores: number;
  /** Connections: each node has three. */
  readonly backends: number;
  /** Bytes that the database sends for an entry of one megabyte, and until the last node has it. */
  readonly largeBytes: number;
  readonly largeMs: number;
}

export interface RelayOutcome {
  /** From the end of a relay until each of its leaves serves the next change; sorted. */
  readonly movedMs: readonly number[];
  /** With a leaf that needs five seconds for each change: until the reply, and until all others serve it. */
  readonly slowReplyMs: number;
  readonly slowLiveMs: number;
}

const LAN: Network = { latencyMs: 0.1, bytesPerMs: 125_000 };
const LOOPBACK: Network = { latencyMs: 0.02, bytesPerMs: 2_000_000 };

const CORES = 2;
const WRITERS = 5;
const LIVE_MS = 30_000;
const SLOW_MS = 5000;
const LARGE_BYTES = 1_000_000;
/** A node looks at the others once a second, and at the lease. */
const LOOK_MS = 1000;
/** Behind a relay, whose answer may be that old. */
const LEAF_LOOK_MS = 5000;
const FRESH_MS = 5;

const codec = new EntryCodec("fleet", "key");

/** Runs `use` on a virtual clock; the clocks of this process are real again afterwards. */
async function virtually<T>(use: () => Promise<T>): Promise<T> {
  const time = new VirtualTime();
  const restore = time.install();
  try {
    return await time.run(use);
  } finally {
    restore();
  }
}

const isTrue = async (check: () => boolean, withinMs: number): Promise<boolean> => {
  const end = performance.now() + withinMs;
  while (!check()) {
    if (performance.now() > end) return false;
    await Bun.sleep(1);
  }
  return true;
};

class World {
  readonly database: Database;
  readonly nodes: SimulatedNode[] = [];
  readonly relays: Relay[] = [];
  /** The leaves of each relay. */
  readonly leaves: SimulatedNode[][] = [];
  readonly random: Random;
  readonly #scene: Scene;
  readonly #place: Place;
  readonly #shared: Machine | null;
  #position = 0;
  /** Nodes that do not serve the last change. */
  readonly lacking = new Set<SimulatedNode>();

  constructor(scene: Scene, constants: FleetConstants) {
    this.#scene = scene;
    this.random = new Random(scene.seed);
    const network = scene.isOneMachine ? LOOPBACK : LAN;
    this.#place = { constants, network, random: this.random };
    this.#shared = scene.isOneMachine ? new Machine(CORES) : null;
    this.database = new Database(this.#shared ?? new Machine(CORES), this.#place);
    for (let index = 0; index < scene.relays; index++) this.#addRelay(index);
    for (let index = scene.relays; index < scene.nodes; index++)
      if (scene.relays === 0) this.#addFlat(index);
      else this.#addLeaf(index);
  }

  readonly #machines = new Map<Relay, Machine>();

  #addRelay(index: number): void {
    const machine = new Machine(CORES);
    const upstream = this.database.connect(machine);
    const relay = new Relay({ upstream, codec, awayMs: defaultTimes.away, freshMs: FRESH_MS });
    this.relays.push(relay);
    this.leaves.push([]);
    this.#machines.set(relay, machine);
    const look = () => Promise.all([relay.nodes(), this.database.lease(machine)]);
    this.#add(index, { source: relay, machine, look, lookMs: LOOK_MS });
  }

  #addFlat(index: number): void {
    const machine = this.#shared ?? new Machine(CORES);
    const { database } = this;
    const look = () => Promise.all([database.look(machine), database.lease(machine)]);
    this.#add(index, { source: this.database.connect(machine), machine, look, lookMs: LOOK_MS });
  }

  #addLeaf(index: number): void {
    const machine = new Machine(CORES);
    const own = index % this.relays.length;
    const { network, constants } = this.#place;
    const { clientMs } = constants.statements.beat;
    const source = new LeafSource({
      relays: [...this.relays.slice(own), ...this.relays.slice(0, own)],
      deadlineMs: queryTimes.beatMs,
      carry: async (relay, bytes, from) => {
        const [sender, receiver] = [machine, this.#machines.get(relay) ?? machine];
        const ends = from === "leaf" ? [sender, receiver] : [receiver, sender];
        // A message costs each side half of what a statement costs its client.
        await ends[0]?.work(clientMs / 2);
        await ends[0]?.send(bytes, network);
        await ends[1]?.work(clientMs / 2);
      },
    });
    const look = () => source.nodes();
    const leaf = this.#add(index, { source, machine, look, lookMs: LEAF_LOOK_MS });
    this.leaves[own]?.push(leaf);
  }

  #add(
    index: number,
    options: Pick<
      ConstructorParameters<typeof SimulatedNode>[0],
      "source" | "machine" | "look" | "lookMs"
    >,
  ): SimulatedNode {
    const isShared = this.#shared !== null;
    const node = new SimulatedNode({ ...options, name: `n${index}`, place: this.#place, isShared });
    node.onServed = (position) => {
      if (position >= this.#position) this.lacking.delete(node);
    };
    this.nodes.push(node);
    return node;
  }

  /** All nodes serve when this resolves. */
  async begin(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.begin()));
    await Bun.sleep(2000);
  }

  /** Nodes that make changes: leaves where there are some. */
  writer(round: number): SimulatedNode {
    const first = this.#scene.relays;
    const node = this.nodes[first + (round % Math.min(WRITERS, this.nodes.length - first))];
    if (node === undefined) throw new Error("a fleet needs a node");
    return node;
  }

  /** Milliseconds until the reply and until the last node serves it; null: refused. */
  async change(round: number, without: readonly SimulatedNode[] = []) {
    this.#position++;
    this.lacking.clear();
    for (const node of this.nodes) if (!without.includes(node)) this.lacking.add(node);
    const began = performance.now();
    let liveMs = Number.POSITIVE_INFINITY;
    const live = isTrue(() => this.lacking.size === 0, LIVE_MS).then((isLive) => {
      if (isLive) liveMs = performance.now() - began;
    });
    try {
      const { ms: replyMs } = await this.writer(round).change(`s${this.#position}`);
      await live;
      return { replyMs, liveMs };
    } catch {
      this.#position--;
      this.lacking.clear();
      await live;
      return null;
    }
  }

  /** Bytes from the database for an entry of a megabyte, and the milliseconds until all have it. */
  async large() {
    const began = performance.now();
    const { sentBytes } = this.database.machine;
    const position = ++this.#position;
    await this.writer(0).record(LARGE_BYTES);
    const haveAll = () => this.nodes.every(({ follower }) => follower.stored >= position);
    await isTrue(haveAll, LIVE_MS);
    return {
      largeBytes: this.database.machine.sentBytes - sentBytes,
      largeMs: haveAll() ? performance.now() - began : Number.POSITIVE_INFINITY,
    };
  }

  get statements(): number {
    return [...this.database.statements.values()].reduce((sum, count) => sum + count, 0);
  }
}

const sorted = (times: readonly number[]) => times.toSorted((one, other) => one - other);

export const simulate = (scene: Scene, constants: FleetConstants): Promise<Outcome> =>
  virtually(async () => {
    const world = new World(scene, constants);
    await world.begin();
    const { statements } = world;
    const { busyMs } = world.database.machine;
    const IDLE_MS = 3000;
    await Bun.sleep(IDLE_MS);
    const statementsPerSecond = ((world.statements - statements) / IDLE_MS) * 1000;
    const databaseCores = (world.database.machine.busyMs - busyMs) / IDLE_MS;
    const results: NonNullable<Awaited<ReturnType<World["change"]>>>[] = [];
    let refused = 0;
    for (let round = 0; round < scene.changes; round++) {
      const result = await world.change(round);
      if (result === null) refused++;
      else results.push(result);
      // A fleet that does not follow needs no further proof.
      if (refused > 2 || results.at(-1)?.liveMs === Number.POSITIVE_INFINITY) break;
      await Bun.sleep(world.random.next() * 200);
    }
    const none = { largeBytes: Number.NaN, largeMs: Number.POSITIVE_INFINITY };
    const large = refused === 0 ? await world.large().catch(() => none) : none;
    return {
      replyMs: sorted(results.map(({ replyMs }) => replyMs)),
      liveMs: sorted(results.map(({ liveMs }) => liveMs)),
      refused,
      statementsPerSecond,
      databaseCores,
      backends: 3 * (scene.relays === 0 ? scene.nodes : scene.relays),
      ...large,
    };
  });

/** What fails behind relays: a relay ends without a word, and a leaf is slow. */
export const simulateFaults = (scene: Scene, constants: FleetConstants): Promise<RelayOutcome> =>
  virtually(async () => {
    const world = new World(scene, constants);
    await world.begin();
    await world.change(0);
    // Not one of the writers.
    const [slow] = world.nodes.slice(-1);
    if (slow !== undefined) slow.extraMs = SLOW_MS;
    const delayed = await world.change(1, slow === undefined ? [] : [slow]);
    if (slow !== undefined) slow.extraMs = 0;
    await Bun.sleep(SLOW_MS * 2);

    const dead = world.relays.length - 1;
    const relay = world.relays[dead];
    const orphans = world.leaves[dead] ?? [];
    if (relay === undefined) throw new Error("there is no relay");
    relay.isEnded = true;
    const ended = performance.now();
    await world.nodes[dead]?.follower.suspend();
    const movedMs: number[] = [];
    for (const orphan of orphans)
      orphan.onServed = () => void movedMs.push(performance.now() - ended);
    await world.change(2, [...orphans, ...world.nodes.slice(dead, dead + 1)]);
    await isTrue(() => movedMs.length === orphans.length, LIVE_MS);
    return {
      movedMs: sorted(movedMs),
      slowReplyMs: delayed?.replyMs ?? Number.POSITIVE_INFINITY,
      slowLiveMs: delayed?.liveMs ?? Number.POSITIVE_INFINITY,
    };
  });

export const p50 = (times: readonly number[]): number => percentile(times, 0.5);
export const p99 = (times: readonly number[]): number => percentile(times, 0.99);
