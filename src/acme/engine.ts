// Issues and renews certificates in time: schedules orders, runs them, stores their state; knows no HTTP.
import type { Clock } from "../clock.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import type { Log } from "../log.ts";
import { type AcmeAccount, directoryOf } from "../model/acme-account.ts";
import { type Certificate, isIssued } from "../model/certificate.ts";
import type { Changes } from "../control/change.ts";
import type { ChangeEvent } from "../control/change-contract.ts";
import { type FleetDuty, soleDuty } from "../control/fleet-view.ts";
import type { Actor } from "../control/principal.ts";
import type { Fact } from "../model/fact.ts";
import { ApiError } from "../model/error.ts";
import { readChain } from "../crypto/certificate-chain.ts";
import { materialOfNone } from "./certificate-fields.ts";
import { changeAccountKey } from "./account-keys.ts";
import type { KnownAccounts } from "./ca-client.ts";
import {
  ChallengeBoard,
  type HttpProof,
  type ShareChallenges,
  type ShowChallenges,
} from "./challenge-board.ts";
import type { DnsParts } from "./dns-proof.ts";
import { readShared } from "./fleet-acme.ts";
import { describeExpiry, describeTroubles, expiryOf } from "./expiry.ts";
import { AcmeFailure } from "./failure.ts";
import { Installation, issuer } from "./installation.ts";
import { accountsFor, accountToRevokeWith, issue, openCa } from "./issue.ts";
import type { LocalCa } from "./local-ca.ts";
import type { Progress } from "./progress.ts";
import { SharedExclusiveGate } from "./shared-exclusive-gate.ts";
import { askRenewal, settled } from "./renewal-info.ts";
import { OnDemand, wantedNames } from "./on-demand.ts";
import { dueAt, isOrderedAlike, retryAt, timeOf, toTime } from "./schedule.ts";
import { type AcmeState, type AcmeStore, afresh, emptyState, toState } from "./state.ts";
import { Tally } from "./tally.ts";
import type { AcmeEvents } from "./acme-events.ts";

export interface AcmeEngineOptions {
  readonly changes: Changes;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly log: Log;
  readonly store: AcmeStore;
  readonly show: ShowChallenges;
  readonly dns: DnsParts;
  readonly localCa: LocalCa;
  /** Subscribers to events of certificates. */
  readonly events: AcmeEvents;
  /** From 0 to 1; default: Math.random. */
  readonly random?: () => number;
  /** Whether this node issues certificates. Default: it does. */
  readonly duty?: FleetDuty;
  /** Absent: there are no other nodes. */
  readonly share?: ShareChallenges;
  /** Id of this node. */
  readonly node?: string;
}

/** CAs limit concurrent orders. */
const MOST_AT_ONCE = 5;
const LONGEST_SLEEP_MS = 60_000;

interface Run {
  readonly abort: AbortController;
  readonly domains: readonly string[];
  readonly done: Promise<void>;
  /** An account or DNS provider has changed since the start: ignore its failure. */
  isOutdated: boolean;
}

export class AcmeEngine {
  readonly #options: AcmeEngineOptions;
  readonly #random: () => number;
  readonly #duty: FleetDuty;
  #states: Map<string, AcmeState>;
  readonly #runs = new Map<string, Run>();
  readonly #asking = new Set<string>();
  /** Accounts with a key rollover in progress. */
  readonly #changing = new Set<string>();
  readonly tally = new Tally();
  readonly #known: KnownAccounts = new Map();
  readonly #listenerGate = new SharedExclusiveGate();
  readonly #board: ChallengeBoard;
  readonly #installation: Installation;
  readonly #onDemand: OnDemand;
  #end = new AbortController();
  #timer: Timer | null = null;
  #isStarted = false;

