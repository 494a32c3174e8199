// Loads and caches the discovery document and the keys of the identity provider; knows no sign-in.
import type { createLocalJWKSet, JSONWebKeySet } from "jose";
import type { Clock } from "../../clock.ts";
import { isDocument } from "../../control/body.ts";
import { isSafeUrl, type RequestLimits } from "../../control/outgoing-request.ts";
import { SsoError } from "./failure.ts";
import { askProvider } from "./provider-request.ts";

/** The used members of the discovery document (OpenID Connect Discovery 1.0, section 3). */
export interface Metadata {
  readonly issuer: string;
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly userinfoEndpoint: string | null;
  readonly jwksUri: string;
  /** Null when the document has no list. */
  readonly challengeMethods: readonly string[] | null;
  readonly tokenAuthMethods: readonly string[] | null;
  /** Whether every authorization response names the issuer (RFC 9207). */
  readonly namesIssuer: boolean;
}

/** Finds the key for the header of a token; throws an error of jose when there is none. */
export type KeySet = ReturnType<typeof createLocalJWKSet>;

/** How long the document and the keys are cached. */
const MAX_AGE_MS = 600_000;
/** A token with an unknown key reloads the keys. This interval limits the reloads that forged tokens cause. */
const KEYS_COOLDOWN_MS = 30_000;

interface Cached<T> {
  readonly value: T;
  readonly at: number;
}

interface ProviderOptions {
  readonly clock: Clock;
  readonly limits: RequestLimits;
}

/** The provider with one issuer. */
export class Provider {
  readonly issuer: string;
  readonly #options: ProviderOptions;
  #metadata: Cached<Metadata> | null = null;
  #keys: Cached<KeySet> | null = null;
  #loadingMetadata: Promise<Metadata> | null = null;
  #loadingKeys: Promise<KeySet> | null = null;

  constructor(issuer: string, options: ProviderOptions) {
    this.issuer = issuer;
    this.#options = options;
  }

  async metadata(): Promise<Metadata> {
    if (this.#isFresh(this.#metadata, MAX_AGE_MS)) return this.#metadata.value;
    // Concurrent callers share one request.
    this.#loadingMetadata ??= this.#loadMetadata().finally(() => (this.#loadingMetadata = null));
    return await this.#loadingMetadata;
  }

  async keys(): Promise<KeySet> {
    if (this.#isFresh(this.#keys, MAX_AGE_MS)) return this.#keys.value;
    return await this.#reloadKeys();
  }

  /** Reloads the keys because `known` lacks one; null when they were loaded a moment ago. */
  async newerKeys(known: KeySet): Promise<KeySet | null> {
    if (this.#keys !== null && this.#keys.value !== known) return this.#keys.value;
    if (this.#isFresh(this.#keys, KEYS_COOLDOWN_MS)) return null;
    return await this.#reloadKeys();
  }

  #reloadKeys(): Promise<KeySet> {
    this.#loadingKeys ??= this.#loadKeys().finally(() => (this.#loadingKeys = null));
    return this.#loadingKeys;
  }

  #isFresh<T>(cached: Cached<T> | null, maxAgeMs: number): cached is Cached<T> {
    return cached !== null && this.#options.clock.now() - cached.at < maxAgeMs;
  }

  async #loadMetadata(): Promise<Metadata> {
    const { clock, limits } = this.#options;
    const value = parseMetadata(await fetchDocument(this.issuer, limits), this.issuer);
    this.#metadata = { value, at: clock.now() };
    return value;
  }

  async #loadKeys(): Promise<KeySet> {
    const { clock, limits } = this.#options;
    const { jwksUri } = await this.metadata();
    const { status, body } = await askProvider({ url: jwksUri }, limits);
    if (status !== 200)
      throw new SsoError("provider_error", `the response for the keys has status ${status}`);
    const value = await parseKeys(body);
    this.#keys = { value, at: clock.now() };
    return value;
  }
}

/** The unchecked discovery document; throws when it is missing. */
export async function fetchDocument(issuer: string, limits: RequestLimits): Promise<unknown> {
  if (!isSafeUrl(issuer)) throw new SsoError("provider_error", "the issuer is not an https:// URL");
  const url = discoveryUrl(issuer);
  const { status, body } = await askProvider({ url }, limits);
  if (status !== 200) throw new SsoError("provider_error", `${url} responded with ${status}`);
  if (!isDocument(body)) throw new SsoError("provider_error", `${url} is not a JSON object`);
  return body;
}

/** A slash at the end of the issuer is not doubled (OpenID Connect Discovery 1.0, 4.1). */
const discoveryUrl = (issuer: string) =>
  `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;

/** Throws when the document lacks a member that a sign-in needs. */
export function parseMetadata(document: unknown, issuer: string): Metadata {
  if (!isDocument(document))
    throw new SsoError("provider_error", "the discovery document is not an object");
  // Prevents one provider from impersonating another one (OpenID Connect Discovery 1.0, 4.3).
  if (document["issuer"] !== issuer)
    throw new SsoError("provider_error", "the discovery document names another issuer");
  const endpoint = (name: string): string => {
    const url = document[name];
    if (isSafeUrl(url)) return url;
    throw new SsoError(
      "provider_error",
      `${name} is missing in the discovery document or not https://`,
    );
  };
  return {
    issuer,
    authorizationEndpoint: endpoint("authorization_endpoint"),
    tokenEndpoint: endpoint("token_endpoint"),
    jwksUri: endpoint("jwks_uri"),
    userinfoEndpoint: isSafeUrl(document["userinfo_endpoint"])
      ? document["userinfo_endpoint"]
      : null,
    challengeMethods: wordsOf(document["code_challenge_methods_supported"]),
    tokenAuthMethods: wordsOf(document["token_endpoint_auth_methods_supported"]),
    namesIssuer: document["authorization_response_iss_parameter_supported"] === true,
  };
}

function wordsOf(value: unknown): readonly string[] | null {
  return Array.isArray(value) ? value.filter((word) => typeof word === "string") : null;
}

async function parseKeys(body: unknown): Promise<KeySet> {
  if (!isDocument(body) || !Array.isArray(body["keys"]) || body["keys"].length === 0)
    throw new SsoError("provider_error", "the provider publishes no keys");
  // Loaded on first use, which keeps the start fast.
  const { createLocalJWKSet } = await import("jose");
  try {
    return createLocalJWKSet(body as unknown as JSONWebKeySet);
  } catch {
    throw new SsoError("provider_error", "the provider's keys are not a set of JSON Web Keys");
  }
}

/** Returns the provider of an issuer; another issuer starts with empty caches. */
export class Providers {
  readonly #options: ProviderOptions;
  #current: Provider | null = null;

  constructor(options: ProviderOptions) {
    this.#options = options;
  }

  get limits(): RequestLimits {
    return this.#options.limits;
  }

  of(issuer: string): Provider {
    if (this.#current?.issuer !== issuer) this.#current = new Provider(issuer, this.#options);
    return this.#current;
  }
}
