// Handles upstream responses: stores them, freshens or invalidates stored ones, or serves those instead; knows no lookup.
import type { BodyTransform, RequestContext, ResponseDraft } from "../../pdk/context.ts";
import type { CacheOutcome, NotStored } from "../../pdk/cache-outcome.ts";
import { canonicalPath } from "../../pdk/http.ts";
import { remainingOf } from "./cached-responses.ts";
import type { CacheDecision, FillDecision } from "./cache-decision.ts";
import { addCacheStatus } from "./cache-status.ts";
import type { DiskBody } from "./disk-body.ts";
import type { DiskWriter } from "./disk-writer.ts";
import type { Instance } from "./instance.ts";
import { type Content, fileRecordOf, type Stored, type StoredHead } from "./store.ts";
import type { Storable, StoringDecision } from "./storing.ts";
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
      if (draft.source === "upstream") addCacheStatus(draft.headers, decision.outcome);
      return;
    case "unsafe":
      if (draft.source === "upstream") invalidate(context, draft, { instance, decision });
      return;
    case "head":
      if (draft.source === "upstream") receiveHead(context, draft, { instance, decision });
      return;
    case "fill":
      receiveFill(draft, { context, instance, decision });
      return;
    default:
      decision satisfies never;
  }
}

/** The request has ended: releases requests that wait for it. */
export function finish(context: RequestContext, instance: Instance): void {
  const decision = context.memory.get(instance.memoryKey) as CacheDecision | undefined;
  if (decision?.kind === "fill" && !decision.isReceiving) instance.fills.abandoned(decision.fill);
  const files = context.memory.get(instance.filesKey) as readonly DiskBody[] | undefined;
  for (const file of files ?? []) file.close();
}

/**
 * RFC 9111 section 4.4: invalidates the resource, and those in Location and Content-Location on the same host and port. The scheme
 * does not matter, because a service behind TLS may not know it.
 */
function invalidate(
  { scheme, host, clientHost }: RequestContext,
  { status, headers }: ResponseDraft,
  received: {
    readonly instance: Instance;
    readonly decision: Extract<CacheDecision, { readonly kind: "unsafe" }>;
  },
): void {
  const { instance, decision } = received;
  addCacheStatus(headers, decision.outcome);
  if (status < 200 || status > 399) return;
  const resources = new Set([decision.resource]);
  const requested = decision.resource.slice(decision.resource.indexOf("/"));
  const target = URL.parse(`${scheme}://${clientHost}${requested}`);
  for (const name of ["location", "content-location"]) {
    const value = headers.get(name);
    const url = value === null || target === null ? null : URL.parse(value, target.href);
    if (url === null || url.host !== target?.host) continue;
    const { pathname, search } = url;
    // In the form of requests: `/%7euser` is `/~user`.
    const path = canonicalPath(pathname) ?? pathname;
    resources.add(instance.keys.resourceOf({ host, path, query: search.slice(1) }));
  }
  for (const resource of resources) instance.store.invalidate(resource);
}

/** RFC 9111 section 4.3.5. */
function receiveHead(
  context: RequestContext,
  draft: ResponseDraft,
  received: {
    readonly instance: Instance;
    readonly decision: Extract<CacheDecision, { readonly kind: "head" }>;
  },
): void {
  const { store, storing, kit } = received.instance;
  const { stale, fillRequest, outcome } = received.decision;
  const { headers } = draft;
  if (stale === null || draft.status !== 200) {
    addCacheStatus(headers, outcome);
    return;
  }
  // Only what the response has is compared.
  const isEqual = (name: string, value: string | null) =>
    !headers.has(name) || headers.get(name) === value;
  const isSame =
    isEqual("etag", stale.etag) &&
    isEqual("last-modified", stale.lastModified) &&
    isEqual("content-length", String(stale.bodyLength));
  const next = isSame ? storing.freshened(stale, headers, fillRequest) : "other_response";
  if (isGone(next)) store.remove(stale);
  const stored = typeof next !== "string" && store.update(stale, next, fillRequest.epoch);
  const reason = typeof next === "string" ? next : stored ? null : whyRefused(received);
  const updated: CacheOutcome = { ...outcome, stored, reason };
  context.noteCache(kit.instance, updated);
  addCacheStatus(headers, updated);
}

interface FillContext {
  readonly context: RequestContext;
  readonly instance: Instance;
  readonly decision: FillDecision;
}

