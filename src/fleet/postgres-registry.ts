// The registry of the nodes of a fleet in PostgreSQL; knows no entry.
import type { Log } from "../log.ts";
import { FleetError } from "./postgres-connection.ts";
import { PostgresSpeaker } from "./postgres-speaker.ts";
import type { lease, node, nodePlugins } from "./schema.ts";
import type { FleetNode, LeaseSource } from "./source.ts";
import { defaultTimes } from "./times.ts";

/** Every change costs a notification and a row for each node. */
const MAX_NODES = 50;

type LeaseRow = Pick<typeof lease.$inferSelect, "holder" | "epoch"> & { readonly leftMs: number };

/** `mac`: HMAC-SHA-256 over the fleet, the version of the node and all other columns. */
export type StoredPlugins = Readonly<typeof nodePlugins.$inferSelect>;

/** A longer document is none of a node: the largest one has 100 names and hashes. */
const MAX_DOCUMENT_BYTES = 65_536;

/** A node that wants to start. */
export interface Admission {
  readonly id: string;
  readonly name: string;
  /** A node that was seen within this time is there. */
  readonly presentMs: number;
  readonly log: Log;
}

/** Before the id of an invitation in `meta`. */
const INVITATION = "invitation ";

/** The only lease. */
const WORK = "work";

/** Nodes that read this format have leases. */
const LEASE_FORMAT = 2;

export class PostgresRegistry extends PostgresSpeaker implements LeaseSource {
  /**
   * Makes room for a node that starts. Throws a FleetError when another process speaks for it, a node of another id has its name, or
   * there are too many.
   */
  async admit({ id, name, presentMs, log }: Admission): Promise<void> {
    await this.speak(log);
    const nodes = await this.nodes();
    const others = nodes.filter((other) => other.id !== id);
    const namesake = others.find((other) => other.name === name);
    if (namesake !== undefined && namesake.seenMsAgo < presentMs)
      throw new FleetError(
        `--node-name: another node of the fleet is called "${name}"; choose a name of its own for each node`,
      );
    // A node that lost its data directory comes back under its name.
    if (namesake !== undefined) await this.forget(namesake.id);
    if (others.length - (namesake === undefined ? 0 : 1) >= MAX_NODES)
      throw new FleetError(
        `--store: the fleet has ${MAX_NODES} nodes, which is the most; forget those that are gone with DELETE /api/v1/nodes/{id}`,
      );
  }

  /** Keeps for `ms` what the machine with an invitation gets; removes those whose time is over. */
  async keepInvitation(id: string, sealed: string, ms: number): Promise<void> {
    await this.ask(
      (sql) => sql`
        with gone as (
          delete from sluice.meta where key like ${`${INVITATION}%`}
            and split_part(value, ' ', 1)::float8 < extract(epoch from now())
        )
        insert into sluice.meta (key, value)
        values (${INVITATION + id}, extract(epoch from now()) + ${ms}::float8 / 1000 || ' ' || ${sealed}::text)`,
    );
  }

  /** Only the first call gets it; null: it was taken, its time is over, or there was none. */
  async takeInvitation(id: string): Promise<string | null> {
    const [row] = await this.ask<{ sealed: string }[]>(
      (sql) => sql`
        delete from sluice.meta
        where key = ${INVITATION + id} and split_part(value, ' ', 1)::float8 >= extract(epoch from now())
        returning split_part(value, ' ', 2) as sealed`,
    );
    return row?.sealed ?? null;
  }

  async nodes(): Promise<readonly FleetNode[]> {
    return await this.ask<(FleetNode & Omit<typeof node.$inferSelect, "seen">)[]>(
      (sql) => sql`
        select id, name, url, version, format_max as "formatMax", stored::float8, served::float8, state, error, mac,
          draining, clock_offset_ms::float8 as "clockOffsetMs",
          greatest(0, extract(epoch from now() - seen) * 1000)::float8 as "seenMsAgo",
          exists (select from sluice.lease where node_id = node.id and expires > now()) as leads,
          (select position from sluice.head)::float8 as head
        from sluice.node order by name`,
    );
  }

