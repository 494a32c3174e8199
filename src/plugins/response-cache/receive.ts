// Handles upstream responses: stores them, freshens or invalidates stored ones, or serves those instead; knows no lookup.
import type { BodyTransform, RequestContext, ResponseDraft } from "../../pdk/context.ts";
import { type HitKind, remainingOf, addCacheStatus } from "./cached-responses.ts";
import type { CacheDecision, FillDecision } from "./cache-decision.ts";
import type { Instance } from "./instance.ts";
import type { Stored } from "./store.ts";
import type { Storable } from "./storing.ts";
import { conditionsOf } from "./upstream-request.ts";

/** Statuses of a failing service (RFC 5861 section 4). */
const FAILURES = new Set([500, 502, 503, 504]);

/** The handler of the `response` phase. */
export function receive(context: RequestContext, draft: ResponseDraft, instance: Instance): void {
  const decision = context.memory.get(instance.memoryKey) as CacheDecision | undefined;
  switch (decision?.kind) {
    case undefined:
      return;
    case "bypass":
      if (draft.source === "upstream")
        addCacheStatus(draft.headers, `sluice; fwd=${decision.why}`, "BYPASS");
      return;
    case "unsafe":
      if (draft.source === "upstream") invalidate(context, draft, { instance, decision });
      return;
    case "head":
      if (draft.source === "upstream") receiveHead(draft, instance, decision);
      return;
    case "fill":
      receiveFill(context, draft, { instance, decision });
      return;
    default:
      decision satisfies never;
  }
}

/** The request has ended: releases requests that wait for it. */
export function finish(context: RequestContext, instance: Instance): void {
  const decision = context.memory.get(instance.memoryKey) as CacheDecision | undefined;
  if (decision?.kind === "fill" && !decision.isReceiving) instance.fills.abandoned(decision.fill);
}

/** RFC 9111 section 4.4: invalidates the resource, and those in Location and Content-Location on the same host. */
function invalidate(
  { host }: RequestContext,
  { status, headers }: ResponseDraft,
  fillContext: { readonly instance: Instance; readonly decision: { readonly resource: string } },
): void {
  const { instance, decision } = fillContext;
  addCacheStatus(headers, "sluice; fwd=method", "BYPASS");
  if (status < 200 || status > 399) return;
  const resources = new Set([decision.resource]);
  for (const name of ["location", "content-location"]) {
    const base = `http://${decision.resource.startsWith("/") ? host : ""}${decision.resource}`;
    const url = URL.parse(headers.get(name) ?? "", base);
    if (url === null || !headers.has(name) || url.hostname !== host) continue;
    const { pathname: path, search } = url;
    resources.add(instance.keys.resourceOf({ host, path, query: search.slice(1) }));
  }
  for (const resource of resources) instance.store.invalidate(resource);
  instance.fills.invalidate((fill) => resources.has(fill.resource));
}

/** RFC 9111 section 4.3.5. */
function receiveHead(
  draft: ResponseDraft,
  { store, storing }: Instance,
  { stale, fillRequest }: Extract<CacheDecision, { readonly kind: "head" }>,
): void {
  addCacheStatus(draft.headers, `sluice; fwd=${stale === null ? "miss" : "stale"}`, "MISS");
  if (stale === null || draft.status !== 200) return;
  const { headers } = draft;
  const length = headers.get("content-length");
  const isSame =
    headers.get("etag") === stale.etag &&
    headers.get("last-modified") === stale.lastModified &&
    (length === null || Number(length) === stale.body.byteLength);
  const next = isSame ? storing.freshened(stale, headers, fillRequest) : null;
  if (next === null) store.remove(stale);
  else store.replace(stale, next);
}

interface FillContext {
  readonly instance: Instance;
  readonly decision: FillDecision;
}

function receiveFill(
  context: RequestContext,
  draft: ResponseDraft,
  fillContext: FillContext,
): void {
  const { instance, decision } = fillContext;
  const { fills, failing, uncacheable } = instance;
  const { stale, fill } = decision;
  const { key } = decision.fillRequest.cacheKey;
  const isFailure =
    draft.source === "gateway"
      ? FAILURES.has(draft.error?.status ?? 0)
      : FAILURES.has(draft.status);
  if (isFailure && stale !== null && mayServe(stale)) {
    failing.set(key, true);
    serveStored(context, draft, { instance, decision, stored: stale, hitKind: "failed" });
    fills.stored(fill);
    return;
  }
  if (draft.source !== "upstream") {
    // The client disconnected or was rejected, which does not affect other requests.
    if (draft.source === "gateway" && !isFailure) fills.abandoned(fill);
    else fills.uncacheable(fill);
    return;
  }
  if (draft.status === 304 && decision.isConditional && stale !== null) {
    freshen(context, draft, { ...fillContext, stale });
    return;
  }
  const now = performance.now();
  const storable = fill.isInvalidated
    ? null
    : instance.storing.judge(draft, decision.fillRequest, now);
  if (storable === null || (draft.bodyLength ?? 0) > instance.own.max_body) {
    addCacheStatus(draft.headers, `sluice; fwd=${decision.why}`, wordOf(decision));
    const isOwnWish = decision.fillRequest.request.cacheControl.has("no-store");
    if (!fill.isInvalidated && !isFailure && !isOwnWish) {
      // Responses to requests of another kind may still be storable.
      if (stale !== null && decision.uncacheableKey === key) instance.store.remove(stale);
      uncacheable.set(decision.uncacheableKey, true);
    }
    fills.uncacheable(fill);
    return;
  }
  uncacheable.delete(decision.uncacheableKey);
  if (draft.hasBody) collect(draft, fillContext, storable);
  else storeBody(fillContext, storable, new Uint8Array(0));
  addCacheStatus(draft.headers, `sluice; fwd=${decision.why}; stored`, wordOf(decision));
}

