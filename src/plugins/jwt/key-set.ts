// Selects the keys of a JSON Web Key Set that may have signed a token; knows neither its origin nor any claim.
import { type CryptoKey, importJWK, type JWK } from "jose";

/** Further keys are ignored. */
const MAX_KEYS = 100;
/** Most keys to try for a token without `kid`. */
const MAX_TRIED = 10;
/** Base64url characters of 2047 bits: shorter moduli are insecure (NIST SP 800-131A). */
const MIN_MODULUS = 342;

const ofRsa = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"];
const ofCurves: Readonly<Record<string, string>> = {
  "P-256": "ES256",
  "P-384": "ES384",
  "P-521": "ES512",
  Ed25519: "EdDSA",
};

/** A key and its algorithms. */
interface PublicKey {
  readonly id: string | null;
  readonly algorithms: readonly string[];
  readonly jwk: JWK;
  readonly imported: Map<string, Promise<CryptoKey>>;
}

/** Immutable except for the cache of imported keys. */
export class KeySet {
  readonly #keys: readonly PublicKey[];

  private constructor(keys: readonly PublicKey[]) {
    this.#keys = keys;
  }

  /** Ignores unsupported keys; null when none is left or this is no key set (RFC 7517 section 5). */
  static read(document: unknown): KeySet | null {
    if (typeof document !== "object" || document === null) return null;
    const { keys } = document as { readonly keys?: unknown };
    if (!Array.isArray(keys)) return null;
    const usable = keys
      .slice(0, MAX_KEYS)
      .map(toPublicKey)
      .filter((key) => key !== null);
    return usable.length === 0 ? null : new KeySet(usable);
  }

  /** The keys that match the algorithm and key id of a token's header, without those that cannot be imported. */
  async candidates(algorithm: string, id: string | null): Promise<readonly CryptoKey[]> {
    const fitting = this.#keys.filter(
      (key) => key.algorithms.includes(algorithm) && (id === null || key.id === id),
    );
    const imported = await Promise.allSettled(
      fitting.slice(0, MAX_TRIED).map((key) => importOnce(key, algorithm)),
    );
    return imported.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  }
}

function toPublicKey(value: unknown): PublicKey | null {
  if (typeof value !== "object" || value === null) return null;
  const {
    kty,
    kid,
    use,
    alg,
    crv,
    n,
    e,
    x,
    y,
    key_ops: operations,
  } = value as Readonly<Record<string, unknown>>;
  if (use !== undefined && use !== "sig") return null;
  if (Array.isArray(operations) && !operations.includes("verify")) return null;
  const possible = algorithmsOf({ kty, crv, n });
  // Ed25519 is the newer name (RFC 9864).
  const own = alg === "Ed25519" ? "EdDSA" : alg;
  const algorithms = own === undefined ? possible : possible.filter((each) => each === own);
  if (algorithms.length === 0) return null;
  const members = Object.entries({ kty, crv, n, e, x, y }).filter(
    ([, member]) => typeof member === "string",
  );
  const jwk = Object.fromEntries(members) as JWK;
  return { id: typeof kid === "string" ? kid : null, algorithms, jwk, imported: new Map() };
}

/** The algorithms of a key of this type; never those of shared secrets, which would be public. */
function algorithmsOf({
  kty,
  crv,
  n,
}: {
  readonly kty: unknown;
  readonly crv: unknown;
  readonly n: unknown;
}): readonly string[] {
  if (kty === "RSA") return typeof n === "string" && n.length >= MIN_MODULUS ? ofRsa : [];
  if ((kty !== "EC" && kty !== "OKP") || typeof crv !== "string") return [];
  const algorithm = Object.hasOwn(ofCurves, crv) ? ofCurves[crv] : undefined;
  return algorithm === undefined || (kty === "OKP") !== (algorithm === "EdDSA") ? [] : [algorithm];
}

function importOnce({ jwk, imported }: PublicKey, algorithm: string): Promise<CryptoKey> {
  const known = imported.get(algorithm);
  if (known !== undefined) return known;
  // Only shared secrets are imported as bytes, never public keys.
  const key = importJWK(jwk, algorithm) as Promise<CryptoKey>;
  imported.set(algorithm, key);
  return key;
}
