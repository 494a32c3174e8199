// The only exit of the request path: sends every response, whatever its source; knows no route matching and no exchange.
//
// In this order, once for each response: status and body rules (HEAD, 204, 304), changes by plugins, sticky cookie, request
// id, debug headers. The response parser has removed the targets' hop-by-hop fields.
import type { FieldList } from "../../http/field-list.ts";
import { grpcStatusOfHttp } from "../../http/grpc.ts";
import { requestGarbage, REQUESTS_PER_COLLECTION } from "../../garbage.ts";
import { type BodySource, fieldsOfReply, type Reply } from "../../pdk/response.ts";
import { errorResponse, type LocalResponse } from "../error-page.ts";
import type { ProxyError } from "../error.ts";
import { logFailure } from "../failure-log.ts";
import { releaseBuffers } from "../buffer-release.ts";
import { ID_FIELD } from "../plugin/edited-fields.ts";
import { PipedBody } from "../plugin/piped-body.ts";
import {
  closeSource,
  isSource,
  passTrailers,
  ResponseDraft,
  type TransformPipe,
} from "../plugin/response-draft.ts";
import type { FieldPairs } from "../../http/fields.ts";
import type {
  BodyReader,
  BodyWriter,
  ClientStream,
  OutgoingHead,
} from "../server/client-stream.ts";
import {
  EditedHead,
  IdentifiedHead,
  ListHead,
  listOf,
  type SharedHead,
} from "../upstream/response-head.ts";
import { addStickyCookie } from "../sticky.ts";
import type { ResponseHead } from "../upstream/response-head.ts";
import type { WorkerServices } from "../worker-services.ts";
import type { ClientRequest, RequestPlugins } from "./client-request.ts";
import { failureTrailers, trailersOnly } from "./grpc-call.ts";
import { transferSource } from "./source-transfer.ts";

/** The source of a response with a complete body. */
export interface ResponseOrigin {
  readonly source: "upstream" | "gateway" | "plugin";
  readonly error?: ProxyError | null;
  /** Order of the plugin that made it: only plugins outside of it see the response. Default: all do. */
  readonly order?: number;
}

/** A transaction with an upstream response for the client. */
export interface UpstreamOutcome {
  readonly request: ClientRequest;
  /** Null: no plugin has a response handler. */
  readonly draft: ResponseDraft | null;
  readonly service: { readonly sticky: object | null };
  stickyCookie(): string | null;
}

interface EndingOutcome extends UpstreamOutcome {
  /** Ends the transaction, not its request. */
  leave(): void;
}

const GATEWAY: ResponseOrigin = { source: "gateway" };

// Responses of the gateway and of plugins.

/** Sends a response of the gateway or a plugin, and ends the request. */
export function respondLocal(
  request: ClientRequest,
  response: LocalResponse | Reply,
  origin: ResponseOrigin = GATEWAY,
): void {
  const status = sendLocal(request, response, origin);
  if (typeof status === "number") finish(request, status);
  else void status.then((sent) => finish(request, sent));
}

/** Logs the failure, adds its reason, and responds with an error page. */
export function respondError(
  request: ClientRequest,
  error: ProxyError,
  options: {
    /** Whether the request ends with the response; default true. */
    readonly isFinal?: boolean;
    readonly headers?: Readonly<Record<string, string>>;
  } = {},
): void {
  const { isFinal = true, headers = {} } = options;
  report(request, error);
  request.bytesOut = 0;
  request.addReason(request.reasonOf(error));
  const response = errorResponse(request, error);
  for (const name in headers) response.fields.set(name, headers[name] ?? "");
  const origin: ResponseOrigin = { source: "gateway", error };
  if (isFinal) respondLocal(request, response, origin);
  else void sendLocal(request, response, origin);
}

/** Closes the connection without a response, and ends the request. */
export function respondClosed(request: ClientRequest): void {
  request.stream.abort();
  finish(request, 200);
}

/**
 * Responds to a request that could not be parsed, or that nothing serves: none of its data is trusted, so it is
 * only counted. `worker` null: not counted.
 */
export function respondUnread(
  stream: ClientStream,
  error: ProxyError,
  worker: WorkerServices | null,
): void {
  const id = Bun.randomUUIDv7();
  const header = (name: string) => stream.fields.get(name);
  const response = errorResponse({ id, method: stream.method, header }, error);
  const { status, body } = response;
  stream.respond(localHead(response), body === null ? NO_PIECES : [body], true);
  if (worker === null) return;
  worker.recorder.unread(status);
  const client = stream.connection?.address ?? stream.peerAddress();
  logFailure(worker.log, error, { request_id: id, client });
}

