// The log that all nodes of a fleet share; knows no database.
import type { Entry } from "./entry.ts";

/** The source did not get the entry: nothing was changed. */
export class SourceUnreachable extends Error {}

/** Whether the source has the entry is not known. */
export class AppendInDoubt extends Error {}

export interface EntrySource {
  /**
   * Adds an entry; false: another entry has its position. Rejects with SourceUnreachable or AppendInDoubt.
   */
  append(entry: Entry): Promise<boolean>;
  /** The entries after `position`, the oldest first, without gaps; some of them when they are many. */
  after(position: number): Promise<readonly Entry[]>;
  /** The entry at `position`; null: none. */
  at(position: number): Promise<Entry | null>;
}
