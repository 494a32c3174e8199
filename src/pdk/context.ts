// What a plugin may see and do while it handles a request, an answer or a stream connection; knows no implementation.
import type { CredentialAlgorithm, CredentialType } from "../model/credential.ts";
import type { ScopeName } from "../model/plugin.ts";

/** Somebody who uses the proxied APIs, as the worker knows it. Only enabled ones are known. */
export interface ConsumerView {
  readonly id: string;
  readonly username: string;
  readonly customId: string | null;
  readonly groups: readonly string[];
}

/** What is compared with what a client shows. */
export interface CredentialMaterial {
  /** key: SHA-256, hexadecimal; basic: argon2id; null for the others. */
  readonly hash: string | null;
  /** jwt and hmac: the shared secret; null for key pairs and for the others. */
  readonly secret: string | null;
}

/** An enabled credential of an enabled consumer. Whether it has expired is for the plugin to check: `isExpired`. */
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
  /** What was valid before the last rotation, until that time in milliseconds since 1970. */
  readonly previous: (CredentialMaterial & { readonly until: number }) | null;
}

/** All consumers and credentials, in the version of the configuration that the request is served with. */
export interface Consumers {
  byId(id: string): ConsumerView | null;
  byUsername(username: string): ConsumerView | null;
  byCustomId(customId: string): ConsumerView | null;
  /** O(1). `key`: the SHA-256 of the key, hexadecimal, also of one that was rotated away; others: the identifier. */
  credential(type: CredentialType, key: string): CredentialView | null;
}

/** What is known of the client's TLS connection. Plain listeners that no front stands before know nothing of it. */
export interface ClientTls {
  /** `TLSv1.3`; null when unknown. */
  readonly version: string | null;
  /** Lower-case SNI; null when there was none. */
  readonly serverName: string | null;
  /** DER of the certificate that the client has shown and that was accepted, null when there is none. */
  readonly clientCertificate: Uint8Array | null;
}

/** What a name in the configuration stands for, as far as a plugin needs it. */
export interface NamedObject {
  readonly id: string;
  readonly name: string | null;
}

/** How the request goes upstream. Every change is checked: what no request may hold throws a TypeError. */
export interface UpstreamRequest {
  readonly method: string;
  /** Host field that a plugin has chosen; null: what route and service say. */
  readonly host: string | null;
  /** Service that a plugin has chosen; null: the route's. */
  readonly serviceId: string | null;
  /** Before the route strips or rewrites it. */
  readonly path: string;
  /** Without `?`. */
  readonly query: string;
  /** The value as it will go out, null when there is none; what the gateway adds itself is not seen. */
  header(name: string): string | null;
  /** Lower-case names of fields that plugins have set or taken away, and of those that say who the client is. */
  readonly changed: readonly string[];
  /** The same as `header` as it is now, whatever is changed later. */
  snapshot(): (name: string) => string | null;
  /** In the place of every field of that name. */
  setHeader(name: string, value: string): void;
  /** Beside what is there. */
  addHeader(name: string, value: string): void;
  removeHeader(name: string): void;
  removeCookie(name: string): void;
  removeQuery(name: string): void;
  /** Percent-encoded as needed; null removes it. */
  setQuery(name: string, value: string | null): void;
  /** The whole query in the place of the client's, as it is, without `?`. */
  setWholeQuery(query: string): void;
  setMethod(method: string): void;
  /** A path that is taken as final: the route neither strips nor rewrites it; the service's base path still goes before it. */
  setPath(path: string): void;
  /** The Host field, whatever route and service say. */
  setHost(host: string): void;
  /** Another service by id; false when there is none that speaks HTTP. */
  setService(id: string): boolean;
  /** In the place of the client's body, with its length. */
  setBody(body: Uint8Array): void;
}

/**
 * - `default`: authentication plugins run.
 * - `skip`: they do not: a policy has let the client in.
 * - `require`: they run, and nobody passes as anonymous.
 */
export type AuthMode = "default" | "skip" | "require";

