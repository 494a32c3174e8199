// The log that all nodes of a fleet share; knows no database.
import { ApiError } from "../model/error.ts";
import type { Entry } from "./entry.ts";

/** The source did not respond, or did not get the entry: nothing was changed. */
export class SourceUnreachable extends ApiError {
  constructor(message = "", { cause }: { readonly cause?: unknown } = {}) {
    const why = message === "" ? "" : ` (${message})`;
    super(503, `the database of the fleet does not answer${why}; nothing was changed`, {
      cause,
      headers: { "retry-after": "5" },
    });
  }
}

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

/** Who has the work that only one node does, and since which change of the holder. */
export interface Term {
  /** UUID of a process. */
  readonly holder: string;
  readonly epoch: number;
}

export interface LeaseSource {
  /** Takes or renews the lease for `ms` where no other process has it; returns who has it, and for how many milliseconds more. */
  lease(wanted: {
    readonly holder: string;
    /** Id of its node. */
    readonly nodeId: string;
    readonly ms: number;
  }): Promise<Term & { readonly leftMs: number }>;
  /** Ends the lease where `holder` has it. */
  release(holder: string): Promise<void>;
}

export interface EntrySource {
  /**
   * Adds an entry; false: another entry has its position, another node has reserved the log, or `term` has ended. Rejects with
   * SourceUnreachable or AppendInDoubt.
   */
  append(entry: Entry, term?: Term | null): Promise<boolean>;
  /** For `ms` only the named node can append; false: another one has reserved the log. 0 ends it. */
  reserve(node: string, ms: number): Promise<boolean>;
  after(position: number): Promise<LogPage>;
  /** Id of the entry at `position`; null: none. */
  idAt(position: number): Promise<string | null>;
  /** The newest entry of the kind `whole`; null: none, the log is complete. */
  whole(): Promise<Entry | null>;
}
