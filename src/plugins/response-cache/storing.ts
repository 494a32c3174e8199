// Builds stored responses from upstream ones; knows no store and no request.
import type CachePolicy from "http-cache-semantics";
import {
  type Freshness,
  freshnessOf,
  type FreshnessRules,
  type StoringRequest,
} from "./freshness.ts";
import type { CacheKey } from "./key.ts";
import type { Stored } from "./store.ts";

/** The request of a stored response. */
export interface FillRequest {
  readonly cacheKey: CacheKey;
  readonly request: StoringRequest;
  /** Reads the upstream request headers. */
  readonly fieldOf: (name: string) => string | null;
  /** When the request went upstream, in milliseconds of the monotonic clock. */
  readonly startedAt: number;
}

/** The head of a storable response, whose body is still to come. */
export interface Storable {
  readonly status: number;
  readonly headers: Headers;
  readonly freshness: Freshness;
}

/** Headers of one hop or one client. */
const NOT_STORED = ["set-cookie", "age", "x-cache-status", "content-length"] as const;

/** RFC 9111 section 3.2: a 304 does not update headers that describe the stored body. */
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

  /** Null: the response must not be stored. */
  judge(
    response: { readonly status: number; readonly headers: Headers },
    { request, startedAt }: FillRequest,
    now: number,
  ): Storable | null {
    const { status, headers } = response;
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
    { cacheKey, fieldOf }: FillRequest,
    { body, now }: { readonly body: Uint8Array; readonly now: number },
  ): Stored {
    const { key, resource } = cacheKey;
    if (status !== 204) headers.set("Content-Length", String(body.byteLength));
    const variesOn = this.#variesOn(headers).map((name) => [name, fieldOf(name)] as const);
    const tags = (headers.get("surrogate-key") ?? "").split(/\s+/).filter((tag) => tag !== "");
    return {
      key,
      resource,
      status,
      headers,
      body,
      freshness,
      variesOn,
      etag: headers.get("etag"),
      lastModified: headers.get("last-modified"),
      tags: [...new Set(tags)].slice(0, MAX_TAGS),
      storedAt: now,
    };
  }

  /** The stored response, updated from a 304 or a response to HEAD; null: it must be removed. */
  freshened(stored: Stored, update: Headers, fillRequest: FillRequest): Stored | null {
    const now = performance.now();
    const headers = new Headers(stored.headers);
    for (const [name, value] of update) if (!NOT_UPDATED.has(name)) headers.set(name, value);
    headers.delete("age");
    // The age of the new response counts.
    const judged = new Headers(headers);
    const age = update.get("age");
    if (age !== null) judged.set("age", age);
    const storable = this.judge({ status: stored.status, headers: judged }, fillRequest, now);
    return storable === null
      ? null
      : this.complete(storable, fillRequest, { body: stored.body, now });
  }

  #variesOn(headers: Headers): string[] {
    const names = new Set(this.#varyNames);
    for (const part of (headers.get("vary") ?? "").split(",")) {
      const name = part.trim().toLowerCase();
      if (name !== "") names.add(name);
    }
    // A response that allows one origin varies by Origin, though many servers omit that from Vary.
    const allowed = headers.get("access-control-allow-origin");
    if (allowed !== null && allowed !== "*") names.add("origin");
    return [...names].sort();
  }
}

/** RFC 9111 section 4.1 allows normalization: of Accept-Encoding only the accepted codings count. */
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