/** What plugins keep for one request or connection, each by an object of its own. */
export interface Memory {
  get(place: object): unknown;
  set(place: object, value: unknown): void;
  delete(place: object): void;
}

/** One request, from its head to the last byte of its answer. */
export interface RequestContext {
  /** UUIDv7, unless `setId` gave another. */
  readonly id: string;
  /** Names the request in logs, pages and upstream. */
  setId(id: string): void;
  readonly method: string;
  /** Lower case, without port. */
  readonly host: string;
  /** Host field as the client sent it, or as a trusted proxy says. */
  readonly clientHost: string;
  /** Scheme that the client used, as far as a trusted proxy tells. */
  readonly scheme: "http" | "https";
  /** Port that the client used, as far as a trusted proxy tells. */
  readonly port: string;
  /** Canonical path. */
  readonly path: string;
  /** Without `?`, not decoded. */
  readonly query: string;
  /** Path and query. */
  readonly target: string;
  /** The client's fields: lower-case names, repeated ones joined with a comma. */
  readonly headers: Readonly<Record<string, string>>;
  /** By lower-case name; null too for what only the gateway says of clients, whatever they send under these names. */
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
  /** Null for a request that no route takes. */
  readonly route: NamedObject | null;
  readonly service: NamedObject | null;
  /** Another service that speaks HTTP, by id; null: there is none. */
  serviceNamed(id: string): NamedObject | null;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
  /** Milliseconds since 1970 at which the request came. */
  readonly startedAt: number;

  readonly consumers: Consumers;
  /** Who the client is; null: nobody yet. */
  readonly consumer: ConsumerView | null;
  readonly credential: CredentialView | null;
  /**
   * Tells who the client is apart from others also where it is no consumer: id of the credential, or the name of somebody whom
   * an authentication has recognised. Null: nobody yet, or a stand-in.
   */
  readonly credentialId: string | null;
  /** Whether `consumer` only stands for those that did not say who they are. */
  readonly isAnonymous: boolean;
  /** Whether an authentication has recognised the client, be it as a consumer or as somebody of another's. */
  readonly isAuthenticated: boolean;
  /** Groups of the consumer and those that an authentication has told. */
  readonly groups: readonly string[];
  /**
   * Says who the client is. The fields that name it upstream are set from this. `credentialId` names what was shown when it
   * is no credential of ours, such as the subject of a token; `groups` come on top of the consumer's.
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
   * Makes the same request once more on the gateway's own account: whatever comes after the calling plugin runs for it, and
   * plugins inside of the caller see the answer; nobody waits but the caller, and no client is told. To be called while a
   * handler of a phase before the answer runs, or from what that handler has begun. The copy has no body but what `prepare` sets.
   */
  refetch(options: RefetchOptions): Promise<Refetched>;
  /** Whether the request has a body. */
  readonly hasBody: boolean;
  /** Declared length, -1 when unknown, 0 when there is none. */
  readonly bodyLength: number;
  /**
   * The whole body; null when it is longer than `maxBytes`. Either way it still goes upstream. A client that sends too
   * slowly is refused by the gateway, and then the promise never resolves.
   */
  readBody(maxBytes: number): Promise<Uint8Array | null>;
  /** More than this is refused with 413 while the body is passed on, for this reason; the lowest of several limits counts. */
  limitBody(maxBytes: number, reason: string): void;
  /**
   * Leads the body through something on its way from the client to whoever reads it; nothing is read before somebody wants it.
   * False: there is no body, or it was read already.
   */
  passBody(through: (body: ReadableStream<Uint8Array>) => ReadableStream<Uint8Array>): boolean;

  /** What plugins keep for this request, by an object of their own, such as their handlers. */
  readonly memory: Memory;
  /** Notes why something was decided, in dotted words: `rl.exceeded`. Shown in the request log. */
  note(reason: string): void;
  /** It has waited so long for its turn. Shown in the request log. */
  queued(milliseconds: number): void;
  readonly reasons: readonly string[];
  /** What became of it; null until the `log` phase. */
  readonly result: RequestResult | null;
}

