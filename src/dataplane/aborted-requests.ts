// Limits requests that clients abort while a target works for them, by connection and by address; knows no route.
import type { Settings } from "../model/settings.ts";
import type { WorkerBoard } from "../shared-memory/worker-board.ts";
import type { LogLine } from "./data-plane.ts";
import { failures, type ProxyError } from "./error.ts";

/** Time to refill an empty bucket; also the window in which an address is counted and then refused. */
const WINDOW_MS = 10_000;
/**
 * A connection that has aborted more than these in ten seconds gets sessions to targets apart from those of others: targets end a
 * session with many resets, with everything on it.
 */
const MAX_SHARED = 20;
/** Connections and addresses tracked at once; further ones are not counted. */
const MAX_KEYS = 10_000;

/** Aborted requests allowed in ten seconds; 0: no limit. */
type AbortLimits = Pick<
  Settings["limits"],
  "max_aborted_per_connection" | "max_aborted_per_address"
>;

export type AbortStage = "connection" | "address";

/** Counts and logs events. */
export interface AbortObserver {
  aborted(): void;
  /** A request was refused. */
  refused(stage: AbortStage): void;
  /** The gateway refuses requests of this address from now on; at most once per window and address. */
  began(address: string, stage: AbortStage): void;
}

/** The source of a request. Clients behind a trusted proxy share a port and differ by address. */
export interface AbortSource {
  clientAddress(): string;
  readonly peerPort: number;
}

interface Attempted {
  readonly attempts: number;
  readonly stream: { readonly signal: { readonly aborted: boolean } };
}

/** May become negative: requests in flight when the last token is used cost tokens as well. */
interface Bucket {
  tokens: number;
  filledAt: number;
}

/**
 * A client that opens requests and resets them at once costs the gateway and the target more than itself (CVE-2023-44487). A
 * request aborted while a target works for it takes a token from its connection, a completed one returns one, and time
 * refills the bucket. Without a token the gateway refuses the connection's requests; beyond the address limit, those of the address.
 * Requests are checked ten times a second, so the chance of being counted is in proportion to the work caused.
 */
export class AbortedRequests {
  readonly #observer: AbortObserver;
  readonly #now: () => number;
  #limits: AbortLimits = { max_aborted_per_connection: 0, max_aborted_per_address: 0 };
  /** Connections with recent aborts, by port, then by address: looking up a number is cheaper than building a string key. */
  readonly #buckets = new Map<number, Map<string, Bucket>>();
  #bucketCount = 0;
  readonly #counts = new Map<string, number>();
  /** Address to the end of its refusal. */
  readonly #refused = new Map<string, number>();
  /** Stages and addresses already reported to `began` in this window. */
  readonly #begun = new Set<string>();
  #windowEnd = 0;
  /** Whether there were recent aborts. Without any, a request pays for this check only. */
  isWatching = false;

  constructor(observer: AbortObserver, now: () => number = () => performance.now()) {
    this.#observer = observer;
    this.#now = now;
  }

  setLimits(limits: AbortLimits): void {
    if (limits.max_aborted_per_connection === 0) this.#forgetConnections();
    if (limits.max_aborted_per_address === 0) this.#refused.clear();
    this.#limits = limits;
    this.#watch();
  }

