// One client request: what its head says, what becomes known of it on its way, and who serves it; knows no socket and no upstream.
import { forwardedHost, forwardedScheme } from "../../http/forwarded.ts";
import { type KnownFields, readKnownFields } from "../../http/known-fields.ts";
import { readTarget, type RequestTarget } from "../../http/request-target.ts";
import { clientAddress } from "../../net/client-address.ts";
import { type BodyReadLimits, ClientBody } from "../client-body.ts";
import { failures, type ProxyError } from "../error.ts";
import type { Generation } from "../generation.ts";
import type { ListenerRuntime } from "../listener/listener-runtime.ts";
import type { InFlightLimit } from "../overload.ts";
import type { ResponseDraft } from "../plugin/response-draft.ts";
import type { UpstreamEdits } from "../plugin/upstream-edits.ts";
import type { RouteRuntime } from "../route-runtime.ts";
import type { RouteSubject } from "../router/compiled-match.ts";
import type { ClientStream } from "../server/client-stream.ts";
import type { WorkerServices } from "../worker-services.ts";

/** What a request is served with, from its first byte to its last. */
export interface ServeContext {
  readonly generation: Generation;
  readonly worker: WorkerServices;
}

/** What the request path asks of the plugins that run for a request. */
export interface RequestPlugins {
  /** Whether a plugin gives requests their ids, in the place of the gateway. */
  readonly namesRequests: boolean;
  readonly consumer: { readonly username: string } | null;
  /** Why plugins decided as they did. */
  readonly reasons: readonly string[];
  /** Who made the response that plugins saw last. */
  responseSource: ResponseDraft["source"];
  /** Whether plugins outside of `order` look at responses; default: whether any does. */
  hasResponseHandlers(order?: number): boolean;
  /** Shows the response to the plugins outside of `order`; default: to all. */
  respond(draft: ResponseDraft, order?: number): void;
  /** The request ended with this status, at this moment of `performance.now()`. */
  finished(status: number, endedAt: number): void;
}

/** An attempt before the last one. */
export interface EarlierAttempt {
  readonly targetId: string;
  readonly status: number;
  readonly ms: number;
}

/**
 * The one object that carries a request. `read` fills in what the head says; the phases add the rest. Times are
 * milliseconds of `performance.now()`, 0: it did not happen.
 */
export class ClientRequest implements RouteSubject, KnownFields, RequestTarget {
  readonly stream: ClientStream;
  /** Until `read`, that of the port; then the one at it that serves the host. */
  listener: ListenerRuntime;
  readonly generation: Generation;
  readonly worker: WorkerServices;
  readonly method: string;
  /** Lower-case names; repeated fields joined with a comma. Without the cookies of the management API. */
  readonly headers: Record<string, string>;

  // What `read` finds in the head.

  /** Lower case, without port. */
  host = "";
  path = "";
  query = "";
  target = "";
  /** Fields that the gateway itself reads, as sent; null: absent. */
  hostField: string | null = null;
  connectionField: string | null = null;
  transferEncoding: string | null = null;
  contentLength: string | null = null;
  upgrade: string | null = null;
  cookie: string | null = null;
  via: string | null = null;
  cdnLoop: string | null = null;
  userAgent: string | null = null;

  // What plugins add.

  /** Null where no plugin runs. */
  plugins: RequestPlugins | null = null;
  /** What plugins changed about the upstream request. */
  edits: UpstreamEdits | null = null;
  /** The body, once a plugin has read all of it. */
  bodyBytes: Uint8Array | null = null;
  /** The body as the client sends it, once a plugin or the upstream request reads it. */
  clientBody: ClientBody | null = null;
  /** What is left of the body and what was read of it before, or the body as plugins pass it on. */
  bodyStream: ReadableStream<Uint8Array> | null = null;
  /** More bytes than this are refused, beside the listener's limit; 0: no limit. */
  bodyLimit = 0;
  /** The reason to log for such a refusal. */
  bodyLimitReason = "";

  // What goes upstream.

  /** Path and query. */
  upstreamTarget = "";
  /** What follows the value of Host: the end of its line, and lines that end in CRLF, without framing. */
  upstreamFields = "";
  /** Length of the body that goes upstream; -1: unknown, null: there is none. */
  upstreamBodyLength: number | null = null;

  // What the gateway notes for counters, logs and the list of recent requests.