/** Sends the response and returns its status, which plugins may change. */
function sendLocal(
  request: ClientRequest,
  response: LocalResponse | Reply,
  origin: ResponseOrigin,
): number | Promise<number> {
  const { plugins } = request;
  if (plugins !== null) plugins.responseSource = origin.source;
  if (request.isGrpc && request.stream.features.hasTrailers)
    return sendGrpcStatus(request, response, origin);
  if (plugins?.hasResponseHandlers(origin.order) !== true) return sendPlain(request, response);
  const sent = sendDrafted(request, response, origin);
  if (!request.callsGrpc) return sent;
  // A plugin translates it for the client, to whom every failure of a call has the status 200.
  request.grpcStatus = origin.error?.grpcStatus ?? grpcStatusOfHttp(response.status);
  return sent instanceof Promise ? sent.then(() => response.status) : response.status;
}

/**
 * A gRPC client gets a status in the place of a page: a response that consists of trailers. Plugins see it as HTTP. Returns
 * the HTTP status, for metrics.
 */
function sendGrpcStatus(
  request: ClientRequest,
  response: LocalResponse | Reply,
  { source, error = null, order }: ResponseOrigin,
): number {
  closeSource(response.body);
  const parts = { source, error, head: localHead(response), bodyLength: 0 };
  const draft = new ResponseDraft({ ...parts, isHead: false, isGrpc: true });
  const { plugins } = request;
  if (plugins?.hasResponseHandlers(order) === true) plugins.respond(draft, order);
  const fields = trailersOnly(request, draft, error);
  addGatewayFields(request, fields);
  request.bytesOut = 0;
  request.stream.respond(new ListHead(fields, { status: 200 }), NO_PIECES, true);
  return draft.status;
}

/**
 * Ends a response that has begun, visibly: a gRPC client that reads learns the status, all others see the response break
 * off. Trailers for a client that does not read would wait, with the bytes before them, without a limit.
 */
export function failStream(
  { request, draft, isStalled }: UpstreamOutcome & { readonly isStalled: boolean },
  writer: BodyWriter | null,
  error: ProxyError,
): void {
  const trailers = request.callsGrpc ? failureTrailers(request, error) : null;
  if (trailers === null || isStalled || error.status === 499) {
    writer?.fail(new Error(error.detail));
    return;
  }
  passTrailers(trailers, draft, request.stream);
  if (draft?.isPiped === false) draft.sendTrailers(request.stream);
  writer?.end(() => {});
}

/** Without response handlers. */
function sendPlain(
  request: ClientRequest,
  response: LocalResponse | Reply,
): number | Promise<number> {
  const head = withGatewayFields(request, localHead(response));
  return send(request, head, { body: response.body, isHead: request.method === "HEAD" });
}

/** Those of lists that other replies may have too. */
const localHeads = new WeakMap<FieldList, ListHead>();

function localHead(response: LocalResponse | Reply): SharedHead {
  const { status, body } = response;
  let fields = "fields" in response ? response.fields : fieldsOfReply(response);
  const known = localHeads.get(fields);
  if (known?.status === status) return known;
  const isEmpty = body === null && status >= 300 && status !== 304;
  if (isEmpty && !fields.has("content-length")) {
    fields = fields.copy();
    fields.set("Content-Length", "0");
  }
  const head = new ListHead(fields, { status });
  // A plugin may still change the others.
  if (fields.madeHeaders === null) localHeads.set(fields, head);
  return head;
}

/** With response handlers. */
function sendDrafted(
  request: ClientRequest,
  response: LocalResponse | Reply,
  { source, error = null, order }: ResponseOrigin,
): number | Promise<number> {
  const isHead = request.method === "HEAD";
  const { body } = response;
  const draft = new ResponseDraft({
    source,
    error,
    head: localHead(response),
    wholeBody: isSource(body) ? null : body,
    bodyLength: body?.byteLength ?? 0,
    isHead,
  });
  request.plugins?.respond(draft, order);
  if (request.sendsId) draft.setId(request.id);
  const { pipe, replacement } = draft;
  const left = replacement === null ? body : replacement.body;
  if (replacement !== null) closeSource(body);
  if (replacement !== null && !isHead && !isSource(left)) draft.fields.delete("content-length");
  if (pipe === null || left === null || isHead) return sendDraft(request, draft, left);
  if (isSource(left)) {
    if (!draft.hasBody) return sendDraft(request, draft, left);
    const head = streamedHead(request, draft, pipe);
    const ending = () => draft.sendTrailers(request.stream);
    return transferSource(request, { head, source: left, pipe, ending });
  }
  if (draft.isSlow) return sendSlowly(request, draft, { pipe, body: left });
  const pieces = pipe.whole([left]);
  const finishDraft = (all: readonly Uint8Array[]) => {
    draft.fields.delete("content-length");
    const [only] = all;
    return sendDraft(request, draft, all.length === 1 && only ? only : Buffer.concat(all));
  };
  return pieces instanceof Promise ? pieces.then(finishDraft) : finishDraft(pieces);
}

