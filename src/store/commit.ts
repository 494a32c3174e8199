// What the store writes in one transaction; knows no table.
import type { EntryMark, Fact } from "../model/fact.ts";
import type { ConfigChange } from "../model/gateway-config.ts";
import type { AuditRow } from "./audit.ts";
import type { StagedChange } from "./staged-change.ts";
import type { RevisionEntry } from "./tables.ts";

export interface Commit {
  readonly revision: number;
  readonly change: ConfigChange;
  /** Reverts the change; absent: not possible. */
  readonly undo?: ConfigChange;
  readonly entry: RevisionEntry;
  /** Entry for the audit log; default: none. */
  readonly audit?: readonly AuditRow[];
  /** Data of the change beside the configuration; default: none. */
  readonly facts?: readonly Fact[];
  /** The entry of the fleet's log that holds the change; absent: no fleet. */
  readonly mark?: EntryMark;
  /** The change writes what a node found in its fleet: the history does not repeat it. Default: false. */
  readonly isWhole?: boolean;
  /** From `stage`. */
  readonly staged?: StagedChange | null;
}

/** An entry of the fleet's log without a change of the configuration. */
export interface RecordedEntry {
  readonly facts: readonly Fact[];
  readonly mark: EntryMark;
}
