// The only path of a mutation: lock, candidate, compile, prepare, commit, activate; knows no resource and no HTTP.
import { Dialer } from "../dialer/dialer.ts";
import type { DestinationRules } from "../net/destinations.ts";
import type { AuditEntry } from "../model/audit-entry.ts";
import type { Fact } from "../model/fact.ts";
import { Pace } from "../pace.ts";
import { ApiError, StorageError, unavailable } from "../model/error.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { TextCheck } from "../model/object-rules.ts";
import { type CompileResult, compileSteps, warningsOf } from "../snapshot/compile.ts";
import type { Compiled } from "../snapshot/compile-context.ts";
import { RegexChecker } from "../snapshot/regex-thread.ts";
import { unboundText } from "../model/unbound-port.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import { auditSteps } from "./audit-entry.ts";
import {
  ChangeConflict,
  type ChangeEvent,
  type ChangeRequest,
  type ChangeResult,
  type ChangesOptions,
  type ForeignChange,
  type RecordedFacts,
} from "./change-contract.ts";
import { ChangeListeners } from "./change-listeners.ts";
import { applyDraftRules } from "./draft-rules.ts";
import { Draft } from "./draft.ts";
import type { AdminNetworks } from "./admin-network.ts";
import { type Actor, roleOf } from "./principal.ts";
import { rekeyed, renewed, rollOut } from "./rekeyed.ts";
import { refusalOf } from "./reference.ts";
import { createStamp, type Stamp } from "./stamp.ts";
import { Turns } from "./turns.ts";
import { undoOf } from "../model/undo.ts";

/** This thread serves no traffic, so its slices may be longer than those of a worker. */
const SLICE = { objects: Number.POSITIVE_INFINITY, ms: 20 } as const;

type CheckedRequest<T> = ChangeRequest<T> & { readonly regex: TextCheck };

/** Runs changes one after the other, in the order of their requests. */
export class Changes extends ChangeListeners {
  readonly #options: ChangesOptions;
  readonly #stamp: Stamp;
  readonly #regexes: RegexChecker;
  #current: Compiled;
  /** Of changes and of what none may be made beside. */
  readonly turns = new Turns();
  #isStillValid: (by: Actor) => boolean = () => true;
  #beforeFollowing: (config: GatewayConfig) => void = () => {};
  #adminNetworks: Pick<AdminNetworks, "requireAllowed" | "checkChange"> | null = null;
  #isReadOnly = false;
  /** Why the last change could not be stored; null: it was stored. */
  #storeProblem: string | null = null;
  /** Whether the secret key was replaced, and the workers go on with what was derived from the former one. */
  #isRekeyed = false;

