// Verifies tokens: key, signature and claims; knows no request.
import {
  type CryptoKey,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  importSPKI,
  type JWTPayload,
  jwtVerify,
} from "jose";
import { validMaterial } from "../../pdk/authentication.ts";
import { Cache } from "../../pdk/cache.ts";
import type { Consumers, CredentialView } from "../../pdk/context.ts";
import { isCanonicalToken } from "../../pdk/crypto.ts";
import type { PluginKit } from "../../pdk/kit.ts";
import type { JwtConfig } from "../jwt.ts";
import { claimOf, fulfils } from "./claims.ts";
import { KeySet } from "./key-set.ts";
import { fixedKeys, keysAt, keysOfIssuer, type KeySource, RemoteKeys } from "./key-source.ts";

export interface Accepted {
  readonly kind: "accepted";
  readonly claims: JWTPayload;
  /** The consumer's credential; null: signed with a key of an issuer. */
  readonly credential: CredentialView | null;
}

export interface Refused {
  readonly kind: "refused";
  readonly reason: string;
  /** For the client: without content of the token and without quotes. */
  readonly detail: string;
}

/** `unavailable`: no key to verify it with at the moment. */
export type Verdict = Accepted | Refused | { readonly kind: "unavailable" };

/** The content of a token before verification. */
interface Unverified {
  readonly text: string;
  readonly algorithm: string;
  readonly keyId: string | null;
  readonly issuer: string | null;
  /** The name of the consumer's credential, if any. */
  readonly keyName: string | null;
}

/** More than a request head may have by default. */
const MAX_CHARACTERS = 16_384;
const MAX_CONSUMER_KEYS = 1000;
const HOUR_MS = 3_600_000;

const refused = (reason: string, detail: string): Refused => ({
  kind: "refused",
  reason: `auth.jwt.${reason}`,
  detail,
});
const malformed = refused("malformed", "the token is malformed");
const wrongSignature = refused("signature", "the signature of the token is not valid");
const unknownKey = refused("key_unknown", "the token is signed with an unknown key");

