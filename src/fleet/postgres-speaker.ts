// Heartbeats in PostgreSQL: of the processes with the id of a node one speaks for it, and the rows of the others are not written.
import type { Log } from "../log.ts";
import { FleetError, PostgresConnection } from "./postgres-connection.ts";
import type { head, nodeStart } from "./schema.ts";
import { type Heartbeat, type LogEnd, SourceUnreachable, Superseded } from "./source.ts";
import type { OtherProcess } from "./speaker.ts";
import { defaultTimes } from "./times.ts";

/**
 * Another process may speak once the one before it has been silent for so long; the first waits for it at its start. Milliseconds: what
 * ends for good must be replaced within 5 s, and who is cut off has made no change for a second by then.
 */
const SILENT_MS = 3000;

/** The same for one of an older version, which only its heartbeats tell of. Milliseconds. */
const OLDER_SILENT_MS = 3 * defaultTimes.beat;

/** Between two looks whether another process is alive. Milliseconds. */
const LOOK_MS = 100;

/** How long an attempt of another process is reported. Minutes. */
const REPORTED_MINUTES = 10;

const UNDEFINED_TABLE = "42P01";

type StartRow = Pick<typeof nodeStart.$inferSelect, "start" | "address" | "place" | "beats">;

interface Spoken {
  readonly isWritten: boolean;
  /** The start that speaks, before this heartbeat; null: none. */
  readonly start: string | null;
  readonly rival: string | null;
}

type Answer = LogEnd & Pick<typeof head.$inferSelect, "position"> & Spoken;

export class PostgresSpeaker extends PostgresConnection {
  /** What statements are guarded with; without a start: they are those of a command, and not guarded. */
  protected get spokenFor(): { readonly start: string | null; readonly id: string } {
    const { start = null, id = "" } = this.options.speaker ?? {};
    return { start, id };
  }

  /**
   * Writes this node's row, and returns the end of the log. Does not wait for a disk: the next heartbeat replaces the row. What
   * does not speak for the node only reads.
   */
  async beat(row: Heartbeat): Promise<LogEnd> {
    const { speaker } = this.options;
    const answer = await this.#beatOrCreate(row);
    if (answer.isWritten || speaker === undefined) return endOf(answer, whoAsked(answer.rival));
    if (answer.start === speaker.start) speaker.renew();
    const other = await this.#claim();
    if (other !== null) return endOf(answer, { address: other.address, speaks: true });
    return endOf(await this.#beatOnce(row), null);
  }

  /** A start while the database was away could not create the tables of this version. */
  async #beatOrCreate(row: Heartbeat): Promise<Answer> {
    try {
      return await this.#beatOnce(row);
    } catch (error) {
      const { errno } = ((error as Error).cause ?? {}) as { readonly errno?: string };
      if (errno !== UNDEFINED_TABLE) throw error;
      await this.open();
      return await this.#beatOnce(row);
    }
  }

