// Verifies id tokens: signature, issuer, audience, time, nonce; knows no user.
import {
  errors,
  type JWTPayload,
  type JWTVerifyOptions,
  type JWTVerifyResult,
  jwtVerify,
} from "jose";
import { idTokenProblem, isCanonicalToken } from "../../crypto/signed-token.ts";
import { SsoError } from "./failure.ts";
import type { KeySet, Provider } from "./provider.ts";

/** Asymmetric signatures only: HS* would use the client secret, and `none` has no signature. */
const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];
/** Allowed clock skew between provider and gateway. */
const TOLERANCE_SECONDS = 30;

export interface Expected {
  readonly clientId: string;
  readonly nonce: string;
  readonly now: Date;
}

export type Claims = JWTPayload & { readonly sub: string };

/** The claims of a token that passes every check of OpenID Connect Core 3.1.3.7; throws an SsoError otherwise. */
export async function verifyIdToken(
  token: string,
  provider: Provider,
  expected: Expected,
): Promise<Claims> {
  if (!isCanonicalToken(token))
    throw new SsoError(
      "invalid_token",
      "the id token is rejected: it is not three parts of canonical base64url",
    );
  const options: JWTVerifyOptions = {
    algorithms: ALGORITHMS,
    issuer: provider.issuer,
    audience: expected.clientId,
    clockTolerance: TOLERANCE_SECONDS,
    currentDate: expected.now,
    requiredClaims: ["sub", "exp", "iat"],
  };
  const verified = await verifySignature(token, provider, options);
  const { payload: claims, protectedHeader: header } = verified;
  const problem = idTokenProblem(
    { header, claims },
    { nowS: Math.floor(expected.now.getTime() / 1000), toleranceS: TOLERANCE_SECONDS },
  );
  if (problem !== null) throw new SsoError("invalid_token", problem);
  const { sub, nonce, aud, azp } = claims;
  if (typeof sub !== "string" || sub === "" || sub.length > 255)
    throw new SsoError("invalid_token", "sub of the id token is not a text of 1 to 255 characters");
  if (nonce !== expected.nonce)
    throw new SsoError(
      "invalid_token",
      "nonce of the id token differs from the one that the gateway sent",
    );
  const isForSeveral = Array.isArray(aud) && aud.length > 1;
  if ((isForSeveral || azp !== undefined) && azp !== expected.clientId)
    throw new SsoError("invalid_token", "azp of the id token is not the client id");
  return { ...claims, sub };
}

async function verifySignature(
  token: string,
  provider: Provider,
  options: JWTVerifyOptions,
): Promise<JWTVerifyResult> {
  const known = await provider.keys();
  try {
    return await verifyWith(token, known, options);
  } catch (error) {
    if (!(error instanceof errors.JWKSNoMatchingKey)) throw refusal(error);
  }
  const newer = await provider.newerKeys(known);
  if (newer === null)
    throw new SsoError("invalid_token", "the id token is signed with an unknown key");
  try {
    return await verifyWith(token, newer, options);
  } catch (error) {
    throw refusal(error);
  }
}

async function verifyWith(token: string, keys: KeySet, options: JWTVerifyOptions) {
  try {
    return await jwtVerify(token, keys, options);
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    return await verifyWithAny(token, error, options);
  }
}

/** A token without a key id may be signed with any suitable key. */
async function verifyWithAny(
  token: string,
  candidates: errors.JWKSMultipleMatchingKeys,
  options: JWTVerifyOptions,
): Promise<JWTVerifyResult> {
  for await (const key of candidates) {
    try {
      return await jwtVerify(token, key, options);
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
    }
  }
  throw new errors.JWSSignatureVerificationFailed();
}

/** Errors of jose name the claim or the reason. Their field with the claims of the token is dropped. */
function refusal(error: unknown): SsoError {
  if (!(error instanceof errors.JOSEError))
    return new SsoError("invalid_token", "the id token cannot be verified");
  return new SsoError(
    "invalid_token",
    `the id token is rejected: ${error.message} (${error.code})`,
  );
}
