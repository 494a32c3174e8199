// Requests that have ended and wait a moment to be written down together: one by one that costs several times as much. Knows no HTTP.
import type { RequestRing, RingFacts } from "./request-ring.ts";

/** As they are filled in anew for each request. */
export type Facts = { -readonly [K in keyof RingFacts]: RingFacts[K] };

/** Requests that wait at most. */
const SIZE = 128;
/** How long one waits at most. A worker that is ended loses no more than this. */
const LONGEST_MS = 100;

export class RequestBatch {
  readonly #worker: number;
  /** Made once and filled in again and again. */
  readonly #facts: readonly Facts[] = Array.from({ length: SIZE }, noFacts);
  #count = 0;
  #timer: Timer | null = null;
  #ring: RequestRing | null;

  constructor(ring: RequestRing | null, worker: number) {
    this.#ring = ring;
    this.#worker = worker;
  }

  /** Whether anything is written down at all. */
  get isOn(): boolean {
    return this.#ring !== null;
  }

  /** Writes to another ring from here on; null: to none. */
  use(ring: RequestRing | null): void {
    this.flush();
    this.#ring = ring;
  }

  /** The place for the next request: all facts are to be set, because those of another one are in it. */
  next(): Facts {
    if (this.#count === SIZE) this.flush();
    if (this.#count === 0 && this.#timer === null) this.#flushLater();
    // One of a few that are all there.
    return this.#facts[this.#count++] as Facts;
  }

  /** By itself: where it is called, its closure would be made room for with each request. */
  #flushLater(): void {
    this.#timer = setTimeout(() => this.flush(), LONGEST_MS);
  }

  /** Writes down what waits. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const ring = this.#ring;
    const count = this.#count;
    this.#count = 0;
    if (ring === null) return;
    for (let index = 0; index < count; index++)
      ring.write(this.#facts[index] as Facts, this.#worker);
  }
}

/** Facts of nothing. */
export function noFacts(): Facts {
  return {
    kind: "http",
    status: 0,
    attempts: 0,
    started_at: 0,
    queue: -1,
    plugins: -1,
    connect: -1,
    first_byte: -1,
    total: 0,
    bytes_in: 0,
    bytes_out: 0,
    id: "",
    method: "",
    scheme: "",
    host: "",
    target: "",
    user_agent: "",
    client: "",
    consumer: "",
    reasons: "",
    route: "",
    service: "",
    target_id: "",
    tls_version: "",
    http_version: "",
  };
}
