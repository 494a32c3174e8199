// The request list: the last requests of all workers in fixed-size slots, which the main thread reads; knows no HTTP and no names.

/** Texts of a slot and their maximum length; longer ones are truncated. */
const texts = {
  id: 36,
  method: 16,
  scheme: 8,
  host: 100,
  /** Path and query as received. */
  target: 288,
  user_agent: 160,
  client: 45,
  consumer: 60,
  /** Reasons of the outcome: words separated by spaces. */
  reasons: 128,
  route: 36,
  service: 36,
  target_id: 36,
  tls_version: 8,
  http_version: 8,
} as const;
export type RingText = keyof typeof texts;

/** Numbers of a slot. Times in milliseconds, negative: unknown. */
const numbers = [
  /** Since the Unix epoch. */
  "started_at",
  "queue",
  "plugins",
  "connect",
  "first_byte",
  "total",
  "bytes_in",
  "bytes_out",
] as const;
export type RingNumber = (typeof numbers)[number];

/** The record of a request, or of a connection of a stream route. */
export interface RequestRecord
  extends Readonly<Record<RingText, string>>, Readonly<Record<RingNumber, number>> {
  readonly kind: "http" | "stream";
  /** 0: none. */
  readonly status: number;
  readonly attempts: number;
  /** Status of a gRPC call, plus 1; 0: not gRPC. */
  readonly grpc: number;
  /** What a cache did, as an integer below 2^24; 0: there was none. */
  readonly cache: number;
}

/** A slot as it is read. */
export interface RingEntry extends RequestRecord {
  /** 0, 1, 2 … over all workers, in the order of their end. */
  readonly sequence: number;
  /** Truncated texts. */
  readonly cut: readonly RingText[];
}

const textNames = Object.keys(texts) as RingText[];

// A slot: as 32-bit integers its lock (0: free; else the writing worker, from 1), kind and cache, status and grpc, attempts; then as
// 64-bit floats its sequence (from 1; 0: empty) and the numbers; then for each text its length and the truncation flag; then the texts.
const LOCK = 0;
const KIND = 1;
const STATUS = 2;
const ATTEMPTS = 3;
const SEQUENCE = 2;
/** The status has ten bits. */
const GRPC_SHIFT = 10;
const STATUS_BITS = 0x3ff;
const NUMBERS_AT = SEQUENCE + 1;
const LENGTHS_BYTE = (NUMBERS_AT + numbers.length) * 8;
const TEXTS_BYTE = LENGTHS_BYTE + textNames.length * 2;
/** Truncation flag in a length. */
const CUT = 0x8000;

const SLOT_BYTES =
  Math.ceil((TEXTS_BYTE + Object.values(texts).reduce<number>((sum, max) => sum + max, 0)) / 64) *
  64;

/** Before the slots: the number of the next one, as a 64-bit integer. */
const HEADER_BYTES = 64;

/** Bun's native latin1 methods, which also work on shared memory. */
type Latin1Buffer = Buffer & {
  latin1Write(text: string, at: number, length: number): number;
  latin1Slice(from: number, to: number): string;
};

/**
 * Workers write concurrently: each takes the next slot. Readers skip a slot that is being written to,
 * and so does a writer that has lapped the ring.
 */
