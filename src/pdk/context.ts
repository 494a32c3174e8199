// What a plugin can read and do while it handles a request, a response or a stream connection; knows no implementation.
import type { CacheOutcome } from "../model/cache-outcome.ts";
import type { CredentialAlgorithm, CredentialType } from "../model/credential.ts";
import type { ScopeName } from "../model/plugin.ts";
import type { BodySource } from "./response.ts";

/** A client of the proxied APIs. Workers know only enabled consumers. */
export interface ConsumerView {
  readonly id: string;
  readonly username: string;
  readonly customId: string | null;
  readonly groups: readonly string[];
}

/** What a client's credential is compared with. */
export interface CredentialMaterial {
  /** key: SHA-256, hexadecimal; basic: argon2id; null for the others. */
  readonly hash: string | null;
  /** jwt and hmac: the shared secret; null for key pairs and for the others. */
  readonly secret: string | null;
}

/** An enabled credential of an enabled consumer. The plugin checks whether it has expired: `hasExpired`. */
export interface CredentialView extends CredentialMaterial {
  readonly id: string;
  readonly consumer: ConsumerView;
  readonly type: CredentialType;
  readonly name: string | null;
  /** basic: user name; jwt: value of the key claim; hmac: key id; null for keys. */
  readonly identifier: string | null;
  readonly algorithm: CredentialAlgorithm | null;
  /** PEM; null for shared secrets. */
  readonly publicKey: string | null;
  /** Milliseconds since 1970; null: never. */
  readonly expiresAt: number | null;
  /** The secret before the last rotation, valid until that time in milliseconds since 1970. */
  readonly previous: (CredentialMaterial & { readonly until: number }) | null;
}

/** All consumers and credentials, in the version of the configuration that serves the request. */
export interface Consumers {
  byId(id: string): ConsumerView | null;
  byUsername(username: string): ConsumerView | null;
  byCustomId(customId: string): ConsumerView | null;
  /** O(1). `key`: the SHA-256 of the key, hexadecimal, present or rotated; others: the identifier. */
  credential(type: CredentialType, key: string): CredentialView | null;
}

/** The client's TLS connection; unknown on plain listeners. */
export interface ClientTls {
  /** `TLSv1.3`; null when unknown. */
  readonly version: string | null;
  /** Lower-case SNI; null when there was none. */
  readonly serverName: string | null;
  /** DER of the client's verified certificate, null when there is none. */
  readonly clientCertificate: Uint8Array | null;
}

/** A named object of the configuration. */
export interface NamedObject {
  readonly id: string;
  readonly name: string | null;
}

/** The request that goes upstream. Every change is checked: an invalid value throws a TypeError. */
export interface UpstreamRequest {
  readonly method: string;
  /** Host header that a plugin has set; null: that of route and service. */
  readonly host: string | null;
  /** Service that a plugin has chosen; null: the route's. */
  readonly serviceId: string | null;
  /** Before the route strips or rewrites it. */
  readonly path: string;
  /** Without `?`. */
  readonly query: string;
  /** The value that goes upstream, null when there is none; without the gateway's own headers. */
  header(name: string): string | null;
  /** Lower-case names of headers that plugins have set or removed, and of those that name the client. */
  readonly changed: readonly string[];
  /** `header` in its present state, which later changes do not affect. */
  snapshot(): (name: string) => string | null;
  /** Replaces every header of that name. */
  setHeader(name: string, value: string): void;
  /** Adds to existing ones. */
  addHeader(name: string, value: string): void;
  removeHeader(name: string): void;
  removeCookie(name: string): void;
  removeQuery(name: string): void;
  /** Percent-encoded as needed; null removes it. */
  setQuery(name: string, value: string | null): void;
  /** Replaces the whole query, without `?`, not encoded. */
  setWholeQuery(query: string): void;
  setMethod(method: string): void;
  /** A final path: the route neither strips nor rewrites it; the service's base path still precedes it. */
  setPath(path: string): void;
  /** The Host header, whatever route and service say. */
  setHost(host: string): void;
  /**
   * Makes the request a gRPC call of this content type: the target gets `te: trailers`, and the timeouts of streams apply. Set
   * `transformBody` in `response`, for a client that does not speak gRPC.
   */
  setGrpc(contentType: string): void;
  /** Another service by id; false when there is none that speaks HTTP. */
  setService(id: string): boolean;
  /** Replaces the client's body and its length. */
  setBody(body: Uint8Array): void;
}

