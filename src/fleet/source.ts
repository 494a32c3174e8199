// The log that all nodes of a fleet share; knows no database.
import type { Entry } from "./entry.ts";

/** The source did not get the entry: nothing was changed. */
export class SourceUnreachable extends Error {}

/** Whether the source has the entry is not known. */
export class AppendInDoubt extends Error {}

/** A part of the log. */
export interface LogPage {
  /** Position of the last entry of the log. */
  readonly head: number;
  /** Id of the entry at the position that was asked for; null: the log does not have it. */
  readonly knownId: string | null;
  /** The entries after that position which the log has, the oldest first; some of them when they are many. */
  readonly entries: readonly Entry[];
}

export interface EntrySource {
  /**
   * Adds an entry; false: another entry has its position, or another node has reserved the log. Rejects with SourceUnreachable or AppendInDoubt.
   */
  append(entry: Entry): Promise<boolean>;
  /** For `ms` only the named node can append; false: another one has reserved the log. 0 ends it. */
  reserve(node: string, ms: number): Promise<boolean>;
  after(position: number): Promise<LogPage>;
  /** Id of the entry at `position`; null: none. */
  idAt(position: number): Promise<string | null>;
  /** The newest entry of the kind `whole`; null: none, the log is complete. */
  whole(): Promise<Entry | null>;
}
