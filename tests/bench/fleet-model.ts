// A model of machines, of PostgreSQL and of nodes: the product's own code follows the log, and all that it waits for has a measured time.
import { randomBytes } from "node:crypto";
import { compileStored } from "../../src/control/stored.ts";
import { configs } from "../../src/control-plane.ts";
import { Changes } from "../../src/control/change.ts";
import type { FleetWrite } from "../../src/control/fleet-view.ts";
import { local } from "../../src/control/principal.ts";
import { EntryCodec } from "../../src/fleet/entry.ts";
import { Fleet } from "../../src/fleet/fleet.ts";
import { FleetStore } from "../../src/fleet/fleet-store.ts";
import { Follower } from "../../src/fleet/follower.ts";
import { FleetMeter } from "../../src/fleet/meter.ts";
import { queryTimes } from "../../src/fleet/postgres-connection.ts";
import { AppendInDoubt, type FleetSource, SourceUnreachable } from "../../src/fleet/source.ts";
import { defaultTimes } from "../../src/fleet/times.ts";
import { createLog } from "../../src/log.ts";
import type { EntryMark, Fact } from "../../src/model/fact.ts";
import { emptyConfiguration } from "../../src/store/first-configuration.ts";
import type { Random } from "../support/random.ts";
import { inTime } from "../support/relay.ts";
import { context } from "../unit/control/fixture.ts";
import { MemoryFleet } from "../unit/fleet/memory-fleet.ts";
import { at, serviceOf } from "../unit/store/fixture.ts";
import type { FleetConstants } from "./fleet-constants.ts";

const log = createLog({ level: "error", format: "json", sink: () => {} });
const codec = new EntryCodec("fleet", "key");

/** Whole packets: how far a small entry is compressed depends on its random ids, and the times must not. */
const PACKET_BYTES = 1500;

/** Cores that work on one thing after the other, in the order of arrival. */
export class Machine {
  readonly #freeAt: number[];
  #networkFreeAt = 0;
  /** Milliseconds of work of all cores. */
  busyMs = 0;
  /** Bytes that it has sent. */
  sentBytes = 0;

  constructor(cores: number) {
    this.#freeAt = Array.from({ length: cores }, () => 0);
  }