export class Verifier {
  readonly #own: JwtConfig;
  /** Keys for tokens of every issuer; null: none. */
  readonly #common: KeySource | null;
  readonly #byIssuer: ReadonlyMap<string, KeySource>;
  readonly #ofConsumers = new Cache<Promise<CryptoKey>>({
    maxEntries: MAX_CONSUMER_KEYS,
    ttlMs: HOUR_MS,
  });

  constructor(own: JwtConfig, kit: PluginKit) {
    this.#own = own;
    const remote = (fetch: () => Promise<unknown>) =>
      new RemoteKeys({
        kit,
        fetch,
        ttlMs: own.jwks_cache_ttl * 1000,
        minIntervalMs: own.jwks_refresh_min_interval * 1000,
      });
    if (own.jwks_url !== null) this.#common = remote(keysAt(kit, own.jwks_url));
    else this.#common = own.jwks === null ? null : fixedKeys(KeySet.read(own.jwks));
    const discovered = this.#common === null ? own.issuer.filter(isAddress) : [];
    this.#byIssuer = new Map(
      discovered.map((issuer) => [issuer, remote(keysOfIssuer(kit, issuer))]),
    );
  }

  async verify(text: string, consumers: Consumers): Promise<Verdict> {
    const token = this.#read(text);
    if (token === null) return malformed;
    if (!(this.#own.algorithms as readonly string[]).includes(token.algorithm))
      return refused("algorithm", "the algorithm of the token is not accepted");
    const credential = token.keyName === null ? null : consumers.credential("jwt", token.keyName);
    if (credential !== null) return await this.#verifyWithConsumer(token, credential);
    if (token.algorithm.startsWith("HS")) return unknownKey;
    return await this.#verifyWithIssuer(token);
  }

  /** Whether this instance could accept it, by what it claims. */
  isOurs(text: string, consumers: Consumers): boolean {
    const token = this.#read(text);
    if (token === null) return false;
    const { keyName, issuer } = token;
    if (keyName !== null && consumers.credential("jwt", keyName) !== null) return true;
    if (issuer !== null && this.#own.issuer.includes(issuer)) return true;
    return this.#common !== null && this.#own.issuer.length === 0;
  }

  #read(text: string): Unverified | null {
    if (text.length > MAX_CHARACTERS || !isCanonicalToken(text)) return null;
    try {
      const header = decodeProtectedHeader(text);
      const claims = decodeJwt(text);
      const { alg: algorithm, kid } = header;
      if (typeof algorithm !== "string" || (kid !== undefined && typeof kid !== "string"))
        return null;
      const { key_claim: name } = this.#own;
      const keyName = claimOf(claims, name) ?? claimOf(header, name);
      return {
        text,
        algorithm,
        keyId: kid ?? null,
        issuer: typeof claims.iss === "string" ? claims.iss : null,
        keyName: typeof keyName === "string" ? keyName : null,
      };
    } catch {
      return null;
    }
  }

  async #verifyWithConsumer(token: Unverified, credential: CredentialView): Promise<Verdict> {
    // Algorithm confusion: a public key must never be used as a shared secret.
    if (credential.algorithm !== token.algorithm)
      return refused("algorithm", "the algorithm of the token does not match its key");
    const material = validMaterial(credential, Date.now());
    if (material.length === 0) return refused("key_expired", "the key of the token has expired");
    const { publicKey } = credential;
    if (publicKey !== null)
      return await this.#verifyWithAny(
        token,
        [await this.#importOnce(publicKey, token.algorithm)],
        credential,
      );
    const secrets = material.flatMap(({ secret }) => (secret === null ? [] : [secret]));
    const keys = secrets.map((secret) => new TextEncoder().encode(secret));
    return await this.#verifyWithAny(token, keys, credential);
  }

  #importOnce(pem: string, algorithm: string): Promise<CryptoKey> {
    const name = `${algorithm} ${pem}`;
    const known = this.#ofConsumers.get(name);
    if (known !== undefined) return known;
    const key = importSPKI(pem, algorithm);
    this.#ofConsumers.set(name, key);
    return key;
  }

  async #verifyWithIssuer(token: Unverified): Promise<Verdict> {
    const source = this.#common ?? this.#byIssuer.get(token.issuer ?? "") ?? null;
    if (source === null)
      return this.#byIssuer.size === 0
        ? unknownKey
        : refused("issuer", "the issuer of the token is not accepted");
    const keys = await source.keys();
    if (keys === null) return { kind: "unavailable" };
    const verdict = await this.#verifyWithSet(token, keys);
    if (verdict !== unknownKey && (verdict !== wrongSignature || token.keyId !== null))
      return verdict;
    // The key may be newer than the cached set.
    const newer = await source.newer(keys);
    return newer === null ? verdict : await this.#verifyWithSet(token, newer);
  }

  async #verifyWithSet(token: Unverified, keys: KeySet): Promise<Verdict> {
    const candidates = await keys.candidates(token.algorithm, token.keyId);
    return candidates.length === 0
      ? unknownKey
      : await this.#verifyWithAny(token, candidates, null);
  }

  async #verifyWithAny(
    token: Unverified,
    keys: readonly (CryptoKey | Uint8Array)[],
    credential: CredentialView | null,
  ): Promise<Verdict> {
    const { issuer, audience, clock_skew: clockTolerance } = this.#own;
    const options = {
      algorithms: [token.algorithm],
      clockTolerance,
      ...(issuer.length === 0 ? {} : { issuer: [...issuer] }),
      ...(audience.length === 0 ? {} : { audience: [...audience] }),
    };
    for (const key of keys) {
      try {
        const { payload } = await jwtVerify(token.text, key, options);
        return this.#judgeClaims(payload) ?? { kind: "accepted", claims: payload, credential };
      } catch (error) {
        const verdict = toRefusal(error);
        if (verdict !== wrongSignature) return verdict;
      }
    }
    return wrongSignature;
  }

  /** Checks beyond the library's; null: no problem. */
  #judgeClaims(claims: JWTPayload): Refused | null {
    const { maximum_expiration: most, claims_required: required, clock_skew: skew } = this.#own;
    if (most > 0) {
      if (claims.exp === undefined) return refused("no_expiration", "the token does not expire");
      if (claims.exp - Math.floor(Date.now() / 1000) > most + skew)
        return refused("too_long", "the token is valid for too long");
    }
    const isFulfilled = Object.entries(required).every(([name, wanted]) =>
      fulfils(claimOf(claims, name), wanted),
    );
    return isFulfilled
      ? null
      : refused("claims", "a claim of the token does not have the required value");
  }
}

const isAddress = (text: string) => /^https?:\/\//.test(text) && URL.canParse(text);

const ofClaims: Readonly<Record<string, readonly [reason: string, detail: string]>> = {
  exp: ["malformed", "the token is malformed"],
  nbf: ["not_yet_valid", "the token is not valid yet"],
  iss: ["issuer", "the issuer of the token is not accepted"],
  aud: ["audience", "the audience of the token is not accepted"],
};

/** Maps the library's errors to fixed texts for clients. */
function toRefusal(error: unknown): Refused {
  if (error instanceof errors.JWSSignatureVerificationFailed) return wrongSignature;
  if (error instanceof errors.JWTExpired) return refused("expired", "the token has expired");
  if (!(error instanceof errors.JWTClaimValidationFailed)) return malformed;
  const [reason, detail] = ofClaims[error.claim] ?? ["malformed", "the token is malformed"];
  return refused(reason, detail);
}