function receiveFill(draft: ResponseDraft, fillContext: FillContext): void {
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
    const outcome: CacheOutcome = {
      ...decision.outcome,
      status: "stale",
      reason: "stale_if_error",
    };
    // Without a response, the status that the client would get: a missing one would mean that of the stored response.
    const fwdStatus = draft.error?.status ?? draft.status;
    serveStored(draft, { ...fillContext, stored: stale, outcome, fwdStatus });
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
    freshen(draft, { ...fillContext, stale });
    return;
  }
  const verdict = judge(draft, fillContext);
  if ("reason" in verdict) {
    addCacheStatus(draft.headers, noteStored(fillContext, verdict.reason));
    const isOwnWish = decision.fillRequest.request.cacheControl.has("no-store");
    if (verdict.reason !== "invalidated" && !isFailure && !isOwnWish) {
      // Responses to requests of another kind may still be storable.
      if (stale !== null && decision.uncacheableKey === key && isGone(verdict.reason))
        instance.store.remove(stale);
      uncacheable.set(decision.uncacheableKey, true);
    }
    fills.uncacheable(fill);
    return;
  }
  uncacheable.delete(decision.uncacheableKey);
  const { ageMs, lifetimeMs } = verdict.storable.freshness;
  const before = draft.headers.get("cache-status");
  const facts = { ttlMs: lifetimeMs - ageMs, fwdStatus: null, before };
  const show = (outcome: CacheOutcome) => addCacheStatus(draft.headers, outcome, facts);
  if (draft.hasBody) {
    // Whether it is stored is known only after the body: too late for the headers of a response that streams.
    show({ ...decision.outcome, reason: null });
    collect(draft, fillContext, { storable: verdict.storable, show });
  } else show(storeBody(fillContext, verdict.storable, new Uint8Array(0)));
}

/** Null: it is stored. */
function noteStored(
  { context, instance, decision }: FillContext,
  reason: NotStored | null,
): CacheOutcome {
  const outcome = { ...decision.outcome, stored: reason === null, reason };
  context.noteCache(instance.kit.instance, outcome);
  return outcome;
}

function judge(draft: ResponseDraft, { instance, decision }: FillContext): StoringDecision {
  const { fillRequest } = decision;
  if (instance.store.isOutdated(fillRequest)) return { reason: "invalidated" };
  const judged = instance.storing.judge(draft, fillRequest, performance.now());
  const isTooLarge = "storable" in judged && (draft.bodyLength ?? 0) > instance.own.max_body;
  return isTooLarge ? { reason: "too_large" } : judged;
}

/** Whether the stored response must go with what follows it: not for a response that only its client may get. */
const isGone = (next: StoredHead | NotStored): boolean =>
  typeof next === "string" && next !== "personal";

const mayServe = (stale: Stored): boolean =>
  -remainingOf(stale, performance.now()) < stale.freshness.staleIfErrorMs;

function freshen(
  draft: ResponseDraft,
  { stale, ...fillContext }: FillContext & { readonly stale: Stored },
): void {
  const { instance, decision } = fillContext;
  const { storing, store } = instance;
  const tag = draft.headers.get("etag");
  // A 304 with another tag does not validate the stored response.
  const isOther = tag !== null && stale.etag !== null && opaque(tag) !== opaque(stale.etag);
  const next = isOther
    ? "other_response"
    : storing.freshened(stale, draft.headers, decision.fillRequest);
  const isNew = typeof next !== "string";
  if (isGone(next)) store.remove(stale);
  const isUpdated = isNew && store.update(stale, next, decision.fillRequest.epoch);
  const stored = isNew ? stale.withHead(next) : stale;
  const outcome: CacheOutcome = {
    ...decision.outcome,
    status: "revalidated",
    stored: isUpdated,
    reason: typeof next === "string" ? next : isUpdated ? null : whyRefused(fillContext),
  };
  serveStored(draft, { ...fillContext, stored, outcome, fwdStatus: 304 });
  release(fillContext, stored);
}

/** Requests that wait for the fetch look up what it has stored, unless each of them has to validate it. */
function release(
  { instance: { fills, uncacheable }, decision }: FillContext,
  { freshness }: StoredHead,
): void {
  const { ageMs, lifetimeMs, staleWhileRevalidateMs } = freshness;
  if (ageMs < lifetimeMs + staleWhileRevalidateMs) return fills.stored(decision.fill);
  uncacheable.set(decision.uncacheableKey, true);
  fills.uncacheable(decision.fill);
}