  /** To be called where buckets or refusals have changed. */
  #watch(): void {
    this.isWatching = this.#bucketCount > 0 || this.#refused.size > 0;
  }

  /** The refusal of a request; null: it is served. */
  refusal(source: AbortSource): ProxyError | null {
    const bucket = this.#bucketOf(source);
    if (bucket !== null && this.#tokensOf(bucket) < 1) {
      this.#begin(source.clientAddress(), "connection");
      this.#observer.refused("connection");
      return failures.connectionAborts;
    }
    if (this.#refused.size === 0) return null;
    const until = this.#refused.get(source.clientAddress());
    if (until === undefined || this.#now() >= until) return null;
    this.#observer.refused("address");
    return failures.addressAborts;
  }

  /** Whether the source aborts so often that its streams share no session with those of others. */
  isApart(source: AbortSource): boolean {
    const bucket = this.#bucketOf(source);
    return (
      bucket !== null &&
      this.#tokensOf(bucket) < this.#limits.max_aborted_per_connection - MAX_SHARED
    );
  }

  /** The client has aborted a request that a target works for. */
  note(source: AbortSource): void {
    this.#observer.aborted();
    const address = source.clientAddress();
    if (this.#limits.max_aborted_per_connection > 0) this.#charge(address, source.peerPort);
    if (this.#limits.max_aborted_per_address > 0) this.#count(address);
    this.#watch();
  }

  #count(address: string): void {
    const now = this.#now();
    if (now >= this.#windowEnd) this.#beginWindow(now);
    const count = (this.#counts.get(address) ?? 0) + 1;
    if (count === 1 && this.#counts.size >= MAX_KEYS) return;
    this.#counts.set(address, count);
    if (count !== this.#limits.max_aborted_per_address + 1) return;
    this.#refused.set(address, now + WINDOW_MS);
    this.#begin(address, "address");
  }

  /** A request has ended. One that a target responded to, and whose client stayed, returns a token. */
  ended(source: AbortSource & Attempted, status: number): void {
    if (this.#bucketCount === 0) return;
    if (source.attempts === 0 || status === failures.clientGone.status) return;
    const bucket = this.#bucketOf(source);
    if (bucket === null) return;
    // Aborted and responded to between two checks. `signal` is costly to read, so only tracked connections pay for it.
    if (source.stream.signal.aborted) this.note(source);
    else bucket.tokens++;
  }

  /** Drops full buckets and expired refusals. Call about once a second. */
  sweep(): void {
    const now = this.#now();
    if (now >= this.#windowEnd) this.#beginWindow(now);
    for (const [port, byAddress] of this.#buckets) {
      for (const [address, bucket] of byAddress) {
        if (this.#tokensOf(bucket) < this.#limits.max_aborted_per_connection) continue;
        byAddress.delete(address);
        this.#bucketCount--;
      }
      if (byAddress.size === 0) this.#buckets.delete(port);
    }
    this.#watch();
  }

  #bucketOf(source: AbortSource): Bucket | null {
    if (this.#bucketCount === 0) return null;
    return this.#buckets.get(source.peerPort)?.get(source.clientAddress()) ?? null;
  }

  /** Refills the bucket and returns its tokens. */
  #tokensOf(bucket: Bucket): number {
    const { max_aborted_per_connection: most } = this.#limits;
    const now = this.#now();
    const back = ((now - bucket.filledAt) * most) / WINDOW_MS;
    bucket.tokens = Math.min(most, bucket.tokens + back);
    bucket.filledAt = now;
    return bucket.tokens;
  }

  #charge(address: string, port: number): void {
    const { max_aborted_per_connection: most } = this.#limits;
    let byAddress = this.#buckets.get(port);
    let bucket = byAddress?.get(address);
    if (bucket === undefined) {
      if (this.#bucketCount >= MAX_KEYS) return;
      bucket = { tokens: most, filledAt: this.#now() };
      byAddress ??= new Map();
      byAddress.set(address, bucket);
      this.#buckets.set(port, byAddress);
      this.#bucketCount++;
    }
    // No lower than one window refills.
    bucket.tokens = Math.max(-most, this.#tokensOf(bucket) - 1);
  }

  #beginWindow(now: number): void {
    this.#counts.clear();
    this.#begun.clear();
    this.#windowEnd = now + WINDOW_MS;
    for (const [each, until] of this.#refused) if (now >= until) this.#refused.delete(each);
  }

  #forgetConnections(): void {
    this.#buckets.clear();
    this.#bucketCount = 0;
  }

  #begin(address: string, stage: AbortStage): void {
    const key = `${stage} ${address}`;
    if (this.#begun.has(key) || this.#begun.size >= MAX_KEYS) return;
    this.#begun.add(key);
    this.#observer.began(address, stage);
  }
}

/** Counts on the board and warns in the log. */
export function abortObserver(to: {
  readonly board: WorkerBoard;
  readonly worker: number;
  readonly log: LogLine;
}): AbortObserver {
  const { board, worker, log } = to;
  return {
    aborted: () => board.add(worker, "aborted_requests", 1),
    refused: (stage) => board.add(worker, `shed_aborts_${stage}`, 1),
    began: (client, stage) =>
      log("warn", "a client aborts too many requests and is refused for a while", {
        client,
        stage,
      }),
  };
}
