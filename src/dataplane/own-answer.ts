// Answers that no target gave: what they have in common, and the plugins that still see them; knows no route matching.
import { errorAnswer, type OwnAnswer, toResponse } from "./error-page.ts";
import type { ProxyError } from "./error.ts";
import type { Generation } from "./generation.ts";
import { AnswerDraft, type TransformPipe } from "./plugin/answer-draft.ts";
import type { EditHolder } from "./plugin/edited-fields.ts";
import { PipedBody } from "./plugin/piped-body.ts";
import type { RequestContext } from "./request-context.ts";
import { completeResponse } from "./response-builder.ts";
import type { WorkerScope } from "./worker-scope.ts";

/** What a request is served with. */
export interface Scene {
  readonly generation: Generation;
  readonly scope: WorkerScope;
}

type Answer = Response | Promise<Response>;

/** Logs the failure and answers it. */
export function fail(context: RequestContext, error: ProxyError, scene: Scene): Answer {
  scene.scope.report(context, error);
  context.record.because(context.reasonOf(error));
  const answer = errorAnswer(context, error);
  context.record.bytesOut = answer.body?.byteLength ?? 0;
  if (context.visit === null) return close(toResponse(answer), context, scene);
  return ended(seenByPlugins(context, answer, { source: "gateway", error }), context, scene);
}

/** An answer of the route or of the default site: plugins see its head. */
export function own(response: Response, context: RequestContext, scene: Scene): Answer {
  const { visit } = context;
  if (visit === null || !isOrdinary(response)) return ended(response, context, scene);
  const { status, headers } = response;
  const draft = new AnswerDraft({
    source: "gateway",
    status,
    headers,
    isHead: context.method === "HEAD",
  });
  visit.respond(draft);
  const { pipe } = draft;
  if (pipe !== null && draft.replacement === null && draft.hasBody && response.body !== null)
    return ended(changed(response, context, { draft, pipe }), context, scene);
  const body = draft.replacement === null ? response.body : draft.replacement.body;
  const isSame = draft.status === status && draft.replacement === null;
  if (draft.replacement !== null) context.record.bytesOut = draft.replacement.body?.byteLength ?? 0;
  return ended(
    isSame ? response : new Response(body as BodyInit | null, { status: draft.status, headers }),
    context,
    scene,
  );
}

/** With its body as plugins want it. */
async function changed(
  response: Response,
  context: RequestContext,
  { draft, pipe }: { readonly draft: AnswerDraft; readonly pipe: TransformPipe },
): Promise<Response> {
  const pieces = await pipe.whole([new Uint8Array(await response.arrayBuffer())]);
  draft.headers.delete("content-length");
  return finished(context, asSent(draft), Buffer.concat(pieces));
}

/** What ends a connection is no answer that anybody could add to. */
const isOrdinary = (response: Response) => response.status !== 200 || response.body === null;

/** Shows an answer that is there as a whole to the plugins outside of `order`; default: to all. */
export function seenByPlugins(
  context: RequestContext,
  answer: OwnAnswer,
  by: {
    readonly source: "upstream" | "gateway" | "plugin";
    readonly error?: ProxyError | null;
    readonly order?: number;
  },
): Answer {
  const { visit } = context;
  if (visit !== null && !visit.hasViewers(by.order ?? Number.NEGATIVE_INFINITY)) {
    visit.seenSource = by.source;
    return unseen(context, answer);
  }
  const isHead = context.method === "HEAD";
  const draft = new AnswerDraft({
    source: by.source,
    error: by.error ?? null,
    status: answer.status,
    headers: answer.headers,
    sharedBy: answer.hasSharedHeaders === true ? holderOf(answer.headers) : null,
    wholeBody: answer.body,
    bodyLength: answer.body?.byteLength ?? 0,
    isHead,
  });
  context.visit?.respond(draft, by.order);
  if (context.tellsId) {
    draft.tellId(context.id);
    context.isIdTold = true;
  }
  const { pipe, replacement } = draft;
  const body = replacement === null ? answer.body : replacement.body;
  if (replacement !== null && !isHead) draft.headers.delete("content-length");
  if (pipe === null || body === null || isHead) return finished(context, asSent(draft), body);
  if (draft.isSlow) return slowly(context, draft, { pipe, body });
  const pieces = pipe.whole([body]);
  const finish = (all: readonly Uint8Array[]) => {
    draft.headers.delete("content-length");
    const [only] = all;
    return finished(context, asSent(draft), all.length === 1 && only ? only : Buffer.concat(all));
  };
  return pieces instanceof Promise ? pieces.then(finish) : finish(pieces);
}

