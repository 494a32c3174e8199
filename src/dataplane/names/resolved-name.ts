// The addresses of one target's name, looked up again as they expire and used in turn; knows no DNS protocol.
import type { Destination } from "../../net/destinations.ts";
import type { LogLine } from "../data-plane.ts";
import type { Address, Addresses } from "./addresses.ts";
import type { FoundAddress, NameQuestion, NameResolver } from "./name-resolver.ts";

export interface ResolvedNameContext {
  readonly resolver: NameResolver;
  /** The worker's milliseconds. */
  readonly now: () => number;
  readonly log: LogLine;
  /** Why an address must not be connected to; null: it may. */
  readonly problemOf: (destination: Destination) => string | null;
}

/** Bounds of the TTL in use, whatever the DNS answer says. */
const TTL_SECONDS = { least: 5, most: 300 } as const;
/** The next lookup after a failure: after RETRY_MS, or on demand after RETRY_ON_DEMAND_MS. */
const RETRY_MS = 5000;
const RETRY_ON_DEMAND_MS = 1000;
/** How long `next` returns an address last that accepted no connection. */
const DEPRIORITIZED_MS = 10_000;

interface Entry extends FoundAddress {
  readonly address: Address;
  /** Of smooth weighted round robin. */
  credit: number;
  deprioritizedUntil: number;
}

export interface TargetName extends NameQuestion {
  /** Where the records name none. */
  readonly port: number;
}

/** Begins the first lookup at once. Addresses stay in use until a later lookup succeeds. */
export class ResolvedName implements Addresses {
  readonly isFixed = false;
  readonly #question: TargetName;
  readonly #context: ResolvedNameContext;
  readonly #isStatic: boolean;
  #entries: readonly Entry[] = [];
  #version = 0;
  #isLookingUp = false;
  #isClosed = false;
  /** `renew` was called during a lookup. */
  #isStale = false;
  #dueAt = Number.POSITIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;
  #hasFailed = false;
  #listeners = new Set<() => void>();

  constructor(question: TargetName, isStatic: boolean, context: ResolvedNameContext) {
    this.#question = question;
    this.#isStatic = isStatic;
    this.#context = context;
    void this.#lookUp();
  }

  get size(): number {
    return this.#entries.length;
  }

  get version(): number {
    return this.#version;
  }

  has(address: Address): boolean {
    return this.#entries.some((entry) => entry.address === address);
  }

  next(tried: ReadonlySet<Address> | null): Address | null {
    const entries = this.#entries;
    if (entries.length === 1 && tried === null) return entries[0]?.address ?? null;
    const now = this.#context.now();
    return this.#pick(tried, now) ?? this.#pick(tried, Number.POSITIVE_INFINITY);
  }

  /** Smooth weighted round robin over the first priority (RFC 2782) that has an entry not deprioritized at `now`. */
  #pick(tried: ReadonlySet<Address> | null, now: number): Address | null {
    let tier = Number.POSITIVE_INFINITY;
    const isEligible = (entry: Entry) =>
      entry.deprioritizedUntil <= now && tried?.has(entry.address) !== true;
    for (const entry of this.#entries)
      if (entry.priority < tier && isEligible(entry)) tier = entry.priority;
    let best: Entry | null = null;
    let total = 0;
    for (const entry of this.#entries) {
      if (entry.priority !== tier || !isEligible(entry)) continue;
      entry.credit += entry.weight;
      total += entry.weight;
      if (best === null || entry.credit > best.credit) best = entry;
    }
    if (best === null) return null;
    best.credit -= total;
    return best.address;
  }

  failed(address: Address): void {
    for (const entry of this.#entries)
      if (entry.address === address)
        entry.deprioritizedUntil = this.#context.now() + DEPRIORITIZED_MS;
  }

  whenFound(listener: () => void): (() => void) | null {
    if (this.#isClosed) return null;
    if (!this.#isLookingUp) {
      if (this.#context.now() - this.#failedAt < RETRY_ON_DEMAND_MS) return null;
      void this.#lookUp();
    }
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  sweep(now: number): void {
    if (now >= this.#dueAt && !this.#isLookingUp && !this.#isClosed) void this.#lookUp();
  }

  renew(): void {
    if (!this.#isStatic || this.#isClosed) return;
    if (this.#isLookingUp) this.#isStale = true;
    else void this.#lookUp();
  }

  close(): void {
    this.#isClosed = true;
    this.#dueAt = Number.POSITIVE_INFINITY;
  }

  toJSON(): string {
    return `${this.#isStatic ? "static" : this.#question.kind} ${this.#question.name}`;
  }

  async #lookUp(): Promise<void> {
    this.#isLookingUp = true;
    this.#isStale = false;
    const { resolver } = this.#context;
    const outcome = await resolver.find(this.#question).catch((error: unknown) => ({ error }));
    this.#isLookingUp = false;
    if (this.#isClosed) return this.#notifyListeners();
    if ("error" in outcome) this.#lookupFailed(outcome.error);
    else this.#decide(outcome.addresses, outcome.ttlSeconds);
    this.#notifyListeners();
    if (this.#isStale) void this.#lookUp();
  }

  #notifyListeners(): void {
    const listeners = this.#listeners;
    this.#listeners = new Set();
    for (const listener of listeners) listener();
  }

  /** Here, and not for each request: connections go to the addresses themselves. The owner of a name chooses its addresses. */
  #decide(found: readonly FoundAddress[], ttlSeconds: number): void {
    const problems = found.map(({ host, port }) => {
      const problem = this.#context.problemOf({ host, port: port || this.#question.port });
      return problem === null ? null : `${host} ${problem}`;
    });
    const allowed = found.filter((_, index) => problems[index] === null);
    if (allowed.length > 0) return this.#lookupSucceeded(allowed, ttlSeconds);
    this.#lookupFailed(new Error(problems[0] ?? "it has no address"));
  }

  /** The last known addresses stay in use. */
  #lookupFailed(error: unknown): void {
    const { now, log } = this.#context;
    this.#failedAt = now();
    this.#dueAt = this.#failedAt + RETRY_MS;
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    log("warn", "the name of a target could not be resolved", {
      name: this.#question.name,
      reason: error instanceof Error ? error.message : String(error),
      known_addresses: this.#entries.length,
    });
  }

  #lookupSucceeded(found: readonly FoundAddress[], ttlSeconds: number): void {
    const { now, log } = this.#context;
    const seconds = Math.min(TTL_SECONDS.most, Math.max(TTL_SECONDS.least, ttlSeconds));
    this.#dueAt = this.#isStatic ? Number.POSITIVE_INFINITY : now() + seconds * 1000;
    if (this.#hasFailed)
      log("info", "the name of a target is resolved again", { name: this.#question.name });
    this.#hasFailed = false;
    const entries = found.map((one) => this.#entryOf(one));
    const known = new Set(this.#entries.map(({ address }) => address));
    const isSame =
      entries.length === known.size && entries.every(({ address }) => known.has(address));
    this.#entries = entries;
    if (!isSame) this.#version++;
  }

  /** An address that was known before stays the same object and stays deprioritized. */
  #entryOf(found: FoundAddress): Entry {
    const before = this.#entries.find(
      ({ address }) => address.host === found.host && address.port === found.port,
    );
    return {
      ...found,
      address: before?.address ?? { host: found.host, port: found.port, unix: null },
      credit: 0,
      deprioritizedUntil: before?.deprioritizedUntil ?? 0,
    };
  }
}
