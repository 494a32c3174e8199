// What becomes of an answer on its way to the client: stored, used to freshen or to outdate what is stored, or replaced by it; knows no lookup.
import type { BodyTransform, RequestContext, ResponseDraft } from "../../pdk/context.ts";
import { type Manner, remainingOf, tellStatus } from "./answers.ts";
import type { Course, Filling } from "./course.ts";
import type { Instance } from "./instance.ts";
import type { Stored } from "./store.ts";
import type { Storable } from "./storing.ts";
import { conditionsOf } from "./upstream-request.ts";

/** Statuses that say that the service is out of order (RFC 5861 section 4). */
const FAILURES = new Set([500, 502, 503, 504]);

/** The handler of the `response` phase. */
export function receive(context: RequestContext, draft: ResponseDraft, instance: Instance): void {
  const course = context.memory.get(instance.place) as Course | undefined;
  switch (course?.kind) {
    case undefined:
      return;
    case "bypass":
      if (draft.source === "upstream")
        tellStatus(draft.headers, `sluice; fwd=${course.why}`, "BYPASS");
      return;
    case "unsafe":
      if (draft.source === "upstream") outdate(context, draft, { instance, course });
      return;
    case "head":
      if (draft.source === "upstream") receiveHead(draft, instance, course);
      return;
    case "fill":
      receiveFill(context, draft, { instance, course });
      return;
    default:
      course satisfies never;
  }
}

/** The request is over; whoever waits for it must not wait any longer. */
export function finish(context: RequestContext, instance: Instance): void {
  const course = context.memory.get(instance.place) as Course | undefined;
  if (course?.kind === "fill" && !course.isReceiving) instance.fills.abandoned(course.fill);
}

/** RFC 9111 section 4.4: what has changed, and what the answer says has changed with it, on the same host. */
function outdate(
  { host }: RequestContext,
  { status, headers }: ResponseDraft,
  scene: { readonly instance: Instance; readonly course: { readonly resource: string } },
): void {
  const { instance, course } = scene;
  tellStatus(headers, "sluice; fwd=method", "BYPASS");
  if (status < 200 || status > 399) return;
  const resources = new Set([course.resource]);
  for (const name of ["location", "content-location"]) {
    const base = `http://${course.resource.startsWith("/") ? host : ""}${course.resource}`;
    const url = URL.parse(headers.get(name) ?? "", base);
    if (url === null || !headers.has(name) || url.hostname !== host) continue;
    const { pathname: path, search } = url;
    resources.add(instance.keys.resourceOf({ host, path, query: search.slice(1) }));
  }
  for (const resource of resources) instance.store.invalidate(resource);
  instance.fills.outdate((fill) => resources.has(fill.resource));
}

/** RFC 9111 section 4.3.5. */
function receiveHead(
  draft: ResponseDraft,
  { store, storing }: Instance,
  { stale, occasion }: Extract<Course, { readonly kind: "head" }>,
): void {
  tellStatus(draft.headers, `sluice; fwd=${stale === null ? "miss" : "stale"}`, "MISS");
  if (stale === null || draft.status !== 200) return;
  const { headers } = draft;
  const length = headers.get("content-length");
  const isSame =
    headers.get("etag") === stale.etag &&
    headers.get("last-modified") === stale.lastModified &&
    (length === null || Number(length) === stale.body.byteLength);
  const next = isSame ? storing.freshened(stale, headers, occasion) : null;
  if (next === null) store.remove(stale);
  else store.replace(stale, next);
}

interface Scene {
  readonly instance: Instance;
  readonly course: Filling;
}