/** Sends the response that plugins have changed. */
function sendDraft(
  request: ClientRequest,
  draft: ResponseDraft,
  body: Reply["body"],
): number | Promise<number> {
  const { edits, hasBody } = draft;
  const isShared = edits !== null && request.generation.debugFields === null;
  const head = isShared ? new EditedHead(draft.head, edits, draft.status) : ownHead(request, draft);
  draft.sendTrailers(request.stream);
  return send(request, head, { body, isHead: !hasBody });
}

/** Of a response of the gateway or a plugin that shares its fields with no other. */
function ownHead(request: ClientRequest, draft: ResponseDraft): OutgoingHead {
  const { fields, status } = draft;
  for (const [name, value] of debugFieldsOf(request)) fields.set(name, value);
  return new ListHead(fields, { status });
}

/** Sends a complete body through transforms that delay it. */
function sendSlowly(
  request: ClientRequest,
  draft: ResponseDraft,
  { pipe, body }: { readonly pipe: TransformPipe; readonly body: Uint8Array },
): number {
  const head = streamedHead(request, draft, pipe);
  // The request ends before the body was sent.
  request.bytesOut = body.byteLength;
  const piped = new PipedBody(
    pipe,
    { wanted() {}, cancelled() {} },
    {
      start: (reader) => request.stream.start(head, reader, true),
      passed() {},
      ending: () => draft.sendTrailers(request.stream),
    },
  );
  piped.write(body);
  piped.end(() => {});
  return head.status;
}

/** Of a body that streams through transforms. */
function streamedHead(
  request: ClientRequest,
  draft: ResponseDraft,
  pipe: TransformPipe,
): OutgoingHead {
  if (!pipe.isObserver) draft.fields.delete("content-length");
  return ownHead(request, draft);
}

const NO_PIECES: readonly Uint8Array[] = [];

function send(
  request: ClientRequest,
  head: OutgoingHead,
  /** `isHead`: whether to omit the body. */
  { body, isHead }: { readonly body: Reply["body"]; readonly isHead: boolean },
): number | Promise<number> {
  const { status } = head;
  const hasBody = !isHead && status !== 204 && status !== 304;
  if (isSource(body) && hasBody)
    return transferSource(request, { head, source: body, pipe: null, ending() {} });
  closeSource(body);
  const pieces = hasBody && body !== null && !isSource(body) ? [body] : NO_PIECES;
  request.bytesOut = pieces === NO_PIECES ? 0 : (body?.byteLength ?? 0);
  request.stream.respond(head, pieces, true);
  return status;
}

// Responses of targets.

/** Runs the response handlers on the head of an upstream response; null without any. */
export function showToPlugins(
  request: ClientRequest,
  plugins: RequestPlugins,
  head: ResponseHead,
): ResponseDraft | null {
  plugins.responseSource = "upstream";
  if (!plugins.hasResponseHandlers()) return null;
  const draft = new ResponseDraft({
    source: "upstream",
    head,
    isGrpc: request.isGrpc,
    bodyLength: head.framing === "length" ? head.length : head.framing === "none" ? 0 : null,
    isHead: request.method === "HEAD",
  });
  plugins.respond(draft);
  return draft;
}

/** Responds with a complete body and releases its pieces; a promise while plugins transform it. Throws what they throw. */
export function respondUpstream(
  outcome: EndingOutcome,
  head: ResponseHead,
  pieces: readonly Uint8Array[],
): Promise<void> | null {
  const { draft, request } = outcome;
  const cookie = outcome.service.sticky === null ? null : outcome.stickyCookie();
  const isAsItIs = cookie === null && request.generation.debugFields === null;
  if (draft === null) {
    const sent = isAsItIs
      ? asItIs(request, head)
      : madeHead(outcome, head, { cookie, keepsLength: true });
    request.stream.respond(sent, pieces, false);
    return null;
  }
  const source = draft.replacement?.body;
  if (draft.hasBody && isSource(source)) {
    respondSource(outcome, head, { draft, source });
    outcome.leave();
    return null;
  }
  const edited = isAsItIs && draft.isPlain ? editedHead(outcome, head) : null;
  if (edited === null) return respondDrafted(outcome, head, { draft, cookie, pieces });
  draft.sendTrailers(request.stream);
  request.stream.respond(edited, draft.hasBody ? pieces : NO_PIECES, false);
  return null;
}

