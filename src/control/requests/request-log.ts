// The recent requests of all workers: listed, found, kept in a ring of the size that the settings say; no HTTP words.
import { ApiError } from "../../model/error.ts";
import { type RingEntry, RequestRing } from "../../shared-memory/request-ring.ts";
import type { Changes } from "../change.ts";
import { createRedaction } from "./redaction.ts";
import type { RequestFilter } from "./request-filter.ts";
import { type RequestView, toRequestView } from "./request-view.ts";

export interface RequestLogOptions {
  readonly changes: Changes;
  /** Where the workers write at first; null: nowhere. */
  readonly ring: RequestRing | null;
  /** Has the workers write to another ring from here on. */
  readonly useRing: (ring: RequestRing | null) => void;
  /** Has the workers write down what has ended until now. */
  readonly flush: () => Promise<void>;
}

/** A worker that does not answer keeps nobody waiting for longer. */
const FLUSH_MS = 250;
/** So many are looked at before others get their turn. */
const AT_ONCE = 4000;

export class RequestLog {
  readonly #options: RequestLogOptions;
  /** Part of the ids that are made here, so that they differ from those of other runs. */
  readonly #salt = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
  #ring: RequestRing | null;
  #redact: (target: string) => string;
  #redactedNames: readonly string[];

  constructor(options: RequestLogOptions) {
    const { changes, ring } = options;
    this.#options = options;
    this.#ring = ring;
    this.#redactedNames = changes.config.settings.requests.redacted_query_names;
    this.#redact = createRedaction(this.#redactedNames);
    changes.onServed(() => this.#follow());
  }

  /** Where the workers write; null: nothing is kept. */
  get ring(): RequestRing | null {
    return this.#ring;
  }

  /** The newest first. */
  async list(filter: RequestFilter, limit: number): Promise<RequestView[]> {
    const ring = this.#ring;
    const found: RequestView[] = [];
    if (ring === null) return found;
    await this.#flush();
    const { next } = ring;
    const last = Math.max(0, next - ring.capacity);
    for (let sequence = next - 1; sequence >= last && found.length < limit; sequence--) {
      if ((next - sequence) % AT_ONCE === 0) await Bun.sleep(0);
      if (!filter.takesStatus(ring.statusOf(sequence))) continue;
      const entry = ring.read(sequence);
      if (entry === null) continue;
      const view = this.view(entry);
      if (filter.takes(view)) found.push(view);
    }
    // Workers write several at a time.
    return found.sort((a, b) => (a.time < b.time ? 1 : a.time > b.time ? -1 : 0));
  }

  /** The request with this id; throws a 404 when it is not there, or not any more. */
  async get(id: string): Promise<RequestView> {
    const wanted = id.toLowerCase();
    const ring = this.#ring;
    if (ring !== null) {
      await this.#flush();
      const { next } = ring;
      for (let sequence = next - 1; sequence >= Math.max(0, next - ring.capacity); sequence--) {
        if ((next - sequence) % AT_ONCE === 0) await Bun.sleep(0);
        const entry = ring.read(sequence);
        if (entry !== null && this.#idOf(entry) === wanted) return this.view(entry);
      }
    }
    throw new ApiError(404, `request "${id}" does not exist, or is no longer kept`);
  }

  async #flush(): Promise<void> {
    await Promise.race([this.#options.flush(), Bun.sleep(FLUSH_MS)]);
  }

  /** What people see of an entry of the ring. */
  view(entry: RingEntry): RequestView {
    return toRequestView(entry, {
      config: this.#options.changes.config,
      redact: this.#redact,
      idOf: this.#idOf,
    });
  }

  /** Most requests were given no id, because nobody asked for one; theirs follows from when and as which they ended. UUIDv7. */
  readonly #idOf = ({ id, started_at, sequence }: RingEntry): string => {
    if (id !== "") return id;
    const time = Math.floor(started_at).toString(16).padStart(12, "0");
    const salt = this.#salt.toString(16).padStart(8, "0");
    const end = sequence.toString(16).padStart(12, "0");
    return `${time.slice(0, 8)}-${time.slice(8)}-7${salt.slice(0, 3)}-8${salt.slice(3, 6)}-${end}`;
  };

  #follow(): void {
    const { settings } = this.#options.changes.config;
    const names = settings.requests.redacted_query_names;
    if (names !== this.#redactedNames) this.#redact = createRedaction(names);
    this.#redactedNames = names;
    const size = settings.retention.requests;
    if (size !== (this.#ring?.capacity ?? 0)) this.#resize(size);
  }

  #resize(size: number): void {
    const before = this.#ring;
    const ring = size === 0 ? null : RequestRing.create(size);
    if (before !== null) ring?.copyFrom(before, this.#idOf);
    this.#ring = ring;
    this.#options.useRing(ring);
  }
}
