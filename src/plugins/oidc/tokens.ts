// Requests tokens from the provider and verifies them; knows no session and no cookie.
import type { JWTPayload, JWTVerifyOptions, JWTVerifyResult } from "jose";
import { idTokenProblem, isCanonicalToken } from "../../pdk/crypto.ts";
import { type Document, isDocument, type Jose, OidcError, type Provider } from "./provider.ts";

/** Asymmetric algorithms: with HS* the client could sign, and `none` is unsigned. */
const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];
/** Tolerated clock difference between provider and gateway. */
const TOLERANCE_SECONDS = 30;
/** Types of Bearer tokens; excludes logout tokens, for example (OpenID Connect Back-Channel Logout 1.0, 2.4). */
const BEARER_TYPES = new Set(["", "jwt", "at+jwt", "application/at+jwt"]);

export type Claims = JWTPayload & { readonly sub: string };

/** The response of the token endpoint. */
export interface Tokens {
  readonly accessToken: string | null;
  readonly refreshToken: string | null;
  readonly idToken: string | null;
  /** Seconds; null when the provider does not say. */
  readonly expiresIn: number | null;
}

export interface TokenClientOptions {
  readonly provider: Provider;
  readonly jose: Jose;
  readonly clientId: string;
  /** Null: a public client. */
  readonly clientSecret: string | null;
  readonly bearerAudience: readonly string[];
}

export class TokenClient {
  readonly #options: TokenClientOptions;

  constructor(options: TokenClientOptions) {
    this.#options = options;
  }

