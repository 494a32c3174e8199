// The recent requests of all workers in a ring of the configured size; knows no HTTP.
import { ApiError } from "../../model/error.ts";
import { type RingEntry, RequestRing } from "../../shared-memory/request-ring.ts";
import type { Changes } from "../../control/change.ts";
import { createRedaction } from "./redaction.ts";
import type { RequestFilter } from "./request-filter.ts";
import { type RequestView, toRequestView } from "./request-view.ts";

export interface RequestLogOptions {
  readonly changes: Changes;
  /** The first ring of the workers; null: none. */
  readonly ring: RequestRing | null;
  /** Switches the workers to another ring. */
  readonly useRing: (ring: RequestRing | null) => void;
  /** Makes the workers flush completed requests. */
  readonly flush: () => Promise<void>;
}

/** Limit of the wait for a worker that does not respond. */
const FLUSH_MS = 250;
/** Workers write in batches, so that the newest request need not be the last one. */
const BATCH = 256;
/** Requests per slice before the event loop continues. */
const AT_ONCE = 4000;

/** Sorts the list itself. */
export const newestFirst = <T extends Pick<RequestView, "time">>(requests: T[]): T[] =>
  requests.sort((a, b) => (a.time < b.time ? 1 : a.time > b.time ? -1 : 0));

export class RequestLog {
  readonly #options: RequestLogOptions;
  /** Part of generated ids, so that they differ from those of other runs. */
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

  /** The ring of the workers; null: none. */
  get ring(): RequestRing | null {
    return this.#ring;
  }

  /** Newest first. */
  async list(filter: RequestFilter, limit: number): Promise<RequestView[]> {
    const ring = this.#ring;
    const found: RequestView[] = [];
    if (ring === null) return found;
    await this.#flush();
    const { next } = ring;
    const last = Math.max(0, next - ring.capacity);
    const most = limit + BATCH;
    for (let sequence = next - 1; sequence >= last && found.length < most; sequence--) {
      if ((next - sequence) % AT_ONCE === 0) await Bun.sleep(0);
      if (!filter.matchesStatus(ring.statusOf(sequence))) continue;
      const entry = ring.read(sequence);
      if (entry === null) continue;
      const view = this.view(entry);
      if (filter.matches(view)) found.push(view);
    }
    return newestFirst(found).slice(0, limit);
  }

  /** The request with this id; throws a 404 when it is not, or no longer, in the ring. */
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
    throw new ApiError(404, `request "${id}" does not exist, or is no longer stored`);
  }

  async #flush(): Promise<void> {
    await Promise.race([this.#options.flush(), Bun.sleep(FLUSH_MS)]);
  }

  /** The representation of an entry of the ring. */
  view(entry: RingEntry): RequestView {
    return toRequestView(entry, {
      config: this.#options.changes.config,
      redact: this.#redact,
      idOf: this.#idOf,
    });
  }

  /** Most requests have no id yet; theirs is derived from their end time and number. UUIDv7. */
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