const wordOf = ({ why }: FillDecision) =>
  why === "miss" ? "MISS" : why === "stale" ? "EXPIRED" : "MISS";

const mayServe = (stale: Stored): boolean =>
  -remainingOf(stale, performance.now()) < stale.freshness.staleIfErrorMs;

function freshen(
  context: RequestContext,
  draft: ResponseDraft,
  { instance, decision, stale }: FillContext & { readonly stale: Stored },
): void {
  const { storing, store, fills } = instance;
  const tag = draft.headers.get("etag");
  // A 304 with another tag does not validate the stored response.
  const isOther = tag !== null && stale.etag !== null && opaque(tag) !== opaque(stale.etag);
  const next = isOther ? null : storing.freshened(stale, draft.headers, decision.fillRequest);
  if (next === null) store.remove(stale);
  else if (!decision.fill.isInvalidated) store.replace(stale, next);
  serveStored(context, draft, {
    instance,
    decision,
    stored: next ?? stale,
    hitKind: "revalidated",
  });
  fills.stored(decision.fill);
}

const opaque = (tag: string) => tag.replace(/^W\//, "");

/** Replaces the upstream response with a stored one. */
function serveStored(
  context: RequestContext,
  draft: ResponseDraft,
  { instance, decision, stored, hitKind }: FillContext & { stored: Stored; hitKind: HitKind },
): void {
  const cookies = draft.source === "upstream" ? draft.headers.getSetCookie() : [];
  const now = performance.now();
  const header = conditionsOf(context, decision.fillRequest.fieldOf);
  const { status, headers, body } = instance.cachedResponses.shape(stored, header, {
    hitKind,
    now,
  });
  for (const name of [...draft.headers.keys()]) draft.headers.delete(name);
  for (const [name, value] of headers) draft.headers.set(name, value);
  for (const cookie of cookies) draft.headers.append("Set-Cookie", cookie);
  draft.status = status;
  draft.replaceBody(body);
}

/** Copies the body while it streams. */
function collect(draft: ResponseDraft, fillContext: FillContext, storable: Storable): void {
  const { instance, decision } = fillContext;
  const { max_body: maxBytes } = instance.own;
  let pieces: Uint8Array[] | null = [];
  let size = 0;
  decision.isReceiving = true;
  const giveUp = () => {
    pieces = null;
    instance.fills.uncacheable(decision.fill);
  };
  const transform: BodyTransform = {
    isObserver: true,
    push(chunk) {
      if (pieces === null) return chunk;
      size += chunk.byteLength;
      if (size > maxBytes) {
        instance.uncacheable.set(decision.uncacheableKey, true);
        giveUp();
      } else pieces.push(new Uint8Array(chunk));
      return chunk;
    },
    end() {
      if (pieces !== null) storeBody(fillContext, storable, joined(pieces, size));
      return null;
    },
    abort() {
      if (pieces === null) return;
      pieces = null;
      // Incomplete responses are not stored (RFC 9111 section 3.3).
      instance.fills.abandoned(decision.fill);
    },
  };
  draft.transformBody(transform);
}

/** Allocates its own memory: small buffers would retain a shared pool. */
function joined(pieces: readonly Uint8Array[], size: number): Uint8Array {
  const [only] = pieces;
  if (pieces.length === 1 && only !== undefined) return only;
  const whole = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.byteLength;
  }
  return whole;
}

function storeBody(
  { instance, decision }: FillContext,
  storable: Storable,
  body: Uint8Array,
): void {
  const { storing, store, fills } = instance;
  const { fill, fillRequest, stale } = decision;
  const now = performance.now();
  if (!fill.isInvalidated) {
    const next = storing.complete(storable, fillRequest, { body, now });
    if (stale === null) store.put(next);
    else store.replace(stale, next);
  }
  fills.stored(fill);
}
