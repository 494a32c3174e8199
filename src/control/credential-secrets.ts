// Secrets of credentials: their validation, generation and storage; knows no change.
import { randomBytes } from "node:crypto";
import { hashPassword, verifyPassword } from "../crypto/password.ts";
import { PublicKeyError, readPublicKey } from "../crypto/public-key.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import { createToken, hashToken } from "../crypto/token.ts";
import {
  type Credential,
  type CredentialAlgorithm,
  type CredentialType,
  isSymmetric,
} from "../model/credential.ts";
import { invalid } from "../model/error.ts";

/** The stored form of a secret. */
export type Material = Pick<Credential, "secret_hash" | "sealed_secret"> & {
  /** The first characters of a key; null for everything else. */
  readonly prefix: string | null;
};

export const noMaterial: Material = { secret_hash: null, sealed_secret: null, prefix: null };

const PREFIX_CHARACTERS = 8;
const MIN_KEY_CHARACTERS = 16;
const MIN_SHARED_CHARACTERS = 32;
const SHARED_BYTES = 64;

/** The default algorithm of the type; null for types without one. */
export function algorithmOf(
  type: CredentialType,
  asked: CredentialAlgorithm | null,
): CredentialAlgorithm | null {
  if (asked !== null) return asked;
  return type === "jwt" ? "HS256" : type === "hmac" ? "hmac-sha256" : null;
}

/** Whether both sides share a secret; otherwise there is a key pair. */
export const hasSharedSecret = (algorithm: CredentialAlgorithm | null): boolean =>
  algorithm === null || isSymmetric(algorithm);

/** A random secret. */
export const createSecret = (type: CredentialType): string =>
  type === "key" || type === "basic"
    ? createToken()
    : randomBytes(SHARED_BYTES).toString("base64url");

/** A random identifier. */
export const createIdentifier = (): string => randomBytes(16).toString("base64url");

/** Throws a 400 that never contains the secret. */
export function checkSecret(type: CredentialType, secret: string): void {
  const problem = problemOf(type, secret);
  if (problem !== null) throw invalid("secret", problem);
}

function problemOf(type: CredentialType, secret: string): string | null {
  switch (type) {
    case "key":
      // It is sent in header fields and in URLs.
      if (!/^[\x21-\x7e]*$/.test(secret)) return "must be printable ASCII without spaces";
      return secret.length < MIN_KEY_CHARACTERS
        ? `must have at least ${MIN_KEY_CHARACTERS} characters`
        : null;
    case "basic":
      // RFC 7617 section 2; a lone surrogate would be replaced before hashing.
      return /\p{Cc}/u.test(secret) || !secret.isWellFormed()
        ? "must be text without control characters"
        : null;
    case "jwt":
    case "hmac":
      if (!secret.isWellFormed()) return "must be valid Unicode";
      return secret.length < MIN_SHARED_CHARACTERS
        ? `must have at least ${MIN_SHARED_CHARACTERS} characters`
        : null;
    default:
      return type satisfies never;
  }
}

/**
 * The stored form of a password. Slow. Returns the present hash for the same password, because a new hash would differ and
 * writing the stored value again must change nothing.
 */
export async function hashBasic(password: string, old: string | null): Promise<string> {
  if (old !== null && (await verifyPassword(password, old))) return old;
  return await hashPassword(password);
}

/** The stored form of another secret; the present one for the same secret. */
export function toMaterial(
  secret: string,
  { type, old, box }: { type: CredentialType; old: Material | null; box: SecretBox },
): Material {
  if (type === "key")
    return {
      secret_hash: hashToken(secret),
      sealed_secret: null,
      prefix: secret.slice(0, PREFIX_CHARACTERS),
    };
  const sealed = old?.sealed_secret ?? null;
  const isSame = sealed !== null && box.open(sealed) === secret;
  return { ...noMaterial, sealed_secret: isSame ? sealed : box.seal(secret) };
}

/** The normalized public key; throws a 400. */
export function checkPublicKey(pem: string, algorithm: CredentialAlgorithm): string {
  try {
    return readPublicKey(pem, algorithm);
  } catch (error) {
    if (error instanceof PublicKeyError) throw invalid("public_key", error.message);
    throw error;
  }
}
