// Batches ended requests for the ring: writing them one by one costs several times as much. Knows no HTTP.
import type { RequestRing, RequestRecord } from "./request-ring.ts";

/** Reused for each request. */
export type MutableRequestRecord = { -readonly [K in keyof RequestRecord]: RequestRecord[K] };

/** Requests in a batch. */
const SIZE = 128;
/** Longest delay; a worker that dies loses no more than this. */
const MAX_WAIT_MS = 100;

export class RequestBatch {
  readonly #worker: number;
  /** Allocated once. */
  readonly #records: readonly MutableRequestRecord[] = Array.from({ length: SIZE }, emptyRecord);
  #count = 0;
  #timer: Timer | null = null;
  #ring: RequestRing | null;
  /** Whether there is a ring. */
  isOn: boolean;

  constructor(ring: RequestRing | null, worker: number) {
    this.#ring = ring;
    this.isOn = ring !== null;
    this.#worker = worker;
  }

  /** Switches to another ring; null: none. */
  use(ring: RequestRing | null): void {
    this.flush();
    this.#ring = ring;
    this.isOn = ring !== null;
  }

  /** The record for the next request. Set all its members: it holds those of an earlier request. */
  next(): MutableRequestRecord {
    if (this.#count === SIZE) this.flush();
    if (this.#count === 0 && this.#timer === null) this.#flushLater();
    // `#count` is below SIZE.
    return this.#records[this.#count++] as MutableRequestRecord;
  }

  /** A method of its own: inlined, its closure would be allocated for each request. */
  #flushLater(): void {
    this.#timer = setTimeout(() => this.flush(), MAX_WAIT_MS);
  }

  /** Writes the batch to the ring. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const ring = this.#ring;
    const count = this.#count;
    this.#count = 0;
    if (ring === null) return;
    for (let index = 0; index < count; index++)
      ring.write(this.#records[index] as MutableRequestRecord, this.#worker);
  }
}

export function emptyRecord(): MutableRequestRecord {
  return {
    kind: "http",
    status: 0,
    attempts: 0,
    grpc: 0,
    cache: 0,
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
