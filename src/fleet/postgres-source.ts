// The log of a fleet in PostgreSQL.
import type { SQL } from "bun";
import type { Entry } from "./entry.ts";
import { PostgresRollups } from "./postgres-rollups.ts";
import type { chunk, entry, whole } from "./schema.ts";
import { AppendInDoubt, type FleetSource, type LogPage, type Term } from "./source.ts";

/** Entries per query. */
const PAGE = 64;

/** The bodies of a page, so that it arrives in time on a slow line; one entry in any case. */
const PAGE_BYTES = 2_097_152;

/** Larger bodies are split. */
const CHUNK_BYTES = 1_048_576;

type EntryRow = typeof entry.$inferSelect;
type WholeRow = typeof whole.$inferSelect;

export class PostgresSource extends PostgresRollups implements FleetSource {
  async append(
    added: Entry,
    term: Term | null = null,
    previous: string | null = null,
  ): Promise<boolean> {
    const { position, id: entryId, node: writer, format, body, mac } = added;
    const { start, id } = this.spokenFor;
    const isLarge = body.byteLength > CHUNK_BYTES;
    if (isLarge) await this.#writeChunks(entryId, body);
    // One statement, so that the entry and the new head are seen together or not at all.
    const rows = await this.ask(
      (sql) => sql`
        with moved as (
          update sluice.head set position = ${position}
          where position = ${position - 1} and not exists (
            select from sluice.meta where key = 'turn' and split_part(value, ' ', 1) <> ${writer}
              and split_part(value, ' ', 2)::float8 > extract(epoch from now())
          ) and (${term?.holder ?? null}::uuid is null or exists (
            select from sluice.lease where holder = ${term?.holder ?? null}::uuid and epoch = ${term?.epoch ?? 0}::bigint
          )) and (${previous}::uuid is null or not exists (
            select from sluice.entry where position = ${position - 1} and entry_id <> ${previous}::uuid
          )) and (${start}::uuid is null or exists (
            select from sluice.node_start where node = ${id} and start = ${start}::uuid for share
          ))
          returning position
        ), written as (
          insert into sluice.entry (position, entry_id, node, format, body, mac)
          select position, ${entryId}::uuid, ${writer}, ${format}::int, ${isLarge ? null : body}::bytea, ${mac}
          from moved
        )
        select pg_notify('sluice', position::text) from moved`,
      { ms: this.options.appendMs, late: AppendInDoubt },
    );
    if (rows.length === 1) return true;
    if (isLarge) await this.#dropChunks(entryId);
    await this.requireSpeaks();
    return false;
  }

  reserve(writer: string, ms: number): Promise<boolean> {
    return this.claim("turn", writer, ms);
  }

  async after(position: number): Promise<LogPage> {
    const rows = await this.ask<(EntryRow & { head: number; knownId: string | null })[]>(
      (sql) => sql`
        select head.position::float8 as head, coalesce(known.entry_id, whole.entry_id) as "knownId",
          next.position::float8, next.entry_id as "entryId", next.node, next.format, next.body, next.mac
        from sluice.head
        left join sluice.entry known on known.position = ${position}
        left join sluice.whole on whole.position = ${position}
        left join lateral (
          select * from (
            select *, sum(coalesce(octet_length(body), 0)) over (order by position) as bytes
            from sluice.entry where entry.position > ${position} order by position limit ${PAGE}
          ) page
          where bytes <= ${PAGE_BYTES} or page.position = ${position + 1}
        ) next on true
        order by next.position`,
    );
    const [{ head, knownId } = { head: 0, knownId: null }] = rows;
    const entries: Entry[] = [];
    for (const row of rows) {
      // Without an entry after the position the row holds the head alone.
      if ((row.position as number | null) === null) break;
      const body = row.body ?? (await this.#readChunks(row.entryId));
      if (body === null) break;
      entries.push(entryOf(row, { kind: "change", body }));
      // One large body at a time.
      if (row.body === null) break;
    }
    return { head, knownId, entries };
  }

  async idAt(position: number): Promise<string | null> {
    const rows = await this.ask<{ entryId: string }[]>(
      (sql) => sql`select entry_id as "entryId" from sluice.entry where position = ${position}`,
    );
    return rows[0]?.entryId ?? null;
  }

  async whole(): Promise<Entry | null> {
    const [row] = await this.ask<WholeRow[]>(
      (sql) => sql`
        select position::float8, entry_id as "entryId", body_id as "bodyId", node, format, mac
        from sluice.whole order by position desc limit 1`,
    );
    if (row === undefined) return null;
    const body = await this.#readChunks(row.bodyId);
    return body === null ? null : entryOf(row, { kind: "whole", body });
  }

  /** Adds what nodes need that join, and removes the older ones. */
  async writeWhole(added: Entry): Promise<void> {
    const bodyId = await this.#writeBody(added);
    await this.ask((sql) => insertWhole(sql, added, bodyId));
  }

  async #writeBody({ body }: Entry): Promise<string> {
    const bodyId = Bun.randomUUIDv7();
    await this.#writeChunks(bodyId, body);
    return bodyId;
  }

