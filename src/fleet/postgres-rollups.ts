// The statistics of the nodes of a fleet in PostgreSQL; knows no figure.
import type { RollupKey } from "../model/rollup.ts";
import type { SharedQuery } from "../observe/stats/shared-rollups.ts";
import { PostgresRegistry } from "./postgres-registry.ts";
import type { rollup } from "./schema.ts";
import { SourceUnreachable } from "./source.ts";

/** All objects of a time and a kind; `mac`: HMAC-SHA-256 over the fleet and all other columns. */
export type StoredRollup = Readonly<typeof rollup.$inferSelect> & Omit<RollupKey, "object_id">;

/** Of the documents that one view reads; the oldest are omitted. */
const MAX_READ_BYTES = 33_554_432;

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");

export class PostgresRollups extends PostgresRegistry {
  /**
   * Adds rows, or replaces them. Does not wait for a disk: a crash of the database costs one minute of one view. Rejects with
   * Superseded where another process speaks for this node, other than the next one in its data directory.
   */
  async writeRollups(rows: readonly StoredRollup[]): Promise<void> {
    if (rows.length === 0) return;
    const texts = rows.map(({ document, mac, ...key }) => ({
      ...key,
      document: base64(document),
      mac: base64(mac),
    }));
    const { start, id } = this.spokenFor;
    const { place = "", former = null } = this.options.speaker ?? {};
    const { length } = await this.ask(
      (sql) => sql`
        with quick as (
          select set_config('synchronous_commit', 'off', true) as word
        )
        insert into sluice.rollup (node, span, at, kind, document, mac)
        select node, span, at, kind, decode(document, 'base64'), decode(mac, 'base64')
        from quick, jsonb_to_recordset(${JSON.stringify(texts)}::text::jsonb)
          as row (node text, span int, at bigint, kind text, document text, mac text)
        where ${start}::uuid is null or exists (
          select from sluice.node_start speaker where speaker.node = ${id} and (
            start = ${start}::uuid or (place = ${place} and start = ${former}::uuid)
          )
        )
        on conflict (span, kind, at, node) do update set document = excluded.document, mac = excluded.mac
        returning 1`,
    );
    if (length > 0) return;
    await this.requireSpeaks();
    throw new SourceUnreachable("this node is not registered yet");
  }

  async rollups({ span, kinds, from, to, without }: SharedQuery): Promise<readonly StoredRollup[]> {
    return await this.ask<StoredRollup[]>(
      (sql) => sql`
        select node, span, at::float8, kind, document, mac from (
          select *, sum(octet_length(document)) over (order by at desc, node, kind) as bytes
          from sluice.rollup
          where span = ${span}::int and kind = any(string_to_array(${kinds.join(",")}, ','))
            and at between ${from}::bigint and ${to}::bigint
            and node <> all(string_to_array(${without.join(",")}, ','))
        ) newest
        where bytes <= ${MAX_READ_BYTES} order by at`,
      { ms: this.options.beatMs },
    );
  }

  /** Removes rows that begin more than `seconds` before the present or after it, for each span. */
  async pruneRollups(
    retention: Readonly<Record<number, number>>,
    kinds: readonly string[],
  ): Promise<void> {
    for (const [span, seconds] of Object.entries(retention))
      await this.ask(
        (sql) => sql`
          delete from sluice.rollup
          where span = ${Number(span)}::int and kind = any(string_to_array(${kinds.join(",")}, ',')) and (
            at < extract(epoch from now())::bigint - ${seconds}::bigint
              or at > extract(epoch from now())::bigint + ${seconds}::bigint
          )`,
      );
  }
}
