// The log that all nodes of a fleet share, and what they report about themselves; knows no database.
import { ApiError } from "../model/error.ts";
import type { Entry } from "./entry.ts";
import type { OtherProcess } from "./speaker.ts";

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

/** Another process speaks for this node: nothing was changed. */
export class Superseded extends ApiError {
  constructor(address: string) {
    super(503, `${supersededBy(address)}; nothing was changed`);
  }
}

/** Starts a sentence. */
export const supersededBy = (address: string): string =>
  `${address === "" ? "another process" : `a process on ${address}`} runs with a copy of this node's data directory and speaks for it in the fleet: this one changes nothing and is not counted; stop one of the two, and give each machine a data directory of its own`;

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
   * Adds an entry; false: another entry has its position, the one before it is not `previous` (null: any), another node has
   * reserved the log, or `term` has ended. Rejects with
   * SourceUnreachable, Superseded or AppendInDoubt.
   */
  append(entry: Entry, term?: Term | null, previous?: string | null): Promise<boolean>;
  /** For `ms` only the named node can append; false: another one has reserved the log. 0 ends it. */
  reserve(node: string, ms: number): Promise<boolean>;
  after(position: number): Promise<LogPage>;
  /** Id of the entry at `position`; null: none. */
  idAt(position: number): Promise<string | null>;
  /** The newest entry of the kind `whole`; null: none, the log is complete. */
  whole(): Promise<Entry | null>;
}

/** What a node says about itself with each heartbeat. */
export interface Heartbeat {
  readonly id: string;
  readonly name: string;
  /** Of its management API; empty: unknown. */
  readonly url: string;
  readonly version: string;
  /** The newest format of entries that it reads. */
  readonly formatMax: number;
  /** Position of the last entry in its database. */
  readonly stored: number;
  /** Position of the last entry that all its workers serve. */
  readonly served: number;
  /** By its own knowledge. */
  readonly state: string;
  /** Why it cannot serve the entry after `served`; empty: it can. */
  readonly error: string;
  /** Whether load balancers should send no requests to it. */
  readonly draining: boolean;
  /** Milliseconds that its clock is ahead of the fleet's. */
  readonly clockOffsetMs: number;
  /** HMAC-SHA-256 over the fleet and all other fields. */
  readonly mac: Uint8Array;
}

/** A node as the others see it. */
export interface FleetNode extends Heartbeat {
  /** Milliseconds since its last heartbeat, by the clock of the fleet. */
  readonly seenMsAgo: number;
  /** Whether it has the lease. */
  readonly leads: boolean;
  /** Position of the last entry of the log when the row was read. */
  readonly head: number;
}

/** The last entry of the log; position 0: it is empty. */
export interface LogEnd {
  readonly position: number;
  readonly id: string | null;
  /** The clock of the fleet: milliseconds since the Unix epoch. */
  readonly at: number;
  /** Another process with the id of this node, now or in the last minutes; absent: none is known. */
  readonly other?: OtherProcess | null;
}

/** What a running node needs of its fleet: the database of the fleet, or another node that passes it on. */
export interface FleetSource extends EntrySource {
  /** Notes how far a node is, unless another process speaks for it, and returns the end of the log. Rejects with SourceUnreachable. */
  beat(row: Heartbeat): Promise<LogEnd>;
  nodes(): Promise<readonly FleetNode[]>;
  /** Removes a node that has ended; nothing where another process speaks for it. */
  forget(id: string): Promise<void>;
  /** Removes a node without a heartbeat for `awayMs`; false: it has one. */
  forgetAway(id: string, awayMs: number): Promise<boolean>;
  /** Calls `wake` with the position of each new entry; false: that does not work, poll. May stop without a word. */
  listen(wake: (position: number) => void): Promise<boolean>;
  /** Creates what this version needs and is missing. Rejects with the reason when this version cannot use what is there. */
  open(): Promise<void>;
  /** Opens new connections, to another place when there are several. */
  reconnect(): void;
  close(): Promise<void>;
}