  async #beatOnce(row: Heartbeat): Promise<Answer> {
    const { id, name, url, version, formatMax, stored, served, state, error, mac } = row;
    const { draining, clockOffsetMs } = row;
    const { start } = this.spokenFor;
    const number = this.options.speaker?.nextBeat() ?? 0;
    const [answer] = await this.ask<Answer[]>(
      (sql) => sql`
        with quick as (
          select set_config('synchronous_commit', 'off', true) as word
        ), spoken as (
          update sluice.node_start set beats = ${number}::bigint
          where node = ${id} and start = ${start}::uuid and beats < ${number}::bigint
          returning node
        ), beat as (
          insert into sluice.node (id, name, url, version, format_max, stored, served, seen, state, error, mac,
            draining, clock_offset_ms)
          select ${id}::text, ${name}::text, ${url}::text, ${version}::text, ${formatMax}::int, ${stored}::bigint,
            ${served}::bigint, now(), ${state}::text, ${error}::text, ${mac}::bytea, ${draining}::boolean,
            ${clockOffsetMs}::bigint
          where ${start}::uuid is null or exists (select from spoken)
          on conflict (id) do update set name = excluded.name, url = excluded.url, version = excluded.version,
            format_max = excluded.format_max, stored = excluded.stored, served = excluded.served, seen = now(),
            state = excluded.state, error = excluded.error, mac = excluded.mac,
            draining = excluded.draining, clock_offset_ms = excluded.clock_offset_ms
        )
        select head.position::float8 as position, coalesce(entry.entry_id, whole.entry_id) as id,
          (extract(epoch from clock_timestamp()) * 1000)::float8 as at,
          exists (select from spoken) as "isWritten", speaker.start,
          case when speaker.rival_at > now() - ${REPORTED_MINUTES}::int * interval '1 minute' then speaker.rival end as rival
        from quick, sluice.head
        left join sluice.entry on entry.position = head.position
        left join sluice.whole on whole.position = head.position
        left join sluice.node_start speaker on speaker.node = ${id}`,
      { ms: this.options.beatMs },
    );
    if (answer === undefined) throw new SourceUnreachable("the table of the head is empty");
    return answer;
  }

  /**
   * Waits until this process speaks for its node, or the other one that does has shown that it is alive: then throws a FleetError
   * with both addresses.
   */
  protected async speak(log: Log): Promise<void> {
    const { speaker } = this.options;
    if (speaker === undefined) return;
    const before = await this.#speaking();
    const first = await this.#claim();
    for (let other = first; other !== null; other = await this.#claim()) {
      if (other.start !== first?.start || other.beats !== first.beats)
        throw new FleetError(
          `--data-dir: ${other.address === "" ? "another process" : `a process on ${other.address}`} runs with a copy of this data directory, and speaks for its node in the fleet; this one, on ${speaker.address}, does not start: give it an empty data directory, or stop the other one before`,
        );
      if (other === first)
        log.info(
          "another process with this data directory has sent a heartbeat a moment ago: waiting for its end",
          {
            address: other.address,
          },
        );
      await Bun.sleep(LOOK_MS);
    }
    if (before !== undefined && before.place !== speaker.place)
      log.warn(
        "this node goes on in the place of a process that does not respond: if it still runs, stop it",
        { address: before.address },
      );
  }

  /** Throws a Superseded where another process speaks for this node. */
  protected async requireSpeaks(): Promise<void> {
    const { start } = this.spokenFor;
    if (start === null) return;
    const known = await this.#speaking();
    if (known !== undefined && known.start !== start) throw new Superseded(known.address);
  }

  async #speaking(): Promise<StartRow | undefined> {
    const [row] = await this.ask<StartRow[]>(
      (sql) => sql`
        select start, address, place, beats::float8 from sluice.node_start where node = ${this.spokenFor.id}`,
    );
    return row;
  }

  /**
   * Makes this process the one that speaks for its node: when none does, the one that did had this data directory, or is silent.
   * Otherwise returns the other one, and leaves it a note.
   */
  async #claim(): Promise<Omit<StartRow, "place"> | null> {
    const { speaker } = this.options;
    if (speaker === undefined) return null;
    const { id, start, place, address, former } = speaker;
    const beats = speaker.nextBeat();
    const { length } = await this.ask(
      (sql) => sql`
        insert into sluice.node_start as known (node, start, place, address, beats)
        select ${id}::text, ${start}::uuid, ${place}::text, ${address}::text, ${beats}::bigint
        where exists (select from sluice.node_start where node = ${id}) or not exists (
          select from sluice.node where id = ${id} and seen > now() - ${OLDER_SILENT_MS}::float8 * interval '1 ms'
        )
        on conflict (node) do update set start = excluded.start, place = excluded.place, address = excluded.address,
          beats = excluded.beats, at = now(), rival = null, rival_at = null
        where known.start = excluded.start
          or (known.place = excluded.place and known.start = ${former}::uuid)
          or (known.at < now() - ${SILENT_MS}::float8 * interval '1 ms' and not exists (
            select from sluice.node where id = known.node and seen > now() - ${SILENT_MS}::float8 * interval '1 ms'
          ))
        returning node`,
      { ms: this.options.beatMs },
    );
    if (length === 1) {
      speaker.noteSpeaks();
      return null;
    }
    const [other] = await this.ask<StartRow[]>(
      (sql) => sql`
        update sluice.node_start set rival = ${address}, rival_at = now() where node = ${id}
        returning start, address, beats::float8`,
      { ms: this.options.beatMs },
    );
    if (other !== undefined) return other;
    const [older] = await this.ask<{ seen: number }[]>(
      (sql) => sql`
        select extract(epoch from seen)::float8 as seen from sluice.node where id = ${id}`,
      { ms: this.options.beatMs },
    );
    return { start: "", address: "", beats: older?.seen ?? 0 };
  }
}

const whoAsked = (address: string | null): OtherProcess | null =>
  address === null ? null : { address, speaks: false };

const endOf = ({ position, id, at }: LogEnd, other: OtherProcess | null): LogEnd => ({
  position,
  id,
  at,
  other,
});
