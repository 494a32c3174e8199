// An OpenAPI document that lies somewhere else: fetched when it is first needed and now and then afterwards; knows no request.
import type { PluginKit } from "../../pdk/kit.ts";

/** For how long a document is believed, and how long to wait after one that could not be had. */
const FRESH_MS = 300_000;
const AGAIN_MS = 10_000;
const TIMEOUT_MS = 10_000;
const MAX_BYTES = 4_194_304;

export interface SourceOptions<T> {
  readonly url: string;
  readonly kit: Pick<PluginKit, "callout" | "log">;
  /** Throws in words for what cannot be used. */
  readonly compile: (text: string) => T;
}

/** The last document that could be used stays in use while there is no newer one. */
export class DocumentSource<T> {
  readonly #options: SourceOptions<T>;
  #current: T | null = null;
  #text = "";
  #nextAt = Number.NEGATIVE_INFINITY;
  #fetching: Promise<void> | null = null;

  constructor(options: SourceOptions<T>) {
    this.#options = options;
  }

  /** Null: there is none, and none could be had. */
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
      if (status !== 200) throw new Error(`the server answered ${status}`);
      const text = new TextDecoder().decode(body);
      if (text !== this.#text || this.#current === null) this.#current = compile(text);
      this.#text = text;
      this.#nextAt = performance.now() + FRESH_MS;
    } catch (error) {
      const { message: why } = error as Error;
      kit.log("warn", "an OpenAPI document cannot be used", { why });
    }
  }
}