/**
 * - `default`: authentication plugins run.
 * - `skip`: they do not, because a policy allows the client.
 * - `require`: they run, and the anonymous consumer is not used.
 */
export type AuthMode = "default" | "skip" | "require";

/** Values that plugins store for one request or connection, each under an object as its key. */
export interface Memory {
  get(key: object): unknown;
  set(key: object, value: unknown): void;
  delete(key: object): void;
}

/** One request, from its head to the last byte of its response. */
export interface RequestContext {
  /** UUIDv7, unless `setId` gave another. */
  readonly id: string;
  /** Sets the request id for logs, error pages and upstream. */
  setId(id: string): void;
  readonly method: string;
  /**
   * Whether the client expects a gRPC response. Bodies of gRPC calls are not read and not changed: `readBody` resolves to null,
   * and `limitBody` limits each message.
   */
  readonly isGrpc: boolean;
  /** Lower case, without port. */
  readonly host: string;
  /** Host header as the client sent it, or as a trusted proxy forwards it. */
  readonly clientHost: string;
  /** The client's scheme, also behind a trusted proxy. */
  readonly scheme: "http" | "https";
  /** The port that the client connected to, also behind a trusted proxy. */
  readonly port: string;
  /** Canonical path. */
  readonly path: string;
  /** Without `?`, not decoded. */
  readonly query: string;
  /** Path and query. */
  readonly target: string;
  /** The client's headers: lower-case names, repeated ones joined with a comma. */
  readonly headers: Readonly<Record<string, string>>;
  /** By lower-case name; null also for the identity headers that only the gateway sets, whatever the client sends. */
  header(name: string): string | null;
  /** First cookie of that name. */
  cookie(name: string): string | null;
  /** First parameter of that name, decoded. */
  queryValue(name: string): string | null;
  /** Address of the client, after trusted proxies. */
  clientAddress(): string;
  /** Address of the connection. */
  peerAddress(): string;
  /** Whether the connection comes from a trusted proxy. */
  isFromTrustedProxy(): boolean;
  /** ISO 3166-1 alpha-2 of the client's address; null when unknown. */
  country(): string | null;
  /** Number of the autonomous system of the client's address; null when unknown. */
  asn(): number | null;
  readonly tls: ClientTls | null;
  /** Null when no route matches. */
  readonly route: NamedObject | null;
  readonly service: NamedObject | null;
  /** Another service that speaks HTTP, by id; null: there is none. */
  serviceNamed(id: string): NamedObject | null;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
  /** When the request arrived, in milliseconds since 1970. */
  readonly startedAt: number;

  readonly consumers: Consumers;
  /** Null before authentication. */
  readonly consumer: ConsumerView | null;
  readonly credential: CredentialView | null;
  /**
   * Identifies the client even when it is no consumer: id of the credential, or the name that an authentication plugin has
   * verified. Null: not authenticated, or anonymous.
   */
  readonly credentialId: string | null;
  /** Whether `consumer` is the anonymous consumer. */
  readonly isAnonymous: boolean;
  /** Whether an authentication plugin has authenticated the client, as a consumer or as an external identity. */
  readonly isAuthenticated: boolean;
  /** Groups of the consumer and those that the authentication plugin has added. */
  readonly groups: readonly string[];
  /**
   * Sets the identity of the client, and with it the identity headers for the target. `credentialId` names an external
   * credential, such as the subject of a token; `groups` add to the consumer's.
   */
  authenticate(
    consumer: ConsumerView | null,
    by: {
      readonly credential?: CredentialView | null;
      readonly credentialId?: string | null;
      readonly groups?: readonly string[];
      readonly isAnonymous?: boolean;
    },
  ): void;
  authMode: AuthMode;

