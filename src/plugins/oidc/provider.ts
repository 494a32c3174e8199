// Loads and caches the provider's discovery document and keys; knows no session.
import type { createLocalJWKSet, JSONWebKeySet } from "jose";
import type { Callout, CalloutRequest } from "../../pdk/kit.ts";
import { isSafeUrl } from "./settings.ts";

export type Jose = typeof import("jose");

/** Why a login or a token fails. The message is for the log, and has no secrets. */
export class OidcError extends Error {
  /** `unavailable`: no usable response from the provider; `refused`: its data or the client's is not valid. */
  readonly kind: "unavailable" | "refused";

  constructor(kind: OidcError["kind"], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Members of the discovery document (OpenID Connect Discovery 1.0, section 3). */
export interface Metadata {
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly jwksUri: string;
  readonly userinfoEndpoint: string | null;
  readonly endSessionEndpoint: string | null;
  /** Null when the provider does not say. */
  readonly tokenAuthMethods: readonly unknown[] | null;
  /** Whether every authorization response has `iss` (RFC 9207). */
  readonly namesIssuer: boolean;
}

export type KeySet = ReturnType<typeof createLocalJWKSet>;
export type Document = Readonly<Record<string, unknown>>;

export const isDocument = (value: unknown): value is Document =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const MAX_AGE_MS = 600_000;
/** Minimum time between fetches of the keys, because clients can invent tokens with unknown keys. */
const KEYS_COOLDOWN_MS = 30_000;
/** Time between attempts while the provider is down. */
const FAILURE_MS = 2000;

interface Cached<T> {
  readonly value: T;
  readonly at: number;
}

/** Caches a value that is loaded once for concurrent callers, and backs off after a failure. */
class CachedLoader<T> {
  readonly #load: () => Promise<T>;
  #cached: Cached<T> | null = null;
  #failed: Cached<unknown> | null = null;
  #loading: Promise<T> | null = null;

  constructor(load: () => Promise<T>) {
    this.#load = load;
  }

  /** At most `maxAgeMs` old. */
  async get(maxAgeMs: number): Promise<T> {
    const now = performance.now();
    if (this.#cached !== null && now - this.#cached.at < maxAgeMs) return this.#cached.value;
    if (this.#failed !== null && now - this.#failed.at < FAILURE_MS) throw this.#failed.value;
    this.#loading ??= this.#start();
    return await this.#loading;
  }

  async #start(): Promise<T> {
    try {
      const value = await this.#load();
      this.#cached = { value, at: performance.now() };
      this.#failed = null;
      return value;
    } catch (error) {
      this.#failed = { value: error, at: performance.now() };
      throw error;
    } finally {
      this.#loading = null;
    }
  }
}

export interface ProviderOptions {
  readonly issuer: string;
  readonly timeoutMs: number;
  readonly callout: Callout;
  readonly jose: Jose;
}

export class Provider {
  readonly issuer: string;
  readonly #options: ProviderOptions;
  readonly #metadata: CachedLoader<Metadata>;
  readonly #keys: CachedLoader<KeySet>;

  constructor(options: ProviderOptions) {
    this.issuer = options.issuer;
    this.#options = options;
    this.#metadata = new CachedLoader(() => this.#loadMetadata());
    this.#keys = new CachedLoader(() => this.#loadKeys());
  }

  metadata(): Promise<Metadata> {
    return this.#metadata.get(MAX_AGE_MS);
  }

  keys(): Promise<KeySet> {
    return this.#keys.get(MAX_AGE_MS);
  }

  /** Reloads the keys, because one is missing; the same when they were loaded a moment ago. */
  newerKeys(): Promise<KeySet> {
    return this.#keys.get(KEYS_COOLDOWN_MS);
  }

  /** Sends a request to the provider; the body is undefined when it is no JSON. */
  async ask(
    request: Omit<CalloutRequest, "timeoutMs">,
  ): Promise<{ readonly status: number; readonly body: unknown }> {
    const { callout, timeoutMs } = this.#options;
    const headers = { accept: "application/json", ...request.headers };
    try {
      const response = await callout({ ...request, headers, timeoutMs });
      return { status: response.status, body: parsed(response.body) };
    } catch (error) {
      const where = URL.parse(request.url)?.host ?? "";
      throw new OidcError("unavailable", `${where}: ${(error as Error).message}`);
    }
  }

  async #loadMetadata(): Promise<Metadata> {
    const { issuer } = this;
    // A slash at the end of the issuer is not doubled (OpenID Connect Discovery 1.0, 4.1).
    const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
    const { status, body } = await this.ask({ url });
    if (status !== 200 || !isDocument(body))
      throw new OidcError(
        "unavailable",
        `the provider's discovery document has the status ${status}`,
      );
    // Otherwise one provider could impersonate another (OpenID Connect Discovery 1.0, 4.3).
    if (body["issuer"] !== issuer)
      throw new OidcError(
        "unavailable",
        "the issuer in the provider's discovery document does not match",
      );
    const optional = (name: string) => {
      const address = body[name];
      return isSafeUrl(address) ? address : null;
    };
    const endpoint = (name: string) => {
      const address = optional(name);
      if (address === null)
        throw new OidcError(
          "unavailable",
          `${name} is missing in the discovery document or not https`,
        );
      return address;
    };
    const methods = body["token_endpoint_auth_methods_supported"];
    return {
      authorizationEndpoint: endpoint("authorization_endpoint"),
      tokenEndpoint: endpoint("token_endpoint"),
      jwksUri: endpoint("jwks_uri"),
      userinfoEndpoint: optional("userinfo_endpoint"),
      endSessionEndpoint: optional("end_session_endpoint"),
      tokenAuthMethods: Array.isArray(methods) ? methods : null,
      namesIssuer: body["authorization_response_iss_parameter_supported"] === true,
    };
  }

  async #loadKeys(): Promise<KeySet> {
    const { jwksUri } = await this.metadata();
    const { status, body } = await this.ask({ url: jwksUri });
    if (status !== 200 || !isDocument(body))
      throw new OidcError("unavailable", `the provider's key set has the status ${status}`);
    try {
      return this.#options.jose.createLocalJWKSet(body as unknown as JSONWebKeySet);
    } catch {
      throw new OidcError("unavailable", "the provider's key set is not valid");
    }
  }
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}