/** When plugins have only set headers; null: one has read them. */
function editedHead({ request, draft }: UpstreamOutcome, head: ResponseHead): OutgoingHead | null {
  if (draft === null) return null;
  const { knownId } = request;
  if (request.sendsId) draft.setId(knownId === "" ? request.id : knownId);
  const { edits } = draft;
  return edits === null ? null : new EditedHead(head, edits, draft.status);
}

/** The head, with the request id if enabled. The engine reads it at once: equal responses share one object. */
function asItIs(request: ClientRequest, head: SharedHead): OutgoingHead {
  const { plugins, listener, knownId } = request;
  if (plugins === null ? !listener.namesRequests : !request.sendsId) return head;
  head.withId ??= new IdentifiedHead(head);
  head.withId.id = knownId === "" ? request.id : knownId;
  return head.withId;
}

/** The head with all fields of the gateway, for this response alone. */
function madeHead(
  { draft, request }: UpstreamOutcome,
  head: ResponseHead,
  { cookie, keepsLength }: { readonly cookie: string | null; readonly keepsLength: boolean },
): OutgoingHead {
  const fields = draft === null ? listOf(head) : draft.fields;
  if (cookie !== null) addStickyCookie(fields, cookie);
  addGatewayFields(request, fields);
  if (!keepsLength) fields.delete("content-length");
  const { status, reason, trailer } = head;
  if (draft === null || draft.status === status)
    return new ListHead(fields, { status, reason, trailer });
  return new ListHead(fields, { status: draft.status, trailer });
}

/** Whether transforms leave the length of the body. */
const keepsLength = (pipe: TransformPipe | null): boolean => pipe === null || pipe.isObserver;

function respondDrafted(
  outcome: UpstreamOutcome,
  head: ResponseHead,
  parts: {
    readonly draft: ResponseDraft;
    readonly cookie: string | null;
    readonly pieces: readonly Uint8Array[];
  },
): Promise<void> | null {
  const { draft, cookie, pieces } = parts;
  const { request } = outcome;
  const { replacement, pipe } = draft;
  const isSame = replacement === null && (!draft.hasBody || keepsLength(pipe));
  const sent = madeHead(outcome, head, { cookie, keepsLength: isSame });
  const replaced = replacement?.body ?? null;
  // Without a body for the client: `respondSource` sends the others.
  closeSource(replaced);
  const own =
    replacement === null ? pieces : replaced === null || isSource(replaced) ? [] : [replaced];
  const respond = (all: readonly Uint8Array[]): void => {
    // `onContent` has counted the target's body, not the one for the client.
    if (pipe !== null || replacement !== null) request.bytesOut = draft.hasBody ? sizeOf(all) : 0;
    draft.sendTrailers(request.stream);
    // A plugin may still hold its replacement body.
    request.stream.respond(sent, draft.hasBody ? all : NO_PIECES, replacement !== null);
  };
  if (pipe === null || !draft.hasBody) {
    respond(own);
    return null;
  }
  const changed = pipe.whole(own);
  const send = (all: readonly Uint8Array[]): void => {
    if (replacement === null) releaseUnused(own, all);
    respond(all);
  };
  if (changed instanceof Promise) return changed.then(send);
  send(changed);
  return null;
}

/** Responds with the source by which a plugin has replaced the body, and ends the request. */
function respondSource(
  outcome: UpstreamOutcome,
  head: ResponseHead,
  { draft, source }: { readonly draft: ResponseDraft; readonly source: BodySource },
): void {
  const { request } = outcome;
  const cookie = outcome.service.sticky === null ? null : outcome.stickyCookie();
  const { pipe } = draft;
  const sent = madeHead(outcome, head, { cookie, keepsLength: keepsLength(pipe) });
  const ending = () => draft.sendTrailers(request.stream);
  void transferSource(request, { head: sent, source, pipe, ending }).then((status) =>
    finish(request, status),
  );
}

const sizeOf = (pieces: readonly Uint8Array[]) =>
  pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);