  /** The in-flight limits that it takes a place of; null: none. */
  heldLimits: readonly InFlightLimit[] | null = null;
  /** When the head was there. */
  readonly startedAt: number = performance.now();
  /** Null: no route matches. */
  route: RouteRuntime | null = null;
  /** The service that it went to, where that is not the route's. */
  otherServiceId: string | null = null;
  /** Attempts that were started. */
  attempts = 0;
  /** Target of the last attempt. */
  targetId = "";
  /** As requests name it: `host` or `host:port`. */
  targetAddress = "";
  /** Attempts before the last one, unless the same target was only asked again on a new connection. */
  earlierAttempts: EarlierAttempt[] | null = null;
  /** Status of the upstream response that began; 0: none did. */
  upstreamStatus = 0;
  /** When the first attempt began, and when the last response had arrived whole or the last attempt had failed. */
  upstreamAt = 0;
  upstreamEndAt = 0;
  /** Of the last attempt: when it began, had its connection, last received bytes, and had the response head. */
  attemptAt = 0;
  connectedAt = 0;
  receivedAt = 0;
  headAt = 0;
  /** Milliseconds until plugins let it go on; negative: none ran. */
  pluginsMs = -1;
  /** Of these, waiting in a queue. */
  queueMs = 0;
  /** Bytes of the bodies. */
  bytesIn = 0;
  bytesOut = 0;
  /** Why it ended as it did: words of RFC 9209, separated by spaces. */
  reasons = "";
  /** The response had begun and did not come to its end. */
  isBrokenOff = false;
  /** Made for a plugin on the gateway's own account: no client, and nothing of it is counted. */
  isCopy = false;
  #peer: string | null = null;
  #client: string | null = null;
  #id: string | null = null;

  constructor(
    stream: ClientStream,
    listener: ListenerRuntime,
    { generation, worker }: ServeContext,
  ) {
    this.stream = stream;
    this.listener = listener;
    this.generation = generation;
    this.worker = worker;
    this.method = stream.method;
    this.headers = stream.headers;
  }

  /** Reads the head; the error says why it cannot be served (RFC 9112 sections 3.2 and 6). */
  read(): ProxyError | null {
    readKnownFields(this.headers, this);
    if (this.cookie !== null) this.#hideManagementCookies(this.cookie);
    const { listener, stream } = this;
    const host = listener.hosts.normalize(this.hostField ?? "");
    if (host === null) return failures.badRequest("the Host field is not valid");
    const { transferEncoding: coding, contentLength: length } = this;
    // Bun joins repeated lengths, and does not check those of HTTP/2: whatever is no number would go on as it is.
    if (coding === null ? !isLength(length) : coding !== "chunked" || length !== null)
      return failures.badRequest("the request's framing is not valid");
    // Its target is no path and its response has no body: the target would see a tunnel where we see a request.
    if (this.method === "CONNECT") return failures.badRequest("CONNECT is not supported");
    // It would show what the gateway adds on its way to the target (RFC 9110 section 9.3.8).
    if (this.method === "TRACE") return failures.traceMethod;
    if (!readTarget(stream.url, this))
      return failures.badRequest("the request target is not valid");
    if (this.target.length > listener.maxTargetBytes) return failures.targetTooLong;
    this.host = host;
    if (listener.choice !== null) this.listener = listener.choice.find(host);
    return null;
  }

