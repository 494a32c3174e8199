// The request context of plugins; knows no plugin and no upstream connection.
import { cookieValue } from "../../http/cookie.ts";
import { queryValue } from "../../http/query.ts";
import type { CacheOutcome } from "../../pdk/cache-outcome.ts";
import type {
  AuthMode,
  ClientTls,
  Consumers,
  ConsumerView,
  CredentialView,
  InstanceView,
  NamedObject,
  Refetched,
  RefetchOptions,
  RequestContext,
  RequestResult,
} from "../../pdk/context.ts";
import type { ProxyError } from "../error.ts";
import type { CacheNote, ClientRequest, RequestPlugins } from "../request/client-request.ts";
import { bodyReadLimits } from "../request/upstream-request.ts";
import { timeOfDay } from "../time-of-day.ts";
import { ChainCursor, type ChainObserver } from "./chain-cursor.ts";
import type { DeferredLog } from "./deferred-log-queue.ts";
import { HeldBody } from "./held-body.ts";
import { IDENTITY_FIELDS, identityLines } from "./identity-fields.ts";
import type { Chain } from "./plugin-set.ts";
import { RequestMemory } from "./request-memory.ts";
import { resultOf } from "./request-result.ts";
import type { ResponseDraft } from "./response-draft.ts";
import { UpstreamEdits } from "./upstream-edits.ts";

/** What the plugins of all requests share; one for each version of the configuration. */
export interface PluginServices extends ChainObserver {
  readonly consumers: Consumers;
  hasService(id: string): boolean;
  serviceNamed(id: string): NamedObject | null;
  country(address: string): string | null;
  asn(address: string): number | null;
  /** Sends a request of the gateway's own through the plugins after the calling one. */
  refetch(from: PluginContext, options: RefetchOptions): Promise<Refetched>;
  /** Queues the request for `logBatch`. */
  deferLog(log: DeferredLog): void;
}

/** Who the client is, as plugins see it. */
type Identity = Pick<
  RequestContext,
  "consumer" | "credential" | "credentialId" | "isAnonymous" | "isAuthenticated" | "groups"
>;

const NONE: readonly string[] = [];

/** Before authentication. */
const UNKNOWN: Identity = {
  consumer: null,
  credential: null,
  credentialId: null,
  isAnonymous: false,
  isAuthenticated: false,
  groups: NONE,
};

export class PluginContext implements RequestContext, RequestPlugins, DeferredLog {
  readonly request: ClientRequest;
  readonly cursor: ChainCursor;
  readonly #services: PluginServices;
  /** Source of the response that plugins saw last. */
  responseSource: ResponseDraft["source"] = "gateway";
  authMode: AuthMode = "default";
  /** Responds while a plugin still waits for the body; null: no plugin waits. */
  refuse: ((error: ProxyError) => void) | null = null;
  cache: CacheNote | null = null;
  #identity = UNKNOWN;
  #memory: RequestMemory | null = null;
  #reasons: string[] | null = null;
  #body: HeldBody | null = null;
  #startedAt = 0;
  /** Status of the response, and when the request ended (`performance.now()`); both 0 before. */
  #endStatus = 0;
  #endedAt = 0;
  #result: RequestResult | null = null;

  constructor(request: ClientRequest, chain: Chain, services: PluginServices) {
    this.request = request;
    this.#services = services;
    this.cursor = new ChainCursor(this, chain, services);
  }