  constructor(options: AcmeEngineOptions) {
    const { changes, store, show, log } = options;
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#states = loadStates(store);
    this.#duty = options.duty ?? soleDuty;
    this.#board = new ChallengeBoard(
      show,
      (error) => log.warn("challenge responses could not be published or removed", { error }),
      options.share,
    );
    this.#installation = new Installation(changes, this.#listenerGate);
    this.#onDemand = new OnDemand(options);
    changes.onFact((fact) => this.#observe(fact));
    options.box.onReplaced(() => this.#renew());
    changes.onServed((event) => this.#follow(event));
    this.#duty.onChange(() => this.#takeOrLoseDuty());
  }

  /** Resumes open orders and starts due ones; sends no request before that. */
  start(): void {
    this.#isStarted = true;
    if (this.#end.signal.aborted) this.#end = new AbortController();
    for (const id of this.#states.keys())
      if (!this.#options.changes.config.certificates.has(id)) this.#forget(id);
    this.#board.watch(wantedNames(this.#options.changes.config));
    this.tick();
  }

  /** Aborts running orders; the next start resumes them. */
  async stop(): Promise<void> {
    this.#isStarted = false;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#end.abort(new Error("the gateway stops"));
    await Promise.allSettled([...this.#runs.values()].map(({ done }) => done));
  }

  /** Starts due orders, and sleeps until the next one. */
  tick(): void {
    if (!this.#isStarted) return;
    const now = this.#options.clock.now();
    const next = this.#duty.isOurs ? this.#startDue(now) : now + LONGEST_SLEEP_MS;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.tick(), Math.max(next - now, 10));
    this.#timer.unref();
  }

  /** Returns the time of the next order. */
  #startDue(now: number): number {
    let next = now + LONGEST_SLEEP_MS;
    for (const certificate of this.#options.changes.config.certificates.values()) {
      this.#warn(certificate, now);
      this.#askRenewalIfDue(certificate, now);
      const due = this.#dueAt(certificate);
      if (due === null || this.#runs.has(certificate.id)) continue;
      if (due > now) next = Math.min(next, due);
      else if (this.#mayRun(certificate)) this.#begin(certificate);
    }
    return next;
  }

  /** A certificate of a former root of the local CA is due like one that was not issued. */
  #dueAt(certificate: Certificate): number | null {
    const state = this.stateOf(certificate.id);
    const isOutdated =
      certificate.source === "local_ca" && !this.#options.localCa.hasSigned(certificate);
    return dueAt(isOutdated ? { ...certificate, ...materialOfNone } : certificate, state);
  }

  /** The next node resumes the orders. */
  #takeOrLoseDuty(): void {
    if (this.#duty.isOurs) return this.tick();
    for (const { abort } of this.#runs.values())
      abort.abort(new Error("another node issues certificates now"));
    const { store } = this.#options;
    store.dropUnsent?.();
    this.#states = loadStates(store);
  }

  #observe(fact: Fact): void | Promise<void> {
    const { store, box, node } = this.#options;
    if (fact.kind === "acme_state" && store.isBehind?.(fact) !== true) {
      this.#states.set(fact.certificate_id, toState(fact.document));
      // Another node may have been asked for a certificate.
      if (node !== undefined) setImmediate(() => this.tick());
    } else if (fact.kind === "local_ca") setImmediate(() => this.tick());
    else if (fact.kind === "acme_challenges" && fact.node_id !== node)
      return this.#board.observe(fact.node_id, readShared(fact.sealed, box));
  }

  /** The keys of open orders are sealed under another key now. */
  #renew(): void {
    const { store, box } = this.#options;
    for (const [id, known] of this.#states) {
      if (known.order === null) continue;
      const order = { ...known.order, sealed_key: box.renew(known.order.sealed_key) };
      const state = { ...known, order };
      this.#states.set(id, state);
      const fact = { kind: "acme_state", certificate_id: id, document: state } as const;
      // Otherwise it would go to the other nodes as it was.
      if (store.isBehind?.(fact) === true) void store.put(id, state, true);
    }
  }

  /** Makes all workers serve a probe token; the function removes it. */
  showProof(proof: HttpProof): Promise<() => void> {
    return this.#board.putUp({ http: [proof], tls: [] });
  }

  /** The progress of a certificate. */
  progressOf(certificate: Certificate): Progress {
    const state = this.stateOf(certificate.id);
    const due = this.#dueAt(certificate);
    const { renewal } = state;
    const window =
      renewal?.fingerprint === certificate.fingerprint && renewal.start !== null
        ? { start: renewal.start, end: renewal.end ?? renewal.start }
        : null;
    const isRunning = this.#runs.has(certificate.id);
    return {
      isRunning,
      last_error: state.last_error,
      attempts: state.attempts,
      next_attempt_at:
        due === null || isRunning ? null : toTime(Math.max(due, this.#options.clock.now())),
      renewal_window: window,
    };
  }

  stateOf(certificateId: string): AcmeState {
    return this.#states.get(certificateId) ?? emptyState;
  }

  /** Requests a new certificate now, independent of the present one. */
  askFor(certificate: Certificate): void {
    void this.#save(certificate.id, { is_asked_for: true, next_attempt_at: null }, false);
    this.tick();
  }

  /** A client has requested a name without a certificate. */
  wanted(name: string): void {
    if (this.#isStarted) void this.#onDemand.wanted(name);
  }

  /** Revokes it at its CA, and requests a new one. Throws an AcmeFailure. */
  async revoke(certificate: Certificate, reason: number): Promise<void> {
    const { changes, box, clock } = this.#options;
    const account = accountToRevokeWith(certificate, this.stateOf(certificate.id), changes.config);
    if (!isIssued(certificate)) return;
    const { fetch } = changes.dialer;
    const parts = {
      box,
      fetch,
      known: this.#known,
      now: () => clock.now(),
      signal: this.#end.signal,
    };
    const ca = await openCa(account, parts);
    await ca.revoke(certificate.certificate, reason);
    this.#options.events.certificate("revoked", certificate);
  }

  /** Rolls over the account key. Throws an AcmeFailure, of the type `busy` during an order. */
  async changeKey(account: AcmeAccount, by: Actor): Promise<void> {
    const { changes, box, clock } = this.#options;
    const isBusy = [...changes.config.certificates.values()].some(
      (certificate) =>
        certificate.source === "acme" &&
        this.#isOrdering(certificate.id) &&
        accountsFor(certificate, changes.config).some(({ id }) => id === account.id),
    );
    if (isBusy || this.#changing.has(account.id))
      throw new AcmeFailure("an order with it is in progress", { type: "busy" });
    this.#changing.add(account.id);
    try {
      const { fetch } = changes.dialer;
      const parts = {
        box,
        fetch,
        known: this.#known,
        now: () => clock.now(),
        signal: this.#end.signal,
      };
      await changeAccountKey(account, by, { changes, ...parts });
    } finally {
      this.#changing.delete(account.id);
      this.tick();
    }
  }

  /** On this node or on the leader. */
  #isOrdering(id: string): boolean {
    return this.#runs.has(id) || (!this.#duty.isOurs && this.stateOf(id).order !== null);
  }

  /** Warnings, one sentence each. */
  warnings(): readonly string[] {
    const { changes, clock } = this.#options;
    const now = clock.now();
    const troubles = [...changes.config.certificates.values()].flatMap((certificate) =>
      describeTroubles(certificate, this.stateOf(certificate.id).attempts, now),
    );
    return [...this.#options.localCa.warnings(), ...troubles];
  }

  /** Two orders for one name would conflict on tls-alpn-01. */
  #mayRun(certificate: Certificate): boolean {
    const { domains } = certificate;
    if (this.#runs.size >= MOST_AT_ONCE) return false;
    // An order must finish with the key that started it.
    const accounts = accountsFor(certificate, this.#options.changes.config);
    if (accounts.some(({ id }) => this.#changing.has(id))) return false;
    return ![...this.#runs.values()].some((run) =>
      run.domains.some((name) => domains.includes(name)),
    );
  }

  #begin(certificate: Certificate): void {
    const abort = new AbortController();
    const { id, domains } = certificate;
    const signal = AbortSignal.any([abort.signal, this.#end.signal]);
    const done = Promise.resolve().then(() => this.#run(certificate, signal));
    this.#runs.set(id, { abort, domains, done, isOutdated: false });
    this.#options.events.acme("ordering", certificate, this.stateOf(id));
    void done.finally(() => {
      this.#runs.delete(id);
      this.tick();
    });
  }

  /** Never throws. */
  async #run(certificate: Certificate, signal: AbortSignal): Promise<void> {
    const { id } = certificate;
    try {
      const result =
        certificate.source === "local_ca"
          ? await this.#sign(certificate)
          : await issue(certificate, this.stateOf(id), this.#issueParts(id, signal));
      if (!("chain" in result)) return this.#failed(certificate, result);
      const { chain, account } = result;
      const at = toTime(this.#options.clock.now());
      const issued = { account_id: "", fingerprint: chain.fingerprint, at, ...issuedBy(account) };
      if (account !== null) this.tally.add(account.id, "issued");
      const document = { ...emptyState, issued };
      const { domains } = certificate;
      const isUsed = await this.#installation.install({
        certificateId: id,
        domains,
        chain,
        seal: (key) => this.#options.box.seal(key),
        facts: [{ kind: "acme_state", certificate_id: id, document }],
      });
      if (isUsed) this.#issued(certificate);
    } catch (error) {
      if (signal.aborted) return;
      // The order stays: the next attempt downloads the certificate again.
      const { message } = error as Error;
      this.#failed(certificate, [new AcmeFailure(message, { type: "unreachable", cause: error })]);
    }
  }

  /** Signs a certificate of the local CA. */
  async #sign({ domains }: Certificate) {
    try {
      const { cert, key } = await this.#options.localCa.sign(domains, { dryRun: false });
      return { chain: readChain(cert, key), account: null };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return [new AcmeFailure(error.message, { cause: error })];
    }
  }

  #issueParts(id: string, signal: AbortSignal) {
    const { changes, box, clock, dns, log } = this.#options;
    return {
      config: changes.config,
      box,
      dns,
      signal,
      board: this.#board,
      known: this.#known,
      fetch: changes.dialer.fetch,
      listenerGate: this.#listenerGate,
      now: () => clock.now(),
      saveOrder: (order: AcmeState["order"]) => {
        if (this.#runs.get(id)?.abort.signal.aborted !== true) return this.#save(id, { order });
      },
      failed: (account: AcmeAccount, { message: reason }: AcmeFailure) => {
        this.tally.add(account.id, "failed");
        log.warn("an ACME order failed", { account: account.name, reason });
      },
      left: (error: unknown) => log.warn("a DNS record could not be deleted", { error }),
    };
  }

  #issued(before: Certificate): void {
    const { changes, log, events } = this.#options;
    const certificate = changes.config.certificates.get(before.id) ?? before;
    const { name, domains, not_after } = certificate;
    log.info("a certificate was issued", { certificate: name, domains, not_after });
    events.acme("valid", certificate, this.stateOf(before.id));
    events.certificate(isIssued(before) ? "renewed" : "issued", certificate);
  }

  #failed(certificate: Certificate, failures: readonly AcmeFailure[]): void {
    const { clock, log, events } = this.#options;
    const { id, name } = certificate;
    if (this.#runs.get(id)?.isOutdated === true) return void this.#save(id, afresh);
    const attempts = this.stateOf(id).attempts + 1;
    const at = retryAt(failures, attempts, { now: clock.now(), random: this.#random() });
    const last_error = [...new Set(failures.map(({ message }) => message))].join("; ");
    const isLimit = failures.some(({ type }) => type === "rateLimited");
    const limited_until = isLimit ? toTime(at) : null;
    void this.#save(id, { attempts, last_error, limited_until, next_attempt_at: toTime(at) });
    log.warn("a certificate could not be issued", {
      certificate: name,
      attempts,
      reason: last_error,
      next_attempt_at: toTime(at),
    });
    events.acme("failed", certificate, this.stateOf(id));
  }

  #askRenewalIfDue(certificate: Certificate, now: number): void {
    const { changes, box, clock, log } = this.#options;
    const { id } = certificate;
    const { renewal, issued } = this.stateOf(id);
    if (!isIssued(certificate) || certificate.source !== "acme" || !certificate.enabled) return;
    const account = changes.config.acme_accounts.get(issued?.account_id ?? "");
    if (account?.enabled !== true || issued?.fingerprint !== certificate.fingerprint) return;
    const isKnown = renewal?.fingerprint === certificate.fingerprint;
    if (isKnown && timeOf(renewal.ask_again_at) > now) return;
    if (this.#changing.has(account.id)) return;
    if (this.#asking.has(id) || this.#asking.size >= MOST_AT_ONCE) return;
    this.#asking.add(id);
    const { signal } = this.#end;
    const { fetch } = changes.dialer;
    void openCa(account, { box, fetch, known: this.#known, now: () => clock.now(), signal })
      .then((ca) => askRenewal(certificate, ca, { now, random: this.#random() }))
      .catch((error: Error) => {
        log.debug("a CA did not return renewal information", { error });
        const ask_again_at = toTime(now + 60 * LONGEST_SLEEP_MS);
        const kept = isKnown ? renewal : { start: null, end: null, at: null };
        return { ...kept, fingerprint: certificate.fingerprint ?? "", ask_again_at };
      })
      .then((answer) => {
        if (!signal.aborted && this.#duty.isOurs)
          void this.#save(id, { renewal: settled(answer, renewal) });
      })
      .finally(() => {
        this.#asking.delete(id);
        this.tick();
      });
  }

  /** Notifies once per threshold. */
  #warn(certificate: Certificate, now: number): void {
    const expiry = expiryOf(certificate, now);
    if (expiry === null) return;
    const { id, fingerprint: held } = certificate;
    const fingerprint = held ?? "";
    const { warned } = this.stateOf(id);
    if (warned?.fingerprint === fingerprint && warned.days <= expiry.days) return;
    void this.#save(id, { warned: { fingerprint, days: expiry.days } });
    const { log, events } = this.#options;
    log.warn(describeExpiry(expiry, now), { certificate: certificate.name });
    events.certificate(expiry.days === 0 ? "expired" : "expiring", certificate);
  }

  #follow({ change, by, before, after }: ChangeEvent): void {
    const { certificates, acme_accounts: accounts, dns_providers: providers } = change;
    for (const id of certificates.removals) this.#forget(id);
    const isTouched = certificates.upserts.length + certificates.removals.length > 0;
    if (isTouched && this.#isStarted) this.#board.watch(wantedNames(after));
    if (!this.#duty.isOurs) return;
    // On-demand certificates start at once.
    if (by === issuer) return this.tick();
    // A changed account or provider may fix failures: retry at once.
    const isForAll =
      accounts.upserts.length + providers.upserts.length > 0 ||
      before.settings.local_ca !== after.settings.local_ca;
    const touched = isForAll
      ? [...this.#states].filter(([, state]) => state.last_error !== null).map(([id]) => id)
      : certificates.upserts.map(({ id }) => id);
    for (const id of touched) {
      const isLimited = timeOf(this.stateOf(id).limited_until) > this.#options.clock.now();
      const [old, now] = [before.certificates.get(id), after.certificates.get(id)];
      // A CA at its rate limit would refuse the same order again.
      const isMoot = isLimited && accounts.upserts.length === 0 && isOrderedAlike(old, now);
      if (this.#states.has(id) && !isMoot) void this.#save(id, afresh);
    }
    for (const run of isForAll ? this.#runs.values() : []) run.isOutdated = true;
    for (const certificate of certificates.upserts)
      this.#breakOff(certificate, before.certificates.get(certificate.id));
    for (const account of accounts.upserts) this.#orderAnew(account);
    if (certificates.upserts.length > 0 || isForAll) this.tick();
  }

  /** Aborts orders whose certificate now requires a different order. */
  #breakOff(certificate: Certificate, before: Certificate | undefined): void {
    if (isOrderedAlike(before, certificate)) return;
    const { id } = certificate;
    if (this.stateOf(id).order !== null) void this.#save(id, { order: null });
    this.#runs.get(id)?.abort.abort(new Error("the certificate was changed"));
  }

  /** Clients do not trust certificates of a staging directory. */
  #orderAnew(account: AcmeAccount): void {
    const trial = directoryOf({ ...account, staging: true });
    if (account.staging || trial === null) return;
    for (const [id, { issued }] of this.#states)
      if (issued?.account_id === account.id && issued.directory_url === trial)
        void this.#save(id, { is_asked_for: true, next_attempt_at: null });
  }

  #forget(id: string): void {
    this.#runs.get(id)?.abort.abort(new Error("the certificate was deleted"));
    this.#states.delete(id);
    this.#options.store.remove(id);
  }

  #save(id: string, part: Partial<AcmeState>, asLeader = true): void | Promise<void> {
    const { changes, store, log } = this.#options;
    if (!changes.config.certificates.has(id)) return;
    const state = { ...this.stateOf(id), ...part };
    this.#states.set(id, state);
    try {
      return store.put(id, state, asLeader);
    } catch (error) {
      log.error("the ACME state of a certificate could not be stored", { error });
    }
  }
}

/** The account, and the CA at the time. */
const issuedBy = (account: AcmeAccount | null) =>
  account === null
    ? {}
    : { account_id: account.id, directory_url: directoryOf(account) ?? account.directory_url };

const loadStates = (store: AcmeStore): Map<string, AcmeState> =>
  new Map([...store.load()].map(([id, document]) => [id, toState(document)]));
