// One client request: its head, its state in the request path, and what serves it; knows no socket and no upstream.
import type { CacheOutcome } from "../../pdk/cache-outcome.ts";
import { isGrpcContentType } from "../../http/grpc.ts";
import { forwardedHost, forwardedPort, forwardedScheme } from "../../http/forwarded.ts";
import type { HeaderBlock } from "../../http/header-block.ts";
import type { KnownFields } from "../../http/field-name.ts";
import { readKnownFields } from "../../http/known-fields.ts";
import { STEM } from "../../http/management-cookies.ts";
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
import { isForRawRoute } from "./raw-target.ts";

/** The version and services that serve a request, from its first byte to its last. */
export interface ServeContext {
  readonly generation: Generation;
  readonly worker: WorkerServices;
}

export interface CacheNote {
  readonly id: string;
  readonly outcome: CacheOutcome;
}

/** The plugins of a request, as the request path sees them. */
export interface RequestPlugins {
  /** Whether a plugin sets request ids instead of the gateway. */
  readonly namesRequests: boolean;
  readonly consumer: { readonly username: string } | null;
  /** Reasons of plugin decisions. */
  readonly reasons: readonly string[];
  /** What a cache did, with the id of its instance; null: there was none. */
  readonly cache: CacheNote | null;
  /** Source of the last response that plugins saw. */
  responseSource: ResponseDraft["source"];
  /** Whether plugins outside of `order` have response handlers; default: whether any has. */
  hasResponseHandlers(order?: number): boolean;
  /** Runs the response handlers of plugins outside of `order`; default: of all. */
  respond(draft: ResponseDraft, order?: number): void;
  /** The request has ended; `endedAt` in `performance.now()`. */
  finished(status: number, endedAt: number): void;
}

/** An attempt before the last one. */
export interface EarlierAttempt {
  readonly targetId: string;
  readonly status: number;
  readonly ms: number;
}

/**
 * The one object of a request. `read` parses the head; the phases add the rest. Times are
 * milliseconds of `performance.now()`, 0: it did not happen.
 */
export class ClientRequest implements RouteSubject, RequestTarget {
  readonly stream: ClientStream;
  /** Before `read` the listener of the port; then the one at the port that serves the host. */
  listener: ListenerRuntime;
  readonly generation: Generation;
  readonly worker: WorkerServices;
  readonly method: string;
  /** Without the cookies of the management API. */
  fields: HeaderBlock;
  known: KnownFields;

  // Set by `read`.

  /** The client's Host as sent; empty: none. */
  rawHost = "";
  /** Lower case, without port. */
  host = "";
  path = "";
  query = "";
  target = "";
  /** Whether the client expects a gRPC response. */
  isGrpc = false;

  // Set by plugins.

  /** Null: no plugin runs. */
  plugins: RequestPlugins | null = null;
  /** Plugins' changes of the upstream request. */
  edits: UpstreamEdits | null = null;
  /** The whole body, once a plugin has read it. */
  bodyBytes: Uint8Array | null = null;
  /** The client's body, once a plugin or the upstream request reads it. */
  clientBody: ClientBody | null = null;
  /** The body with what was read of it before, or the body as plugins change it. */
  bodyStream: ReadableStream<Uint8Array> | null = null;
  /** Limit of a plugin on the body, beside the listener's; 0: no limit. */
  bodyLimit = 0;
  /** The reason to log when the body exceeds it. */
  bodyLimitReason = "";

  // The upstream request.

  /** Path and query. */
  upstreamTarget = "";
  /** Follows the value of Host: its CRLF, then header lines with CRLF, without framing. */
  upstreamFields = "";
  /** Length of the upstream body; -1: unknown, null: none. */
  upstreamBodyLength: number | null = null;

  // For metrics, logs and the request list.

