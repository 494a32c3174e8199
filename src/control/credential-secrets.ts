// Secrets of credentials: which ones are good enough, how they are made and how they are kept; knows no change.
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

/** What is stored of a secret. */
export type Material = Pick<Credential, "secret_hash" | "sealed_secret"> & {
  /** The first characters of a key; null for everything else. */
  readonly prefix: string | null;
};

export const noMaterial: Material = { secret_hash: null, sealed_secret: null, prefix: null };

const PREFIX_CHARACTERS = 8;
const MIN_KEY_CHARACTERS = 16;
const MIN_SHARED_CHARACTERS = 32;
const SHARED_BYTES = 64;

/** What a credential of the type uses when nothing is said; null for those that have no algorithm. */
export function algorithmOf(
  type: CredentialType,
  asked: CredentialAlgorithm | null,
): CredentialAlgorithm | null {
  if (asked !== null) return asked;
  return type === "jwt" ? "HS256" : type === "hmac" ? "hmac-sha256" : null;
}

/** Whether there is something that both sides know; the others have a key pair. */
export const isSecretive = (algorithm: CredentialAlgorithm | null): boolean =>
  algorithm === null || isSymmetric(algorithm);

/** A secret that nobody can guess. */
export const createSecret = (type: CredentialType): string =>
  type === "key" || type === "basic"
    ? createToken()
    : randomBytes(SHARED_BYTES).toString("base64url");

/** An identifier that nobody has. */
export const createIdentifier = (): string => randomBytes(16).toString("base64url");

/** Throws a 400 that never holds the secret. */
export function checkSecret(type: CredentialType, secret: string): void {
  const problem = problemOf(type, secret);
  if (problem !== null) throw invalid("secret", problem);
}

function problemOf(type: CredentialType, secret: string): string | null {
  switch (type) {
    case "key":
      // It is sent in header fields and in addresses.
      if (!/^[\x21-\x7e]*$/.test(secret)) return "must be printable ASCII without spaces";
      return secret.length < MIN_KEY_CHARACTERS
        ? `must have at least ${MIN_KEY_CHARACTERS} characters`
        : null;
    case "basic":
      // RFC 7617 section 2; half a character would be replaced when it is hashed.
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
 * How a password is stored. Takes a while. The hash that is there stays when it is of the same password, although each
 * hashing gives something new: writing what is there already must change nothing.
 */
export async function hashBasic(password: string, old: string | null): Promise<string> {
  if (old !== null && (await verifyPassword(password, old))) return old;
  return await hashPassword(password);
}

/** How a secret that is no password is stored; what is there already stays as it is. */
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

/** The public key in one spelling; throws a 400. */
export function checkPublicKey(pem: string, algorithm: CredentialAlgorithm): string {
  try {
    return readPublicKey(pem, algorithm);
  } catch (error) {
    if (error instanceof PublicKeyError) throw invalid("public_key", error.message);
    throw error;
  }
}