function receiveFill(context: RequestContext, draft: ResponseDraft, scene: Scene): void {
  const { instance, course } = scene;
  const { fills, failing, useless } = instance;
  const { stale, fill } = course;
  const { key } = course.occasion.place;
  const isFailure =
    draft.source === "gateway"
      ? FAILURES.has(draft.error?.status ?? 0)
      : FAILURES.has(draft.status);
  if (isFailure && stale !== null && mayServe(stale)) {
    failing.set(key, true);
    give(context, draft, { instance, course, stored: stale, manner: "failed" });
    fills.stored(fill);
    return;
  }
  if (draft.source !== "upstream") {
    // The client has gone, or was refused: that says nothing about what others would get.
    if (draft.source === "gateway" && !isFailure) fills.abandoned(fill);
    else fills.useless(fill);
    return;
  }
  if (draft.status === 304 && course.isConditional && stale !== null) {
    freshen(context, draft, { ...scene, stale });
    return;
  }
  const now = performance.now();
  const storable = fill.isOutdated ? null : instance.storing.judge(draft, course.occasion, now);
  if (storable === null || (draft.bodyLength ?? 0) > instance.own.max_body) {
    tellStatus(draft.headers, `sluice; fwd=${course.why}`, wordOf(course));
    const isOwnWish = course.occasion.request.cacheControl.has("no-store");
    if (!fill.isOutdated && !isFailure && !isOwnWish) {
      // It may only be this request whose answer cannot be stored.
      if (stale !== null && course.sort === key) instance.store.remove(stale);
      useless.set(course.sort, true);
    }
    fills.useless(fill);
    return;
  }
  useless.delete(course.sort);
  if (draft.hasBody) collect(draft, scene, storable);
  else keep(scene, storable, new Uint8Array(0));
  tellStatus(draft.headers, `sluice; fwd=${course.why}; stored`, wordOf(course));
}

const wordOf = ({ why }: Filling) =>
  why === "miss" ? "MISS" : why === "stale" ? "EXPIRED" : "MISS";

const mayServe = (stale: Stored): boolean =>
  -remainingOf(stale, performance.now()) < stale.freshness.staleIfErrorMs;

function freshen(
  context: RequestContext,
  draft: ResponseDraft,
  { instance, course, stale }: Scene & { readonly stale: Stored },
): void {
  const { storing, store, fills } = instance;
  const news = draft.headers.get("etag");
  // A 304 about something else is no news of this one.
  const isOther = news !== null && stale.etag !== null && opaque(news) !== opaque(stale.etag);
  const next = isOther ? null : storing.freshened(stale, draft.headers, course.occasion);
  if (next === null) store.remove(stale);
  else if (!course.fill.isOutdated) store.replace(stale, next);
  give(context, draft, { instance, course, stored: next ?? stale, manner: "revalidated" });
  fills.stored(course.fill);
}

const opaque = (tag: string) => tag.replace(/^W\//, "");

/** Puts a stored answer in the place of the one that has come. */
function give(
  context: RequestContext,
  draft: ResponseDraft,
  { instance, course, stored, manner }: Scene & { stored: Stored; manner: Manner },
): void {
  const cookies = draft.source === "upstream" ? draft.headers.getSetCookie() : [];
  const now = performance.now();
  const header = conditionsOf(context, course.occasion.fieldOf);
  const { status, headers, body } = instance.answers.shape(stored, header, { manner, now });
  for (const name of [...draft.headers.keys()]) draft.headers.delete(name);
  for (const [name, value] of headers) draft.headers.set(name, value);
  for (const cookie of cookies) draft.headers.append("Set-Cookie", cookie);
  draft.status = status;
  draft.replaceBody(body);
}

/** Copies the body on its way. */
function collect(draft: ResponseDraft, scene: Scene, storable: Storable): void {
  const { instance, course } = scene;
  const { max_body: maxBytes } = instance.own;
  let pieces: Uint8Array[] | null = [];
  let size = 0;
  course.isReceiving = true;
  const giveUp = () => {
    pieces = null;
    instance.fills.useless(course.fill);
  };
  const transform: BodyTransform = {
    isObserver: true,
    push(chunk) {
      if (pieces === null) return chunk;
      size += chunk.byteLength;
      if (size > maxBytes) {
        instance.useless.set(course.sort, true);
        giveUp();
      } else pieces.push(new Uint8Array(chunk));
      return chunk;
    },
    end() {
      if (pieces !== null) keep(scene, storable, joined(pieces, size));
      return null;
    },
    abort() {
      if (pieces === null) return;
      pieces = null;
      // Broken off: an incomplete answer is none (RFC 9111 section 3.3).
      instance.fills.abandoned(course.fill);
    },
  };
  draft.transformBody(transform);
}

/** In memory of its own: small buffers would hold on to a shared one. */
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

function keep({ instance, course }: Scene, storable: Storable, body: Uint8Array): void {
  const { storing, store, fills } = instance;
  const { fill, occasion, stale } = course;
  const now = performance.now();
  if (!fill.isOutdated) {
    const next = storing.complete(storable, occasion, { body, now });
    if (stale === null) store.put(next);
    else store.replace(stale, next);
  }
  fills.stored(fill);
}