  /** The in-flight limits that it counts against; null: none. */
  heldLimits: readonly InFlightLimit[] | null = null;
  /** Arrival of the head. */
  readonly startedAt: number = performance.now();
  /** Null: no route matches. */
  route: RouteRuntime | null = null;
  /** The service that a plugin selected instead of the route's; null: the route's. */
  otherServiceId: string | null = null;
  /** Attempts started. */
  attempts = 0;
  /** Target of the last attempt. */
  targetId = "";
  /** `host` or `host:port`. */
  targetAddress = "";
  /** Attempts before the last one, without retries of the same target on a fresh connection. */
  earlierAttempts: EarlierAttempt[] | null = null;
  /** Status of the upstream response; 0: none. */
  upstreamStatus = 0;
  /** Begin of the first attempt; end of the last response or failure of the last attempt. */
  upstreamAt = 0;
  upstreamEndAt = 0;
  /** Of the last attempt: begin, connected, last bytes received, response head received. */
  attemptAt = 0;
  connectedAt = 0;
  receivedAt = 0;
  headAt = 0;
  /** Milliseconds in plugins before the upstream request; negative: no plugin ran. */
  pluginsMs = -1;
  /** Milliseconds of `pluginsMs` in a queue. */
  queueMs = 0;
  /** Body bytes. */
  bytesIn = 0;
  bytesOut = 0;
  /** Reasons of its outcome: words of RFC 9209, separated by spaces. */
  reasons = "";
  /** The response began and was not completed. */
  isResponseAborted = false;
  /** Status that the client has seen of an aborted response. */
  sentStatus = 0;
  /** The gRPC status for the client; null: not gRPC, or none yet. */
  grpcStatus: number | null = null;
  /** When the client's deadline ends, in `performance.now()`; infinity: never. */
  grpcDeadline = Number.POSITIVE_INFINITY;
  /** A request of the gateway for a plugin: without a client, not counted. */
  isCopy = false;
  #peer: string | null = null;
  #client: string | null = null;
  /** The request id, if it exists; else empty. */
  knownId = "";

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
    this.fields = stream.fields;
    this.known = this.fields.isRead ? this.fields : readKnownFields(this.fields);
  }

  /** Parses the head; an error when it cannot be served (RFC 9112 sections 3.2 and 6). */
  read(): ProxyError | null {
    const { listener, stream } = this;
    const { cookie, hostField, transferEncoding: coding, contentLength: length } = this.known;
    this.rawHost = hostField ?? "";
    if (cookie?.includes(STEM) === true) this.#hideManagementCookies(cookie);
    const { hosts } = listener;
    const host = hosts.known.get(this.rawHost) ?? hosts.normalize(this.rawHost);
    if (host === null) return failures.badRequest("the Host field is not valid");
    // Bun joins repeated lengths, and does not check those of HTTP/2: an invalid value would go upstream.
    if (
      coding === null
        ? length !== null && !LENGTH.test(length)
        : coding !== "chunked" || length !== null
    )
      return failures.badRequest("the request's framing is not valid");
    // CONNECT has no path and no response body: the target would see a tunnel where the gateway sees a request.
    if (this.method === "CONNECT") return failures.badRequest("CONNECT is not supported");
    // TRACE would reveal header fields that the gateway adds (RFC 9110 section 9.3.8).
    if (this.method === "TRACE") return failures.traceMethod;
    this.host = host;
    if (listener.choice !== null) this.listener = listener.choice.find(host);
    if (stream.url === "*") Object.assign(this, { path: "/", target: "*" });
    else if (!readTarget(stream.url, this) && !isForRawRoute(this))
      return failures.badRequest("the request target is not valid");
    if (this.target.length > listener.maxTargetBytes) return failures.targetTooLong;
    this.isGrpc = this.method === "POST" && isGrpcContentType(this.fields.get("content-type"));
    return null;
  }

  /** Removed here, so that nothing can forward them. */
  #hideManagementCookies(field: string): void {
    const cookie = this.generation.managementCookies.without(field);
    if (cookie === field) return;
    this.fields = this.fields.with("cookie", cookie);
    this.known = readKnownFields(this.fields);
  }

  /** The same request on a stream without a client, with the same client address. */
  copyFor(stream: ClientStream): ClientRequest {
    const { generation, worker, host, path, query, target } = this;
    const copy = new ClientRequest(stream, this.listener, { generation, worker });
    copy.isCopy = true;
    copy.rawHost = copy.known.hostField ?? "";
    Object.assign(copy, { host, path, query, target, route: this.route, isGrpc: this.isGrpc });
    copy.#peer = this.peerAddress();
    copy.#client = this.clientAddress();
    return copy;
  }

  /**
   * Whether the service can speak gRPC. For others a client must not lift the limits on bodies and time by its Content-Type
   * alone.
   */
  get isGrpcCall(): boolean {
    return this.isGrpc && this.callsGrpc;
  }

  /** The same for calls that plugins translate to gRPC, of clients that do not speak it. */
  get callsGrpc(): boolean {
    if (!this.isGrpc && this.edits?.isGrpc !== true) return false;
    const id = this.edits?.serviceId ?? this.route?.route.service_id;
    return this.generation.services.get(id ?? "")?.isHttp2 === true;
  }

  get protocol(): "http" | "https" {
    return this.listener.protocol;
  }

  get listenerId(): string {
    return this.listener.id;
  }

  /** The request id of logs and error pages; created on first use. */
  get id(): string {
    if (this.knownId === "") this.knownId = Bun.randomUUIDv7();
    return this.knownId;
  }

  set id(id: string) {
    this.knownId = id;
  }

  /** Whether the gateway, not a plugin, sends the id to target and client. */
  get sendsId(): boolean {
    return this.listener.namesRequests && this.plugins?.namesRequests !== true;
  }

  /** The reason to log for a failure; a body over a plugin's limit has that plugin's reason. */
  reasonOf({ status, reason, token }: ProxyError): string {
    const { maxBodyBytes } = this.listener;
    const isOfPlugin = this.bodyLimit > 0 && (maxBodyBytes === 0 || this.bodyLimit <= maxBodyBytes);
    return status === 413 && isOfPlugin ? this.bodyLimitReason : (reason ?? token);
  }

  get upstreamMethod(): string {
    return this.edits === null ? this.method : this.edits.method;
  }

  header(name: string): string | null {
    // Access logs read it for each request.
    if (name === "user-agent") return this.known.userAgent;
    return this.fields.get(name);
  }

  /** Declared length of the body; -1: unknown, 0: none. */
  get declaredLength(): number {
    const { transferEncoding, contentLength } = this.known;
    if (transferEncoding !== null) return -1;
    if (contentLength !== null) return Number(contentLength);
    return this.stream.hasBody ? -1 : 0;
  }

  /** The client's body; null: none. The limits of the first reader apply to all. */
  readBody(limits: BodyReadLimits): ClientBody | null {
    const { stream } = this;
    if (this.clientBody === null && stream.hasBody)
      this.clientBody = new ClientBody(stream, limits);
    return this.clientBody;
  }

  /** Whether the whole body has arrived. */
  get isBodyRead(): boolean {
    const { transferEncoding, contentLength } = this.known;
    const hasLength = contentLength !== null && contentLength !== "0";
    const hasBody = transferEncoding !== null || hasLength || this.bodyStream !== null;
    return !hasBody || this.clientBody?.isComplete === true;
  }

  /** Identifies the connection. Engines know port and address only while the client is connected. */
  get peerPort(): number {
    const { connection } = this.stream;
    if (connection !== null) return connection.port;
    if (this.#peer === null) this.peerAddress();
    return this.stream.peerPort;
  }

  /** Whether its streams share no session to a target with those of other clients. */
  get isApart(): boolean {
    return this.worker.aborted.isApart(this);
  }

  /** Address of the connection's peer. */
  peerAddress(): string {
    this.#peer ??= this.stream.connection?.address ?? this.stream.peerAddress();
    return this.#peer;
  }

  /** Whether the peer is a trusted proxy. */
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

  /** The client's scheme, from a trusted proxy if there is one. */
  clientScheme(): "http" | "https" {
    if (!this.isFromTrustedProxy()) return this.protocol;
    return forwardedScheme(this.header("x-forwarded-proto")) ?? this.protocol;
  }

  /** The client's port, from a trusted proxy if there is one. */
  clientPort(): string {
    const port = this.isFromTrustedProxy() ? forwardedPort((name) => this.header(name)) : null;
    return port ?? String(this.listener.port);
  }

  /** The client's host, from a trusted proxy if there is one. */
  clientHost(): string {
    if (!this.isFromTrustedProxy()) return this.rawHost;
    return forwardedHost(this.header("x-forwarded-host")) ?? this.rawHost;
  }

  /** An attempt begins on a target. */
  attemptStarted(target: { readonly id: string; readonly authority: string }): void {
    const now = performance.now();
    if (this.attempts === 0) this.upstreamAt = now;
    else if (target.id !== this.targetId || this.headAt !== 0) this.#recordAttempt(now);
    this.attempts++;
    this.targetId = target.id;
    this.targetAddress = target.authority;
    this.attemptAt = now;
    // For a reused connection; a new one sets it later.
    this.connectedAt = now;
    this.headAt = 0;
  }

  #recordAttempt(now: number): void {
    this.earlierAttempts ??= [];
    const status = this.headAt === 0 ? 502 : this.upstreamStatus;
    this.earlierAttempts.push({ targetId: this.targetId, status, ms: now - this.attemptAt });
  }

  /** The head of an upstream response has arrived. */
  responseStarted(status: number): void {
    this.headAt = this.receivedAt;
    this.upstreamStatus = status;
  }

  attemptFailed(reason: string): void {
    this.upstreamEndAt = performance.now();
    this.addReason(reason);
  }

  /** Adds a reason, unless it repeats the last one. */
  addReason(word: string): void {
    if (this.reasons.endsWith(word)) return;
    this.reasons = this.reasons === "" ? word : `${this.reasons} ${word}`;
  }
}

/** RFC 9110 section 8.6, with at most as many digits as a double represents exactly. */
const LENGTH = /^\d{1,15}$/;
