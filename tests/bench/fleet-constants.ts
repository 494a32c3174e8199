// Measures what the simulation of large fleets is made of: statements of the product against a PostgreSQL server, and two compiled nodes.
import { readdirSync, readFileSync } from "node:fs";
import { EntryCodec } from "../../src/fleet/entry.ts";
import { isSigned, signNode } from "../../src/fleet/node-row.ts";
import type { PostgresSource } from "../../src/fleet/postgres-source.ts";
import type { Heartbeat } from "../../src/fleet/source.ts";
import { create, type Reply, TestFleet } from "../support/fleet.ts";
import type { Gateway } from "../support/gateway.ts";
import { eventually } from "../support/poll.ts";
import { Postgres } from "../support/postgres.ts";
import { percentile } from "./load.ts";
import { processorTimeUs } from "./processes.ts";
import { queryTimes } from "../../src/fleet/postgres-connection.ts";
import { createSource } from "../support/fleet-source.ts";

/** Processor time of one statement, in milliseconds. */
interface Statement {
  /** Of PostgreSQL. */
  readonly serverMs: number;
  /** Of the node that sends it. */
  readonly clientMs: number;
}

export interface FleetConstants {
  readonly statements: Readonly<Record<"append" | "after" | "beat" | "lease" | "nodes", Statement>>;
  /** Wait of an append beyond its processor time: the disk. A sample. */
  readonly commitWaitMs: readonly number[];
  /** What each listening connection adds to an append: until the commit returns, and after it. */
  readonly perListener: { readonly commitMs: number; readonly wakeMs: number };
  /** What each row adds to a look at all nodes, with the verification of its signature. */
  readonly perRow: Statement;
  /** A change on a compiled node with two workers. */
  readonly change: {
    /** Until it is prepared, stored and active, without the statements. A sample. */
    readonly writerMs: readonly number[];
    /** Processor time of all threads, on the node that makes it and on one that follows. */
    readonly writerCpuMs: number;
    readonly followerCpuMs: number;
  };
  /** Processor time of a node without changes and requests, as a share of one core; its statements included. */
  readonly idleCpuShare: number;
  /** Memory of a connection that is in use, in bytes. */
  readonly backendBytes: number;
}

/** The table of an append: connections that listen, median of its time, processor time of PostgreSQL; milliseconds. */
export type AppendRow = readonly [listeners: number, p50Ms: number, serverMs: number];

export interface Measured {
  readonly constants: FleetConstants;
  readonly appends: readonly AppendRow[];
  /** Heartbeats per second that PostgreSQL takes from three connections. */
  readonly beatsPerSecond: number;
}

const LISTENERS = [10, 50, 100, 250];
const ROWS = [10, 50, 200, 1000];
const BODY_BYTES = 1024;
const BATCHES = 3;
const codec = new EntryCodec("fleet", "key");

const median = (times: readonly number[]) =>
  percentile(
    times.toSorted((one, other) => one - other),
    0.5,
  );

/** Of straight lines through the points: what one more costs, and what none costs. */
export function lineOf(points: readonly (readonly [x: number, y: number])[]) {
  const mean = (values: readonly number[]) =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(points.map((point) => point[0])), mean(points.map((point) => point[1]))];
  const slope =
    mean(points.map((point) => (point[0] - x) * (point[1] - y))) /
    mean(points.map((point) => (point[0] - x) ** 2));
  return { slope: Math.max(0, slope), base: Math.max(0, y - slope * x) };
}

/** The processes of a server. */
class ServerProcesses {
  readonly #postmaster: number;

  private constructor(postmaster: number) {
    this.#postmaster = postmaster;
  }

  static async of(sql: Bun.SQL): Promise<ServerProcesses> {
    const [{ pid }] = await sql`select pg_backend_pid() as pid`;
    return new ServerProcesses(Number(fieldOf(pid, "PPid")));
  }

  /** Processor time of all, in milliseconds. */
  cpuMs(): number {
    return this.#backends().reduce((sum, pid) => {
      const [ns] = read(`/proc/${pid}/schedstat`).split(" ");
      return sum + Number(ns) / 1e6;
    }, 0);
  }

  /** Memory that a process has for itself; median of those that serve a client. */
  backendBytes(): number {
    const privateOf = (pid: number) =>
      /^Private_Dirty:\s+(\d+)/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1];
    const sizes = this.#backends()
      .filter((pid) => read(`/proc/${pid}/cmdline`).includes("127.0.0.1"))
      .map((pid) => Number(privateOf(pid)) * 1024)
      .filter(Number.isFinite);
    return median(sizes);
  }

  #backends(): number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => Number(fieldOf(pid, "PPid")) === this.#postmaster);
  }
}

