// Has certificates issued and renewed in time: decides what is due, runs it, remembers how it went; knows no HTTP.
import type { Clock } from "../../clock.ts";
import type { SecretBox } from "../../crypto/secret-box.ts";
import type { Log } from "../../log.ts";
import { type AcmeAccount, directoryOf } from "../../model/acme-account.ts";
import { type Certificate, isIssued } from "../../model/certificate.ts";
import type { ChangeEvent, Changes } from "../change.ts";
import type { Actor } from "../principal.ts";
import { changeAccountKey } from "./account-keys.ts";
import type { KnownAccounts } from "./authority.ts";
import { ChallengeBoard, type HttpProof, type ShowChallenges } from "./challenge-board.ts";
import type { DnsParts } from "./dns-proof.ts";
import { describeExpiry, describeTroubles, expiryOf } from "./expiry.ts";
import { AcmeFailure } from "./failure.ts";
import { Installation, issuer } from "./installation.ts";
import { accountsFor, accountToRevokeWith, issue, openAuthority } from "./issue.ts";
import type { Progress } from "./progress.ts";
import { Quiet } from "./quiet.ts";
import { askRenewal, settled } from "./renewal-info.ts";
import { OnDemand, wantedNames } from "./on-demand.ts";
import { dueAt, isOrderedAlike, retryAt, timeOf, toTime } from "./schedule.ts";
import { type AcmeState, type AcmeStore, afresh, emptyState, toState } from "./state.ts";
import { Tally } from "./tally.ts";
import type { Told } from "./told.ts";

export interface AcmeEngineOptions {
  readonly changes: Changes;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly log: Log;
  readonly store: AcmeStore;
  readonly show: ShowChallenges;
  readonly dns: DnsParts;
  /** Hears what happens to certificates. */
  readonly told: Told;
  /** From 0 to 1; default: Math.random. */
  readonly random?: () => number;
}

/** Authorities limit how much is asked at once. */
const MOST_AT_ONCE = 5;
const LONGEST_SLEEP_MS = 60_000;

interface Run {
  readonly abort: AbortController;
  readonly domains: readonly string[];
  readonly done: Promise<void>;
  /** Somebody has changed an account or a DNS provider since: its failure says nothing about the present. */
  isOutdated: boolean;
}

