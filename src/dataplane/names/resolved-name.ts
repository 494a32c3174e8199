// The addresses of one target's name, looked up again as they expire and taken in turn; knows no protocol of name services.
import type { LogLine } from "../data-plane.ts";
import type { Address, Addresses } from "./addresses.ts";
import type { FoundAddress, NameQuestion, NameResolver } from "./name-resolver.ts";

export interface ResolvedNameContext {
  readonly resolver: NameResolver;
  /** The worker's milliseconds. */
  readonly now: () => number;
  readonly log: LogLine;
}

/** Answers are used for at least and at most as many seconds, whatever they say of themselves. */
export const TTL_SECONDS = { least: 5, most: 300 } as const;
/** After a failure the next search begins as many milliseconds later, or when somebody asks after that. */
const RETRY_MS = 5000;
const RETRY_ON_DEMAND_MS = 1000;
/** How long an address that accepted no connection is taken last. */
const ASIDE_MS = 10_000;

interface Entry extends FoundAddress {
  readonly address: Address;
  /** Of the smooth weighted turn. */
  credit: number;
  asideUntil: number;
}

/** Looks its name up from the start on. What was found stays in use until something else is found. */
export class ResolvedName implements Addresses {
  readonly isFixed = false;
  readonly #question: NameQuestion;
  readonly #context: ResolvedNameContext;
  readonly #isStatic: boolean;
  #entries: readonly Entry[] = [];
  #version = 0;
  #isSearching = false;
  #isClosed = false;
  /** A new version began in the middle of a search. */
  #isStale = false;
  #dueAt = Number.POSITIVE_INFINITY;
  #failedAt = Number.NEGATIVE_INFINITY;
  #hasFailed = false;
  #listeners = new Set<() => void>();

  constructor(question: NameQuestion, isStatic: boolean, context: ResolvedNameContext) {
    this.#question = question;
    this.#isStatic = isStatic;
    this.#context = context;
    void this.#search();
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
    return this.#turn(tried, now) ?? this.#turn(tried, Number.POSITIVE_INFINITY);
  }

  /** Smooth weighted round robin over the first tier (RFC 2782) that has an entry which is not aside at `now`. */
  #turn(tried: ReadonlySet<Address> | null, now: number): Address | null {
    let tier = Number.POSITIVE_INFINITY;
    const isOpen = (entry: Entry) => entry.asideUntil <= now && tried?.has(entry.address) !== true;
    for (const entry of this.#entries)
      if (entry.priority < tier && isOpen(entry)) tier = entry.priority;
    let best: Entry | null = null;
    let total = 0;
    for (const entry of this.#entries) {
      if (entry.priority !== tier || !isOpen(entry)) continue;
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
      if (entry.address === address) entry.asideUntil = this.#context.now() + ASIDE_MS;
  }

  whenFound(listener: () => void): (() => void) | null {
    if (this.#isClosed) return null;
    if (!this.#isSearching) {
      if (this.#context.now() - this.#failedAt < RETRY_ON_DEMAND_MS) return null;
      void this.#search();
    }
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  sweep(now: number): void {
    if (now >= this.#dueAt && !this.#isSearching && !this.#isClosed) void this.#search();
  }

  renew(): void {
    if (!this.#isStatic || this.#isClosed) return;
    if (this.#isSearching) this.#isStale = true;
    else void this.#search();
  }

  close(): void {
    this.#isClosed = true;
    this.#dueAt = Number.POSITIVE_INFINITY;
  }

  toJSON(): string {
    return `${this.#isStatic ? "static" : this.#question.kind} ${this.#question.name}`;
  }

  async #search(): Promise<void> {
    this.#isSearching = true;
    this.#isStale = false;
    const { resolver } = this.#context;
    const outcome = await resolver.find(this.#question).catch((error: unknown) => ({ error }));
    this.#isSearching = false;
    if (this.#isClosed) return this.#tellAll();
    if ("error" in outcome) this.#keep(outcome.error);
    else this.#take(outcome.addresses, outcome.ttlSeconds);
    this.#tellAll();
    if (this.#isStale) void this.#search();
  }

  #tellAll(): void {
    const listeners = this.#listeners;
    this.#listeners = new Set();
    for (const listener of listeners) listener();
  }

  /** The search failed: the last known addresses stay in use. */
  #keep(error: unknown): void {
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

  #take(found: readonly FoundAddress[], ttlSeconds: number): void {
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

  /** A place that was known before stays the same object and keeps what is known of it. */
  #entryOf(found: FoundAddress): Entry {
    const before = this.#entries.find(
      ({ address }) => address.host === found.host && address.port === found.port,
    );
    return {
      ...found,
      address: before?.address ?? { host: found.host, port: found.port, unix: null },
      credit: 0,
      asideUntil: before?.asideUntil ?? 0,
    };
  }
}
