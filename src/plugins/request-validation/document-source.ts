// Fetches an OpenAPI document at first use and at intervals; knows no request.
import type { PluginKit } from "../../pdk/kit.ts";

/** Time between fetches, after a success and after a failure. */
const FRESH_MS = 300_000;
const AGAIN_MS = 10_000;
const TIMEOUT_MS = 10_000;
const MAX_BYTES = 4_194_304;

export interface SourceOptions<T> {
  readonly url: string;
  readonly kit: Pick<PluginKit, "callout" | "log">;
  /** Throws an Error with a message for the log when the document is not valid. */
  readonly compile: (text: string) => T;
}

/** The last valid document stays in use until there is a newer one. */
export class DocumentSource<T> {
  readonly #options: SourceOptions<T>;
  #current: T | null = null;
  #text = "";
  #nextAt = Number.NEGATIVE_INFINITY;
  #fetching: Promise<void> | null = null;

  constructor(options: SourceOptions<T>) {
    this.#options = options;
  }

  /** Null: there is none, and the fetch failed. */
  get(): T | null | Promise<T | null> {
    if (performance.now() >= this.#nextAt) this.refresh();
    if (this.#current !== null || this.#fetching === null) return this.#current;
    return this.#fetching.then(() => this.#current);
  }

  refresh(): void {
    if (this.#fetching !== null) return;
    this.#fetching = this.#fetch().finally(() => {
      this.#fetching = null;
    });
  }

  async #fetch(): Promise<void> {
    const { url, kit, compile } = this.#options;
    this.#nextAt = performance.now() + AGAIN_MS;
    try {
      const { status, body } = await kit.callout({
        url,
        timeoutMs: TIMEOUT_MS,
        maxBytes: MAX_BYTES,
      });
      if (status !== 200) throw new Error(`the server responded ${status}`);
      const text = new TextDecoder().decode(body);
      if (text !== this.#text || this.#current === null) this.#current = compile(text);
      this.#text = text;
      this.#nextAt = performance.now() + FRESH_MS;
    } catch (error) {
      const { message: why } = error as Error;
      kit.log("warn", "cannot use an OpenAPI document", { why });
    }
  }
}
