// A node of a fleet with a database of its own and without workers, which can end at any step and start again.
import { compileStored } from "../../../src/control/stored.ts";
import { configs } from "../../../src/control-plane.ts";
import { Changes } from "../../../src/control/change.ts";
import type { FleetWrite } from "../../../src/control/fleet-view.ts";
import { local } from "../../../src/control/principal.ts";
import { type Entry, EntryCodec } from "../../../src/fleet/entry.ts";
import type { FormatNeed } from "../../../src/fleet/entry-format.ts";
import { FleetStore } from "../../../src/fleet/fleet-store.ts";
import type { NodeStore } from "../../../src/fleet/log-reader.ts";
import { FleetMeter } from "../../../src/fleet/meter.ts";
import { wholeEntry } from "../../../src/fleet/whole.ts";
import { ApiError, StorageError } from "../../../src/model/error.ts";
import type { RolloutStatus } from "../../../src/snapshot/rollout.ts";
import { createLog } from "../../../src/log.ts";
import type { Draft } from "../../../src/control/draft.ts";
import type { GatewayConfig } from "../../../src/model/gateway-config.ts";
import { emptyConfiguration } from "../../../src/store/first-configuration.ts";
import type { Store } from "../../../src/store/store.ts";
import { context } from "../control/fixture.ts";
import { at, openStore, temporaryDirectory } from "../store/fixture.ts";
import type { EntrySource, Term } from "../../../src/fleet/source.ts";
import { Crash, MemorySource } from "./memory-source.ts";

const log = createLog({ level: "error", format: "json", sink: () => {} });

export const codec = new EntryCodec("fleet", "key");

export class TestNode {
  readonly #directory = temporaryDirectory();
  readonly #path: string;
  readonly #name: string;
  readonly #source: EntrySource;
  readonly #clock: { now(): number };
  /** Whether nothing can be written to its database. */
  isFull = false;
  /** Positions at which the database was copied, before it lost changes. */
  readonly copies: number[] = [];
  /** Whether a worker does not activate versions. */
  isStuck = false;
  /** What the next changes expect of the other nodes. */
  expects: FleetWrite | null = null;
  /** Called for entries that the first format cannot hold. */
  onNeed: (need: FormatNeed) => void = () => {};
  /** Whether the other nodes are away. */
  isAlone = false;
  /** What it counts on to do the work of the fleet with. */
  term: Term | null = null;
  /** Ends the node in this step of the next change. */
  crashIn: "none" | "prepare" | "activate" = "none";
  #active = 1;
  store!: Store;
  changes!: Changes;
  fleetStore!: FleetStore;
  /** Revisions that the workers served, in order. */
  readonly served: number[] = [];

  /** `aheadMs`: how far its clock is ahead; `directory`: an existing one. */
  constructor(name: string, source: EntrySource, aheadMs: number, directory?: string) {
    this.#path = directory ?? this.#directory.path;
    this.#name = name;
    this.#source = source;
    this.#clock = { now: () => Date.parse(at) + aheadMs };
    this.start();
  }

  start(): void {
    this.store = openStore(this.#path).store;
    if (this.store.isEmpty())
      this.store.begin(emptyConfiguration(at), { at, actor: "test", summary: "first start" });
    const options = {
      store: this.#limited(),
      source: this.#source,
      codec,
      node: this.#name,
      keepCopy: (position: number) => void this.copies.push(position),
      doubtMs: 0,
      log,
      requireOpen: () => {},
      onLost: () => {},
      onObstacle: () => {},
      expected: () => this.expects,
      requireReadable: async (need: FormatNeed) => this.onNeed(need),
      requirePresent: async () => {
        if (this.isAlone) throw new ApiError(409, "too few nodes are present");
      },
      meter: new FleetMeter(),
      term: () => this.term,
    };
    this.crashIn = "none";
    this.isFull = false;
    this.fleetStore = new FleetStore(options);
    this.#active = this.store.load().revision;
    this.changes = new Changes({
      configs,
      store: this.fleetStore,
      rollout: {
        prepare: async () => {
          this.#step("prepare");
          return [];
        },
        activate: async (revision) => {
          this.#step("activate");
          this.#active = revision;
          if (this.isStuck) throw new ApiError(500, "a worker is being replaced");
          this.served.push(revision);
        },
        discard: async () => {},
        status: () => this.rolloutStatus(),
      },
      clock: this.#clock,
      log,
      current: compileStored(this.store.load(), context),
      context: () => context,
    });
  }

  rolloutStatus(): RolloutStatus {
    return { workers: 1, ready: this.isStuck ? 0 : 1, revision: this.#active };
  }

  /** The store, whose disk can be full. */
  #limited(): NodeStore {
    const { store } = this;
    return {
      write: (entries) => {
        if (this.isFull) throw new StorageError("the disk is full; nothing was changed");
        store.write(entries);
      },
      mark: () => store.mark(),
      load: () => store.load(),
      facts: () => store.facts(),
      replace: (commit) => store.replace(commit),
    };
  }

  /** What it has, for nodes that join; `position`: as a decision for all nodes, which makes revision `revision`. */
  whole(decided?: { readonly position: number; readonly revision: number }): Entry {
    const by = { store: this.store, codec, node: this.#name };
    if (decided === undefined) return wholeEntry(by, this.store.mark()!);
    const mark = { position: decided.position, id: Bun.randomUUIDv7() };
    return wholeEntry(by, mark, { revision: decided.revision, summary: "decided" });
  }

  #step(step: "prepare" | "activate"): void {
    if (this.crashIn === step) throw new Crash();
  }

  /** Ends without any last work, as `kill -9` does, and starts from what is on its disk. */
  restart(): void {
    this.store.close();
    this.start();
  }

  change(mutate: (draft: Draft) => void | Promise<void>) {
    return this.changes.run({ by: local, dryRun: false, mutate });
  }

  /** Whether it serves a change that it could not store. */
  get isBehindItself(): boolean {
    return this.store.load().revision < this.changes.revision;
  }

  get config(): GatewayConfig {
    return this.changes.config;
  }

  close(): void {
    this.store.close();
    this.#directory[Symbol.dispose]();
  }
}

/** n1 and n2 over one log; `using` closes them. */
export function twoNodes() {
  const source = new MemorySource();
  const nodes = [new TestNode("n1", source, 0), new TestNode("n2", source, 0)] as const;
  return {
    source,
    nodes,
    [Symbol.dispose]() {
      for (const node of nodes) node.close();
    },
  };
}