/** Empty when it is gone. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

const fieldOf = (pid: number, name: string) =>
  new RegExp(`^${name}:\\s+(\\S+)`, "m").exec(read(`/proc/${pid}/status`))?.[1];

const rowOf = (index: number): Heartbeat => {
  const row = {
    id: Bun.randomUUIDv5(`n${index}`, "dns"),
    name: `n${index}`,
    url: "https://10.0.0.11:9080",
    version: "0.1.0",
    formatMax: 1,
    stored: index,
    served: index,
    state: "serving",
    error: "",
    draining: false,
    clockOffsetMs: 1,
  };
  return { ...row, mac: signNode(codec, row) };
};

interface Repeated extends Statement {
  readonly times: readonly number[];
}

/** The batch with the lowest median: other programs of this machine disturb some of them. */
async function quietest<T extends { readonly times: readonly number[] }>(
  batch: () => Promise<T>,
): Promise<T> {
  let best = await batch();
  for (let round = 1; round < BATCHES; round++) {
    const next = await batch();
    if (median(next.times) < median(best.times)) best = next;
  }
  return best;
}

class Laboratory {
  readonly source: PostgresSource;
  readonly postgres: Postgres;
  readonly #processes: ServerProcesses;
  #position = 0;

  constructor(postgres: Postgres, source: PostgresSource, processes: ServerProcesses) {
    this.postgres = postgres;
    this.source = source;
    this.#processes = processes;
  }

  static async open(): Promise<Laboratory> {
    const postgres = await Postgres.create();
    const first = postgres.connect();
    await first`alter system set max_connections = 300`;
    await first.close();
    await postgres.kill();
    await postgres.start();
    const source = createSource(postgres, queryTimes);
    await source.open();
    const sql = postgres.connect();
    const processes = await ServerProcesses.of(sql);
    await sql.close();
    return new Laboratory(postgres, source, processes);
  }