  /** Resolves when a core has done `ms` of work. */
  async work(ms: number): Promise<void> {
    const now = performance.now();
    const core = this.#freeAt.indexOf(Math.min(...this.#freeAt));
    const end = Math.max(now, this.#freeAt[core] ?? 0) + ms;
    this.#freeAt[core] = end;
    this.busyMs += ms;
    await Bun.sleep(end - now);
  }

  /** Resolves when another machine has the bytes. */
  async send(bytes: number, { latencyMs, bytesPerMs }: Network): Promise<void> {
    const now = performance.now();
    const sent = Math.ceil(bytes / PACKET_BYTES) * PACKET_BYTES;
    this.#networkFreeAt = Math.max(now, this.#networkFreeAt) + sent / bytesPerMs;
    this.sentBytes += sent;
    await Bun.sleep(this.#networkFreeAt - now + latencyMs);
  }
}

export interface Network {
  /** One way. */
  readonly latencyMs: number;
  readonly bytesPerMs: number;
}

export interface Place {
  readonly constants: FleetConstants;
  readonly network: Network;
  readonly random: Random;
}

/** Bytes of a statement or its answer without bodies; of the row of a node. */
const STATEMENT_BYTES = 300;
const ROW_BYTES = 300;

/** Counts and times the statements of all nodes. */
export class Database {
  readonly machine: Machine;
  readonly #place: Place;
  readonly #tables = new MemoryFleet();
  readonly #listeners = new Set<() => Promise<void>>();
  readonly statements = new Map<string, number>();

  constructor(machine: Machine, place: Place) {
    this.machine = machine;
    this.#place = place;
  }

  /** What a look at the lease costs, which each node makes once a second. */
  async lease(client: Machine): Promise<void> {
    const { clientMs, serverMs } = this.#place.constants.statements.lease;
    this.#count("lease");
    await client.work(clientMs);
    await this.machine.work(serverMs);
  }

  /** What a look of a node at all others costs, without the rows: a thousand nodes read a thousand of them each second. */
  async look(client: Machine): Promise<void> {
    const { statements, perRow } = this.#place.constants;
    const { size } = this.#tables;
    this.#count("nodes");
    await client.work(statements.nodes.clientMs + size * perRow.clientMs);
    await this.machine.work(statements.nodes.serverMs + size * perRow.serverMs);
    await this.machine.send(size * ROW_BYTES, this.#place.network);
  }

  #count(what: Statement): void {
    this.statements.set(what, (this.statements.get(what) ?? 0) + 1);
  }

  /** The connections of one node. */
  connect(client: Machine): FleetSource {
    const { constants, network, random } = this.#place;
    const tables = this.#tables;
    const send = async <T>(what: Statement, run: Run<T>): Promise<T> => {
      const { serverMs, clientMs } = constants.statements[what];
      this.#count(what);
      await client.work(clientMs / 2);
      await client.send(STATEMENT_BYTES + (run.sent ?? 0), network);
      await this.machine.work(serverMs + (run.serverMs ?? 0));
      await Bun.sleep(run.waitMs ?? 0);
      const result = await run.use();
      await this.machine.send(STATEMENT_BYTES + (run.size?.(result) ?? 0), network);
      await client.work(clientMs / 2 + (run.clientMs?.(result) ?? 0));
      return result;
    };
    const ask = <T>(what: Statement, run: Run<T>): Promise<T> =>
      inTime(
        send(what, run),
        DEADLINES[what],
        what === "append" ? AppendInDoubt : SourceUnreachable,
      );
    const { perListener, commitWaitMs, perRow } = constants;
    return {
      append: async (entry) => {
        const isAdded = await ask("append", {
          use: () => tables.append(entry),
          sent: entry.body.byteLength,
          serverMs: perListener.commitMs * this.#listeners.size,
          waitMs: random.pick(commitWaitMs),
        });
        if (isAdded) for (const notify of this.#listeners) void notify();
        return isAdded;
      },
      after: (position) =>
        ask("after", {
          use: () => tables.after(position),
          size: ({ entries }) => entries.reduce((sum, { body }) => sum + body.byteLength, 0),
        }),
      beat: (row) => ask("beat", { use: () => tables.beat(row) }),
      open: () => Promise.resolve(),
      nodes: () =>
        ask("nodes", {
          use: () => tables.nodes(),
          serverMs: perRow.serverMs * tables.size,
          size: (rows) => rows.length * ROW_BYTES,
          clientMs: (rows) => rows.length * perRow.clientMs,
        }),
      reserve: (node) => ask("beat", { use: () => tables.reserve("", 0).then(() => node === "") }),
      idAt: (position) => ask("after", { use: () => tables.idAt(position) }),
      whole: () => ask("after", { use: () => tables.whole() }),
      forget: (id) => ask("beat", { use: () => tables.forget(id) }),
      forgetAway: (id, ms) => ask("beat", { use: () => tables.forgetAway(id, ms) }),
      listen: async (wake) => {
        this.#listeners.add(async () => {
          // Before a later entry can come.
          const { length } = tables.entries;
          await this.machine.work(perListener.wakeMs);
          await this.machine.send(STATEMENT_BYTES, network);
          wake(length);
        });
        return true;
      },
      reconnect: () => undefined,
      close: async () => undefined,
    };
  }
}

type Statement = keyof FleetConstants["statements"];

const { queryMs, appendMs, beatMs } = queryTimes;
const DEADLINES: Readonly<Record<Statement, number>> = {
  append: appendMs,
  after: queryMs,
  beat: beatMs,
  lease: beatMs,
  nodes: queryMs,
};

interface Run<T> {
  readonly use: () => Promise<T>;
  /** Bytes of the body that is sent; default 0. */
  readonly sent?: number;
  readonly serverMs?: number;
  readonly waitMs?: number;
  readonly size?: (result: T) => number;
  readonly clientMs?: (result: T) => number;
}

export interface NodeOptions {
  readonly name: string;
  readonly source: FleetSource;
  readonly machine: Machine;
  readonly place: Place;
  /** Looks at all nodes, as each node does from time to time. */
  readonly look: () => Promise<unknown>;
  readonly lookMs: number;
  /** Whether other nodes run on the machine, so that its work without changes counts. */
  readonly isShared: boolean;
}

/** What a change costs a node: work that is waited for, work beside it, and waiting. */
interface Effort {
  readonly workMs: number;
  readonly besideMs: number;
  readonly waitMs: number;
}

/** Of a change that takes `wallMs`, with `cpuMs` of all threads together. */
const effortOf = (wallMs: number, cpuMs: number): Effort => ({
  workMs: Math.min(wallMs, cpuMs),
  besideMs: Math.max(0, cpuMs - wallMs),
  waitMs: Math.max(0, wallMs - cpuMs),
});

/** One node, with the product's code from the change to the report. */
export class SimulatedNode {
  readonly follower: Follower;
  readonly #fleet: Fleet;
  readonly #changes: Changes;
  readonly #store: FleetStore;
  readonly #options: NodeOptions;
  #mark: EntryMark | null = null;
  #isWriter = false;
  #active = 1;
  /** Each change takes so much longer. Milliseconds. */
  extraMs = 0;
  /** Calls it with the position that all workers of this node serve. */
  onServed: (position: number) => void = () => {};