export interface RefetchOptions {
  readonly method: string;
  /** For everything until the last byte; default: what route and service say. */
  readonly timeoutMs?: number;
  /** A longer body is left out. */
  readonly maxBytes: number;
  /** Changes the copy of the request that goes upstream; the client's own is not touched. */
  readonly prepare?: (upstream: UpstreamRequest) => void;
}

/** An answer that no client has seen. */
export interface Refetched {
  /** Who made it; `gateway` mostly means that the target gave none. */
  readonly source: ResponseDraft["source"];
  readonly status: number;
  readonly headers: Headers;
  /** Null: it is longer than was asked for, or broke off. */
  readonly body: Uint8Array | null;
}

/** Facts for the `log` phase. Times in milliseconds, null when the request did not get that far. */
export interface RequestResult {
  /** Sent to the client; 499 when it went away before. */
  readonly status: number;
  /** Of the target's answer; null when none gave one. */
  readonly upstreamStatus: number | null;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly durationMs: number;
  readonly firstByteMs: number | null;
  readonly targetId: string | null;
  readonly attempts: number;
  /** The time with targets, in milliseconds since the request came; null when it went to none. */
  readonly upstream: {
    readonly startMs: number;
    readonly endMs: number;
    /** Of the last target: `host` or `host:port`. */
    readonly address: string;
  } | null;
}

/** The head of an answer before it goes to the client, and what becomes of its body. */
export interface ResponseDraft {
  /** Who made the answer: the target, the gateway (an error page, a redirect), or a plugin. */
  readonly source: "upstream" | "gateway" | "plugin";
  status: number;
  readonly headers: Headers;
  /**
   * The same as `headers.set` and `headers.delete`, and cheaper: as long as nobody looks at `headers`, answers that look the
   * same share them. What no field can hold must not be given.
   */
  setHeader(name: string, value: string): void;
  removeHeader(name: string): void;
  /** Several at once, cheapest with the same array of names each time. Neither array may be changed afterwards. */
  setHeaders(names: readonly string[], values: readonly string[]): void;
  /** Of a failed request; null otherwise. */
  readonly error: {
    readonly status: number;
    readonly token: string;
    readonly detail: string;
  } | null;
  /** Bytes of the body when that is known at this point, else null. */
  readonly bodyLength: number | null;
  /** Whether the answer has a body that goes to the client: not for HEAD, 204 and 304. */
  readonly hasBody: boolean;
  /** The whole body in one piece when it is at hand (error pages, replies); null while it is still to come. */
  readonly wholeBody: Uint8Array | null;
  /** Another body in its place; what the target still sends is dropped. Null: none. */
  replaceBody(body: Uint8Array | null): void;
  /** Passes the body through `transform`; the last one that was given gets the bytes last. */
  transformBody(transform: BodyTransform): void;
}

/** Changes or watches a body. Bytes that are handed in belong to the gateway: copy what is kept beyond the call. */
export interface BodyTransform {
  /** What goes on for these bytes; null or an empty array: nothing yet. */
  push(chunk: Uint8Array): Uint8Array | null | Promise<Uint8Array | null>;
  /** What is left at the end. */
  end(): Uint8Array | null | Promise<Uint8Array | null>;
  /**
   * Called once in the place of `push` and `end` when the whole body is there before any of it goes on. Default: those two are
   * called. What it gives back must not be changed afterwards.
   */
  whole?(pieces: readonly Uint8Array[]): readonly Uint8Array[] | Promise<readonly Uint8Array[]>;
  /** The answer breaks off: the end never comes. */
  abort?(): void;
  /** Whether the bytes pass unchanged, so that their number is still known; default false. */
  readonly isObserver?: boolean;
  /** Whether it makes the body wait: then it is sent as it comes, also where all of it could go at once; default false. */
  readonly isSlow?: boolean;
  /** Longer chunks are handed in in pieces of so many bytes; default: as they come. */
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

/** A connection that is refused; it is closed without a word. */
export interface StreamRefusal {
  readonly reason: string;
  /** Whether a TCP connection ends with a reset in the place of an orderly end; default true. */
  readonly reset?: boolean;
}

/** What became of a stream connection. */
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
