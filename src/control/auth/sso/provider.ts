// What the identity provider publishes about itself: its document and its keys, cached for a while; knows no sign-in.
import type { createLocalJWKSet, JSONWebKeySet } from "jose";
import type { Clock } from "../../../clock.ts";
import { isDocument } from "../../body.ts";
import { SsoError } from "./failure.ts";
import { askProvider, isSafeUrl, type RequestLimits } from "./provider-request.ts";

/** What is used of the discovery document (OpenID Connect Discovery 1.0, section 3). */
export interface Metadata {
  readonly issuer: string;
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly userinfoEndpoint: string | null;
  readonly jwksUri: string;
  /** Null when the provider does not say. */
  readonly challengeMethods: readonly string[] | null;
  readonly tokenAuthMethods: readonly string[] | null;
  /** Whether every answer names the issuer (RFC 9207). */
  readonly namesIssuer: boolean;
}

/** Finds the key for the header of a token; throws an error of jose when there is none. */
export type KeySet = ReturnType<typeof createLocalJWKSet>;

/** How long document and keys are believed. */
const MAX_AGE_MS = 600_000;
/** A token with an unknown key makes us ask for the keys again, but whoever makes up such tokens not more often than this. */
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
    // However many ask at once, the provider is asked once.
    this.#loadingMetadata ??= this.#loadMetadata().finally(() => (this.#loadingMetadata = null));
    return await this.#loadingMetadata;
  }

  async keys(): Promise<KeySet> {
    if (this.#isFresh(this.#keys, MAX_AGE_MS)) return this.#keys.value;
    return await this.#reloadKeys();
  }

  /** The keys anew, because `known` lacks one; null when they were loaded a moment ago. */
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
      throw new SsoError("provider_error", `the keys were answered with ${status}`);
    const value = await parseKeys(body);
    this.#keys = { value, at: clock.now() };
    return value;
  }
}

/** The discovery document as it was sent; throws when there is none. */
export async function fetchDocument(issuer: string, limits: RequestLimits): Promise<unknown> {
  if (!isSafeUrl(issuer))
    throw new SsoError("provider_error", "the issuer is not an https:// address");
  const url = discoveryUrl(issuer);
  const { status, body } = await askProvider({ url }, limits);
  if (status !== 200) throw new SsoError("provider_error", `${url} was answered with ${status}`);
  if (!isDocument(body)) throw new SsoError("provider_error", `${url} is not a JSON object`);
  return body;
}

/** A slash at the end of the issuer is not doubled (OpenID Connect Discovery 1.0, 4.1). */
const discoveryUrl = (issuer: string) =>
  `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;

/** Throws unless everything is there that a sign-in needs. */
export function parseMetadata(document: unknown, issuer: string): Metadata {
  if (!isDocument(document)) throw new SsoError("provider_error", "the document is no object");
  // Or one provider could hand us to another one (OpenID Connect Discovery 1.0, 4.3).
  if (document["issuer"] !== issuer)
    throw new SsoError("provider_error", "the issuer in the provider's document is another one");
  const endpoint = (name: string): string => {
    const url = document[name];
    if (isSafeUrl(url)) return url;
    throw new SsoError("provider_error", `${name} is missing in the document or not https://`);
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
  // Loaded here and not above: a start does not need it.
  const { createLocalJWKSet } = await import("jose");
  try {
    return createLocalJWKSet(body as unknown as JSONWebKeySet);
  } catch {
    throw new SsoError("provider_error", "the provider's keys are not a set of keys");
  }
}

/** Gives the provider of an issuer; a change of the issuer begins anew. */
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
