// Builds stored responses from upstream ones; knows no store and no request.
import type { NotStored } from "../../pdk/cache-outcome.ts";
import {
  type Freshness,
  freshnessOf,
  type FreshnessRules,
  type StoringRequest,
} from "./freshness.ts";
import type { CacheKey } from "./key.ts";
import type { StoredHead } from "./store.ts";

/** The request of a stored response. */
export interface FillRequest {
  readonly cacheKey: CacheKey;
  readonly request: StoringRequest;
  /** Host and port in the client's address. */
  readonly clientHost: string;
  /** Reads the upstream request headers. */
  readonly fieldOf: (name: string) => string | null;
  /** When the request went upstream, in milliseconds of the monotonic clock. */
  readonly startedAt: number;
  /** `Store.epoch` at that time. */
  readonly epoch: number;
}

/** The head of a storable response, whose body is still to come. */
export interface Storable {
  readonly status: number;
  readonly headers: Headers;
  readonly freshness: Freshness;
}

/** Whether a response may be stored. */
export type StoringDecision = { readonly storable: Storable } | { readonly reason: NotStored };

/** Headers of one hop or one client (RFC 9111 section 3.1). */
const NOT_STORED = [
  ...["set-cookie", "age", "x-cache-status", "content-length"],
  ...["proxy-authenticate", "proxy-authentication-info", "proxy-authorization"],
] as const;

/** RFC 9111 section 3.2: a 304 does not update headers on which the stored bytes depend. */
const NOT_UPDATED: ReadonlySet<string> = new Set([
  ...NOT_STORED,
  "content-encoding",
  "content-range",
]);

const MAX_TAGS = 200;

/** Of Surrogate-Key (separated by spaces, as at Fastly) and of Cache-Tag (by commas, as at Cloudflare and Akamai). */
function tagsOf(headers: Headers): string[] {
  const tags = (headers.get("surrogate-key") ?? "").split(/\s+/);
  for (const tag of (headers.get("cache-tag") ?? "").split(",")) tags.push(tag.trim());
  return [...new Set(tags)].filter((tag) => tag !== "").slice(0, MAX_TAGS);
}

/** Where the host is no part of the key, one client's Host would decide where all others are redirected. */
const redirectsTo = (clientHost: string, headers: Headers): boolean =>
  ["location", "refresh"].some(
    (name) => headers.get(name)?.toLowerCase().includes(`//${clientHost.toLowerCase()}`) === true,
  );

export class Storing {
  readonly #rules: FreshnessRules;
  readonly #varyNames: readonly string[];
  readonly #keysHost: boolean;

  /** `keysHost`: whether the host is part of the key. */
  constructor(rules: FreshnessRules, varyNames: readonly string[], keysHost = true) {
    this.#rules = rules;
    this.#varyNames = varyNames;
    this.#keysHost = keysHost;
  }

  judge(
    response: { readonly status: number; readonly headers: Headers },
    { request, clientHost, startedAt }: FillRequest,
    now: number,
  ): StoringDecision {
    const { status, headers } = response;
    if (!this.#keysHost && redirectsTo(clientHost, headers)) return { reason: "client_host" };
    const delayMs = now - startedAt;
    const freshness = freshnessOf({ status, headers, delayMs }, request, this.#rules);
    if (typeof freshness === "string") return { reason: freshness };
    const copy = new Headers(headers);
    for (const name of NOT_STORED) copy.delete(name);
    if (!copy.has("date")) copy.set("Date", new Date().toUTCString());
    return { storable: { status, headers: copy, freshness } };
  }

  complete(
    { status, headers, freshness }: Storable,
    { cacheKey, fieldOf }: FillRequest,
    { bodyLength, now }: { readonly bodyLength: number; readonly now: number },
  ): StoredHead {
    const { key, resource } = cacheKey;
    if (status !== 204) headers.set("Content-Length", String(bodyLength));
    const variesOn = this.#variesOn(headers).map((name) => [name, fieldOf(name)] as const);
    const tags = tagsOf(headers);
    return {
      key,
      resource,
      status,
      headers,
      freshness,
      variesOn,
      etag: headers.get("etag"),
      lastModified: headers.get("last-modified"),
      tags,
      storedAt: now,
    };
  }

  /** The stored response, updated from a 304 or a response to HEAD; the reason when that must not be stored. */
  freshened(
    stored: StoredHead & { readonly bodyLength: number },
    update: Headers,
    fillRequest: FillRequest,
  ): StoredHead | NotStored {
    const now = performance.now();
    const headers = new Headers(stored.headers);
    for (const [name, value] of update) if (!NOT_UPDATED.has(name)) headers.set(name, value);
    headers.delete("age");
    // The stored Date would begin the time until Expires anew (RFC 9110 section 6.6.1).
    if (!update.has("date")) headers.set("Date", new Date().toUTCString());
    // The age of the new response counts.
    const judged = new Headers(headers);
    const age = update.get("age");
    if (age !== null) judged.set("age", age);
    const decision = this.judge({ status: stored.status, headers: judged }, fillRequest, now);
    return "reason" in decision
      ? decision.reason
      : this.complete(decision.storable, fillRequest, { bodyLength: stored.bodyLength, now });
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
