// What this node of a fleet tells the others beside changes, in batches: audit entries, failed sign-ins, last uses; knows no log.
import type { Log } from "../log.ts";
import type { AuditEntry } from "../model/audit-entry.ts";
import type { Fact, LoginFailure, NodeActivity, StoredAuditEntry } from "../model/fact.ts";
import type { AuditLog } from "./audit.ts";
import type { Changes } from "./change.ts";
import type { LastUse } from "./last-use.ts";

/** Failed sign-ins, which count on all nodes. */
export interface SharedFailures {
  /** Calls `listener` for each attempt that has failed here. */
  onFailed(listener: (failures: readonly LoginFailure[]) => void): void;
  /** Counts failures that another node has seen. */
  observe(failures: readonly LoginFailure[]): void;
}

export interface ActivityOptions {
  /** Id of this node. */
  readonly node: string;
  readonly changes: Pick<Changes, "record" | "onFact">;
  readonly audit: AuditLog;
  readonly throttle: SharedFailures;
  readonly tokenUse: LastUse;
  readonly credentialUse: LastUse;
  readonly log: Log;
  /** Called with each batch. */
  readonly onBeat: () => void;
  /** Milliseconds between two batches. Default: 1000. */
  readonly everyMs?: number;
  /** Batches from one with last uses to the next. Default: 60. */
  readonly usesEvery?: number;
}

/** While the database is away; the oldest are dropped. */
const MAX_QUEUED = 5000;
/** Per batch; an entry may have 64 KiB. */
const MAX_ENTRIES = 200;
const MAX_FAILURES = 2000;
/** Of each kind. */
const MAX_USES = 1000;
/** A batch whose answer was lost is sent again, right after it. */
const REMEMBERED_BATCHES = 8;

export class FleetActivity {
  readonly #options: ActivityOptions;
  readonly #audit: StoredAuditEntry[] = [];
  readonly #failures: LoginFailure[] = [];
  /** Entries that other nodes never get. */
  #dropped = 0;
  /** The last batches of other nodes. */
  readonly #seen = new Map<string, readonly string[]>();
  /** Sent, without a known end; it is sent again. */
  #unknown: NodeActivity | null = null;
  #sending: Promise<void> | null = null;
  #timer: Timer | null = null;
  #beats = 0;

  constructor(options: ActivityOptions) {
    this.#options = options;
    const { audit, throttle, tokenUse, credentialUse, changes } = options;
    audit.onRecorded((entry) => this.#queue(entry));
    throttle.onFailed((failures) => {
      this.#failures.push(...failures);
      this.#failures.splice(0, this.#failures.length - MAX_QUEUED);
    });
    tokenUse.share();
    credentialUse.share();
    changes.onFact((fact) => this.#observe(fact));
  }

  /** Sends a batch about once a second from now on. */
  start(): void {
    const { everyMs = 1000, usesEvery = 60 } = this.#options;
    this.#timer ??= setInterval(() => {
      this.#beats++;
      this.#options.onBeat();
      void this.#send(this.#beats % usesEvery === 0);
    }, everyMs);
    this.#timer.unref();
  }

  /** Resolves when the last batch was sent, or cannot be. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await this.#sending;
    await this.#send(true);
  }

  #queue(entry: AuditEntry): void {
    this.#audit.push({ ...entry, revision: null });
    if (this.#audit.length <= MAX_QUEUED) return;
    this.#audit.shift();
    this.#dropped++;
  }

  /** One batch at a time. */
  #send(withUses: boolean): Promise<void> {
    this.#sending ??= this.#sendBatch(withUses).finally(() => {
      this.#sending = null;
    });
    return this.#sending;
  }

  async #sendBatch(withUses: boolean): Promise<void> {
    const { changes, log, tokenUse, credentialUse } = this.#options;
    const batch = this.#unknown ?? this.#batch(withUses);
    if (batch === null) return;
    this.#unknown = batch;
    try {
      await changes.record(() => {
        // Tokens and credentials may have been deleted meanwhile.
        const tokens_used = batch.tokens_used.filter(({ id }) => tokenUse.lastUsedAt(id) !== null);
        const credentials_used = batch.credentials_used.filter(
          ({ id }) => credentialUse.lastUsedAt(id) !== null,
        );
        const activity = { ...batch, tokens_used, credentials_used };
        return { value: null, facts: [{ kind: "node_activity", activity }] };
      });
    } catch (error) {
      // The membership reports that the database is away; this stays queued.
      log.debug("audit entries could not be sent to the other nodes yet", { error });
      return;
    }
    this.#unknown = null;
    tokenUse.markShared(batch.tokens_used);
    credentialUse.markShared(batch.credentials_used);
    if (this.#dropped > 0)
      log.warn(
        "the audit logs of the other nodes lack entries: too many while this one was cut off",
        {
          entries: this.#dropped,
        },
      );
    this.#dropped = 0;
  }

  /** Null: there is nothing to send. */
  #batch(withUses: boolean): NodeActivity | null {
    const { node, tokenUse, credentialUse } = this.#options;
    const limit = withUses ? MAX_USES : 0;
    const batch = {
      batch_id: Bun.randomUUIDv7(),
      node_id: node,
      audit: this.#audit.splice(0, MAX_ENTRIES),
      login_failures: this.#failures.splice(0, MAX_FAILURES),
      tokens_used: tokenUse.unshared(limit),
      credentials_used: credentialUse.unshared(limit),
    };
    const { audit, login_failures: failures, tokens_used: tokens, credentials_used } = batch;
    const rows = audit.length + failures.length + tokens.length + credentials_used.length;
    return rows === 0 ? null : batch;
  }

  #observe(fact: Fact): void {
    if (fact.kind !== "node_activity" || fact.activity.node_id === this.#options.node) return;
    const { batch_id, node_id, audit, login_failures, ...used } = fact.activity;
    const seen = this.#seen.get(node_id) ?? [];
    if (seen.includes(batch_id)) return;
    this.#seen.set(node_id, [...seen, batch_id].slice(-REMEMBERED_BATCHES));
    this.#options.throttle.observe(login_failures);
    this.#options.tokenUse.observe(used.tokens_used);
    this.#options.credentialUse.observe(used.credentials_used);
    // The node that wrote them has an entry's words from the same type.
    this.#options.audit.adopt(audit as readonly AuditEntry[]);
  }
}
