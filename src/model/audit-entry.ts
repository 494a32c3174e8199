// Entries of the audit log and their storage, as data; knows no table and no change.

/**
 * `disabled` before the first user exists, `local` on the machine itself, `node`: another node of the fleet, which only
 * reads.
 */
export type AuthMethod = "disabled" | "session" | "token" | "local" | "node";

export interface AuditEntry {
  /** RFC 3339, UTC. */
  readonly at: string;
  readonly actor: string;
  /** Authentication method of the actor; `none` for an unknown one. */
  readonly method: AuthMethod | "none";
  readonly address: string;
  /** `create`, `update`, `delete`, `login`, `logout` and so on. */
  readonly action: string;
  /** `user`, `route`, `session` and so on. */
  readonly kind: string;
  readonly object_id: string | null;
  readonly object_name: string | null;
  readonly result: "ok" | "refused" | "failed";
  /** The revision of the change; null without a change of the configuration. */
  readonly revision: number | null;
  /** For a change: the object before and after it, secrets masked, and for an update the differences. */
  readonly detail: unknown;
}

/** A filter; times are RFC 3339 in UTC with milliseconds, as in the table. */
export interface AuditFilter {
  /** Not earlier. */
  readonly since?: string;
  /** Earlier. */
  readonly until?: string;
  readonly actor?: string;
  readonly kind?: string;
  readonly action?: string;
  readonly object_id?: string;
  readonly result?: string;
  /** A part of actor, name, id or address, case-insensitive. */
  readonly q?: string;
}

export interface AuditRetention {
  /** Older entries are deleted. */
  readonly notBefore: string;
  /** Maximum number of entries. */
  readonly entries: number;
  /** Maximum number of entries without a change. */
  readonly withoutRevision: number;
}

/** Entries by the numbers of their rows, both included. */
export interface AuditRange {
  readonly first: number;
  readonly last: number;
  readonly notBefore: string;
  /** First number from which entries without a change are retained. */
  readonly firstOther: number;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  /** Number to continue at; null: these are the last. */
  readonly next: number | null;
}

/** The storage of entries. */
export interface AuditStore {
  append(entries: readonly AuditEntry[]): void;
  /** Deletes entries outside of the retention and returns their number. */
  prune(retention: AuditRetention): number;
  /** The retained range; null when there are no entries. */
  range(retention: AuditRetention): AuditRange | null;
  /** Up to `limit` entries, oldest first, and the number to continue at; null: these are the last. */
  page(filter: AuditFilter, range: AuditRange, limit: number): AuditPage;
  /** The same from the other end: the `limit` newest of those whose numbers are below `before`, newest first. */
  latest(
    filter: AuditFilter,
    range: AuditRange,
    page: { readonly limit: number; readonly before: number | null },
  ): AuditPage;
}