export class AcmeEngine {
  readonly #options: AcmeEngineOptions;
  readonly #random: () => number;
  readonly #states: Map<string, AcmeState>;
  readonly #runs = new Map<string, Run>();
  readonly #asking = new Set<string>();
  /** Accounts whose key is being changed. */
  readonly #changing = new Set<string>();
  readonly tally = new Tally();
  readonly #known: KnownAccounts = new Map();
  readonly #quiet = new Quiet();
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
    this.#states = new Map([...store.load()].map(([id, document]) => [id, toState(document)]));
    this.#board = new ChallengeBoard(show, (error) =>
      log.warn("proofs for an authority could not be taken down", { error }),
    );
    this.#installation = new Installation(changes, this.#quiet);
    this.#onDemand = new OnDemand(options);
    changes.onServed((event) => this.#follow(event));
  }

  /** Goes on with what was begun and begins what is due; before that nothing is asked of anybody. */
  start(): void {
    this.#isStarted = true;
    if (this.#end.signal.aborted) this.#end = new AbortController();
    for (const id of this.#states.keys())
      if (!this.#options.changes.config.certificates.has(id)) this.#forget(id);
    this.#board.watch(wantedNames(this.#options.changes.config));
    this.tick();
  }

  /** Breaks off what is running; it is gone on with at the next start. */
  async stop(): Promise<void> {
    this.#isStarted = false;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#end.abort(new Error("the gateway stops"));
    await Promise.allSettled([...this.#runs.values()].map(({ done }) => done));
  }

  /** Begins what is due now, and sleeps until the next is. */
  tick(): void {
    if (!this.#isStarted) return;
    const now = this.#options.clock.now();
    let next = now + LONGEST_SLEEP_MS;
    for (const certificate of this.#options.changes.config.certificates.values()) {
      this.#warn(certificate, now);
      this.#askRenewalIfDue(certificate, now);
      const due = dueAt(certificate, this.stateOf(certificate.id));
      if (due === null || this.#runs.has(certificate.id)) continue;
      if (due > now) next = Math.min(next, due);
      else if (this.#mayRun(certificate)) this.#begin(certificate);
    }
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.tick(), Math.max(next - now, 10));
    this.#timer.unref();
  }

  /** Has all workers answer for a token of one's own; the function takes it down again. */
  showProof(proof: HttpProof): Promise<() => void> {
    return this.#board.putUp({ http: [proof], tls: [] });
  }

  /** What is shown of a certificate. */
  progressOf(certificate: Certificate): Progress {
    const state = this.stateOf(certificate.id);
    const due = dueAt(certificate, state);
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

  /** Has a new certificate issued now, however long the present one lasts. */
  askFor(certificate: Certificate): void {
    this.#save(certificate.id, { is_asked_for: true, next_attempt_at: null });
    this.tick();
  }

  /** A client has asked for a name that no certificate is there for. */
  wanted(name: string): void {
    if (this.#isStarted) void this.#onDemand.wanted(name);
  }

  /** Takes it back at the authority that has issued it, and has another one issued. Throws an AcmeFailure. */
  async revoke(certificate: Certificate, reason: number): Promise<void> {
    const { changes, box, clock } = this.#options;
    const account = accountToRevokeWith(certificate, this.stateOf(certificate.id), changes.config);
    if (!isIssued(certificate)) return;
    const parts = { box, known: this.#known, now: () => clock.now(), signal: this.#end.signal };
    const authority = await openAuthority(account, parts);
    await authority.revoke(certificate.certificate, reason);
    this.#options.told.certificate("revoked", certificate);
  }

  /** Has the authority know the account by a new key. Throws an AcmeFailure, of the type `busy` while it is at work. */
  async changeKey(account: AcmeAccount, by: Actor): Promise<void> {
    const { changes, box, clock } = this.#options;
    const isBusy = [...this.#runs.keys()].some((id) => {
      const certificate = changes.config.certificates.get(id);
      const used = certificate === undefined ? [] : accountsFor(certificate, changes.config);
      return used.some((each) => each.id === account.id);
    });
    if (isBusy || this.#changing.has(account.id))
      throw new AcmeFailure("something is being ordered with it at the moment", { type: "busy" });
    this.#changing.add(account.id);
    try {
      const parts = { box, known: this.#known, now: () => clock.now(), signal: this.#end.signal };
      await changeAccountKey(account, by, { changes, ...parts });
    } finally {
      this.#changing.delete(account.id);
      this.tick();
    }
  }

  /** What people should know, one sentence each. */
  warnings(): readonly string[] {
    const { changes, clock } = this.#options;
    const now = clock.now();
    return [...changes.config.certificates.values()].flatMap((certificate) =>
      describeTroubles(certificate, this.stateOf(certificate.id).attempts, now),
    );
  }

  /** Two orders for one name would stand in each other's way at the front. */
  #mayRun(certificate: Certificate): boolean {
    const { domains } = certificate;
    if (this.#runs.size >= MOST_AT_ONCE) return false;
    // An order that begins with one key cannot go on with another.
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
    this.#options.told.acme("ordering", certificate, this.stateOf(id));
    void done.finally(() => {
      this.#runs.delete(id);
      this.tick();
    });
  }

  /** Never throws. */
  async #run(certificate: Certificate, signal: AbortSignal): Promise<void> {
    const { id } = certificate;
    try {
      const result = await issue(certificate, this.stateOf(id), this.#issueParts(id, signal));
      if (!("chain" in result)) return this.#failed(certificate, result);
      const { chain, account } = result;
      const sealedKey = this.#options.box.seal(chain.key);
      const { fingerprint } = chain;
      const directory_url = directoryOf(account) ?? account.directory_url;
      const at = toTime(this.#options.clock.now());
      const issued = { account_id: account.id, fingerprint, directory_url, at };
      this.tally.add(account.id, "issued");
      const alongside = () => this.#save(id, { ...emptyState, issued }, true);
      const { domains } = certificate;
      const isUsed = await this.#installation.install({
        ...{ certificateId: id, domains, chain, sealedKey, alongside },
      });
      if (isUsed) this.#issued(certificate);
    } catch (error) {
      if (signal.aborted) return;
      // The order stays: what was issued is fetched again at the next attempt.
      const { message } = error as Error;
      this.#failed(certificate, [new AcmeFailure(message, { type: "unreachable", cause: error })]);
    }
  }

  #issueParts(id: string, signal: AbortSignal) {
    const { changes, box, clock, dns, log } = this.#options;
    return {
      ...{ config: changes.config, box, dns, signal, board: this.#board, known: this.#known },
      quiet: this.#quiet,
      now: () => clock.now(),
      saveOrder: (order: AcmeState["order"]) => {
        if (this.#runs.get(id)?.abort.signal.aborted !== true) this.#save(id, { order });
      },
      failed: (account: AcmeAccount, { message: reason }: AcmeFailure) => {
        this.tally.add(account.id, "failed");
        log.warn("an order of a certificate failed", { account: account.name, reason });
      },
      left: (error: unknown) => log.warn("a DNS record could not be taken down", { error }),
    };
  }

  #issued(before: Certificate): void {
    const { changes, log, told } = this.#options;
    const certificate = changes.config.certificates.get(before.id) ?? before;
    const { name, domains, not_after } = certificate;
    log.info("a certificate was issued", { certificate: name, domains, not_after });
    told.acme("valid", certificate, this.stateOf(before.id));
    told.certificate(isIssued(before) ? "renewed" : "issued", certificate);
  }

  #failed(certificate: Certificate, failures: readonly AcmeFailure[]): void {
    const { clock, log, told } = this.#options;
    const { id, name } = certificate;
    if (this.#runs.get(id)?.isOutdated === true) return this.#save(id, afresh);
    const attempts = this.stateOf(id).attempts + 1;
    const at = retryAt(failures, attempts, { now: clock.now(), random: this.#random() });
    const last_error = [...new Set(failures.map(({ message }) => message))].join("; ");
    const isLimit = failures.some(({ type }) => type === "rateLimited");
    const limited_until = isLimit ? toTime(at) : null;
    this.#save(id, { attempts, last_error, limited_until, next_attempt_at: toTime(at) });
    log.warn("a certificate could not be issued", {
      ...{ certificate: name, attempts, reason: last_error, next_attempt_at: toTime(at) },
    });
    told.acme("failed", certificate, this.stateOf(id));
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
    openAuthority(account, { box, known: this.#known, now: () => clock.now(), signal })
      .then((authority) => askRenewal(certificate, authority, { now, random: this.#random() }))
      .catch((error: Error) => {
        log.debug("an authority could not say when to renew", { error });
        const ask_again_at = toTime(now + 60 * LONGEST_SLEEP_MS);
        const kept = isKnown ? renewal : { start: null, end: null, at: null };
        return { ...kept, fingerprint: certificate.fingerprint ?? "", ask_again_at };
      })
      .then((answer) => {
        if (!signal.aborted) this.#save(id, { renewal: settled(answer, renewal) });
      })
      .finally(() => {
        this.#asking.delete(id);
        this.tick();
      });
  }

  /** Tells once for each threshold. */
  #warn(certificate: Certificate, now: number): void {
    const expiry = expiryOf(certificate, now);
    if (expiry === null) return;
    const { id, fingerprint: held } = certificate;
    const fingerprint = held ?? "";
    const { warned } = this.stateOf(id);
    if (warned?.fingerprint === fingerprint && warned.days <= expiry.days) return;
    this.#save(id, { warned: { fingerprint, days: expiry.days } });
    const { log, told } = this.#options;
    log.warn(describeExpiry(expiry, now), { certificate: certificate.name });
    told.certificate(expiry.days === 0 ? "expired" : "expiring", certificate);
  }

  #follow({ change, by, before, after }: ChangeEvent): void {
    const { certificates, acme_accounts: accounts, dns_providers: providers } = change;
    for (const id of certificates.removals) this.#forget(id);
    const isTouched = certificates.upserts.length + certificates.removals.length > 0;
    if (isTouched && this.#isStarted) this.#board.watch(wantedNames(after));
    // What was put in to be ordered on demand begins at once.
    if (by === issuer) return this.tick();
    // Somebody has done something about it: what has failed is tried again at once.
    const isForAll = accounts.upserts.length + providers.upserts.length > 0;
    const touched = isForAll
      ? [...this.#states].filter(([, state]) => state.last_error !== null).map(([id]) => id)
      : certificates.upserts.map(({ id }) => id);
    for (const id of touched) {
      const isLimited = timeOf(this.stateOf(id).limited_until) > this.#options.clock.now();
      const [old, now] = [before.certificates.get(id), after.certificates.get(id)];
      // At its limit an authority would refuse the same once more.
      const isMoot = isLimited && accounts.upserts.length === 0 && isOrderedAlike(old, now);
      if (this.#states.has(id) && !isMoot) this.#save(id, afresh);
    }
    for (const run of isForAll ? this.#runs.values() : []) run.isOutdated = true;
    for (const certificate of certificates.upserts)
      this.#breakOff(certificate, before.certificates.get(certificate.id));
    for (const account of accounts.upserts) this.#orderAnew(account);
    if (certificates.upserts.length > 0 || isForAll) this.tick();
  }

  /** What is being ordered, but in another way than it is wanted now, is of no use. */
  #breakOff(certificate: Certificate, before: Certificate | undefined): void {
    if (isOrderedAlike(before, certificate)) return;
    const { id } = certificate;
    if (this.stateOf(id).order !== null) this.#save(id, { order: null });
    this.#runs.get(id)?.abort.abort(new Error("the certificate was changed"));
  }

  /** Nobody trusts what was issued for trials. */
  #orderAnew(account: AcmeAccount): void {
    const trial = directoryOf({ ...account, staging: true });
    if (account.staging || trial === null) return;
    for (const [id, { issued }] of this.#states)
      if (issued?.account_id === account.id && issued.directory_url === trial)
        this.#save(id, { is_asked_for: true, next_attempt_at: null });
  }

  #forget(id: string): void {
    this.#runs.get(id)?.abort.abort(new Error("the certificate was deleted"));
    this.#states.delete(id);
    this.#options.store.remove(id);
  }

  /** `isInTransaction`: a failure to write takes the whole change back. */
  #save(id: string, part: Partial<AcmeState>, isInTransaction = false): void {
    const { changes, store, log } = this.#options;
    if (!changes.config.certificates.has(id)) return;
    const state = { ...this.stateOf(id), ...part };
    try {
      store.put(id, state);
    } catch (error) {
      if (isInTransaction) throw error;
      log.error("the progress of a certificate could not be stored", { error });
    }
    this.#states.set(id, state);
  }
}
