// The audit log: records actions, retains them as configured, and lists them; knows no table and no HTTP.
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type {
  AuditEntry,
  AuditFilter,
  AuditRetention,
  AuditRange,
  AuditPage,
  AuditStore,
} from "../model/audit-entry.ts";
import { type AuditSink, boundedEntry } from "./audit-entry.ts";
import type { Changes } from "./change.ts";
import { RecordLimit } from "./record-limit.ts";
import { tagOf } from "./representation.ts";

export interface AuditLogOptions {
  readonly store: AuditStore;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly log: Log;
}

const DAY_MS = 86_400_000;
const PAGE = 200;
/** Entries that listeners receive in one turn of the event loop. */
const NOTIFY_BATCH = 500;

/** Entries of changes are stored with the change; this adds all others, and notifies about both. */
export class AuditLog implements AuditSink {
  readonly #options: AuditLogOptions;
  readonly #limit = new RecordLimit();
  readonly #listeners: ((entry: AuditEntry) => void)[] = [];
  readonly #recordListeners: ((entry: AuditEntry) => void)[] = [];
  /** Stored entries that listeners have yet to receive. */
  readonly #unsent: AuditEntry[] = [];
  #sincePruning = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(options: AuditLogOptions) {
    this.#options = options;
    options.changes.onStored(({ audit, change }) => {
      this.#notify(audit);
      this.#sincePruning += audit.length;
      this.#prune(change.settings !== null);
    });
    this.#prune(true);
  }

  /** Calls `listener` once for each entry, right after it was stored. It must not throw. */
  onEntry(listener: (entry: AuditEntry) => void): void {
    this.#listeners.push(listener);
  }

  /** Calls `listener` once for each entry of this node that belongs to no change. It must not throw. */
  onRecorded(listener: (entry: AuditEntry) => void): void {
    this.#recordListeners.push(listener);
  }

  /** Notifies about stored entries of another node. */
  adopt(entries: readonly AuditEntry[]): void {
    this.#notify(entries);
    this.#sincePruning += entries.length;
    this.#prune(false);
  }

  /** Never throws: logs an entry that cannot be stored. */
  record(entry: Omit<AuditEntry, "at">): void {
    this.flush();
    const now = this.#options.clock.now();
    if (this.#limit.admits(entry, now)) this.#write(entry);
    else this.#timer ??= setTimeout(() => this.flush(), this.#limit.msLeft(now)).unref();
  }

  /** Stores the summaries of rate-limited entries that are due; with `all`, at the stop, the others too. */
  flush(all = false): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const now = this.#options.clock.now();
    for (const entry of this.#limit.due(now, all)) this.#write(entry);
    if (this.#limit.hasSuppressed)
      this.#timer = setTimeout(() => this.flush(), this.#limit.msLeft(now)).unref();
  }

  /** All retained entries that match, oldest first, read lazily; the tag changes with the result. */
  list(filter: AuditFilter): {
    readonly tag: string;
    readonly pages: Iterable<readonly AuditEntry[]>;
  } {
    const { store } = this.#options;
    const range = store.range(this.#retention());
    return {
      tag: tagOf([range?.first, range?.last, range?.firstOther, filter]),
      pages: pagesOf(store, filter, range),
    };
  }

  /** The newest matches, newest first; `before` is the `next` of the previous page. */
  latest(
    filter: AuditFilter,
    page: { readonly limit: number; readonly before: number | null },
  ): AuditPage {
    const { store } = this.#options;
    const range = store.range(this.#retention());
    return range === null ? { entries: [], next: null } : store.latest(filter, range, page);
  }

  /** For programs that block addresses by the log: scripts/packaging/fail2ban. */
  #warn({ action, address, kind }: AuditEntry): void {
    const { log } = this.#options;
    if (action === "login") log.warn("a sign-in to the management API was refused", { address });
    else log.warn("a change without valid credentials was refused", { address, action, kind });
  }

  #write(entry: Omit<AuditEntry, "at">): void {
    const at = new Date(this.#options.clock.now()).toISOString();
    const stored = boundedEntry({ at, ...entry });
    try {
      this.#options.store.append([stored]);
    } catch (error) {
      const { detail: _, ...fields } = stored;
      this.#options.log.error("an audit entry could not be stored", { ...fields, error });
      return;
    }
    if (stored.result === "refused" && stored.method === "none") this.#warn(stored);
    for (const listener of this.#recordListeners) listener(stored);
    this.adopt([stored]);
  }

  /** In their order; those of a large change over several turns, because a client waits for the response. */
  #notify(entries: readonly AuditEntry[]): void {
    const isNotifying = this.#unsent.length > 0;
    for (const entry of entries) this.#unsent.push(entry);
    if (!isNotifying) this.#notifyBatch();
  }

  #notifyBatch(): void {
    for (const entry of this.#unsent.slice(0, NOTIFY_BATCH))
      for (const listener of this.#listeners) listener(entry);
    this.#unsent.splice(0, NOTIFY_BATCH);
    if (this.#unsent.length > 0) setImmediate(() => this.#notifyBatch());
  }

  /** In batches, because each prune reads the numbers of all entries. */
  #prune(now: boolean): void {
    const retention = this.#retention();
    if (!now && this.#sincePruning < Math.max(100, retention.entries / 100)) return;
    this.#sincePruning = 0;
    try {
      const deleted = this.#options.store.prune(retention);
      if (deleted > 0) this.#options.log.debug("old audit entries were deleted", { deleted });
    } catch (error) {
      this.#options.log.error("old audit entries could not be deleted", { error });
    }
  }

  #retention(): AuditRetention {
    const { audit_days: days, audit_entries: entries } =
      this.#options.changes.config.settings.retention;
    const notBefore = new Date(this.#options.clock.now() - days * DAY_MS).toISOString();
    // Rejected requests must not displace the history of changes.
    return { notBefore, entries, withoutRevision: Math.ceil(entries / 2) };
  }
}

function* pagesOf(
  store: AuditStore,
  filter: AuditFilter,
  range: AuditRange | null,
): Generator<readonly AuditEntry[]> {
  let first: number | null = range?.first ?? null;
  while (range !== null && first !== null) {
    const page = store.page(filter, { ...range, first }, PAGE);
    if (page.entries.length > 0) yield page.entries;
    first = page.next;
  }
}