  readonly upstream: UpstreamRequest;
  /**
   * Sends the same request once more, without a client: the plugins after the calling one run for it and see its response,
   * which goes to the caller. Call it while a handler of a phase before the response runs, or from what that handler has
   * started. The copy has no body but what `prepare` sets.
   */
  refetch(options: RefetchOptions): Promise<Refetched>;
  /** Whether the request has a body. */
  readonly hasBody: boolean;
  /** Declared length, -1 when unknown, 0 when there is none. */
  readonly bodyLength: number;
  /**
   * The whole body; null when it is longer than `maxBytes`. Either way it still goes upstream. The gateway refuses a client
   * that sends too slowly, and then the promise never resolves.
   */
  readBody(maxBytes: number): Promise<Uint8Array | null>;
  /** The gateway responds 413 to a longer body, also while it streams it upstream; the lowest of several limits applies. */
  limitBody(maxBytes: number, reason: string): void;
  /**
   * Pipes the body through a stream before anything else reads it; nothing is read before there is a reader. False: there is
   * no body, or it was read already. The stream may fail with a rejection, as `reject` makes it: the gateway then responds with it.
   */
  passBody(
    through: (body: ReadableStream<Uint8Array>) => ReadableStream<Uint8Array>,
    /** `changesLength`: the target gets the body without the client's Content-Length. Default: the length stays the same. */
    options?: { readonly changesLength: boolean },
  ): boolean;

  /** Values that plugins store for this request, each under an object of its own, such as its handlers. */
  readonly memory: Memory;
  /** Records the reason of a decision, in dotted words: `rl.exceeded`. Shown in the request log. */
  note(reason: string): void;
  /**
   * Reports what this instance, a cache, did for the request, for metrics and the request log. A later report replaces an earlier
   * one, until the last byte of the response.
   */
  noteCache(instance: InstanceView, outcome: CacheOutcome): void;
  /** Adds to the time in a queue. Shown in the request log. */
  queued(milliseconds: number): void;
  readonly reasons: readonly string[];
  /** Null until the `log` phase. */
  readonly result: RequestResult | null;
}

export interface RefetchOptions {
  readonly method: string;
  /** For everything until the last byte; default: the timeouts of route and service. */
  readonly timeoutMs?: number;
  /** A longer body is dropped. */
  readonly maxBytes: number;
  /** Changes the copy; the client's request stays as it is. */
  readonly prepare?: (upstream: UpstreamRequest) => void;
}

/** The response to a copy of a request. */
export interface Refetched {
  /** `gateway` mostly means that the target did not respond. */
  readonly source: ResponseDraft["source"];
  readonly status: number;
  readonly headers: Headers;
  /** Null: longer than `maxBytes`, or incomplete. */
  readonly body: Uint8Array | null;
}

/** The outcome of a request, for the `log` phase. Times in milliseconds, null when the request did not get that far. */
export interface RequestResult {
  /** Sent to the client; 499 when it disconnected before. Of a gRPC call the HTTP status that stands for `grpcStatus`. */
  readonly status: number;
  /** Of the target's response; null when there is none. */
  readonly upstreamStatus: number | null;
  /** Status of a gRPC call; null: not gRPC. */
  readonly grpcStatus: number | null;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly durationMs: number;
  readonly firstByteMs: number | null;
  readonly targetId: string | null;
  readonly attempts: number;
  /** The time with targets, in milliseconds since the request arrived; null when it went to none. */
  readonly upstream: {
    readonly startMs: number;
    readonly endMs: number;
    /** Of the last target: `host` or `host:port`. */
    readonly address: string;
  } | null;
}

