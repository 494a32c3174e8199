// What a change is asked with, stored in and announced as; knows no rule and no worker.
import type { Clock } from "../clock.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import type { Log } from "../log.ts";
import type { AuditEntry } from "../model/audit-entry.ts";
import { ApiError } from "../model/error.ts";
import { shortList } from "../model/short-list.ts";
import type { Fact } from "../model/fact.ts";
import type { ConfigChange, GatewayConfig } from "../model/gateway-config.ts";
import type { Pace } from "../pace.ts";
import type { StagedChange } from "../store/staged-change.ts";
import type { Compiled, CompileContext } from "../snapshot/compile-context.ts";
import type { RegexChecker } from "../snapshot/regex-thread.ts";
import type { Rollout } from "../snapshot/rollout.ts";
import type { Draft } from "./draft.ts";
import type { DraftContext } from "./draft-rules.ts";
import type { ConfigCatalogue } from "./secret-destinations.ts";
import type { Actor } from "./principal.ts";

/** Another change was stored first: the change runs again, on the configuration after that one. */
export class ChangeConflict extends Error {}

/** Other nodes of the fleet run an older version, which does not know what the change has; nothing was changed. */
export class OlderNodes extends ApiError {
  /** For what is done on this node alone instead. */
  readonly onlyHere: string;

  /** `parts`: what they do not know. */
  constructor(
    parts: readonly string[],
    nodes: readonly { readonly name: string; readonly version: string }[],
  ) {
    const names = shortList(nodes.map(({ name, version }) => `node ${name} runs ${version}`));
    const does = nodes.length === 1 ? "does" : "do";
    const them = nodes.length === 1 ? "it" : "them";
    super(
      409,
      `${names}, which ${does} not know ${parts.join(" and ")}; upgrade ${them} first; nothing was changed`,
    );
    this.onlyHere = `on this node only, because ${names}`;
  }
}

/** Changes that other nodes have stored, as one change; or facts without a change. */
export interface ForeignChange {
  /** Null: facts only. */
  readonly changed: Pick<
    ChangeEvent,
    "revision" | "at" | "actor" | "summary" | "change" | "by" | "audit"
  > | null;
  readonly facts: readonly Fact[];
  /** Writes it to this node's store, which holds `base`; throws when it cannot. */
  store(base: GatewayConfig): void;
}

/** Who writes facts. */
export interface FactOrigin {
  /** The caller, who may wait for the other nodes; absent: the gateway itself. */
  readonly by?: Actor | undefined;
  /** Only while this node does the work of its fleet. Default: false. */
  readonly asLeader?: boolean;
}

/** Stores changes. `commit` and `record` are atomic, and throw or reject when they cannot write. */
export interface ChangeStore {
  /** Why the store cannot write at the moment; null: no known reason. */
  problem?(): string | null;
  /** Prepares the texts that `commit` writes for a large change; absent: `commit` creates them. */
  stage?(change: ConfigChange, undo: ConfigChange, pace: Pace): Promise<StagedChange | null>;
  /** Throws or rejects with a ChangeConflict when another change came first. */
  commit(write: {
    readonly revision: number;
    readonly change: ConfigChange;
    /** The reverse change. */
    readonly undo: ConfigChange;
    readonly entry: { readonly at: string; readonly actor: string; readonly summary: string };
    readonly by: Actor;
    readonly audit: readonly AuditEntry[];
    /** Data of the change beside the configuration. */
    readonly facts: readonly Fact[];
    /** From `stage`. */
    readonly staged: StagedChange | null;
    /** Only while this node does the work of its fleet. */
    readonly asLeader: boolean;
  }): void | Promise<void>;
  /** Writes facts without a change of the configuration. */
  record(facts: readonly Fact[], origin: FactOrigin): void | Promise<void>;
  /** A change that came too late before is not tried again. */
  giveUp?(): void;
  /** Throws an ApiError when changes cannot be stored at the moment, before any work for them. */
  requireOpen?(): void;
  /** The oldest changes of other nodes that this one has not stored yet; null: none. Absent: there are no other nodes. */
  next?(): Promise<ForeignChange | null>;
  /** Other nodes serve the change, but not all workers of this one do; absent: the request fails. */
  onUnserved?(error: unknown): void;
}

/** A committed change. */
export interface ChangeEvent {
  readonly revision: number;
  readonly at: string;
  readonly actor: string;
  readonly summary: string;
  readonly change: ConfigChange;
  readonly by: Actor;
  /** Its audit entries: of very large changes only the last ones. */
  readonly audit: readonly AuditEntry[];
  readonly before: GatewayConfig;
  readonly after: GatewayConfig;
  /** What was written beside the configuration. */
  readonly facts: readonly Fact[];
}

/** A change before its commit. */
export type PendingChange = Pick<ChangeEvent, "change" | "by" | "before" | "after">;

export interface ChangeRequest<T> {
  /** The caller, for the history. */
  readonly by: Actor;
  /** Checks everything, changes nothing. */
  readonly dryRun: boolean;
  /**
   * Writes the change into the draft, inside the lock; throws an ApiError to refuse. Long work yields with the pace; reads see
   * the previous version until it is done. Runs again when another change was stored first, or when new regular expressions have
   * been checked: what it leaves outside of the draft must not depend on how often it ran.
   */
  readonly mutate: (draft: Draft, pace: Pace) => T | Promise<T>;
  /** Data to store with the change, also when it is empty; called after `mutate`. */
  readonly facts?: () => readonly Fact[];
  /** Whether the caller accepts to lock itself out. Default: false. */
  readonly force?: boolean;
  /** Work that only one node of a fleet does: refused when it is another one meanwhile. Default: false. */
  readonly asLeader?: boolean;
}

/** What is to be stored, and the result of the caller. */
export interface RecordedFacts<T> {
  readonly value: T;
  readonly facts: readonly Fact[];
  /** As in a ChangeRequest. */
  readonly asLeader?: boolean;
}

export interface ChangeResult<T> {
  readonly value: T;
  /** The current revision of all workers. */
  readonly revision: number;
  /** Warnings about objects that this change wrote. */
  readonly warnings: readonly string[];
}

export interface ChangesOptions {
  readonly store: ChangeStore;
  readonly rollout: Rollout;
  readonly clock: Clock;
  readonly log: Log;
  /** The version that the workers serve at the start. */
  readonly current: Compiled;
  /** Seals secrets; absent: its key is never replaced. */
  readonly box?: Pick<SecretBox, "renew" | "onReplaced">;
  /** Default: this thread checks regular expressions. */
  readonly regexes?: RegexChecker;
  /** How alerts and DNS providers are configured. */
  readonly configs: ConfigCatalogue["configs"];
  /** The compile context, called for each change. */
  readonly context: () => Omit<CompileContext, "revision"> & DraftContext;
}