  constructor(options: ChangesOptions) {
    super(options.log);
    this.#options = options;
    this.#current = options.current;
    this.#stamp = createStamp(options.clock, options.current.config);
    this.#regexes = options.regexes ?? new RegexChecker({ url: null });
    const { box } = options;
    box?.onReplaced(() => {
      const config = renewed(this.config, box, this.#stamp);
      this.#current = { ...this.#current, config };
      this.#isRekeyed = true;
    });
  }

  /** Connections to servers that the configuration names, by the rules of the current version. */
  readonly dialer = new Dialer({ rules: () => this.destinationRules() });

  /** Where the gateway may connect to. */
  destinationRules(): DestinationRules {
    const { permitted_destinations: permitted } = this.config.settings;
    return { permitted, management: this.#options.context().managementAddresses };
  }

  /** The current configuration. */
  get config(): GatewayConfig {
    return this.#current.config;
  }

  get revision(): number {
    return this.#current.snapshot.revision;
  }

  /** The ports that the gateway cannot listen on at present, in a sentence without addresses; null: none. */
  get unbound(): string | null {
    const { unbound = [] } = this.#options.rollout.status();
    return unbound.length === 0 ? null : unboundText(unbound);
  }

  /** Without one of its ports this node does not count as serving what is stored. */
  override get isSettled(): boolean {
    return super.isSettled && this.unbound === null;
  }

  /** Likely mistakes that are valid, one sentence each. */
  warnings(): readonly string[] {
    const problem = this.#options.store.problem?.() ?? this.#storeProblem;
    const stored = problem === null ? [] : [`changes cannot be stored: ${problem}`];
    const ports = this.unbound === null ? [] : [this.unbound];
    return [...stored, ...ports, ...warningsOf(this.#current).values()];
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

  /** `listener` gets the configuration of a change of another node before it is compiled. */
  beforeFollowing(listener: (config: GatewayConfig) => void): void {
    this.#beforeFollowing = listener;
  }

  /** Refuses changes other than local ones: a configuration file is the source. */
  makeReadOnly(): void {
    this.#isReadOnly = true;
  }

  get isReadOnly(): boolean {
    return this.#isReadOnly;
  }

  /** Resolves when every worker serves the change; rejects with an ApiError when it is refused or cannot be served. */
  run<T>(request: ChangeRequest<T>): Promise<ChangeResult<T>> {
    // Other changes take their turns while expressions are checked.
    return this.#regexes.run((regex) => this.turns.run(() => this.#apply({ ...request, regex })));
  }

  /**
   * Stores facts without a change of the configuration. `decide` makes them from what is stored, and throws to refuse; it runs
   * again when another node stored something first. On a single machine it decides and stores in one turn. `by`: the caller, who
   * may lose access while this waits.
   */
  record<T>(decide: () => RecordedFacts<T>, by?: Actor): Promise<T> {
    if (this.#options.store.next === undefined) return this.#record(decide, by);
    const decideAgain = () => {
      if (by !== undefined) this.#requireValid(by);
      return decide();
    };
    // The place in the log follows from what is stored here: one writer at a time.
    return this.turns.run(() => this.#record(decideAgain, by));
  }

  /** The same in the turn of a change, so that none is being made meanwhile; resolves when all workers know of it. */
  recordAlone<T>(decide: () => RecordedFacts<T>, by: Actor): Promise<T> {
    return this.turns.run(async () => {
      this.requireOpen(by);
      const value = await this.#record(decide, by);
      await this.#rekey();
      return value;
    });
  }

  /** What the workers derive from the secret key follows it; tried again with each look for changes of other nodes. */
  async #rekey(): Promise<void> {
    if (!this.#isRekeyed) return;
    const snapshot = rekeyed(this.#current.snapshot);
    const failure = "not all workers have what is derived from the new secret key";
    this.#isRekeyed = !(await this.during(() => rollOut(snapshot, failure, this.#options)));
    if (!this.#isRekeyed) this.#current = { ...this.#current, snapshot };
  }

  /** Makes the workers listen on ports that were taken before, as far as they are free now; between two changes. */
  bindFreePorts(): Promise<boolean> {
    const failure = "not all workers listen on ports that are free now";
    return this.turns.runOpen(() =>
      this.during(() => rollOut(this.#current.snapshot, failure, this.#options)),
    );
  }

  async #record<T>(decide: () => RecordedFacts<T>, by: Actor | undefined): Promise<T> {
    for (;;) {
      const { value, facts, asLeader = false } = decide();
      if (facts.length === 0) return value;
      try {
        const { store } = this.#options;
        store.requireOpen?.();
        const stored = this.storing(facts, () => store.record(facts, { by, asLeader }));
        if (stored instanceof Promise) await stored;
        return value;
      } catch (error) {
        if (!(error instanceof ChangeConflict)) throw this.#givenUp(error);
        await this.#followFirst();
      }
    }
  }

  /** Throws an ApiError when nothing can be stored at the moment, before any work for it. */
  requireStore(): void {
    this.#options.store.requireOpen?.();
  }

  /** Throws the error with which a change of the caller would be refused now: for work that comes before the change. */
  requireOpen(by: Actor): void {
    this.turns.requireOpen();
    this.#requireValid(by);
    this.#adminNetworks?.requireAllowed(by);
    this.#options.store.requireOpen?.();
    if (this.#isReadOnly && by.method !== "local")
      throw new ApiError(409, "configuration is read-only");
  }

  #requireValid(by: Actor): void {
    if (!this.#isStillValid(by)) throw new ApiError(401, "the credentials are no longer valid");
  }

  /**
   * Stores and serves the changes of other nodes, after the running change; rejects with the reason when one cannot be served
   * here, and tries it again at the next call.
   */
  follow(): Promise<void> {
    return this.turns.run(() => this.#follow());
  }

  async #apply<T>(request: CheckedRequest<T>): Promise<ChangeResult<T>> {
    for (;;) {
      try {
        return await this.#attempt(request);
      } catch (error) {
        if (!(error instanceof ChangeConflict)) throw this.#givenUp(error);
        await this.#followFirst();
      }
    }
  }

  /** Applies what another node has changed first; throws a 503 where this one cannot. */
  async #followFirst(): Promise<void> {
    try {
      await this.#follow();
    } catch (error) {
      const { message } = error instanceof Error ? error : new Error(String(error));
      const isComplete = error instanceof ApiError && error.status === 503;
      if (isComplete && message.includes("nothing was changed")) throw this.#givenUp(error);
      const why = `this node cannot serve a change of another node that came first (${message})`;
      throw this.#givenUp(
        unavailable(`${why}; nothing was changed: send changes to another node`, error),
      );
    }
  }

  #givenUp(error: unknown): unknown {
    this.#options.store.giveUp?.();
    return error;
  }

  async #follow(): Promise<void> {
    for (;;) {
      const next = (await this.#options.store.next?.()) ?? null;
      if (next === null) return await this.#rekey();
      if (next.changed === null) {
        next.store(this.config);
        await this.recorded(next.facts);
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
    this.#beforeFollowing(draft.config);
    const pace = new Pace(SLICE);
    const next = await this.#regexes.run(
      (regex) => this.#compile(draft, { revision, pace, regex }),
      false,
    );
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

  async #attempt<T>(request: CheckedRequest<T>): Promise<ChangeResult<T>> {
    this.requireOpen(request.by);
    const isByAdmin = roleOf(request.by) === "admin";
    const draft = new Draft(this.#current.config, this.#stamp, isByAdmin);
    const pace = new Pace(SLICE);
    const mutated = request.mutate(draft, pace);
    const value = mutated instanceof Promise ? await mutated : mutated;
    // Decoding a large object has taken long.
    if (pace.isDue()) await pace.rest();
    const { configs, context } = this.#options;
    applyDraftRules(draft, request.by, { ...context(), configs, force: request.force === true });
    draft.runChecks();
    if (draft.isUnchanged()) {
      const facts = request.dryRun ? [] : (request.facts?.() ?? []);
      const { store } = this.#options;
      if (facts.length > 0) await this.storing(facts, () => store.record(facts, request));
      return { value, revision: this.revision, warnings: [] };
    }
    const { regex } = request;
    const next = await this.#compile(draft, { revision: this.revision + 1, pace, regex });
    this.#adminNetworks?.checkChange(draft, { by: request.by, force: request.force === true });
    const isSent = (id: string) => draft.pathOf(id) !== null;
    const warnings = [...draft.warnings, ...warningsOf(next, isSent).values()];
    if (request.dryRun) return { value, revision: this.revision, warnings };
    if (pace.isDue()) await pace.rest();
    await this.#prepare(next.snapshot, draft);
    const event = await this.#commit(next.snapshot.revision, draft, { ...request, pace });
    await this.#serve(next, event, pace);
    return { value, revision: next.snapshot.revision, warnings };
  }

  /** Activates a stored change, and informs the listeners. */
  async #serve(next: Compiled, event: ChangeEvent, pace: Pace): Promise<void> {
    // The commit decides: the next change builds on this one, whatever the workers do.
    this.#current = next;
    const activation = Promise.withResolvers<void>();
    void this.recorded(event.facts, activation.promise);
    this.stored(event);
    // The commit of a large change has just blocked the event loop.
    if (pace.isDue()) await pace.rest();
    const isServed = await this.#activate(next.snapshot.revision).finally(activation.resolve);
    if (!isServed) return;
    const { revision, actor, summary } = event;
    this.#options.log.info("the configuration was changed", { revision, actor, summary });
    this.served(event);
  }

  async #compile(
    draft: Draft,
    {
      revision,
      pace,
      regex,
    }: { readonly revision: number; readonly pace: Pace; readonly regex: TextCheck },
  ): Promise<Compiled> {
    const given = this.#options.context();
    const context = { ...given, checks: { ...given.checks, regex }, revision };
    const steps = compileSteps(draft.config, this.#current, context);
    const result: CompileResult = await pace.run(steps);
    if ("issues" in result) throw refusalOf(result.issues, draft);
    return result;
  }

  async #prepare(snapshot: Snapshot, draft: Draft): Promise<void> {
    const { rollout } = this.#options;
    try {
      const issues = await rollout.prepare(snapshot);
      if (issues.length > 0) throw refusalOf(issues, draft);
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
      asLeader = false,
      pace,
    }: Pick<ChangeRequest<unknown>, "by" | "facts" | "asLeader"> & { readonly pace: Pace },
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
      facts = [...this.factsOf(pending), ...(ofRequest?.() ?? [])];
      await store.commit({ revision, change, undo, entry, by, audit, facts, staged, asLeader });
    } catch (error) {
      if (error instanceof ChangeConflict) {
        await this.#discard(revision);
        throw error;
      }
      // A condition that does not hold, or an unreachable database of the fleet, says nothing about the store.
      const isOfStore = !(error instanceof ApiError) || error instanceof StorageError;
      if (isOfStore || error.status === 500)
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
}
