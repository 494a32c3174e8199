// Loads and caches the discovery document and the keys of an OpenID provider; knows no client and no token.
import type { createLocalJWKSet, JSONWebKeySet } from "jose";
import type { AuthorizationServer } from "oauth4webapi";
import type { Clock } from "../clock.ts";
import { isSafeUrl } from "../net/loopback.ts";
import { OidcError } from "./failure.ts";

/** Asymmetric algorithms: with HS* the client could sign, and `none` is unsigned. */
export const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];
/** Maximum age of the document and the keys. */
const MAX_AGE_MS = 600_000;
/** Minimum time between loads of the keys, because clients can invent tokens with unknown keys. */
const KEYS_COOLDOWN_MS = 30_000;

/** The used and checked members of the discovery document (OpenID Connect Discovery 1.0, section 3). */
export type Metadata = AuthorizationServer & {
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly jwks_uri: string;
};

/** Finds the key for the header of a token; throws an error of jose when there is none. */
export type KeySet = ReturnType<typeof createLocalJWKSet>;

/**
 * Sends one request within limits of time and size, without following redirects, which could send secrets to another server.
 * Throws an OidcError without a complete response.
 */
export type Send = (
  url: string,
  request: {
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: unknown;
  },
) => Promise<Response>;

export type Libraries = typeof import("./libraries.ts");

/** Keeps the start fast. */
export const loadLibraries = (): Promise<Libraries> => import("./libraries.ts");

export interface ProviderOptions {
  readonly issuer: string;
  readonly send: Send;
  readonly clock: Clock;
  /** Time between attempts after a failure. */
  readonly retryAfterMs: number;
}

/** The provider with one issuer. */
export class OidcProvider {
  readonly issuer: string;
  readonly #options: ProviderOptions;
  readonly #metadata: CachedLoader<Metadata>;
  readonly #keys: CachedLoader<KeySet>;

  constructor(options: ProviderOptions) {
    this.issuer = options.issuer;
    this.#options = options;
    const load = async () => metadataOf(await fetchDiscovery(options), options.issuer);
    this.#metadata = new CachedLoader(options, load);
    this.#keys = new CachedLoader(options, () => this.#loadKeys());
  }

  get send(): Send {
    return this.#options.send;
  }

  get clock(): Clock {
    return this.#options.clock;
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

  async #loadKeys(): Promise<KeySet> {
    const { jwks_uri: url } = await this.metadata();
    const headers = { accept: "application/json" };
    const response = await this.send(url, { method: "GET", headers });
    if (response.status !== 200)
      throw new OidcError("unusable", `the response for the keys has status ${response.status}`);
    const set = (await response.json().catch(() => null)) as Partial<JSONWebKeySet> | null;
    if (!Array.isArray(set?.keys) || set.keys.length === 0)
      throw new OidcError("unusable", "the provider publishes no keys");
    const { jose } = await loadLibraries();
    try {
      return jose.createLocalJWKSet({ ...set, keys: set.keys });
    } catch {
      throw new OidcError("unusable", "the provider's keys are not a set of JSON Web Keys");
    }
  }
}

/** The discovery document of this issuer, otherwise unchecked. */
export async function fetchDiscovery({
  issuer,
  send,
}: Pick<ProviderOptions, "issuer" | "send">): Promise<AuthorizationServer> {
  if (!isSafeUrl(issuer)) throw new OidcError("unusable", "the issuer is not an https:// URL");
  const { oauth } = await loadLibraries();
  const url = new URL(issuer);
  const response = await oauth.discoveryRequest(url, {
    [oauth.customFetch]: send,
    // Plain HTTP to this machine, which isSafeUrl allows.
    [oauth.allowInsecureRequests]: true,
  });
  const where = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  let document: AuthorizationServer;
  try {
    document = await oauth.processDiscoveryResponse(url, response);
  } catch (error) {
    const { attribute, body } = causeOf(error);
    if (attribute === "issuer") throw otherIssuer(body?.issuer);
    if (response.status !== 200)
      throw new OidcError("unusable", `${where} responded with ${response.status}`);
    throw new OidcError("unusable", `${where} is not the JSON object of a provider`);
  }
  // The library compares URLs. Otherwise one provider could impersonate another (OpenID Connect Discovery 1.0, 4.3).
  if (document.issuer !== issuer) throw otherIssuer(document.issuer);
  return document;
}

const otherIssuer = (namedIssuer: unknown) =>
  new OidcError("unusable", "the discovery document names another issuer", { namedIssuer });

const causeOf = (error: unknown) =>
  ((error as Error).cause ?? {}) as {
    readonly attribute?: unknown;
    readonly body?: { readonly issuer?: unknown };
  };

/** Throws when the document lacks a member that a sign-in needs. */
export function metadataOf(document: AuthorizationServer, issuer: string): Metadata {
  const endpoint = (name: string): string => {
    const url = document[name];
    if (isSafeUrl(url)) return url;
    throw new OidcError("unusable", `${name} is missing in the discovery document or not https://`);
  };
  const optional = (name: "userinfo_endpoint" | "end_session_endpoint") =>
    isSafeUrl(document[name]) ? { [name]: document[name] } : {};
  const words = (
    name: "code_challenge_methods_supported" | "token_endpoint_auth_methods_supported",
  ) =>
    Array.isArray(document[name])
      ? { [name]: document[name].filter((word: unknown) => typeof word === "string") }
      : {};
  return {
    issuer,
    authorization_endpoint: endpoint("authorization_endpoint"),
    token_endpoint: endpoint("token_endpoint"),
    jwks_uri: endpoint("jwks_uri"),
    ...optional("userinfo_endpoint"),
    ...optional("end_session_endpoint"),
    ...words("code_challenge_methods_supported"),
    ...words("token_endpoint_auth_methods_supported"),
    authorization_response_iss_parameter_supported:
      document.authorization_response_iss_parameter_supported === true,
    // What the gateway accepts, whatever the provider announces.
    id_token_signing_alg_values_supported: ALGORITHMS,
  };
}

interface Cached<T> {
  readonly value: T;
  readonly at: number;
}

/** Caches a value that is loaded once for concurrent callers. */
class CachedLoader<T> {
  readonly #options: Pick<ProviderOptions, "clock" | "retryAfterMs">;
  readonly #load: () => Promise<T>;
  #cached: Cached<T> | null = null;
  #failed: Cached<unknown> | null = null;
  #loading: Promise<T> | null = null;

  constructor(options: Pick<ProviderOptions, "clock" | "retryAfterMs">, load: () => Promise<T>) {
    this.#options = options;
    this.#load = load;
  }

  /** At most `maxAgeMs` old. */
  async get(maxAgeMs: number): Promise<T> {
    if (this.#isRecent(this.#cached, maxAgeMs)) return this.#cached.value;
    if (this.#isRecent(this.#failed, this.#options.retryAfterMs)) throw this.#failed.value;
    this.#loading ??= this.#start().finally(() => (this.#loading = null));
    return await this.#loading;
  }

  /** False, too, when the clock was set back. */
  #isRecent<V>(cached: Cached<V> | null, maxAgeMs: number): cached is Cached<V> {
    const age = this.#options.clock.now() - (cached?.at ?? Number.NEGATIVE_INFINITY);
    return age >= 0 && age < maxAgeMs;
  }

  async #start(): Promise<T> {
    const at = () => this.#options.clock.now();
    try {
      const value = await this.#load();
      this.#cached = { value, at: at() };
      this.#failed = null;
      return value;
    } catch (error) {
      this.#failed = { value: error, at: at() };
      throw error;
    }
  }
}