export class RequestRing {
  readonly buffer: SharedArrayBuffer;
  /** Slots. */
  readonly capacity: number;
  readonly #next: BigInt64Array;
  readonly #ints: Int32Array;
  readonly #floats: Float64Array;
  readonly #lengths: Uint16Array;
  readonly #bytes: Latin1Buffer;
  /** Positions of the current slot's next text and length. */
  #textAt = 0;
  #lengthAt = 0;

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.capacity = (buffer.byteLength - HEADER_BYTES) / SLOT_BYTES;
    this.#next = new BigInt64Array(buffer, 0, 1);
    this.#ints = new Int32Array(buffer);
    this.#floats = new Float64Array(buffer);
    this.#lengths = new Uint16Array(buffer);
    this.#bytes = Buffer.from(buffer as unknown as ArrayBuffer) as Latin1Buffer;
  }

  static create(capacity: number): RequestRing {
    return new RequestRing(new SharedArrayBuffer(HEADER_BYTES + capacity * SLOT_BYTES));
  }

  /** Sequence of the next request, the number of requests so far. */
  get next(): number {
    return Number(Atomics.load(this.#next, 0));
  }

  /** Writes a request. Hot path. */
  write(record: RequestRecord, worker: number): void {
    const sequence = Number(Atomics.add(this.#next, 0, 1n));
    const at = HEADER_BYTES + (sequence % this.capacity) * SLOT_BYTES;
    const ints = this.#ints;
    const int = at >> 2;
    if (Atomics.compareExchange(ints, int + LOCK, 0, worker + 1) !== 0) return;
    const float = at / 8;
    const floats = this.#floats;
    floats[float + SEQUENCE] = sequence + 1;
    ints[int + KIND] = (record.kind === "http" ? 0 : 1) | (record.cache << 1);
    ints[int + STATUS] = record.status | (record.grpc << GRPC_SHIFT);
    ints[int + ATTEMPTS] = record.attempts;
    const number = float + NUMBERS_AT;
    floats[number] = record.started_at;
    floats[number + 1] = record.queue;
    floats[number + 2] = record.plugins;
    floats[number + 3] = record.connect;
    floats[number + 4] = record.first_byte;
    floats[number + 5] = record.total;
    floats[number + 6] = record.bytes_in;
    floats[number + 7] = record.bytes_out;
    this.#writeTexts(record, at);
    Atomics.store(ints, int + LOCK, 0);
  }

  /** Unrolled, because a loop over names would double the cost. In the order of `texts`. */
  #writeTexts(record: RequestRecord, slot: number): void {
    this.#textAt = slot + TEXTS_BYTE;
    this.#lengthAt = (slot + LENGTHS_BYTE) >> 1;
    this.#write(record.id, texts.id);
    this.#write(record.method, texts.method);
    this.#write(record.scheme, texts.scheme);
    this.#write(record.host, texts.host);
    this.#write(record.target, texts.target);
    this.#write(record.user_agent, texts.user_agent);
    this.#write(record.client, texts.client);
    this.#write(record.consumer, texts.consumer);
    this.#write(record.reasons, texts.reasons);
    this.#write(record.route, texts.route);
    this.#write(record.service, texts.service);
    this.#write(record.target_id, texts.target_id);
    this.#write(record.tls_version, texts.tls_version);
    this.#write(record.http_version, texts.http_version);
  }

  #write(text: string, max: number): void {
    const { length } = text;
    const written = length === 0 ? 0 : this.#bytes.latin1Write(text, this.#textAt, max);
    this.#lengths[this.#lengthAt++] = length > max ? written | CUT : written;
    this.#textAt += written;
  }

  /** The request with this sequence; null when it was overwritten, is being written or does not exist yet. */
  read(sequence: number): RingEntry | null {
    if (this.capacity === 0 || sequence < 0) return null;
    const at = HEADER_BYTES + (sequence % this.capacity) * SLOT_BYTES;
    if (!this.#holds(at, sequence)) return null;
    const ints = this.#ints;
    const int = at >> 2;
    const kind = ints[int + KIND] ?? 0;
    const status = ints[int + STATUS] ?? 0;
    const found: Record<string, unknown> = {
      sequence,
      kind: (kind & 1) === 0 ? "http" : "stream",
      cache: kind >> 1,
      status: status & STATUS_BITS,
      grpc: status >> GRPC_SHIFT,
      attempts: ints[int + ATTEMPTS],
    };
    found["cut"] = this.#readTexts(at, (name, text) => {
      found[name] = text;
    });
    numbers.forEach((name, index) => {
      found[name] = this.#floats[at / 8 + NUMBERS_AT + index];
    });
    // Otherwise the slot was overwritten during the read.
    return this.#holds(at, sequence) ? (found as unknown as RingEntry) : null;
  }

  /** The status of a request that may have been overwritten; much cheaper than `read`. */
  statusOf(sequence: number): number {
    const at = HEADER_BYTES + (sequence % this.capacity) * SLOT_BYTES;
    return (this.#ints[(at >> 2) + STATUS] ?? 0) & STATUS_BITS;
  }

  /**
   * Whether the slot has this request, and no thread writes to it. The sequence is read first: a writer that locks a slot between
   * a look at the lock and a look at the sequence would have set the sequence, and nothing else yet. The exchange, unlike a load,
   * keeps reads before it and after it on their side on ARM too.
   */
  #holds(at: number, sequence: number): boolean {
    const float = at / 8 + SEQUENCE;
    if (this.#floats[float] !== sequence + 1) return false;
    if (Atomics.compareExchange(this.#ints, (at >> 2) + LOCK, 0, 0) !== 0) return false;
    return this.#floats[float] === sequence + 1;
  }

  #readTexts(slot: number, take: (name: RingText, text: string) => void): RingText[] {
    const cut: RingText[] = [];
    let at = slot + TEXTS_BYTE;
    textNames.forEach((name, index) => {
      const length = this.#lengths[((slot + LENGTHS_BYTE) >> 1) + index] ?? 0;
      const end = at + (length & ~CUT);
      take(name, this.#bytes.latin1Slice(at, end));
      if ((length & CUT) !== 0) cut.push(name);
      at = end;
    });
    return cut;
  }

  /** Unlocks the slot that a worker was writing to when it died. */
  forgetWorker(worker: number): void {
    for (let slot = 0; slot < this.capacity; slot++) {
      const at = HEADER_BYTES + slot * SLOT_BYTES;
      const lock = (at >> 2) + LOCK;
      if (Atomics.load(this.#ints, lock) !== worker + 1) continue;
      this.#floats[at / 8 + SEQUENCE] = 0;
      Atomics.store(this.#ints, lock, 0);
    }
  }

  /** Copies the newest requests of a ring of another size. */
  copyFrom(other: RequestRing, idOf: (entry: RingEntry) => string): void {
    const { next } = other;
    const from = Math.max(0, next - Math.min(other.capacity, this.capacity));
    for (let sequence = from; sequence < next; sequence++) {
      const entry = other.read(sequence);
      // An id may be derived from the sequence, which differs here.
      if (entry !== null) this.write({ ...entry, id: idOf(entry) }, 0);
    }
  }
}