  /** One after the other: what each costs on both sides. */
  async repeat(count: number, statement: () => Promise<unknown>): Promise<Repeated> {
    for (let round = 0; round < 20; round++) await statement();
    return await quietest(() => this.#batch(Math.ceil(count / BATCHES), statement));
  }

  async #batch(count: number, statement: () => Promise<unknown>): Promise<Repeated> {
    const times: number[] = [];
    const server = this.#processes.cpuMs();
    const client = process.cpuUsage();
    for (let round = 0; round < count; round++) {
      const began = performance.now();
      await statement();
      times.push(performance.now() - began);
    }
    const { user, system } = process.cpuUsage(client);
    const serverMs = (this.#processes.cpuMs() - server) / count;
    return { times, serverMs, clientMs: (user + system) / 1000 / count };
  }

  async append(): Promise<void> {
    const mark = { position: ++this.#position, id: Bun.randomUUIDv7() };
    const body = crypto.getRandomValues(new Uint8Array(BODY_BYTES));
    const entry = { ...mark, kind: "change", node: "n1", format: 1, body, mac: body.slice(0, 32) };
    if (!(await this.source.append({ ...entry, kind: "change" }))) throw new Error("not appended");
  }

  get position(): number {
    return this.#position;
  }

  backendBytes(): number {
    return this.#processes.backendBytes();
  }

  async close(): Promise<void> {
    await this.source.close();
    await this.postgres.stop();
  }
}

async function measureAppends(laboratory: Laboratory) {
  const listeners: Bun.SQL[] = [];
  const rows: AppendRow[] = [];
  let first: Repeated | null = null;
  for (const count of LISTENERS) {
    while (listeners.length < count) {
      const sql = new Bun.SQL(laboratory.postgres.url, { max: 1, prepare: false });
      await sql.listen("sluice", () => {});
      listeners.push(sql);
    }
    const repeated = await laboratory.repeat(300, () => laboratory.append());
    first ??= repeated;
    rows.push([count, median(repeated.times), repeated.serverMs]);
  }
  for (const sql of listeners) await sql.close({ timeout: 0 });
  if (first === null) throw new Error("nothing was measured");
  return { rows, first };
}

async function beatsPerSecond({ source }: Laboratory): Promise<number> {
  const rows = Array.from({ length: 50 }, (_, index) => rowOf(index));
  const began = performance.now();
  let beats = 0;
  const run = async () => {
    for (; beats < 3000; beats++) await source.beat(rows[beats % rows.length] ?? rowOf(0));
  };
  await Promise.all([run(), run(), run()]);
  return (beats / (performance.now() - began)) * 1000;
}

async function measureLooks(laboratory: Laboratory) {
  const { source } = laboratory;
  const costs: (readonly [number, Statement])[] = [];
  let written = 0;
  for (const count of ROWS) {
    for (; written < count; written++) await source.beat(rowOf(written));
    const look = async () => {
      const nodes = await source.nodes();
      if (!nodes.every((node) => isSigned(codec, node))) throw new Error("a row is not signed");
    };
    costs.push([count, await laboratory.repeat(Math.ceil(20_000 / (count + 50)), look)]);
  }
  const server = lineOf(costs.map(([count, { serverMs }]) => [count, serverMs]));
  const client = lineOf(costs.map(([count, { clientMs }]) => [count, clientMs]));
  return {
    perRow: { serverMs: server.slope, clientMs: client.slope },
    base: { serverMs: server.base, clientMs: client.base },
  };
}

async function measureDatabase() {
  const laboratory = await Laboratory.open();
  try {
    const { rows, first } = await measureAppends(laboratory);
    const perBeat = rowOf(1);
    const beat = await laboratory.repeat(1000, () => laboratory.source.beat(perBeat));
    const wanted = { holder: Bun.randomUUIDv7(), nodeId: "n1", ms: 600_000 };
    await laboratory.source.lease(wanted);
    // As all nodes but one.
    const other = { ...wanted, holder: Bun.randomUUIDv7() };
    const lease = await laboratory.repeat(1000, () => laboratory.source.lease(other));
    const before = laboratory.position - 1;
    const after = await laboratory.repeat(1000, () => laboratory.source.after(before));
    const perSecond = await beatsPerSecond(laboratory);
    const { perRow, base } = await measureLooks(laboratory);
    const commit = lineOf(rows.map(([count, p50Ms]) => [count, p50Ms]));
    const cpu = lineOf(rows.map(([count, , serverMs]) => [count, serverMs]));
    const [listeners = 0] = LISTENERS;
    const wakeMs = Math.max(0, cpu.slope - commit.slope);
    // More listeners cost more than their number: the line begins at the first point.
    const serverMs = Math.max(0, first.serverMs - cpu.slope * listeners);
    const append = { serverMs, clientMs: first.clientMs };
    const ownMs = append.serverMs + append.clientMs + commit.slope * listeners;
    return {
      statements: { append, after, beat, lease, nodes: base },
      commitWaitMs: first.times.map((ms) => Math.max(0, ms - ownMs)),
      perListener: { commitMs: commit.slope, wakeMs },
      perRow,
      // Those of the node's statements are left.
      backendBytes: laboratory.backendBytes(),
      appends: rows,
      beatsPerSecond: perSecond,
    };
  } finally {
    await laboratory.close();
  }
}

const CHANGES = 60;

async function changeOn(node: Gateway): Promise<Reply> {
  const reply = await create(node, `s${Math.random()}`);
  if (reply.status !== 200) throw new Error(reply.text);
  return reply;
}

/** Changes on the first of the nodes; processor time of the last one for each, without what it needs anyway. */
async function changesOn(nodes: readonly Gateway[], idleCpuShare: number) {
  const [writer, observed] = [nodes[0], nodes.at(-1)];
  if (writer === undefined || observed === undefined) throw new Error("a fleet needs a node");
  const times: number[] = [];
  const from = processorTimeUs(observed.pid);
  const began = performance.now();
  for (let round = 0; round < CHANGES; round++) times.push((await changeOn(writer)).ms);
  const idleMs = idleCpuShare * (performance.now() - began);
  const cpuMs = (processorTimeUs(observed.pid) - from) / 1000 - idleMs;
  return { times, cpuMs: Math.max(0.5, cpuMs / CHANGES) };
}

async function idleShareOf({ pid }: Gateway): Promise<number> {
  const from = processorTimeUs(pid);
  const began = performance.now();
  await Bun.sleep(3000);
  return (processorTimeUs(pid) - from) / 1000 / (performance.now() - began);
}

async function measureNodes(statementsMs: number) {
  const fleet = await TestFleet.start(1, { workers: 2 });
  try {
    const { nodes } = fleet;
    const [writer] = nodes as [Gateway];
    await changesOn(nodes, 0);
    const idleCpuShare = await idleShareOf(writer);
    const alone = await quietest(() => changesOn(nodes, idleCpuShare));
    await fleet.add();
    const isLive = async () => (await changeOn(writer)).nodes === "2/2";
    await eventually(isLive);
    const followed = await quietest(() => changesOn(nodes, idleCpuShare));
    return {
      idleCpuShare,
      change: {
        writerMs: alone.times.map((ms) => Math.max(0.5, ms - statementsMs)),
        writerCpuMs: alone.cpuMs,
        followerCpuMs: followed.cpuMs,
      },
    };
  } finally {
    await fleet.stop();
  }
}

export async function measureConstants(): Promise<Measured> {
  const { appends, beatsPerSecond: perSecond, ...database } = await measureDatabase();
  const { statements, commitWaitMs } = database;
  const sumOf = ({ serverMs, clientMs }: Statement) => serverMs + clientMs;
  // A change on one node waits for its append and for one look at the nodes.
  const statementsMs = sumOf(statements.append) + median(commitWaitMs) + sumOf(statements.nodes);
  const nodes = await measureNodes(statementsMs);
  return { constants: { ...database, ...nodes }, appends, beatsPerSecond: perSecond };
}