  /** Sends a token request; throws an OidcError when it fails. */
  async request(grant: Readonly<Record<string, string>>): Promise<Tokens> {
    const { provider, clientId, clientSecret } = this.#options;
    const { tokenEndpoint, tokenAuthMethods } = await provider.metadata();
    const form = new URLSearchParams(grant);
    const isBasic =
      clientSecret !== null &&
      (tokenAuthMethods === null || tokenAuthMethods.includes("client_secret_basic"));
    if (!isBasic) form.set("client_id", clientId);
    if (clientSecret !== null && !isBasic) form.set("client_secret", clientSecret);
    const { status, body } = await provider.ask({
      url: tokenEndpoint,
      method: "POST",
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        ...(isBasic ? { authorization: basic(clientId, clientSecret ?? "") } : {}),
      },
      body: form.toString(),
    });
    if (status !== 200 || !isDocument(body)) throw refusal(status, body);
    return {
      accessToken: textOf(body["access_token"]),
      refreshToken: textOf(body["refresh_token"]),
      idToken: textOf(body["id_token"]),
      expiresIn: secondsOf(body["expires_in"]),
    };
  }

  /** Claims of an id token that passes all checks of OpenID Connect Core 3.1.3.7; `nonce` null: after a renewal. */
  async idClaims(token: string, nonce: string | null): Promise<Claims> {
    const { clientId, provider } = this.#options;
    const { payload, protectedHeader } = await this.#verify(token, {
      algorithms: ALGORITHMS,
      issuer: provider.issuer,
      audience: clientId,
      clockTolerance: TOLERANCE_SECONDS,
      requiredClaims: ["sub", "exp", "iat"],
    });
    const problem = idTokenProblem(
      { header: protectedHeader, claims: payload },
      { nowS: Math.floor(Date.now() / 1000), toleranceS: TOLERANCE_SECONDS },
    );
    if (problem !== null) throw new OidcError("refused", problem);
    const { aud, azp } = payload;
    if (nonce !== null && payload["nonce"] !== nonce)
      throw new OidcError("refused", "nonce of the id token does not match");
    const isForSeveral = Array.isArray(aud) && aud.length > 1;
    if ((isForSeveral || azp !== undefined) && azp !== clientId)
      throw new OidcError("refused", "azp of the id token is not our client id");
    return withSubject(payload);
  }

  /** Claims of a JWT used as Bearer token. */
  async bearerClaims(token: string): Promise<Claims> {
    const { bearerAudience, provider } = this.#options;
    const { payload, protectedHeader } = await this.#verify(token, {
      algorithms: ALGORITHMS,
      issuer: provider.issuer,
      audience: [...bearerAudience],
      clockTolerance: TOLERANCE_SECONDS,
      requiredClaims: ["sub", "exp"],
    });
    if (!isBearerType(protectedHeader.typ))
      throw new OidcError("refused", "the type of the token is not accepted");
    return withSubject(payload);
  }

  /** Whether it claims to be the provider's; tokens of others are for the application. */
  isOfProvider(token: string): boolean {
    const { provider, jose } = this.#options;
    try {
      return jose.decodeJwt(token).iss === provider.issuer;
    } catch {
      return false;
    }
  }

  /** Claims of the userinfo endpoint; empty when there is none. */
  async userinfo(accessToken: string | null, subject: string): Promise<Document> {
    const { provider } = this.#options;
    const { userinfoEndpoint } = await provider.metadata();
    if (userinfoEndpoint === null || accessToken === null) return {};
    const headers = { authorization: `Bearer ${accessToken}` };
    const { status, body } = await provider.ask({ url: userinfoEndpoint, headers });
    if (status !== 200 || !isDocument(body)) return {};
    // OpenID Connect Core 5.3.2.
    if (body["sub"] !== subject)
      throw new OidcError("refused", "sub of the userinfo response does not match");
    return body;
  }

  async #verify(token: string, options: JWTVerifyOptions): Promise<JWTVerifyResult> {
    const { errors } = this.#options.jose;
    if (!isCanonicalToken(token))
      throw new OidcError(
        "refused",
        "the token is rejected: it is not three parts of canonical base64url",
      );
    try {
      try {
        return await this.#verifyWith(token, options, await this.#options.provider.keys());
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      }
      return await this.#verifyWith(token, options, await this.#options.provider.newerKeys());
    } catch (error) {
      if (error instanceof OidcError) throw error;
      // Messages of jose have the claim or the reason, not the value.
      const message = error instanceof errors.JOSEError ? error.message : "it cannot be read";
      throw new OidcError("refused", `the token is rejected: ${message}`);
    }
  }

  async #verifyWith(
    token: string,
    options: JWTVerifyOptions,
    keys: Awaited<ReturnType<Provider["keys"]>>,
  ): Promise<JWTVerifyResult> {
    const { errors, jwtVerify } = this.#options.jose;
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

function withSubject(payload: JWTPayload): Claims {
  const { sub } = payload;
  if (typeof sub !== "string" || sub === "" || sub.length > 255)
    throw new OidcError("refused", "sub of the token is not valid");
  return { ...payload, sub };
}

/** The library checks neither type nor content. */
const isBearerType = (typ: unknown) =>
  typ === undefined || (typeof typ === "string" && BEARER_TYPES.has(typ.toLowerCase()));

const textOf = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);

/** Some providers write the number as a string. */
function secondsOf(value: unknown): number | null {
  const seconds = Number(value ?? Number.NaN);
  return Number.isFinite(seconds) && seconds > 0 ? Math.floor(seconds) : null;
}

/** RFC 6749 2.3.1: id and secret are form-encoded, so that they may contain a colon. */
function basic(id: string, secret: string): string {
  const encode = (text: string) => new URLSearchParams({ x: text }).toString().slice(2);
  return `Basic ${Buffer.from(`${encode(id)}:${encode(secret)}`).toString("base64")}`;
}

/** Only the error code: the description may repeat what was sent. */
function refusal(status: number, body: unknown): OidcError {
  const code = isDocument(body) ? textOf(body["error"]) : null;
  const shown = code !== null && /^[a-z_]{1,40}$/.test(code) ? `, ${code}` : "";
  return new OidcError(
    status >= 500 ? "unavailable" : "refused",
    `the token endpoint responded ${status}${shown}`,
  );
}