  /** Writes what a node serves, where that has changed; removes rows of nodes that are gone. Does not wait for a disk. */
  async writePlugins({ node: id, document, mac }: StoredPlugins): Promise<void> {
    const { start } = this.spokenFor;
    await this.ask(
      (sql) => sql`
        with quick as (
          select set_config('synchronous_commit', 'off', true) as word
        ), gone as (
          delete from sluice.node_plugins where node <> ${id} and node not in (select id from sluice.node)
        )
        insert into sluice.node_plugins as known (node, document, mac)
        select ${id}::text, ${document}::bytea, ${mac}::bytea from quick
        where ${start}::uuid is null or exists (
          select from sluice.node_start speaker where speaker.node = ${id} and start = ${start}::uuid
        )
        on conflict (node) do update set document = excluded.document, mac = excluded.mac
        where known.mac <> excluded.mac`,
    );
  }

  async plugins(): Promise<readonly StoredPlugins[]> {
    return await this.ask<StoredPlugins[]>(
      (sql) => sql`
        select node, document, mac from sluice.node_plugins
        where octet_length(document) <= ${MAX_DOCUMENT_BYTES}::int`,
      { ms: this.options.beatMs },
    );
  }

  /** Nothing while the present node with the lowest id is of a version without leases: by its rule it has the work. */
  async lease({ holder, nodeId, ms }: Parameters<LeaseSource["lease"]>[0]): Promise<LeaseRow> {
    const { start } = this.spokenFor;
    // The others only read: a row that many lock is slow. A renewal may be lost in a crash, which the time to its end covers, but not
    // who has the lease.
    const [term] = await this.ask<LeaseRow[]>(
      (sql) => sql`
        with quick as (
          select set_config('synchronous_commit', case when exists (
            select from sluice.lease where name = ${WORK} and holder = ${holder}::uuid and expires > now()
          ) then 'off' else current_setting('synchronous_commit') end, true) as word
        ), taken as (
          insert into sluice.lease as held (name, holder, node_id, epoch, expires)
          select ${WORK}, ${holder}::uuid, ${nodeId}, 1, now() + ${ms}::float8 * interval '1 ms' from quick
          where not exists (
            select from sluice.lease where name = ${WORK} and holder <> ${holder}::uuid and expires > now()
          ) and coalesce((
            select format_max from sluice.node
            where state in ('serving', 'lagging') and seen > now() - ${defaultTimes.away}::float8 * interval '1 ms'
            order by id collate "C" limit 1
          ), ${LEASE_FORMAT}::int) >= ${LEASE_FORMAT}::int and (${start}::uuid is null or exists (
            select from sluice.node_start where node = ${nodeId} and start = ${start}::uuid for share
          ))
          on conflict (name) do update set holder = excluded.holder, node_id = excluded.node_id,
            expires = excluded.expires, epoch = held.epoch + (held.holder <> excluded.holder)::int
          where held.holder = excluded.holder or held.expires <= now()
          returning holder, epoch, expires
        )
        select holder, epoch::float8, greatest(0, extract(epoch from expires - now()) * 1000)::float8 as "leftMs"
        from (
          select * from taken
          union all
          select holder, epoch, expires from sluice.lease
          where name = ${WORK} and holder <> ${holder}::uuid and expires > now() and not exists (select from taken)
        ) known`,
      { ms: this.options.beatMs },
    );
    // Another process has just taken it, or an older node has the work.
    return term ?? { holder: "", epoch: 0, leftMs: ms };
  }

  async release(holder: string): Promise<void> {
    await this.ask(
      (sql) =>
        sql`update sluice.lease set expires = now() where name = ${WORK} and holder = ${holder}::uuid`,
      { ms: this.options.beatMs },
    );
  }

  /** Removes a node that has ended; this one only while it speaks for itself. */
  async forget(id: string): Promise<void> {
    const { start, id: own } = this.spokenFor;
    await this.ask(
      (sql) => sql`
        with ended as (
          delete from sluice.node_start where node = ${id}
            and (${start}::uuid is null or ${id} <> ${own} or start = ${start}::uuid)
          returning node
        )
        delete from sluice.node where id = ${id} and (
          exists (select from ended) or not exists (select from sluice.node_start where node = ${id})
        )`,
    );
  }

  /** Removes a node without a heartbeat for `awayMs`; false: it has one. */
  async forgetAway(id: string, awayMs: number): Promise<boolean> {
    const rows = await this.ask(
      (sql) => sql`
        with gone as (
          delete from sluice.node where id = ${id} and seen < now() - ${awayMs}::float8 * interval '1 ms'
          returning id
        ), ended as (
          delete from sluice.node_start where node in (select id from gone)
        ), unloaded as (
          delete from sluice.node_plugins where node in (select id from gone)
        )
        select id from gone`,
    );
    return rows.length === 1;
  }
}
