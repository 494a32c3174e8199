// The live stream of completed requests: each reader gets the matches of its filter at its own speed; knows no HTTP.
import type { RequestRing, RingEntry } from "../../shared-memory/request-ring.ts";
import type { RequestFilter } from "./request-filter.ts";
import type { RequestView } from "./request-view.ts";

/** How often the ring is polled while there are readers. */
const POLL_MS = 100;
/** Requests read per poll: with more, the stream would delay changes. */
const MAX_PER_POLL = 1000;
/** Requests buffered for readers, per filter. */
const BUFFER_SIZE = 1000;

export interface LiveRequest {
  readonly id: null;
  /** `dropped`: number of skipped ones, because of too many or a slow reader. */
  readonly kind: "request" | "dropped";
  /** JSON. */
  readonly data: string;
}

/** One reader's position. */
export interface LiveReader {
  /** The next one; null: none yet. */
  next(): LiveRequest | null;
  readonly position: string;
  close(): void;
}

export interface LiveRequestsOptions {
  /** The ring that workers write to; null: none. */
  readonly ring: () => RequestRing | null;
  readonly view: (entry: RingEntry) => RequestView;
}

/** Readers with the same filter. */
interface Group {
  readonly filter: RequestFilter;
  readonly wakes: Set<() => void>;
  /** The last requests as JSON, a ring buffer of `BUFFER_SIZE`. */
  readonly texts: string[];
  /** Total number of matching requests. */
  written: number;
  /** Requests that were not read and may have matched. */
  missed: number;
}

export class LiveRequests {
  readonly #options: LiveRequestsOptions;
  readonly #groups = new Map<string, Group>();
  #timer: Timer | null = null;
  #ring: RequestRing | null = null;
  #next = 0;
  /** The slot that was unfinished at the last poll. */
  #awaited = -1;

  constructor(options: LiveRequestsOptions) {
    this.#options = options;
  }

  /** Calls `wake` when requests may be available. */
  subscribe(filter: RequestFilter, wake: () => void): LiveReader {
    if (this.#timer === null) this.#start();
    const group = this.#groups.get(filter.key) ?? newGroup(filter);
    this.#groups.set(filter.key, group);
    group.wakes.add(wake);
    return readerOf(group, () => {
      group.wakes.delete(wake);
      if (group.wakes.size === 0 && this.#groups.get(filter.key) === group)
        this.#groups.delete(filter.key);
      if (this.#groups.size === 0) this.#stop();
    });
  }

  #start(): void {
    this.#ring = this.#options.ring();
    this.#next = this.#ring?.next ?? 0;
    this.#timer = setInterval(() => this.#poll(), POLL_MS);
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #poll(): void {
    const ring = this.#options.ring();
    if (ring !== this.#ring) {
      // The new ring starts with the content of the old one.
      this.#ring = ring;
      this.#next = ring?.next ?? 0;
    }
    if (ring === null || ring.next === this.#next) return;
    const { next } = ring;
    const first = Math.max(this.#next, next - ring.capacity);
    const overrun = first - this.#next;
    this.#next = next;
    for (const group of this.#groups.values()) group.missed += overrun;
    let read = 0;
    for (let sequence = first; sequence < next; sequence++) {
      const status = ring.statusOf(sequence);
      const wanting = [...this.#groups.values()].filter(({ filter }) =>
        filter.matchesStatus(status),
      );
      if (wanting.length === 0) continue;
      if (++read > MAX_PER_POLL) {
        for (const group of wanting) group.missed++;
        continue;
      }
      const entry = ring.read(sequence);
      if (entry === null && sequence !== this.#awaited) {
        // A worker is writing it: it is complete at the next poll, unless the worker has ended.
        this.#awaited = sequence;
        this.#next = sequence;
        break;
      }
      this.#append(entry, wanting);
    }
    for (const { wakes } of this.#groups.values()) for (const wake of wakes) wake();
  }

  #append(entry: RingEntry | null, groups: readonly Group[]): void {
    if (entry === null) {
      for (const group of groups) group.missed++;
      return;
    }
    const view = this.#options.view(entry);
    let text: string | null = null;
    for (const group of groups) {
      if (!group.filter.matches(view)) continue;
      text ??= JSON.stringify(view);
      group.texts[group.written++ % BUFFER_SIZE] = text;
    }
  }
}

const newGroup = (filter: RequestFilter): Group => ({
  filter,
  wakes: new Set(),
  texts: [],
  written: 0,
  missed: 0,
});

function readerOf(group: Group, close: () => void): LiveReader {
  let at = group.written;
  let { missed } = group;
  return {
    next() {
      const first = Math.max(at, group.written - BUFFER_SIZE);
      const count = first - at + group.missed - missed;
      at = first;
      missed = group.missed;
      if (count > 0) return { id: null, kind: "dropped", data: JSON.stringify({ count }) };
      const text = at < group.written ? group.texts[at++ % BUFFER_SIZE] : undefined;
      return text === undefined ? null : { id: null, kind: "request", data: text };
    },
    // No resumption: the list of recent requests holds what was missed.
    position: "",
    close,
  };
}