  constructor(options: NodeOptions) {
    this.#options = options;
    const { name, source } = options;
    const clock = { now: () => Date.now() };
    const meter = new FleetMeter();
    // What it costs is in the looks.
    const lease = { begin: () => undefined, end: () => Promise.resolve(), isOurs: false };
    const shared = { source, codec, id: name, name, clock, meter, lease, times: defaultTimes };
    const none = () => undefined;
    this.follower = new Follower({
      ...shared,
      mark: () => this.#mark,
      url: null,
      version: "0.1.0",
      log,
      contact: { get: () => null, set: none },
      lease,
      prune: none,
      isDrained: () => false,
    });
    this.#fleet = new Fleet({
      ...this.#quiet(shared),
      follower: this.follower,
      tokenKey: () => "",
      absentMs: () => 0,
      keyPosition: () => Promise.resolve(0),
    });
    this.#store = new FleetStore({
      ...shared,
      node: name,
      store: {
        write: (entries) => {
          this.#mark = entries.at(-1)?.mark ?? this.#mark;
        },
        mark: () => this.#mark,
        load: () => ({ config: this.#changes.config, revision: this.#changes.revision }),
        facts: () => [],
        replace: () => {},
      },
      doubtMs: defaultTimes.doubt,
      term: () => null,
      log,
      requireOpen: () => this.follower.requireOpen(),
      onLost: () => this.follower.lose(),
      onObstacle: (obstacle) => this.follower.obstruct(obstacle),
      expected: (by) => this.#fleet.expected(by),
      requirePresent: () => Promise.resolve(),
      requireReadable: () => Promise.resolve(),
    });
    this.#changes = this.#createChanges(clock);
  }

  /** The looks of the view once a second are made below: reading a thousand rows on a thousand nodes would take hours. */
  #quiet<T extends { readonly source: FleetSource }>(shared: T) {
    const { source } = shared;
    return {
      ...shared,
      isDrained: () => false,
      source: {
        nodes: async () => (this.#isWriter ? await source.nodes() : []),
        forgetAway: source.forgetAway,
      },
    };
  }

  #createChanges(clock: { now(): number }): Changes {
    const current = compileStored({ config: emptyConfiguration(at), revision: 1 }, context);
    return new Changes({
      configs,
      store: this.#store,
      rollout: {
        prepare: async () => {
          await this.#half();
          return [];
        },
        activate: async (revision) => {
          await this.#half();
          this.#active = revision;
        },
        discard: async () => undefined,
        status: () => this.#rolloutStatus(),
      },
      clock,
      log,
      current,
      context: () => context,
    });
  }

  #rolloutStatus() {
    return { workers: 1, ready: 1, revision: this.#active };
  }

  /** Half of the time that this node needs for a change. */
  async #half(): Promise<void> {
    const { place, machine } = this.#options;
    const { writerMs, writerCpuMs, followerCpuMs } = place.constants.change;
    const wallMs = place.random.pick(writerMs);
    const cpuMs = this.#isWriter ? writerCpuMs : followerCpuMs;
    const share = this.#isWriter ? 1 : Math.min(1, followerCpuMs / writerCpuMs);
    const { workMs, besideMs, waitMs } = effortOf((wallMs * share) / 2, cpuMs / 2);
    if (besideMs > 0) void machine.work(besideMs);
    await machine.work(workMs);
    await Bun.sleep(waitMs + this.extraMs / 2);
  }

  async begin(): Promise<void> {
    const { look, lookMs, isShared, machine, place } = this.#options;
    const { random, constants } = place;
    // Nodes do not start at the same time.
    await Bun.sleep(random.next() * defaultTimes.beat);
    await this.follower.begin({
      changes: this.#changes,
      store: this.#store,
      rolloutStatus: () => this.#rolloutStatus(),
    });
    this.#changes.onServed(() => this.onServed(this.follower.stored));
    await Bun.sleep(random.next() * lookMs);
    setInterval(() => void look().catch(() => undefined), lookMs);
    if (isShared) setInterval(() => void machine.work(constants.idleCpuShare * 100), 100);
  }

  /** Sends so many bytes to all nodes. */
  async record(bytes: number): Promise<void> {
    const token_hash = randomBytes(bytes).toString("base64");
    const fact: Fact = { kind: "admin_token", token: { token_hash, created_at: at } };
    await this.#changes.record(() => ({ value: null, facts: [fact] }));
  }

  /** Makes a change; returns the milliseconds until the reply, and how many rows it counted. */
  async change(name: string): Promise<{ ms: number; live: number; nodes: number }> {
    const began = performance.now();
    const by = { ...local };
    const write: FleetWrite = { requires: null, waitMs: undefined, committed: null };
    this.#fleet.expect(by, write);
    this.#isWriter = true;
    try {
      await this.#changes.run({
        by,
        dryRun: false,
        mutate: (draft) => draft.put("services", serviceOf(name)),
      });
      if (write.committed === null) throw new Error("nothing was changed");
      const { live, nodes } = await this.#fleet.reach(write.committed);
      return { ms: performance.now() - began, live, nodes };
    } finally {
      this.#isWriter = false;
    }
  }
}
