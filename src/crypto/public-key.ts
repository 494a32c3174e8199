// Reads public keys for signatures; knows neither whose they are nor what is signed.
import { createPublicKey, type KeyObject } from "node:crypto";

/** Below that RSA can be broken: NIST SP 800-131A. */
const MIN_RSA_BITS = 2048;

/** What an algorithm needs: the type of the key and, for elliptic curves, the name that OpenSSL has for the curve. */
const needs: Readonly<Record<string, readonly [type: string, curve: string | null]>> = {
  RS256: ["rsa", null],
  RS384: ["rsa", null],
  RS512: ["rsa", null],
  PS256: ["rsa", null],
  PS384: ["rsa", null],
  PS512: ["rsa", null],
  ES256: ["ec", "prime256v1"],
  ES384: ["ec", "secp384r1"],
  ES512: ["ec", "secp521r1"],
  EdDSA: ["ed25519", null],
  ed25519: ["ed25519", null],
};

const curveWords: Readonly<Record<string, string>> = {
  prime256v1: "a key on the curve P-256",
  secp384r1: "a key on the curve P-384",
  secp521r1: "a key on the curve P-521",
};

/** Why a text is no public key for an algorithm; the message follows the name of a field and holds no part of the text. */
export class PublicKeyError extends Error {}

/** The key in one spelling, PEM with a SubjectPublicKeyInfo. Throws a PublicKeyError. */
export function readPublicKey(pem: string, algorithm: string): string {
  // The runtime would take the public part of a private key, and the private part would be stored in the clear.
  if (/PRIVATE KEY/.test(pem)) throw new PublicKeyError("must be a public key, not a private one");
  const key = parse(pem);
  const [type, curve] = needs[algorithm] ?? [];
  if (key.asymmetricKeyType !== type) throw new PublicKeyError(describe(algorithm));
  const { namedCurve, modulusLength } = key.asymmetricKeyDetails ?? {};
  if (curve !== null && namedCurve !== curve) throw new PublicKeyError(describe(algorithm));
  if (type === "rsa" && (modulusLength ?? 0) < MIN_RSA_BITS)
    throw new PublicKeyError(`must have at least ${MIN_RSA_BITS} bits`);
  return key.export({ type: "spki", format: "pem" }).toString();
}

function parse(pem: string): KeyObject {
  try {
    return createPublicKey(pem);
  } catch (error) {
    throw new PublicKeyError("must be a public key in PEM", { cause: error });
  }
}

function describe(algorithm: string): string {
  const [type, curve] = needs[algorithm] ?? [];
  const words = type === "rsa" ? "an RSA key" : (curveWords[curve ?? ""] ?? "an Ed25519 key");
  return `must be ${words} for ${algorithm}`;
}
