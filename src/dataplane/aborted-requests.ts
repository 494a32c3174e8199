// Counts requests that clients abort while a target works for them, by connection and by address, and refuses those that abort too many; knows no route.
import type { Settings } from "../model/settings.ts";
import type { WorkerBoard } from "../shared-memory/worker-board.ts";
import type { LogLine } from "./data-plane.ts";
import { failures, type ProxyError } from "./error.ts";

/** Time in which the tokens of an empty bucket come back, and for which an address is counted and refused. */
const WINDOW_MS = 10_000;
/** Connections and addresses that are told apart; further ones are not counted until some are forgotten. */
const MAX_KEYS = 10_000;

/** How many requests may be aborted in ten seconds; 0: any number. */
type AbortLimits = Pick<
  Settings["limits"],
  "max_aborted_per_connection" | "max_aborted_per_address"
>;

export type AbortStage = "connection" | "address";

/** Counts and logs what happens. */
export interface AbortObserver {
  aborted(): void;
  /** A request was refused. */
  refused(stage: AbortStage): void;
  /** Requests from this address are refused from now on; at most once in ten seconds for each. */
  began(address: string, stage: AbortStage): void;
}

/** Where a request comes from. Several clients behind a trusted proxy share its port and have addresses of their own. */
export interface AbortSource {
  clientAddress(): string;
  readonly peerPort: number;
}

interface Attempted {
  readonly attempts: number;
  readonly stream: { readonly signal: { readonly aborted: boolean } };
}

/** May go into debt: what is in flight when the last token goes costs as well, and is waited for. */
interface Bucket {
  tokens: number;
  filledAt: number;
}

/**
 * A client that opens requests and resets them at once costs the gateway and the target more than itself (CVE-2023-44487). A
 * request that is aborted while a target works for it takes a token from its connection, a completed one returns one, and time
 * returns all. Without a token the connection is refused; the others of its address are not, until the address is.
 * Requests are looked at ten times a second, so the chance that one is counted is in proportion to the work that it caused.
 */
export class AbortedRequests {
  readonly #observer: AbortObserver;
  readonly #now: () => number;
  #limits: AbortLimits = { max_aborted_per_connection: 0, max_aborted_per_address: 0 };
  /** Connections that have aborted something lately: by port, then by address. A number is found faster than a text is made. */
  readonly #buckets = new Map<number, Map<string, Bucket>>();
  #bucketCount = 0;
  readonly #counts = new Map<string, number>();
  /** Until when, by address. */
  readonly #refused = new Map<string, number>();
  /** Stages and addresses that `began` was called for in this window. */
  readonly #begun = new Set<string>();
  #windowEnd = 0;

  constructor(observer: AbortObserver, now: () => number = () => performance.now()) {
    this.#observer = observer;
    this.#now = now;
  }

  setLimits(limits: AbortLimits): void {
    if (limits.max_aborted_per_connection === 0) this.#forgetConnections();
    if (limits.max_aborted_per_address === 0) this.#refused.clear();
    this.#limits = limits;
  }

  /** Whether anything was aborted lately. Where nothing was, a request pays for nothing but this. */
  get isWatching(): boolean {
    return this.#bucketCount > 0 || this.#refused.size > 0;
  }

  /** Why a request is refused; null: it is not. */
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

  /** The client has aborted a request that a target had. */
  note(source: AbortSource): void {
    this.#observer.aborted();
    const now = this.#now();
    const address = source.clientAddress();
    if (this.#limits.max_aborted_per_connection > 0) this.#charge(address, source.peerPort);
    if (this.#limits.max_aborted_per_address === 0) return;
    if (now >= this.#windowEnd) this.#beginWindow(now);
    const count = (this.#counts.get(address) ?? 0) + 1;
    if (count === 1 && this.#counts.size >= MAX_KEYS) return;
    this.#counts.set(address, count);
    if (count !== this.#limits.max_aborted_per_address + 1) return;
    this.#refused.set(address, now + WINDOW_MS);
    this.#begin(address, "address");
  }

  /** A request has ended with this status. One that a target answered, and whose client stayed, gives a token back. */
  ended(source: AbortSource & Attempted, status: number): void {
    if (this.#bucketCount === 0) return;
    if (source.attempts === 0 || status === failures.clientGone.status) return;
    const bucket = this.#bucketOf(source);
    if (bucket === null) return;
    // One that was aborted and answered before anybody looked. To ask costs something, so only suspects are asked about.
    if (source.stream.signal.aborted) this.note(source);
    else bucket.tokens++;
  }

  /** Forgets who has all tokens back or is refused no longer. Called about once a second. */
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
  }

  #bucketOf(source: AbortSource): Bucket | null {
    if (this.#bucketCount === 0) return null;
    return this.#buckets.get(source.peerPort)?.get(source.clientAddress()) ?? null;
  }

  /** How many there are now. */
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
    // No more debt than the time pays back in a window.
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
