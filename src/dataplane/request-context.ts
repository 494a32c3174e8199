// The facts of one client request, read once and shared by router and upstream; knows no upstream and no configuration store.
import type { Server } from "bun";
import type { RouteSubject } from "./router/compiled-match.ts";
import { forwardedHost, forwardedScheme } from "../http/forwarded.ts";
import { type KnownFields, knownFields } from "../http/known-fields.ts";
import { splitTarget } from "../http/request-target.ts";
import { clientAddress } from "../net/client-address.ts";
import { normalizeAddress } from "../net/address.ts";
import { type BodyPatience, ClientBody } from "./client-body.ts";
import { failures, type ProxyError } from "./error.ts";
import type { ConnectionFacts } from "./listener/connection-facts.ts";
import type { InFlightLimit } from "./overload.ts";
import type { UpstreamEdits } from "./plugin/upstream-edits.ts";
import type { Visit } from "./plugin/visit.ts";
import type { VisitScene } from "./plugin/visit-scene.ts";
import type { ListenerFacts } from "./listener/listener-facts.ts";
import { RequestRecord } from "./request-record.ts";

/** Where a request comes from. */
export interface RequestSource {
  readonly request: Request;
  readonly server: Server<unknown>;
  readonly listener: ListenerFacts;
  readonly connection: ConnectionFacts | null;
}

/** One request as the gateway understands it. Build it with `readRequest`. */
export class RequestContext implements RouteSubject {
  readonly request: Request;
  readonly server: Server<unknown>;
  readonly listener: ListenerFacts;
  /** Null when the server's own socket is the client's. */
  readonly connection: ConnectionFacts | null;
  readonly method: string;
  /** Client's Host as sent. */
  readonly rawHost: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;
  /** Path and query for a request line. */
  readonly target: string;
  /** Lower-case names; repeated fields joined. */
  readonly headers: Record<string, string>;
  /** Those of them that are asked for by name for every request. */
  readonly known: KnownFields;
  /** Its way through plugins; null where none runs. */
  visit: Visit | null = null;
  /** What a visit is made with when the request has ended, where plugins want to hear of nothing before; else null. */
  heardIn: VisitScene | null = null;
  /** What plugins have changed about what goes upstream. */
  edits: UpstreamEdits | null = null;
  /** The body, once somebody has read all of it. */
  bodyBytes: Uint8Array | null = null;
  /** The body as the client sends it, once a plugin or the target's request reads it. */
  clientBody: ClientBody | null = null;
  /** What is left of the body and what was read of it before, or the body as plugins pass it on. */
  bodyStream: ReadableStream<Uint8Array> | null = null;
  /** More bytes than this are refused, beside the listener's limit; 0: no limit. */
  bodyLimit = 0;
  /** Why, in the words of whoever has set it. */
  bodyLimitReason = "";
  /** The limits of requests in flight that it takes a place of; null: it takes none. */
  heldLimits: readonly InFlightLimit[] | null = null;
  /** Whether the client's answer already holds the id. */
  isIdTold = false;
  /** What becomes known of it on its way. */
  readonly record = new RequestRecord();
  #peer: string | null = null;
  #peerPort = 0;
  #client: string | null = null;
  #id: string | null = null;

  constructor(
    source: RequestSource,
    facts: {
      host: string;
      path: string;
      query: string;
      target: string;
      headers: Record<string, string>;
      known: KnownFields;
    },
  ) {
    this.request = source.request;
    this.server = source.server;
    this.listener = source.listener;
    this.connection = source.connection;
    this.method = source.request.method;
    this.rawHost = facts.known.host ?? "";
    this.host = facts.host;
    this.path = facts.path;
    this.query = facts.query;
    this.target = facts.target;
    this.headers = facts.headers;
    this.known = facts.known;
  }

  /** The same request without a client and a body, on the gateway's own account. */
  detached(method: string, signal: AbortSignal | null): RequestContext {
    const request = new Request("http://detached/", { method, signal });
    const { host, path, query, target, listener, connection } = this;
    const { "content-length": _length, "transfer-encoding": _coding, ...headers } = this.headers;
    const source = { request, server: NO_SERVER, listener, connection };
    const known = knownFields(headers);
    const copy = new RequestContext(source, { host, path, query, target, headers, known });
    copy.#peer = this.peerAddress();
    copy.#peerPort = this.#peerPort;
    copy.#client = this.clientAddress();
    return copy;
  }

  get protocol(): "http" | "https" {
    return this.listener.protocol;
  }

  get listenerId(): string {
    return this.listener.id;
  }

  /** Names this request in logs and error pages; made when first asked for. */
  get id(): string {
    this.#id ??= Bun.randomUUIDv7();
    return this.#id;
  }

  /** Whether the gateway itself tells target and client the id. */
  get tellsId(): boolean {
    return this.listener.namesRequests && this.visit?.namesRequests !== true;
  }

