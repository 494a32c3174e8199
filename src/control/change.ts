// The only path of a mutation: lock, candidate, compile, prepare, commit, activate; knows no resource and no HTTP.
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import { Pace } from "../pace.ts";
import { ApiError } from "../model/error.ts";
import type { Fact } from "../model/fact.ts";
import type { ConfigChange, GatewayConfig } from "../model/gateway-config.ts";
import {
  type Compiled,
  type CompileContext,
  type CompileResult,
  compileSteps,
  warningsOf,
} from "../snapshot/compile.ts";
import type { Problem } from "../snapshot/problem.ts";
import type { Rollout } from "../snapshot/rollout.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import { type AuditEntry, auditSteps } from "./audit-entry.ts";
import { Draft } from "./draft.ts";
import { requireAdminForPrograms } from "./admin-dns-providers.ts";
import { requireAdminForPlugins } from "./admin-plugins.ts";
import type { StagedChange } from "../store/staged-change.ts";
import type { AdminNetworks } from "./admin-network.ts";
import { type Actor, roleOf } from "./principal.ts";
import { describeProblem } from "./reference.ts";
import { requireAdminForDestinations } from "./secret-destinations.ts";
import { requireAdminForSockets } from "./socket-targets.ts";
import { createStamp, type Stamp } from "./stamp.ts";
import { undoOf } from "./undo.ts";

/** Another change was stored first: the change runs again, on the configuration after that one. */
export class ChangeConflict extends Error {}

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
  }): void | Promise<void>;
  /** Writes facts without a change of the configuration. */
  record(facts: readonly Fact[]): void | Promise<void>;
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

type Listener = (event: ChangeEvent) => void;

export interface ChangeRequest<T> {
  /** The caller, for the history. */
  readonly by: Actor;
  /** Checks everything, changes nothing. */
  readonly dryRun: boolean;
  /**
   * Writes the change into the draft, inside the lock; throws an ApiError to refuse. Long work yields with the pace; reads see
   * the previous version until it is done. Runs again when another change was stored first: what it leaves outside of the draft
   * must not depend on how often it ran.
   */
  readonly mutate: (draft: Draft, pace: Pace) => T | Promise<T>;
  /** Data to store with the change, also when it is empty; called after `mutate`. */
  readonly facts?: () => readonly Fact[];
  /** Whether the caller accepts to lock itself out. Default: false. */
  readonly force?: boolean;
}

/** What is to be stored, and the result of the caller. */
export interface RecordedFacts<T> {
  readonly value: T;
  readonly facts: readonly Fact[];
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
  /** The compile context, called for each change. */
  readonly context: () => Omit<CompileContext, "revision">;
}

/** This thread serves no traffic, so its slices may be longer than those of a worker. */
const SLICE = { objects: Number.POSITIVE_INFINITY, ms: 20 } as const;

/** Retry-After while changes are paused. */
const RETRY_SECONDS = "5";

/** Runs changes one after the other, in the order of their requests. */
export class Changes {
  readonly #options: ChangesOptions;
  readonly #stamp: Stamp;
  #current: Compiled;
  #last: Promise<unknown> = Promise.resolve();
  readonly #factSources: ((pending: PendingChange) => readonly Fact[])[] = [];
  readonly #storedListeners: Listener[] = [];
  readonly #servedListeners: Listener[] = [];
  readonly #factListeners: ((fact: Fact) => void | Promise<void>)[] = [];
  /** Batches of facts that listeners work on. */
  #notifying = 0;
  #isStillValid: (by: Actor) => boolean = () => true;
  #adminNetworks: Pick<AdminNetworks, "requireAllowed" | "checkChange"> | null = null;
  #isReadOnly = false;
  /** Why the last change could not be stored; null: it was stored. */
  #storeProblem: string | null = null;
  /** Why changes are paused; null: they are not. */
  #pausedFor: string | null = null;

  constructor(options: ChangesOptions) {
    this.#options = options;
    this.#current = options.current;
    this.#stamp = createStamp(options.clock, options.current.config);
  }

  /** The current configuration. */
  get config(): GatewayConfig {
    return this.#current.config;
  }

  get revision(): number {
    return this.#current.snapshot.revision;
  }