/** Releases the memory of pieces that are not part of the sent body. */
function releaseUnused(before: readonly Uint8Array[], after: readonly Uint8Array[]): void {
  const used = new Set(after.map(({ buffer }) => buffer));
  releaseBuffers(before.filter(({ buffer }) => !used.has(buffer)));
}

/** Sends the head; the caller writes the body as it arrives. */
export function startUpstream(
  outcome: UpstreamOutcome,
  head: ResponseHead,
  reader: BodyReader,
): BodyWriter {
  const { draft, request } = outcome;
  const cookie = outcome.service.sticky === null ? null : outcome.stickyCookie();
  const isAsItIs = cookie === null && request.generation.debugFields === null;
  const edited = isAsItIs && draft?.isPlain === true ? editedHead(outcome, head) : null;
  if (edited !== null) return request.stream.start(edited, reader, false);
  const pipe = draft?.pipe ?? null;
  const sent =
    isAsItIs && draft === null
      ? asItIs(request, head)
      : madeHead(outcome, head, { cookie, keepsLength: keepsLength(pipe) });
  if (draft === null || pipe === null) return request.stream.start(sent, reader, false);
  draft.isPiped = true;
  request.bytesOut = 0;
  return new PipedBody(pipe, reader, {
    start: (client) => request.stream.start(sent, client, true),
    passed: (bytes) => {
      request.bytesOut += bytes;
    },
    ending: () => draft.sendTrailers(request.stream),
  });
}

/** Sends a target's refusal of a WebSocket handshake, and ends the request. */
export function respondRefusal(
  outcome: UpstreamOutcome,
  head: ResponseHead,
  pieces: readonly Uint8Array[],
): void {
  const { request, service } = outcome;
  const fields = listOf(head);
  const cookie = service.sticky === null ? null : outcome.stickyCookie();
  if (cookie !== null) addStickyCookie(fields, cookie);
  const body = pieces.length === 0 ? null : Buffer.concat(pieces);
  const response = { status: head.status, fields, body };
  respondLocal(request, response, { source: "upstream" });
}

/** The fields of a target's 101 with those of the gateway, for the client. */
export function upgradeFields(outcome: UpstreamOutcome, fields: FieldPairs): FieldPairs {
  const { request, service } = outcome;
  const own: [string, string][] = [];
  const cookie = service.sticky === null ? null : outcome.stickyCookie();
  if (cookie !== null) own.push(["Set-Cookie", cookie]);
  if (request.sendsId) own.push([ID_FIELD, request.id]);
  return [...fields, ...own, ...debugFieldsOf(request)];
}

// Headers of the gateway on each response.

/** The request id and the debug headers, where enabled. */
function addGatewayFields(request: ClientRequest, fields: FieldList): void {
  if (request.sendsId) fields.set(ID_FIELD, request.id);
  for (const [name, value] of debugFieldsOf(request)) fields.set(name, value);
}

function withGatewayFields(request: ClientRequest, head: SharedHead): OutgoingHead {
  if (request.generation.debugFields === null) return asItIs(request, head);
  const fields = listOf(head);
  addGatewayFields(request, fields);
  return new ListHead(fields, { status: head.status });
}

/** Which worker, version, route and target served the request; empty unless `settings.debug_headers` is on. */
function debugFieldsOf({ generation, route, targetId }: ClientRequest): [string, string][] {
  if (generation.debugFields === null) return [];
  const fields = generation.debugFields.map(([name, value]): [string, string] => [name, value]);
  if (route !== null) fields.push(["X-Sluice-Route", route.id]);
  if (targetId !== "") fields.push(["X-Sluice-Target", targetId]);
  return fields;
}

// The end of a request.

/** Logs a failed request. */
export function report(request: ClientRequest, error: ProxyError): void {
  logFailure(request.worker.log, error, {
    request_id: request.id,
    client: request.clientAddress(),
    method: request.method,
    host: request.host,
    path: request.path,
  });
}

/** Ends a request, once: metrics, request list and log handlers. */
export function finish(request: ClientRequest, status: number): void {
  const { worker, plugins, isCopy } = request;
  const now = performance.now();
  if (++requestGarbage.requests >= REQUESTS_PER_COLLECTION) requestGarbage.collect();
  if (request.heldLimits !== null) worker.overload.leave(request);
  if (!isCopy) {
    worker.requestsTotal[0] = (worker.requestsTotal[0] ?? 0) + 1;
    worker.recorder.finished(request, status, now);
    if (worker.aborted.isWatching) worker.aborted.ended(request, status);
  }
  plugins?.finished(status, now);
}
