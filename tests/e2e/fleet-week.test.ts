// Heartbeats, leases and batches of a fleet at an accelerated clock: nothing grows, neither in the database nor in a node.
import { expect } from "bun:test";
import { heapStats } from "bun:jsc";
import { Fleet } from "../../src/fleet/fleet.ts";
import { Follower } from "../../src/fleet/follower.ts";
import { Lease } from "../../src/fleet/lease.ts";
import { FleetMeter } from "../../src/fleet/meter.ts";
import type { PostgresSource } from "../../src/fleet/postgres-source.ts";
import { defaultTimes } from "../../src/fleet/times.ts";
import { pruneEvery } from "../../src/fleet/whole.ts";
import { createLog } from "../../src/log.ts";
import { cleanupsOf } from "../support/cleanups.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { Postgres } from "../support/postgres.ts";
import { codec, TestNode } from "../unit/fleet/node.ts";
import { createSource } from "../support/fleet-source.ts";

const { afterEach, test } = needs("postgres");

/** Three nodes make 3,628,800 in a week; by default a share of them that CI has the time for. */
const BEATS = Number(process.env["SLUICE_FLEET_BEATS"] ?? 12_000);
/** A node with users sends at most one batch with two heartbeats; each is a commit on disk and a write on three nodes. */
const BEATS_PER_BATCH = 40;
const KEEP = 50;
const PAGE_BYTES = 8192;

const cleanups = cleanupsOf(afterEach);

const log = createLog({ level: "error", format: "json", sink: () => {} });

/** A node as it runs, only that its next heartbeat follows the last one at once, and that an hour is a second. */
class QuickNode {
  readonly lease: Lease;
  readonly follower: Follower;
  readonly node: TestNode;
  readonly #name: string;
  beats = 0;
  #batches = 0;
  #isRecording = false;

  constructor(name: string, source: PostgresSource) {
    this.#name = name;
    this.node = new TestNode(name, source, 0);
    const { store } = this.node;
    const times = { ...defaultTimes, beat: 0, poll: 0, prune: 50 };
    this.lease = new Lease({
      source,
      id: name,
      state: () => this.follower.state,
      times: { ttl: 3000, held: 2000, renew: 2 },
    });
    const shared = { source, codec, id: name, name, clock: Date, times, lease: this.lease };
    const absentMs = () => 86_400_000;
    const limits = { keep: KEEP, absentMs };
    const pruning = {
      source,
      codec,
      store,
      node: name,
      ...limits,
      log,
      duty: this.lease,
      box: { onReplaced() {} },
    };
    const isDrained = () => false;
    this.follower = new Follower({
      ...shared,
      mark: () => store.mark(),
      url: null,
      version: "0",
      log,
      contact: { get: () => null, set() {} },
      prune: pruneEvery(times.prune, pruning),
      isDrained,
    });
    const meter = new FleetMeter();
    const keyPosition = () => Promise.resolve(0);
    const given = { isDrained, tokenKey: () => "", absentMs, keyPosition };
    const parts = { follower: this.follower, meter, ...given };
    new Fleet({ ...shared, ...parts });
    this.follower.onBeat(() => {
      this.beats++;
      if (this.beats % BEATS_PER_BATCH === 0) void this.#record();
    });
  }

  async begin(): Promise<void> {
    const { changes, fleetStore: store } = this.node;
    const rolloutStatus = () => this.node.rolloutStatus();
    await this.follower.begin({ changes, store, rolloutStatus });
  }