  /** The word for a failure: of a body that was too long on its way, that of the plugin which has limited it. */
  reasonOf({ status, reason, token }: ProxyError): string {
    const { maxBodyBytes } = this.listener;
    const isOfPlugin = this.bodyLimit > 0 && (maxBodyBytes === 0 || this.bodyLimit <= maxBodyBytes);
    return status === 413 && isOfPlugin ? this.bodyLimitReason : (reason ?? token);
  }

  /** The body as the client sends it; null: there is none. The patience of the first reader holds for all. */
  readBody(patience: BodyPatience): ClientBody | null {
    const { body } = this.request;
    if (this.clientBody === null && body !== null)
      this.clientBody = new ClientBody(body, patience, this);
    return this.clientBody;
  }

  /** Whether nothing of the body is still to come. */
  get isBodyRead(): boolean {
    const { transferEncoding, contentLength } = this.known;
    const hasBody = transferEncoding !== null || (contentLength !== null && contentLength !== "0");
    return !hasBody || this.clientBody?.isComplete === true;
  }

  /** Somebody else has named the request before. */
  setId(id: string): void {
    this.#id = id;
  }

  /** Method of the request that goes upstream. */
  get upstreamMethod(): string {
    return this.edits === null ? this.method : this.edits.method;
  }

  /** The id if anybody has asked for it; else empty. */
  get knownId(): string {
    return this.#id ?? "";
  }

  header(name: string): string | null {
    // Whoever writes logs asks for it each time.
    if (name === "user-agent") return this.known.userAgent;
    return this.headers[name] ?? null;
  }

  /** Address of the connection. */
  peerAddress(): string {
    if (this.connection !== null) return this.connection.address;
    if (this.#peer === null) {
      const peer = this.server.requestIP(this.request);
      const address = peer?.address ?? "0.0.0.0";
      // Plain IPv4 needs no second look.
      this.#peer = address.includes(":") ? (normalizeAddress(address) ?? address) : address;
      this.#peerPort = peer?.port ?? 0;
    }
    return this.#peer;
  }

  /** The same for all requests of a connection. Bun knows neither it nor the address once the client has gone: ask before. */
  get peerPort(): number {
    if (this.connection !== null) return this.connection.port;
    if (this.#peer === null) this.peerAddress();
    return this.#peerPort;
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

  /** Scheme that the client used, as far as a trusted proxy tells. */
  clientScheme(): "http" | "https" {
    if (!this.isFromTrustedProxy()) return this.protocol;
    return forwardedScheme(this.header("x-forwarded-proto")) ?? this.protocol;
  }

  /** Port that the client used, as far as a trusted proxy tells. */
  clientPort(): string {
    const port = this.isFromTrustedProxy() ? this.header("x-forwarded-port") : null;
    return port !== null && /^\d{1,5}$/.test(port) ? port : String(this.listener.port);
  }

  /** Host that the client asked for, as far as a trusted proxy tells. */
  clientHost(): string {
    if (!this.isFromTrustedProxy()) return this.rawHost;
    return forwardedHost(this.header("x-forwarded-host")) ?? this.rawHost;
  }
}

/** Stands for the server of a request that no client has sent: there is no connection to keep. */
const NO_SERVER = { timeout() {}, requestIP: () => null } as unknown as Server<unknown>;

/** Reads the request, or says why it cannot be served (RFC 9112 sections 3.2 and 6). Nothing of it has been routed by then. */
export function readRequest(source: RequestSource): RequestContext | ProxyError {
  const { request, listener } = source;
  const headers = headersOf(request);
  const known = knownFields(headers);
  const host = listener.hosts.normalize(known.host ?? "");
  if (host === null) return failures.badRequest("the Host field is not valid");
  const { transferEncoding: coding, contentLength: length } = known;
  // Bun joins repeated lengths, and does not check those of HTTP/2: whatever is no number would go on as it is.
  if (coding === null ? !isLength(length) : coding !== "chunked" || length !== null)
    return failures.badRequest("the request's framing is not valid");
  // It would show what the gateway adds on its way to the target (RFC 9110 section 9.3.8).
  if (request.method === "TRACE") return failures.traceMethod;
  // Its target is no path and its answer has no body: the target would see a tunnel where we see a request.
  if (request.method === "CONNECT") return failures.badRequest("CONNECT is not supported");
  const target = splitTarget(request.url);
  if (target === null) return failures.badRequest("the request target is not valid");
  if (target.target.length > listener.maxTargetBytes) return failures.targetTooLong;
  return new RequestContext(source, {
    host,
    path: target.path,
    query: target.query,
    target: target.target,
    headers,
    known,
  });
}

/** RFC 9110 section 8.6; as many digits as a number holds exactly. No length at all is fine. */
const isLength = (text: string | null) => text === null || /^\d{1,15}$/.test(text);

/** All fields in one call: three times cheaper than walking them. */
function headersOf(request: Request): Record<string, string> {
  return (request.headers as unknown as { toJSON(): Record<string, string> }).toJSON();
}
