// Verifies tokens that an OpenID provider has signed: key, signature, claims; knows no exchange.
import type { JWTPayload, JWTVerifyOptions, JWTVerifyResult } from "jose";
import { idTokenProblem, isCanonicalToken } from "../crypto/signed-token.ts";
import { OidcError } from "./failure.ts";
import { ALGORITHMS, type KeySet, type Libraries, type OidcProvider } from "./provider.ts";

/** Tolerated clock difference between provider and gateway. */
export const TOLERANCE_SECONDS = 30;
/** Types of Bearer tokens; excludes logout tokens, for example (OpenID Connect Back-Channel Logout 1.0, 2.4). */
const BEARER_TYPES = new Set(["", "jwt", "at+jwt", "application/at+jwt"]);

export type Claims = JWTPayload & { readonly sub: string };

export class TokenVerifier {
  readonly #provider: OidcProvider;
  readonly #jose: Libraries["jose"];

  constructor(provider: OidcProvider, { jose }: Libraries) {
    this.#provider = provider;
    this.#jose = jose;
  }

  /** Claims of an id token that passes all checks of OpenID Connect Core 3.1.3.7; `nonce` null: after a renewal. */
  async idClaims(
    token: string,
    { clientId, nonce }: { readonly clientId: string; readonly nonce: string | null },
  ): Promise<Claims> {
    const { payload: claims, protectedHeader: header } = await this.#verify(token, {
      audience: clientId,
      requiredClaims: ["sub", "exp", "iat"],
    });
    const nowS = Math.floor(this.#provider.clock.now() / 1000);
    const problem = idTokenProblem({ header, claims }, { nowS, toleranceS: TOLERANCE_SECONDS });
    if (problem !== null) throw new OidcError("invalid", problem);
    const { aud, azp } = claims;
    if (nonce !== null && claims["nonce"] !== nonce)
      throw new OidcError(
        "invalid",
        "nonce of the id token differs from the one that the gateway sent",
      );
    const isForSeveral = Array.isArray(aud) && aud.length > 1;
    if ((isForSeveral || azp !== undefined) && azp !== clientId)
      throw new OidcError("invalid", "azp of the id token is not the client id");
    return withSubject(claims);
  }

  /** Claims of a JWT used as Bearer token. */
  async bearerClaims(token: string, audience: readonly string[]): Promise<Claims> {
    const { payload, protectedHeader } = await this.#verify(token, {
      audience: [...audience],
      requiredClaims: ["sub", "exp"],
    });
    const { typ } = protectedHeader as { readonly typ?: unknown };
    if (typ !== undefined && !(typeof typ === "string" && BEARER_TYPES.has(typ.toLowerCase())))
      throw new OidcError("invalid", "the type of the token is not accepted");
    return withSubject(payload);
  }

  /** Whether it claims to be the provider's; tokens of others are for the application. */
  isOfProvider(token: string): boolean {
    try {
      return this.#jose.decodeJwt(token).iss === this.#provider.issuer;
    } catch {
      return false;
    }
  }

  async #verify(
    token: string,
    claims: Pick<JWTVerifyOptions, "audience" | "requiredClaims">,
  ): Promise<JWTVerifyResult> {
    if (!isCanonicalToken(token)) throw rejected("it is not three parts of canonical base64url");
    const options: JWTVerifyOptions = {
      ...claims,
      algorithms: ALGORITHMS,
      issuer: this.#provider.issuer,
      clockTolerance: TOLERANCE_SECONDS,
      currentDate: new Date(this.#provider.clock.now()),
    };
    const { errors } = this.#jose;
    try {
      try {
        return await this.#verifyWith(token, options, await this.#provider.keys());
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      }
      return await this.#verifyWith(token, options, await this.#provider.newerKeys());
    } catch (error) {
      if (error instanceof OidcError) throw error;
      if (!(error instanceof errors.JOSEError)) throw rejected("it cannot be verified");
      // Messages of jose have the claim or the reason, not the value.
      throw rejected(`${error.message} (${error.code})`);
    }
  }

  async #verifyWith(
    token: string,
    options: JWTVerifyOptions,
    keys: KeySet,
  ): Promise<JWTVerifyResult> {
    const { errors, jwtVerify } = this.#jose;
    try {
      return await jwtVerify(token, keys, options);
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
      // A token without `kid` may be signed with any matching key.
      for await (const key of error) {
        try {
          return await jwtVerify(token, key, options);
        } catch (inner) {
          if (!(inner instanceof errors.JWSSignatureVerificationFailed)) throw inner;
        }
      }
      throw new errors.JWSSignatureVerificationFailed();
    }
  }
}

const rejected = (reason: string) => new OidcError("invalid", `the token is rejected: ${reason}`);

function withSubject(payload: JWTPayload): Claims {
  const { sub } = payload;
  if (typeof sub !== "string" || sub === "" || sub.length > 255)
    throw new OidcError("invalid", "sub of the token is not a text of 1 to 255 characters");
  return { ...payload, sub };
}