  /** Whether the listeners for facts are done with all that is stored. */
  get isSettled(): boolean {
    return this.#notifying === 0;
  }

  /** Likely mistakes that are valid, one sentence each. */
  warnings(): readonly string[] {
    const problem = this.#options.store.problem?.() ?? this.#storeProblem;
    const stored = problem === null ? [] : [`changes cannot be stored: ${problem}`];
    return [...stored, ...warningsOf(this.#current).values()];
  }

  /** Stores the facts of `source` with each change. */
  addFacts(source: (pending: PendingChange) => readonly Fact[]): void {
    this.#factSources.push(source);
  }

  /**
   * Calls `listener` for each fact in the turn in which it is stored, also for those of other nodes. This node counts as serving
   * those of others when the promises are fulfilled.
   */
  onFact(listener: (fact: Fact) => void | Promise<void>): void {
    this.#factListeners.push(listener);
  }

  /** Calls `listener` right after the commit of a change, before the workers serve it and before the response. */
  onStored(listener: Listener): void {
    this.#storedListeners.push(listener);
  }

  /** Calls `listener` once for each change, after all workers serve it. */
  onServed(listener: Listener): void {
    this.#servedListeners.push(listener);
  }

  /**
   * Refuses changes of callers for whom `check` is false when their turn comes: they may have lost access while they waited.
   */
  refuseUnless(check: (by: Actor) => boolean): void {
    this.#isStillValid = check;
  }

  /** Checks callers and changes against the allowed networks of the management API. */
  guardBy(adminNetworks: Pick<AdminNetworks, "requireAllowed" | "checkChange">): void {
    this.#adminNetworks = adminNetworks;
  }

  /** Refuses changes other than local ones: a configuration file is the source. */
  makeReadOnly(): void {
    this.#isReadOnly = true;
  }

  get isReadOnly(): boolean {
    return this.#isReadOnly;
  }

  /** Refuses all further changes with `reason`, also the waiting ones; resolves when the running change has ended. */
  async pause(reason: string): Promise<void> {
    this.#pausedFor = reason;
    await this.#last;
  }

  /** Delays changes until `ready` resolves. */
  holdUntil(ready: Promise<void>): void {
    this.#last = this.#last.then(() => ready);
  }

  /** Ends `pause`. */
  resume(): void {
    this.#pausedFor = null;
  }

  /** Resolves when every worker serves the change; rejects with an ApiError when it is refused or cannot be served. */
  run<T>(request: ChangeRequest<T>): Promise<ChangeResult<T>> {
    const result = this.#last.then(() => this.#apply(request));
    // A failed change must not block the next ones.
    this.#last = result.catch(() => undefined);
    return result;
  }

  /**
   * Stores facts without a change of the configuration. `decide` makes them from what is stored, and throws to refuse; it runs
   * again when another node stored something first. On a single machine it decides and stores in one turn.
   */
  record<T>(decide: () => RecordedFacts<T>): Promise<T> {
    if (this.#options.store.next === undefined) return this.#record(decide);
    // The place in the log follows from what is stored here: one writer at a time.
    const result = this.#last.then(() => this.#record(decide));
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #record<T>(decide: () => RecordedFacts<T>): Promise<T> {
    for (;;) {
      const { value, facts } = decide();
      if (facts.length === 0) return value;
      try {
        this.#options.store.requireOpen?.();
        const stored = this.#options.store.record(facts);
        if (stored instanceof Promise) await stored;
      } catch (error) {
        if (!(error instanceof ChangeConflict)) throw error;
        await this.#follow();
        continue;
      }
      void this.#notifyOf(facts);
      return value;
    }
  }

  /** Throws an ApiError when nothing can be stored at the moment, before any work for it. */
  requireStore(): void {
    this.#options.store.requireOpen?.();
  }

  /** Throws the error with which a change of the caller would be refused now: for work that comes before the change. */
  requireOpen(by: Actor): void {
    if (this.#pausedFor !== null)
      throw new ApiError(409, this.#pausedFor, { headers: { "retry-after": RETRY_SECONDS } });
    if (!this.#isStillValid(by)) throw new ApiError(401, "the credentials are no longer valid");
    this.#adminNetworks?.requireAllowed(by);
    this.#options.store.requireOpen?.();
    if (this.#isReadOnly && by.method !== "local")
      throw new ApiError(409, "configuration is read-only");
  }

  /**
   * Stores and serves the changes of other nodes, after the running change; rejects with the reason when one cannot be served
   * here, and tries it again at the next call.
   */
  follow(): Promise<void> {
    const result = this.#last.then(() => this.#follow());
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #apply<T>(request: ChangeRequest<T>): Promise<ChangeResult<T>> {
    for (;;) {
      try {
        return await this.#attempt(request);
      } catch (error) {
        if (!(error instanceof ChangeConflict)) throw error;
        await this.#follow();
      }
    }
  }

  async #follow(): Promise<void> {
    for (;;) {
      const next = (await this.#options.store.next?.()) ?? null;
      if (next === null) return;
      if (next.changed === null) {
        next.store(this.config);
        await this.#notifyOf(next.facts);
      } else await this.#followChange(next, next.changed);
    }
  }

  /** Decided already: it is only compiled, prepared, stored and served. */
  async #followChange(
    { store, facts }: ForeignChange,
    changed: NonNullable<ForeignChange["changed"]>,
  ): Promise<void> {
    const { change, revision, at } = changed;
    const draft = Draft.of(change, this.#current.config, this.#stamp);
    this.#stamp.observe(change, at);
    const pace = new Pace(SLICE);
    const next = await this.#compile(draft, { revision, pace });
    await this.#prepare(next.snapshot, draft);
    try {
      store(draft.base);
    } catch (error) {
      await this.#discard(revision);
      throw error;
    }
    const event = { ...changed, facts, before: draft.base, after: draft.config };
    await this.#serve(next, event, pace);
  }

  async #attempt<T>(request: ChangeRequest<T>): Promise<ChangeResult<T>> {
    this.requireOpen(request.by);
    const isByAdmin = roleOf(request.by) === "admin";
    const draft = new Draft(this.#current.config, this.#stamp, isByAdmin);
    const pace = new Pace(SLICE);
    const mutated = request.mutate(draft, pace);
    const value = mutated instanceof Promise ? await mutated : mutated;
    const { plugins } = this.#options.context();
    requireAdminForSockets(draft, request.by);
    requireAdminForPlugins(draft, request.by, plugins);
    requireAdminForPrograms(draft, request.by);
    requireAdminForDestinations(draft, request.by, plugins);
    draft.runChecks();
    if (draft.isUnchanged()) {
      const facts = request.dryRun ? [] : (request.facts?.() ?? []);
      if (facts.length > 0) await this.#options.store.record(facts);
      void this.#notifyOf(facts);
      return { value, revision: this.revision, warnings: [] };
    }
    const next = await this.#compile(draft, { revision: this.revision + 1, pace });
    this.#adminNetworks?.checkChange(draft, { by: request.by, force: request.force === true });
    const isSent = (id: string) => draft.pathOf(id) !== null;
    const warnings = [...draft.warnings, ...warningsOf(next, isSent).values()];
    if (request.dryRun) return { value, revision: this.revision, warnings };
    await this.#prepare(next.snapshot, draft);
    const event = await this.#commit(next.snapshot.revision, draft, { ...request, pace });
    await this.#serve(next, event, pace);
    return { value, revision: next.snapshot.revision, warnings };
  }

  /** Activates a stored change, and informs the listeners. */
  async #serve(next: Compiled, event: ChangeEvent, pace: Pace): Promise<void> {
    // The commit decides: the next change builds on this one, whatever the workers do.
    this.#current = next;
    void this.#notifyOf(event.facts);
    this.#notify(this.#storedListeners, event);
    // The commit of a large change has just blocked the event loop.
    if (pace.isDue()) await pace.rest();
    const isServed = await this.#activate(next.snapshot.revision);
    if (!isServed) return;
    const { revision, actor, summary } = event;
    this.#options.log.info("the configuration was changed", { revision, actor, summary });
    this.#notify(this.#servedListeners, event);
  }

  async #compile(
    draft: Draft,
    { revision, pace }: { readonly revision: number; readonly pace: Pace },
  ): Promise<Compiled> {
    const context = { ...this.#options.context(), revision };
    const steps = compileSteps(draft.config, this.#current, context);
    const result: CompileResult = await pace.run(steps);
    if ("issues" in result) throw this.#refusal(result.issues, draft);
    return result;
  }

  #refusal(issues: readonly Problem[], draft: Draft): ApiError {
    const [first] = issues;
    if (first === undefined) return new ApiError(400, "the configuration is invalid");
    return new ApiError(first.status, describeProblem(first, draft));
  }

  async #prepare(snapshot: Snapshot, draft: Draft): Promise<void> {
    const { rollout } = this.#options;
    try {
      const [first] = await rollout.prepare(snapshot);
      if (first === undefined) return;
      throw new ApiError(first.status, describeProblem(first, draft));
    } catch (error) {
      await this.#discard(snapshot.revision);
      if (error instanceof ApiError) throw error;
      throw new ApiError(500, "the workers could not prepare the change; nothing was changed", {
        cause: error,
      });
    }
  }

  async #commit(
    revision: number,
    draft: Draft,
    {
      by,
      facts: ofRequest,
      pace,
    }: Pick<ChangeRequest<unknown>, "by" | "facts"> & { readonly pace: Pace },
  ): Promise<ChangeEvent> {
    const change = draft.change();
    const entry = { at: this.#stamp(), actor: by.actor, summary: draft.summary };
    const pending = { change, by, before: draft.base, after: draft.config };
    let audit: readonly AuditEntry[];
    let facts: readonly Fact[];
    try {
      const most = draft.config.settings.retention.audit_entries;
      audit = await pace.run(auditSteps(pending, by, { at: entry.at, revision, most }));
      const { store } = this.#options;
      const undo = undoOf(change, draft.base);
      const staged = (await store.stage?.(change, undo, pace)) ?? null;
      // In the turn of the commit: a session may have begun meanwhile.
      facts = [...this.#factSources.flatMap((source) => source(pending)), ...(ofRequest?.() ?? [])];
      await store.commit({ revision, change, undo, entry, by, audit, facts, staged });
    } catch (error) {
      if (error instanceof ChangeConflict) {
        await this.#discard(revision);
        throw error;
      }
      // A condition of the request that does not hold says nothing about the store.
      if (!(error instanceof ApiError) || error.status >= 500)
        this.#storeProblem = error instanceof ApiError ? error.message : "the database refused it";
      await this.#discard(revision);
      if (error instanceof ApiError) throw error;
      throw new ApiError(
        500,
        "the change could not be stored: the database refused it; nothing was changed",
        { cause: error },
      );
    }
    this.#storeProblem = null;
    return { revision, audit, facts, ...pending, ...entry };
  }

  /** Whether all workers serve it. */
  async #activate(revision: number): Promise<boolean> {
    const { rollout, store } = this.#options;
    try {
      await rollout.activate(revision);
      return true;
    } catch (error) {
      if (store.onUnserved !== undefined) {
        store.onUnserved(error);
        return false;
      }
      throw new ApiError(
        500,
        `the change is stored as revision ${revision}, but not all workers serve it yet`,
        { cause: error },
      );
    }
  }

  /** Best effort: a worker must not hold an unstored version, but the first failure is the one to report. */
  async #discard(revision: number): Promise<void> {
    try {
      await this.#options.rollout.discard(revision);
    } catch (error) {
      this.#options.log.warn("a prepared version could not be discarded", { revision, error });
    }
  }

  /** Calls all listeners in this turn. */
  async #notifyOf(facts: readonly Fact[]): Promise<void> {
    if (facts.length === 0) return;
    this.#notifying++;
    const calls = facts.flatMap((fact) =>
      this.#factListeners.map(async (listener) => await listener(fact)),
    );
    const results = await Promise.allSettled(calls);
    this.#notifying--;
    for (const result of results) if (result.status === "rejected") this.#failed(result.reason);
  }

  #notify<T>(listeners: readonly ((event: T) => void)[], event: T): void {
    for (const listener of listeners) {
      try {
        listener(event);
      } catch (error) {
        this.#failed(error);
      }
    }
  }

  #failed(error: unknown): void {
    this.#options.log.error("a listener for changes failed", { error });
  }
}