  /** A context for a copy of the request, which only plugins after the handler that was called last see. */
  copyFor(request: ClientRequest): PluginContext {
    const copy = new PluginContext(request, this.cursor.chain, this.#services);
    copy.#identity = this.#identity;
    copy.#memory = this.#memory?.copy() ?? null;
    copy.authMode = this.authMode;
    this.cursor.copyTo(copy.cursor);
    return copy;
  }

  // The client's request.

  get id(): string {
    return this.request.id;
  }

  setId(id: string): void {
    this.request.id = id;
  }

  get method(): string {
    return this.request.method;
  }

  get isGrpc(): boolean {
    return this.request.isGrpc;
  }

  get host(): string {
    return this.request.host;
  }

  get clientHost(): string {
    return this.request.clientHost();
  }

  get scheme(): "http" | "https" {
    return this.request.clientScheme();
  }

  get port(): string {
    return this.request.clientPort();
  }

  get path(): string {
    return this.request.path;
  }

  get query(): string {
    return this.request.query;
  }

  get target(): string {
    return this.request.target;
  }

  get headers(): Readonly<Record<string, string>> {
    return this.request.fields.record;
  }

  header(name: string): string | null {
    return IDENTITY_FIELDS.has(name) ? null : this.request.header(name);
  }

  cookie(name: string): string | null {
    return cookieValue(this.request.header("cookie"), name);
  }

  queryValue(name: string): string | null {
    return queryValue(this.request.query, name);
  }

  clientAddress(): string {
    return this.request.clientAddress();
  }

  peerAddress(): string {
    return this.request.peerAddress();
  }

  isFromTrustedProxy(): boolean {
    return this.request.isFromTrustedProxy();
  }

  country(): string | null {
    return this.#services.country(this.clientAddress());
  }

  asn(): number | null {
    return this.#services.asn(this.clientAddress());
  }

  get tls(): ClientTls | null {
    const { connection } = this.request.stream;
    if (connection === null) return null;
    const { tlsVersion: version, serverName, clientCertificate } = connection;
    return { version, serverName, clientCertificate };
  }

  get route(): NamedObject | null {
    const { route } = this.request;
    return route === null ? null : { id: route.id, name: route.route.name };
  }

  get service(): NamedObject | null {
    return this.serviceNamed(this.request.route?.route.service_id ?? "");
  }

  serviceNamed(id: string): NamedObject | null {
    return this.#services.serviceNamed(id);
  }

  get signal(): AbortSignal {
    return this.request.stream.signal;
  }

  get startedAt(): number {
    if (this.#startedAt === 0) this.#startedAt = this.#startedBefore(performance.now());
    return this.#startedAt;
  }

  #startedBefore(now: number): number {
    return Math.round(timeOfDay(this.request.startedAt, now));
  }

  // Who the client is.

  get consumers(): Consumers {
    return this.#services.consumers;
  }

  get consumer(): ConsumerView | null {
    return this.#identity.consumer;
  }

  get credential(): CredentialView | null {
    return this.#identity.credential;
  }

  get credentialId(): string | null {
    return this.#identity.credentialId;
  }

  get isAnonymous(): boolean {
    return this.#identity.isAnonymous;
  }

  get isAuthenticated(): boolean {
    return this.#identity.isAuthenticated;
  }

  get groups(): readonly string[] {
    return this.#identity.groups;
  }

  authenticate(
    consumer: ConsumerView | null,
    by: {
      readonly credential?: CredentialView | null;
      readonly credentialId?: string | null;
      readonly groups?: readonly string[];
      readonly isAnonymous?: boolean;
    },
  ): void {
    const { credential = null, credentialId = null, groups = NONE, isAnonymous = false } = by;
    const own = consumer?.groups ?? NONE;
    this.#identity = {
      consumer,
      credential,
      credentialId: isAnonymous ? null : (credential?.id ?? credentialId),
      isAnonymous,
      isAuthenticated: !isAnonymous,
      groups: groups.length === 0 ? own : [...own, ...groups],
    };
    this.upstream.identity = identityLines({ consumer, credential, credentialId, isAnonymous });
  }

  // The upstream request.

  get upstream(): UpstreamEdits {
    const { request } = this;
    request.edits ??= new UpstreamEdits(request, this.#services);
    return request.edits;
  }

  get chosenServiceId(): string | null {
    return this.request.edits?.serviceId ?? null;
  }

  refetch(options: RefetchOptions): Promise<Refetched> {
    return this.#services.refetch(this, options);
  }

  get hasBody(): boolean {
    return this.bodyLength !== 0;
  }

  get bodyLength(): number {
    return this.#body === null ? this.request.declaredLength : this.#body.length;
  }

  readBody(maxBytes: number): Promise<Uint8Array | null> {
    return this.#held.read(maxBytes);
  }

  limitBody(maxBytes: number, reason: string): void {
    this.#held.limit(maxBytes, reason);
  }

  passBody(
    through: (body: ReadableStream<Uint8Array>) => ReadableStream<Uint8Array>,
    options?: { readonly changesLength: boolean },
  ): boolean {
    return this.#held.pass(through, options?.changesLength === true);
  }

  /** Called about ten times a second while a plugin waits. */
  tick(now: number): void {
    this.#body?.tick(now);
  }

  get #held(): HeldBody {
    this.#body ??= new HeldBody({
      request: this.request,
      patience: bodyReadLimits(this.request),
      refuse: (error) => this.refuse?.(error),
    });
    return this.#body;
  }

  // Notes of plugins.

  get memory(): RequestMemory {
    this.#memory ??= new RequestMemory();
    return this.#memory;
  }

  note(reason: string): void {
    this.#reasons ??= [];
    this.#reasons.push(reason);
  }

  get reasons(): readonly string[] {
    return this.#reasons ?? NONE;
  }

  noteCache({ id }: InstanceView, outcome: CacheOutcome): void {
    this.cache = { id, outcome };
  }

  queued(milliseconds: number): void {
    this.request.queueMs += milliseconds;
  }

  // For the request path.

  get namesRequests(): boolean {
    return this.cursor.chain.namesRequests;
  }

  hasResponseHandlers(order?: number): boolean {
    return this.cursor.hasResponseHandlers(order);
  }

  respond(draft: ResponseDraft, order?: number): void {
    this.cursor.respond(draft, order);
  }

  // The end of the request.

  finished(status: number, endedAt: number): void {
    if (this.#endedAt !== 0) return;
    this.#endStatus = status;
    this.#endedAt = endedAt;
    this.cursor.log();
    if (this.cursor.chain.logBatch.length === 0) return;
    // Copies are rare: a batch would gain nothing.
    if (this.request.isCopy) this.logBatch(endedAt);
    else this.#services.deferLog(this);
  }

  logBatch(now: number): void {
    // `now` saves another reading of the clock.
    if (this.#startedAt === 0) this.#startedAt = this.#startedBefore(now);
    this.cursor.logBatch();
  }

  /** Created at first use. */
  get result(): RequestResult | null {
    if (this.#endedAt === 0) return null;
    this.#result ??= resultOf(this.request, this.#endStatus, this.#endedAt);
    return this.#result;
  }
}
