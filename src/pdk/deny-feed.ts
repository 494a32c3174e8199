// Fetches a list of denied addresses at intervals, in the main thread, and compiles it for all workers; knows no source.
import { Pace } from "../pace.ts";
import type { DenyFigures, DenyState } from "./deny-list.ts";
import type { Feed, FeedKit } from "./kit.ts";
import { compileNetworks, type NetworkEntry, type NetworkTable } from "./net.ts";

export interface Fetched {
  /** All entries; null: those of the last time. */
  readonly entries: Iterable<NetworkEntry> | null;
  /** As in `DenyState`. */
  readonly contactMs: number | null;
  /** Why something could not be fetched, in words without secrets; empty: all was. */
  readonly problems: readonly string[];
}

/** One or more lists on other servers. */
export interface DenySource<Config> {
  /** Returns the milliseconds between two requests. */
  configure(configs: readonly Config[]): number;
  /** `pace` divides long work. Settles in bounded time; failures are `problems`. */
  fetch(pace: Pace): Promise<Fetched>;
}

/** Longest time to the next attempt after a failure. */
const MAX_RETRY_MS = 30_000;
/** Milliseconds after which other work in the main thread gets its turn. */
const SLICE_MS = 20;

export class DenyFeed<Config> implements Feed<Config> {
  readonly #kit: FeedKit;
  readonly #source: DenySource<Config>;
  readonly #pace = new Pace({ objects: Number.POSITIVE_INFINITY, ms: SLICE_MS });
  #intervalMs = 0;
  #table: NetworkTable | null = null;
  #contactMs: number | null = null;
  #requests = 0;
  #reported: string | null = null;
  #timer: Timer | null = null;
  #isBusy = false;
  #isClosed = false;

  constructor(kit: FeedKit, source: DenySource<Config>) {
    this.#kit = kit;
    this.#source = source;
  }

  configure(configs: readonly Config[]): void {
    this.#intervalMs = this.#source.configure(configs);
    // Also for the metrics of instances that are new.
    if (!this.#isBusy) void this.#turn();
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async #turn(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#isBusy = true;
    this.#requests++;
    this.#pace.begin();
    const { contactMs, problems } = await this.#fetch();
    this.#isBusy = false;
    if (this.#isClosed) return;
    this.#kit.publish({ table: this.#table, contactMs } satisfies DenyState);
    this.#kit.report({
      entries: this.#table?.size ?? 0,
      up: problems.length === 0 ? 1 : 0,
      contact_timestamp_seconds: (contactMs ?? 0) / 1000,
      requests: this.#requests,
    } satisfies DenyFigures);
    this.#explain(problems);
    const retryMs = problems.length === 0 ? Number.POSITIVE_INFINITY : MAX_RETRY_MS;
    this.#timer = setTimeout(() => void this.#turn(), Math.min(this.#intervalMs, retryMs));
    this.#timer.unref();
  }

  async #fetch(): Promise<Pick<Fetched, "contactMs" | "problems">> {
    try {
      const { entries, contactMs, problems } = await this.#source.fetch(this.#pace);
      if (entries !== null) this.#table = await this.#pace.run(compileNetworks(entries));
      this.#contactMs = contactMs;
      return { contactMs, problems };
    } catch (error) {
      // A bug must not end the attempts.
      this.#kit.log("error", "a list of denied addresses caused an error", { error });
      return { contactMs: this.#contactMs, problems: ["internal error"] };
    }
  }

  /** Logs each problem once, not at every interval, and its end. */
  #explain(problems: readonly string[]): void {
    const why = problems.length === 0 ? null : problems.join("; ");
    if (why === this.#reported) return;
    this.#reported = why;
    const entries = this.#table?.size ?? 0;
    if (why === null)
      this.#kit.log("info", "the list of denied addresses is complete", { entries });
    else
      this.#kit.log("warn", "cannot fetch the list of denied addresses", {
        why,
        entries,
        consequence: this.#table === null ? "there is no list yet" : "the last list stays in use",
      });
  }
}