  /** As a batch of what this node has seen; none while one is on its way. */
  async #record(): Promise<void> {
    if (this.#isRecording) return;
    this.#isRecording = true;
    const activity = {
      ...{ batch_id: Bun.randomUUIDv7(), node_id: this.#name, audit: [] },
      login_failures: [{ key: `network ${++this.#batches}`, at: Date.now() }],
      ...{ tokens_used: [], credentials_used: [] },
    };
    const facts = [{ kind: "node_activity", activity }] as const;
    // Without an answer of the database in time the next batch goes on.
    await this.node.changes.record(() => ({ value: null, facts })).catch(() => undefined);
    this.#isRecording = false;
  }
}

async function startNodes() {
  const postgres = await Postgres.create();
  cleanups.push(() => postgres.stop());
  const sql = postgres.connect();
  cleanups.push(() => sql.close({ timeout: 0 }));
  const nodes: QuickNode[] = [];
  for (const name of ["n1", "n2", "n3"]) {
    const source = createSource(postgres);
    await source.open();
    const node = new QuickNode(name, source);
    cleanups.push(() => node.node.close());
    cleanups.push(() => node.follower.end({ isReplaced: false }));
    await node.begin();
    nodes.push(node);
  }
  return { sql, nodes };
}

type Scene = Awaited<ReturnType<typeof startNodes>>;

/** Goes on until all nodes together have made so many heartbeats. */
async function beatUntil({ sql, nodes }: Scene, beats: number): Promise<void> {
  const made = () => nodes.reduce((sum, node) => sum + node.beats, 0);
  const passHour = async () => {
    await sql`update sluice.chunk set at = at - interval '1 hour' where at < now() - interval '1 second'`;
    return made() >= beats;
  };
  await eventually(passHour, { deadlineMs: Math.max(800_000, beats * 10), intervalMs: 200 });
}

/** The tables with one row, or one for each node. */
const SMALL = ["head", "lease", "meta", "node"];

interface TableSize {
  readonly name: string;
  /** Without what autovacuum adds to know its free space. */
  readonly bytes: number;
}

/** What there is while all nodes rest. */
async function countAll({ sql, nodes }: Scene) {
  for (const { follower } of nodes) await follower.suspend();
  const sizes = async (): Promise<TableSize[]> =>
    await sql`
    select relname as name, pg_relation_size(oid)::float8 as bytes from pg_class
    where relnamespace = 'sluice'::regnamespace and relkind = 'r' order by relname`;
  const small = (await sizes()).filter(({ name }) => SMALL.includes(name));
  await sql`vacuum`;
  const [{ entries, wholes, others }] = await sql`
    select (select count(*) from sluice.entry)::float8 as entries,
      (select count(*) from sluice.whole)::float8 as wholes,
      array[(select count(*) from sluice.head), (select count(*) from sluice.lease),
        (select count(*) from sluice.node)]::text as others`;
  Bun.gc(true);
  // What finalizers free is gone after the next turn.
  await Bun.sleep(0);
  Bun.gc(true);
  const { objectCount } = heapStats();
  const vacuumed = await sizes();
  for (const { follower } of nodes) follower.resume();
  return { small, vacuumed, entries, wholes, others, objectCount };
}

test(
  "heartbeats, leases and batches of many hours leave as many rows, pages and objects as those of the first one",
  async () => {
    const scene = await startNodes();
    const { sql, nodes } = scene;
    await beatUntil(scene, BEATS / 4);
    const before = await countAll(scene);
    await beatUntil(scene, BEATS);
    const after = await countAll(scene);
    const position = Math.max(...nodes.map(({ node }) => node.store.mark()?.position ?? 0));
    expect(position).toBeGreaterThan(4 * KEEP);
    expect(after.others).toBe("{1,1,3}");
    expect(after.wholes).toBe(1);
    // What is kept, and as many again until the leader writes the state for nodes that join anew.
    expect(after.entries).toBeLessThanOrEqual(2 * KEEP);
    // Rows are replaced in their page: one page more may be needed while a long look holds an old version.
    for (const { name, bytes } of after.small)
      expect({ name, isSmall: bytes <= 4 * PAGE_BYTES }).toEqual({ name, isSmall: true });
    const pagesOf = (all: readonly TableSize[]) =>
      all.reduce((sum, { bytes }) => sum + bytes, 0) / PAGE_BYTES;
    expect(pagesOf(after.vacuumed)).toBeLessThanOrEqual(pagesOf(before.vacuumed) + 8);
    // One object for ten heartbeats would be a leak.
    expect(after.objectCount - before.objectCount).toBeLessThan((BEATS * 3) / 4 / 10);
    const replaced = await sql`
    select relname as name from pg_stat_user_tables
    where schemaname = 'sluice' and relname in ('node', 'lease') and n_tup_upd > 1000 and n_tup_hot_upd > 0.9 * n_tup_upd
    order by relname`;
    expect(replaced.map(({ name }: { name: string }) => name)).toEqual(["lease", "node"]);
  },
  Math.max(900_000, BEATS * 10),
);