  /** Position of the newest entry of the kind `whole`, and of the one that brought the present secret key; 0: none. */
  async wholePosition(): Promise<{ readonly whole: number; readonly key: number }> {
    const [row] = await this.ask<{ whole: number; key: number }[]>(
      (sql) => sql`
        select coalesce((select max(position) from sluice.whole), 0)::float8 as whole,
          coalesce((select split_part(value, ' ', 2) from sluice.meta where key = 'former_key')::float8, 0) as key`,
    );
    return row ?? { whole: 0, key: 0 };
  }

  /** Makes `added` the only entry of the log, which lost changes; false: the log does not end with `head` any more. */
  async replaceLog(added: Entry, head: number): Promise<boolean> {
    const bodyId = await this.#writeBody(added);
    const [isReplaced = false] = await this.ask<boolean[]>((sql) =>
      sql.begin(async (transaction) => {
        const moved = await transaction`
          update sluice.head set position = ${added.position} where position = ${head} returning position`;
        if (moved.length === 0) return [false];
        await transaction`delete from sluice.entry`;
        await transaction`delete from sluice.whole`;
        await insertWhole(transaction, added, bodyId);
        await transaction`select pg_notify('sluice', ${String(added.position)})`;
        return [true];
      }),
    );
    return isReplaced;
  }

  /**
   * Removes entries that every node has which was seen within `absentMs`, of which the newest entry of the kind `whole` makes up for
   * the others; the last `keep` stay.
   */
  async prune({
    keep,
    absentMs,
  }: {
    readonly keep: number;
    readonly absentMs: number;
  }): Promise<void> {
    await this.ask(
      (sql) => sql`
        delete from sluice.entry using sluice.head
        where entry.position <= head.position - ${keep}::bigint
          and entry.position <= (select coalesce(max(whole.position), 0) from sluice.whole)
          and entry.position < (
            select coalesce(min(node.stored), head.position) from sluice.node
            where node.seen > now() - ${absentMs} * interval '1 millisecond'
          )`,
    );
    // Who has a former secret key could read the present one in them.
    await this.ask(
      (sql) => sql`
        with rotation as (
          select split_part(value, ' ', 2)::bigint as position from sluice.meta where key = 'former_key'
        )
        delete from sluice.entry using rotation
        where entry.position <= rotation.position
          and rotation.position <= (select coalesce(max(whole.position), 0) from sluice.whole)
          and not exists (
            select from sluice.node where stored < rotation.position
              and seen > now() - ${absentMs} * interval '1 millisecond'
          )`,
    );
    // Of starts that ended before their first heartbeat.
    await this.ask(
      (sql) => sql`
        delete from sluice.node_start where at < now() - interval '1 day' and node not in (select id from sluice.node)`,
    );
    // Also what was written for an entry that never came.
    await this.ask(
      (sql) => sql`
        delete from sluice.chunk where at < now() - interval '1 hour'
          and not exists (select from sluice.entry where entry_id = body_id)
          and not exists (select from sluice.whole where whole.body_id = chunk.body_id)`,
    );
  }

  async #writeChunks(bodyId: string, body: Uint8Array): Promise<void> {
    for (let part = 0; part * CHUNK_BYTES < body.byteLength; part++) {
      const bytes = body.subarray(part * CHUNK_BYTES, (part + 1) * CHUNK_BYTES);
      await this.ask(
        (sql) => sql`
          insert into sluice.chunk (body_id, part, bytes) values (${bodyId}::uuid, ${part}, ${bytes})`,
      );
    }
  }

  /** Null: not there, or not all of it; its signature tells. */
  async #readChunks(bodyId: string): Promise<Uint8Array | null> {
    const parts: Uint8Array[] = [];
    for (;;) {
      const [row] = await this.ask<Pick<typeof chunk.$inferSelect, "bytes">[]>(
        (sql) => sql`
          select bytes from sluice.chunk where body_id = ${bodyId}::uuid and part = ${parts.length}`,
      );
      if (row === undefined) return parts.length === 0 ? null : Buffer.concat(parts);
      parts.push(row.bytes);
    }
  }

  async #dropChunks(bodyId: string): Promise<void> {
    await this.ask((sql) => sql`delete from sluice.chunk where body_id = ${bodyId}::uuid`);
  }
}

const insertWhole = (
  sql: SQL,
  { position, id, node: writer, format, mac }: Entry,
  bodyId: string,
): PromiseLike<unknown> => sql`
  with written as (
    insert into sluice.whole (position, entry_id, body_id, node, format, mac)
    values (${position}, ${id}::uuid, ${bodyId}::uuid, ${writer}, ${format}, ${mac})
    on conflict do nothing
  )
  delete from sluice.whole where position < ${position}`;

type StoredRow = Pick<EntryRow, "position" | "entryId" | "node" | "format" | "mac">;

const entryOf = (
  { position, entryId: id, node: writer, format, mac }: StoredRow,
  rest: Pick<Entry, "kind" | "body">,
): Entry => ({ position, id, node: writer, format, mac, ...rest });