/** A response before its head goes to the client. */
export interface ResponseDraft {
  /** The target, the gateway (an error page, a redirect), or a plugin. */
  readonly source: "upstream" | "gateway" | "plugin";
  status: number;
  readonly headers: Headers;
  /**
   * The same as `headers.set` and `headers.delete`, and cheaper: similar responses share one object until a plugin reads
   * `headers`. The value must be valid.
   */
  setHeader(name: string, value: string): void;
  removeHeader(name: string): void;
  /** Sets several at once, cheapest with the same array of names each time. Neither array may be changed afterwards. */
  setHeaders(names: readonly string[], values: readonly string[]): void;
  /** Of a failed request; null otherwise. */
  readonly error: {
    readonly status: number;
    readonly token: string;
    readonly detail: string;
    /** Where `status` says too little; else null. */
    readonly grpcStatus: number | null;
  } | null;
  /** Bytes of the body when that is known at this point, else null. */
  readonly bodyLength: number | null;
  /** Whether the response has a body for the client: not for HEAD, 204 and 304. */
  readonly hasBody: boolean;
  /** The whole body when it is available (error pages, replies); null while it is still to come. */
  readonly wholeBody: Uint8Array | null;
  /** Replaces the body, and drops what the target still sends. Null: no body. With a source the headers need Content-Length. */
  replaceBody(body: Uint8Array | BodySource | null): void;
  /** Pipes the body through `transform`, after those that were added before. */
  transformBody(transform: BodyTransform): void;
  /**
   * Runs `change` on the trailers once the body has arrived, after those that were added before; there may be none. Trailers reach
   * only clients of listeners with the engine `sluice`.
   */
  changeTrailers(change: (trailers: Headers) => void): void;
}

/** Changes or observes a body. The gateway reuses the bytes it passes: copy what is needed after the call. */
export interface BodyTransform {
  /** Returns the bytes to send for these; null or an empty array: nothing yet. */
  push(chunk: Uint8Array): Uint8Array | null | Promise<Uint8Array | null>;
  /** Returns the rest at the end. It may change the trailers, such as by moving them into the body. */
  end(trailers: Headers): Uint8Array | null | Promise<Uint8Array | null>;
  /**
   * Called once instead of `push` and `end` when the whole body is available before any of it is sent. Default: those two
   * are called. The result must not be changed afterwards.
   */
  whole?(
    pieces: readonly Uint8Array[],
    trailers: Headers,
  ): readonly Uint8Array[] | Promise<readonly Uint8Array[]>;
  /** The response is incomplete: `end` is not called. */
  abort?(): void;
  /** Whether the bytes stay unchanged, so that Content-Length still holds; default false. */
  readonly isObserver?: boolean;
  /** Whether it delays the body, which then streams even when all of it is available; default false. */
  readonly isSlow?: boolean;
  /** Longer chunks are split to this size; default: not split. */
  readonly pieceBytes?: number;
}

/** One connection of a stream route. */
export interface StreamContext {
  readonly id: string;
  readonly protocol: "tcp" | "udp";
  clientAddress(): string;
  readonly clientPort: number;
  /** Lower-case SNI where it was read; else null. */
  readonly serverName: string | null;
  readonly streamRoute: NamedObject;
  readonly service: NamedObject | null;
  country(): string | null;
  asn(): number | null;
  readonly startedAt: number;
  readonly memory: Memory;
  note(reason: string): void;
  readonly reasons: readonly string[];
}

/** Closes a connection without a response. */
export interface StreamRefusal {
  readonly reason: string;
  /** Whether a TCP connection ends with a reset instead of FIN; default true. */
  readonly reset?: boolean;
}

/** The outcome of a stream connection. */
export interface StreamResult {
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly durationMs: number;
  readonly targetId: string | null;
  /** Why it was refused; null when it was not. */
  readonly refusal: string | null;
}

/** Where an instance applies, for its log lines. */
export interface InstanceView {
  readonly id: string;
  readonly plugin: string;
  readonly label: string | null;
  readonly scope: ScopeName;
}