  /** Here, so that nothing behind this can pass them on. */
  #hideManagementCookies(field: string): void {
    const cookie = this.generation.managementCookies.without(field);
    if (cookie === field) return;
    this.cookie = cookie;
    if (cookie === null) delete this.headers["cookie"];
    else this.headers["cookie"] = cookie;
  }

  /** The same request on a stream without a client: it keeps who the client is. */
  copyFor(stream: ClientStream): ClientRequest {
    const { generation, worker, host, path, query, target } = this;
    const copy = new ClientRequest(stream, this.listener, { generation, worker });
    readKnownFields(copy.headers, copy);
    copy.isCopy = true;
    Object.assign(copy, { host, path, query, target, route: this.route });
    copy.#peer = this.peerAddress();
    copy.#client = this.clientAddress();
    return copy;
  }

  get protocol(): "http" | "https" {
    return this.listener.protocol;
  }

  get listenerId(): string {
    return this.listener.id;
  }

  /** Client's Host as sent; empty: none. */
  get rawHost(): string {
    return this.hostField ?? "";
  }

  /** Names this request in logs and error pages; made when first asked for. */
  get id(): string {
    this.#id ??= Bun.randomUUIDv7();
    return this.#id;
  }

  set id(id: string) {
    this.#id = id;
  }

  /** The id if it was ever asked for; else empty. */
  get knownId(): string {
    return this.#id ?? "";
  }

  /** Whether the gateway itself sends the id to target and client. */
  get sendsId(): boolean {
    return this.listener.namesRequests && this.plugins?.namesRequests !== true;
  }

  /** The reason to log for a failure: for a body that was too long, that of the plugin which limited it. */
  reasonOf({ status, reason, token }: ProxyError): string {
    const { maxBodyBytes } = this.listener;
    const isOfPlugin = this.bodyLimit > 0 && (maxBodyBytes === 0 || this.bodyLimit <= maxBodyBytes);
    return status === 413 && isOfPlugin ? this.bodyLimitReason : (reason ?? token);
  }

  get upstreamMethod(): string {
    return this.edits === null ? this.method : this.edits.method;
  }

  header(name: string): string | null {
    // Access logs ask for it each time.
    if (name === "user-agent") return this.userAgent;
    return this.headers[name] ?? null;
  }

  /** Length of the body as declared; -1: unknown, 0: there is none. */
  get declaredLength(): number {
    if (this.transferEncoding !== null) return -1;
    if (this.contentLength !== null) return Number(this.contentLength);
    return this.stream.body === null ? 0 : -1;
  }

  /** The body as the client sends it; null: there is none. The patience of the first reader holds for all. */
  readBody(patience: BodyReadLimits): ClientBody | null {
    const { body } = this.stream;
    if (this.clientBody === null && body !== null)
      this.clientBody = new ClientBody(body, patience, this);
    return this.clientBody;
  }

  /** Whether nothing of the body is still to come. */
  get isBodyRead(): boolean {
    const { transferEncoding, contentLength } = this;
    const hasBody = transferEncoding !== null || (contentLength !== null && contentLength !== "0");
    return !hasBody || this.clientBody?.isComplete === true;
  }

  /** The same for all requests of a connection. Engines know neither it nor the address once the client has gone: ask before. */
  get peerPort(): number {
    const { connection } = this.stream;
    if (connection !== null) return connection.port;
    if (this.#peer === null) this.peerAddress();
    return this.stream.peerPort;
  }

  /** Address of the connection. */
  peerAddress(): string {
    this.#peer ??= this.stream.connection?.address ?? this.stream.peerAddress();
    return this.#peer;
  }

  /** Whether what the peer says of the client before it is believed. */
  isFromTrustedProxy(): boolean {
    return this.listener.trustsAnyone && this.listener.isTrusted(this.peerAddress());
  }

  clientAddress(): string {
    if (this.#client === null) {
      const peer = this.peerAddress();
      this.#client = this.listener.trustsAnyone
        ? clientAddress(peer, this.header("x-forwarded-for"), this.listener.isTrusted)
        : peer;
    }
    return this.#client;
  }

  /** Scheme that the client used, as far as a trusted proxy says. */
  clientScheme(): "http" | "https" {
    if (!this.isFromTrustedProxy()) return this.protocol;
    return forwardedScheme(this.header("x-forwarded-proto")) ?? this.protocol;
  }

  /** Port that the client used, as far as a trusted proxy says. */
  clientPort(): string {
    const port = this.isFromTrustedProxy() ? this.header("x-forwarded-port") : null;
    return port !== null && /^\d{1,5}$/.test(port) ? port : String(this.listener.port);
  }

  /** Host that the client asked for, as far as a trusted proxy says. */
  clientHost(): string {
    if (!this.isFromTrustedProxy()) return this.rawHost;
    return forwardedHost(this.header("x-forwarded-host")) ?? this.rawHost;
  }

  /** An attempt begins on a target. */
  attemptStarted(target: { readonly id: string; readonly authority: string }): void {
    const now = performance.now();
    if (this.attempts === 0) this.upstreamAt = now;
    else if (target.id !== this.targetId || this.headAt !== 0) this.#keepAttempt(now);
    this.attempts++;
    this.targetId = target.id;
    this.targetAddress = target.authority;
    this.attemptAt = now;
    // True of a kept connection; one that has to be made sets it when it is there.
    this.connectedAt = now;
    this.headAt = 0;
  }

  #keepAttempt(now: number): void {
    this.earlierAttempts ??= [];
    const status = this.headAt === 0 ? 502 : this.upstreamStatus;
    this.earlierAttempts.push({ targetId: this.targetId, status, ms: now - this.attemptAt });
  }

  /** The head of an upstream response is there. */
  responseStarted(status: number): void {
    this.headAt = this.receivedAt;
    this.upstreamStatus = status;
  }

  attemptFailed(reason: string): void {
    this.upstreamEndAt = performance.now();
    this.addReason(reason);
  }

  /** Adds a word to the reasons, unless it is the last one. */
  addReason(word: string): void {
    if (this.reasons.endsWith(word)) return;
    this.reasons = this.reasons === "" ? word : `${this.reasons} ${word}`;
  }
}

/** RFC 9110 section 8.6; as many digits as a number holds exactly. No length at all is fine. */
const isLength = (text: string | null) => text === null || /^\d{1,15}$/.test(text);