const opaque = (tag: string) => tag.replace(/^W\//, "");

/** Replaces the upstream response with a stored one. */
function serveStored(
  draft: ResponseDraft,
  by: FillContext & {
    readonly stored: Stored;
    readonly outcome: CacheOutcome;
    readonly fwdStatus: number;
  },
): void {
  const { context, instance, decision, stored, outcome, fwdStatus } = by;
  const cookies = draft.source === "upstream" ? draft.headers.getSetCookie() : [];
  const now = performance.now();
  const header = conditionsOf(context, decision.fillRequest.fieldOf);
  const shaped = instance.cachedResponses.shape(stored, header, { outcome, now, fwdStatus });
  // Cannot be: the body was copied before the fetch.
  if (shaped === null) return;
  context.noteCache(instance.kit.instance, outcome);
  const { status, fields, body } = shaped;
  for (const name of [...draft.headers.keys()]) draft.headers.delete(name);
  for (const [name, value] of fields.pairs) draft.headers.set(name, value);
  for (const cookie of cookies) draft.headers.append("Set-Cookie", cookie);
  draft.status = status;
  draft.replaceBody(body);
}

/**
 * Copies the body while it streams: into memory, and from `disk_above` on into a file. `show`: changes the headers, if they have not
 * been sent.
 */
function collect(
  draft: ResponseDraft,
  fillContext: FillContext,
  {
    storable,
    show,
  }: { readonly storable: Storable; readonly show: (outcome: CacheOutcome) => void },
): void {
  const { instance, decision } = fillContext;
  const { max_body: maxBytes, disk_above: diskAbove } = instance.own;
  let pieces: Uint8Array[] | null = [];
  let writer: DiskWriter | null = null;
  let size = 0;
  decision.isReceiving = true;
  noteStored(fillContext, "incomplete");
  const giveUp = () => {
    pieces = null;
    writer?.abort();
    instance.fills.uncacheable(decision.fill);
  };
  const add = (chunk: Uint8Array) => {
    if (writer === null && instance.disk !== null && size >= diskAbove) {
      writer = instance.disk.writer();
      for (const piece of pieces?.splice(0) ?? []) writer.write(piece);
    }
    if (writer === null) pieces?.push(new Uint8Array(chunk));
    else if (!writer.write(chunk)) {
      noteStored(fillContext, "store_refused");
      giveUp();
    }
  };
  const transform: BodyTransform = {
    isObserver: true,
    push(chunk) {
      if (pieces === null) return chunk;
      size += chunk.byteLength;
      if (size > maxBytes) {
        instance.uncacheable.set(decision.uncacheableKey, true);
        show(noteStored(fillContext, "too_large"));
        giveUp();
      } else add(chunk);
      return chunk;
    },
    end() {
      if (pieces === null) return null;
      if (writer === null) show(storeBody(fillContext, storable, joined(pieces, size)));
      else void storeFile(fillContext, storable, writer);
      return null;
    },
    abort() {
      if (pieces === null) return;
      pieces = null;
      writer?.abort();
      // Incomplete responses are not stored (RFC 9111 section 3.3).
      instance.fills.abandoned(decision.fill);
    },
  };
  draft.transformBody(transform);
}

/** The client has all of the body; the rest of the file follows. */
async function storeFile(
  fillContext: FillContext,
  storable: Storable,
  writer: DiskWriter,
): Promise<void> {
  const { instance, decision } = fillContext;
  const { fillRequest } = decision;
  const next = instance.storing.complete(storable, fillRequest, {
    bodyLength: writer.length,
    now: performance.now(),
  });
  // The request ends before the file is complete.
  noteStored(fillContext, null);
  const file = await writer.finish(fileRecordOf(next), fillRequest.epoch);
  storeContent(fillContext, next, file);
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

function storeBody(fillContext: FillContext, storable: Storable, body: Uint8Array): CacheOutcome {
  const { instance, decision } = fillContext;
  const now = performance.now();
  const next = instance.storing.complete(storable, decision.fillRequest, {
    bodyLength: body.byteLength,
    now,
  });
  return noteStored(fillContext, storeContent(fillContext, next, body));
}

/** `content` null: it could not be written. Returns why the response is not stored, null: it is. */
function storeContent(
  fillContext: FillContext,
  next: StoredHead,
  content: Content | null,
): NotStored | null {
  const { store, fills } = fillContext.instance;
  const { fill, fillRequest, stale } = fillContext.decision;
  const isStored =
    content !== null && store.put(next, content, { old: stale, epoch: fillRequest.epoch });
  const reason = isStored ? null : whyRefused(fillContext);
  // After an invalidation one of the waiting requests fetches the new version for the others.
  if (reason !== "store_refused") release(fillContext, next);
  else fills.uncacheable(fill);
  return reason;
}

/** Why the store did not take a response that may be stored. */
const whyRefused = ({
  instance,
  decision,
}: {
  readonly instance: Instance;
  readonly decision: Pick<FillDecision, "fillRequest">;
}): NotStored =>
  instance.store.isOutdated(decision.fillRequest) ? "invalidated" : "store_refused";
