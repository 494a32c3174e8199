// The live stream of completed requests: each reader gets the matches of its filter at its own speed; knows no HTTP.
import type { RequestRing, RingEntry } from "../../shared-memory/request-ring.ts";
import type { RequestFilter } from "./request-filter.ts";
import type { RequestView } from "./request-view.ts";

/** Polling interval of the ring while there are readers. */
const LOOK_MS = 100;
/** Requests per poll, so that readers do not slow down changes. */
const MOST_AT_ONCE = 1000;
/** Requests that wait for readers, for each filter. */
const KEPT = 1000;

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
  /** Where workers write; null: nowhere. */
  readonly ring: () => RequestRing | null;
  readonly view: (entry: RingEntry) => RequestView;
}

/** Readers with the same filter. */
interface Group {
  readonly filter: RequestFilter;
  readonly wakes: Set<() => void>;
  /** The last ones, as JSON, at their number modulo `KEPT`. */
  readonly texts: string[];
  /** Number of matches so far. */
  told: number;
  /** Unread requests that may have matched. */
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
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #look(): void {
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
      const wanting = [...this.#groups.values()].filter(({ filter }) => filter.takesStatus(status));
      if (wanting.length === 0) continue;
      if (++read > MOST_AT_ONCE) {
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
      this.#tell(entry, wanting);
    }
    for (const { wakes } of this.#groups.values()) for (const wake of wakes) wake();
  }

  #tell(entry: RingEntry | null, groups: readonly Group[]): void {
    if (entry === null) {
      for (const group of groups) group.missed++;
      return;
    }
    const view = this.#options.view(entry);
    let text: string | null = null;
    for (const group of groups) {
      if (!group.filter.takes(view)) continue;
      text ??= JSON.stringify(view);
      group.texts[group.told++ % KEPT] = text;
    }
  }
}

const newGroup = (filter: RequestFilter): Group => ({
  filter,
  wakes: new Set(),
  texts: [],
  told: 0,
  missed: 0,
});

function readerOf(group: Group, close: () => void): LiveReader {
  let at = group.told;
  let { missed } = group;
  return {
    next() {
      const first = Math.max(at, group.told - KEPT);
      const count = first - at + group.missed - missed;
      at = first;
      missed = group.missed;
      if (count > 0) return { id: null, kind: "dropped", data: JSON.stringify({ count }) };
      const text = at < group.told ? group.texts[at++ % KEPT] : undefined;
      return text === undefined ? null : { id: null, kind: "request", data: text };
    },
    // No resumption: the list of recent requests holds what was missed.
    position: "",
    close,
  };
}
