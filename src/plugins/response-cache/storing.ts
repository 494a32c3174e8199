// Makes what is stored from what a target has answered; knows no store and no request but what it asks of one.
import type CachePolicy from "http-cache-semantics";
import {
  type Freshness,
  freshnessOf,
  type FreshnessRules,
  type StoringRequest,
} from "./freshness.ts";
import type { CacheKey } from "./key.ts";
import type { Stored } from "./store.ts";

/** What an answer is stored for. */
export interface Occasion {
  readonly place: CacheKey;
  readonly request: StoringRequest;
  /** Request fields as they went upstream. */
  readonly fieldOf: (name: string) => string | null;
  /** Milliseconds of the monotonic clock, when the request went upstream. */
  readonly startedAt: number;
}

/** The head of an answer that may be stored once its body is there. */
export interface Storable {
  readonly status: number;
  readonly headers: Headers;
  readonly freshness: Freshness;
}

/** Fields that belong to one way or to one client. */
const NOT_STORED = ["set-cookie", "age", "x-cache-status", "content-length"] as const;

/** RFC 9111 section 3.2: what describes the body that stays is not taken from a 304. */
const NOT_UPDATED: ReadonlySet<string> = new Set([
  ...NOT_STORED,
  "content-encoding",
  "content-range",
  "content-type",
  "etag",
]);

const MAX_TAGS = 200;

export class Storing {
  readonly #rules: FreshnessRules;
  readonly #Policy: typeof CachePolicy;
  readonly #varyNames: readonly string[];

  constructor(
    rules: FreshnessRules,
    parts: { readonly Policy: typeof CachePolicy; readonly varyNames: readonly string[] },
  ) {
    this.#rules = rules;
    this.#Policy = parts.Policy;
    this.#varyNames = parts.varyNames;
  }

  /** Null: the answer must not be stored. */
  judge(
    answer: { readonly status: number; readonly headers: Headers },
    { request, startedAt }: Occasion,
    now: number,
  ): Storable | null {
    const { status, headers } = answer;
    const freshness = freshnessOf({ status, headers, delayMs: now - startedAt }, request, {
      rules: this.#rules,
      Policy: this.#Policy,
    });
    if (freshness === null) return null;
    const copy = new Headers(headers);
    for (const name of NOT_STORED) copy.delete(name);
    if (!copy.has("date")) copy.set("Date", new Date().toUTCString());
    return { status, headers: copy, freshness };
  }

  complete(
    { status, headers, freshness }: Storable,
    { place, fieldOf }: Occasion,
    { body, now }: { readonly body: Uint8Array; readonly now: number },
  ): Stored {
    const { key, resource } = place;
    if (status !== 204) headers.set("Content-Length", String(body.byteLength));
    const variesOn = this.#variesOn(headers).map((name) => [name, fieldOf(name)] as const);
    const tags = (headers.get("surrogate-key") ?? "").split(/\s+/).filter((tag) => tag !== "");
    return {
      ...{ key, resource, status, headers, body, freshness, variesOn },
      etag: headers.get("etag"),
      lastModified: headers.get("last-modified"),
      tags: [...new Set(tags)].slice(0, MAX_TAGS),
      storedAt: now,
    };
  }

  /** The stored answer with what a 304, or the answer to HEAD, says of it; null: it must not be kept any longer. */
  freshened(stored: Stored, news: Headers, occasion: Occasion): Stored | null {
    const now = performance.now();
    const headers = new Headers(stored.headers);
    for (const [name, value] of news) if (!NOT_UPDATED.has(name)) headers.set(name, value);
    headers.delete("age");
    // Only the new answer knows its age.
    const judged = new Headers(headers);
    const age = news.get("age");
    if (age !== null) judged.set("age", age);
    const storable = this.judge({ status: stored.status, headers: judged }, occasion, now);
    return storable === null ? null : this.complete(storable, occasion, { body: stored.body, now });
  }

  #variesOn(headers: Headers): string[] {
    const names = new Set(this.#varyNames);
    for (const part of (headers.get("vary") ?? "").split(",")) {
      const name = part.trim().toLowerCase();
      if (name !== "") names.add(name);
    }
    // An answer that lets one origin in is not the answer for another one, though many servers forget to say so.
    const allowed = headers.get("access-control-allow-origin");
    if (allowed !== null && allowed !== "*") names.add("origin");
    return [...names].sort();
  }
}

/** RFC 9111 section 4.1 allows to see through what means the same: of codings only which ones are taken. */
export function comparableValue(name: string, value: string | null): string | null {
  if (value === null) return null;
  if (name !== "accept-encoding") return value.trim();
  const taken = value
    .toLowerCase()
    .split(",")
    .map((part) => part.trim().split(/\s*;\s*/))
    .filter(([coding = "", weight = ""]) => coding !== "" && !/^q\s*=\s*0(?:\.0*)?$/.test(weight))
    .map(([coding]) => coding);
  return [...new Set(taken)].sort().join(",");
}