/** The same where no plugin wants to see it. */
function unseen(context: RequestContext, answer: OwnAnswer): Response {
  const { status, body, hasSharedHeaders = false } = answer;
  const holder = hasSharedHeaders ? holderOf(answer.headers) : null;
  let { headers } = answer;
  if (context.tellsId) {
    context.isIdTold = true;
    // To be used at once: they serve the next answer too.
    if (holder !== null) headers = holder.named ??= new Headers(headers);
    headers.set("X-Request-Id", context.id);
  }
  const hasContentType = holder?.hasContentType ?? headers.has("content-type");
  const hasBody = context.method !== "HEAD" && status !== 204 && status !== 304;
  return finished(context, { status, headers, hasBody, hasContentType }, body);
}

interface Holder extends EditHolder {
  readonly hasContentType: boolean;
  /** A copy for the id of each request. */
  named?: Headers;
}

/** Of fields that come again and again. */
const holders = new WeakMap<Headers, Holder>();

function holderOf(headers: Headers): Holder {
  let holder = holders.get(headers);
  if (holder === undefined) {
    holder = { hasContentType: headers.has("content-type") };
    holders.set(headers, holder);
  }
  return holder;
}

/** Sent piece by piece, as the pipe gives it. */
function slowly(
  context: RequestContext,
  { status, headers }: AnswerDraft,
  { pipe, body }: { readonly pipe: TransformPipe; readonly body: Uint8Array },
): Response {
  if (!pipe.isObserver) headers.delete("content-length");
  // Nobody waits for the end to write it down.
  context.record.bytesOut = body.byteLength;
  const piped = new PipedBody({ wanted() {}, cancelled() {} }, pipe, () => {});
  piped.push(body);
  piped.end(() => {});
  return new Response(piped.stream, { status, headers });
}

interface Finished {
  readonly status: number;
  /** To be used at once: they may serve the next answer too. */
  readonly headers: Headers;
  readonly hasBody: boolean;
  readonly hasContentType: boolean;
}

function asSent({ status, sentHeaders: headers, hasBody }: AnswerDraft): Finished {
  return { status, headers, hasBody, hasContentType: headers.has("content-type") };
}

function finished(
  context: RequestContext,
  { status, headers, hasBody, hasContentType }: Finished,
  body: Uint8Array | null,
): Response {
  context.record.bytesOut = hasBody ? (body?.byteLength ?? 0) : 0;
  const isHead = context.method === "HEAD";
  // Bun would add a Content-Type, and a length of 0 to the answer to HEAD.
  if (hasBody ? body !== null && !hasContentType : isHead && status < 300)
    return completeResponse(
      {
        ...{ status, fields: headers, isHead, isShared: true, hasContentType },
        hasLength: headers.has("content-length"),
      },
      hasBody && body !== null ? [body] : [],
    );
  return new Response((hasBody ? body : null) as BodyInit | null, { status, headers });
}

/** An answer that no target gave is over as soon as it is given. */
export function ended(response: Answer, context: RequestContext, scene: Scene): Answer {
  if (response instanceof Promise) return response.then((done) => close(done, context, scene));
  return close(response, context, scene);
}

function close(
  response: Response,
  context: RequestContext,
  { generation, scope }: Scene,
): Response {
  for (const [name, value] of generation.debugFields ?? []) response.headers.set(name, value);
  if (context.tellsId && !context.isIdTold) response.headers.set("X-Request-Id", context.id);
  scope.ended(context, response.status);
  return response;
}
