// Exchanges of a client with an OpenID provider: start, callback, code, refresh token, userinfo; knows no session and no user.
import type { Client, ClientAuth, JsonObject, TokenEndpointResponse } from "oauth4webapi";
import { quote } from "../net/quote.ts";
import { OidcError } from "./failure.ts";
import { type Libraries, loadLibraries, type Metadata, type OidcProvider } from "./provider.ts";
import { type Claims, TOLERANCE_SECONDS, TokenVerifier } from "./verification.ts";

export interface OidcClientOptions {
  readonly provider: OidcProvider;
  readonly clientId: string;
  /** Null: a public client without a secret. */
  readonly clientSecret: string | null;
  /** How the client authenticates to the token endpoint; `announced`: as the provider wants. */
  readonly clientAuth: "basic" | "post" | "announced";
}

/** A sign-in that begins: where the browser goes, and what the callback and the token endpoint need afterwards. */
export interface BegunSignIn {
  readonly url: URL;
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

/** What the token endpoint expects for a code; the client sent it to the provider at the start. */
export interface CodeGrant {
  readonly code: string;
  readonly redirectUri: string;
  /** Null: without PKCE. */
  readonly codeVerifier: string | null;
  readonly nonce: string;
}

export interface Tokens {
  readonly response: TokenEndpointResponse;
  /** Of the verified id token. */
  readonly claims: Claims;
}

/** Null only after a renewal, in which the id token is optional. */
export type RenewedTokens = Omit<Tokens, "claims"> & { readonly claims: Claims | null };

export class OidcClient {
  readonly provider: OidcProvider;
  readonly verifier: TokenVerifier;
  readonly #options: OidcClientOptions;
  readonly #oauth: Libraries["oauth"];
  readonly #arctic: Libraries["arctic"];

  private constructor(options: OidcClientOptions, libraries: Libraries) {
    this.provider = options.provider;
    this.verifier = new TokenVerifier(options.provider, libraries);
    this.#options = options;
    this.#oauth = libraries.oauth;
    this.#arctic = libraries.arctic;
  }

  static async open(options: OidcClientOptions): Promise<OidcClient> {
    return new OidcClient(options, await loadLibraries());
  }

  /** A new sign-in at the provider; `pkce`: whether its address has a challenge for the code. */
  async begin({
    redirectUri,
    scopes,
    pkce,
  }: {
    readonly redirectUri: string;
    readonly scopes: readonly string[];
    readonly pkce: boolean;
  }): Promise<BegunSignIn> {
    const { CodeChallengeMethod, generateCodeVerifier, generateState, OAuth2Client } = this.#arctic;
    const { authorization_endpoint: endpoint } = await this.provider.metadata();
    const [state, nonce, codeVerifier] = [generateState(), generateState(), generateCodeVerifier()];
    const client = new OAuth2Client(this.#options.clientId, null, redirectUri);
    const { S256 } = CodeChallengeMethod;
    const url = pkce
      ? client.createAuthorizationURLWithPKCE(endpoint, state, S256, codeVerifier, [...scopes])
      : client.createAuthorizationURL(endpoint, state, [...scopes]);
    url.searchParams.set("nonce", nonce);
    return { url, state, nonce, codeVerifier };
  }

  /** The code in the provider's redirect to the callback, whose state is checked already. */
  async codeOf(parameters: URLSearchParams): Promise<string> {
    const oauth = this.#oauth;
    const metadata = await this.provider.metadata();
    try {
      // Also checks the issuer, so that no code of another provider reaches this token endpoint (RFC 9207).
      oauth.validateAuthResponse(metadata, this.#client, parameters, oauth.skipStateCheck);
    } catch (error) {
      if (error instanceof oauth.AuthorizationResponseError) throw denial(error);
      throw new OidcError("refused", `the callback is rejected: ${messageOf(error)}`);
    }
    const [code = "", ...others] = parameters.getAll("code");
    if (code === "" || others.length > 0)
      throw new OidcError("refused", "the callback has neither one code nor an error");
    return code;
  }

  /** Exchanges a code, and verifies the id token. */
  async exchange({ code, redirectUri, codeVerifier, nonce }: CodeGrant): Promise<Tokens> {
    const form = {
      code,
      redirect_uri: redirectUri,
      ...(codeVerifier === null ? {} : { code_verifier: codeVerifier }),
    };
    const { response, claims } = await this.#request("authorization_code", form, nonce);
    if (claims === null) throw new OidcError("refused", "the response has no id token");
    return { response, claims };
  }

  renew(refreshToken: string): Promise<RenewedTokens> {
    return this.#request("refresh_token", { refresh_token: refreshToken }, null);
  }

  /** Claims of the userinfo endpoint; null when the provider has none. */
  async userinfo(accessToken: string, subject: string): Promise<JsonObject | null> {
    const oauth = this.#oauth;
    const metadata = await this.provider.metadata();
    if (metadata.userinfo_endpoint === undefined) return null;
    const options = this.#requestOptions;
    const client = this.#client;
    const response = await oauth.userInfoRequest(metadata, client, accessToken, options);
    try {
      return await oauth.processUserInfoResponse(metadata, client, subject, response);
    } catch (error) {
      // An attacker may have swapped the access token for that of another subject (OpenID Connect Core 5.3.2).
      if (codeOf(error) === oauth.JSON_ATTRIBUTE_COMPARISON)
        throw new OidcError("invalid", "the userinfo endpoint returned claims of another subject");
      const { status } = response;
      const message = `the userinfo endpoint responded with ${status} and no claims`;
      throw new OidcError("refused", message, { status });
    }
  }

  /**
   * The address of the provider's logout (OpenID Connect RP-Initiated Logout 1.0, section 2); null when there is none, or the
   * provider is unavailable. `after`: where the browser goes then.
   */
  async logoutUrl(idToken: string | null, after: string | null): Promise<URL | null> {
    const metadata = await this.provider.metadata().catch(() => null);
    if (metadata?.end_session_endpoint === undefined) return null;
    const url = new URL(metadata.end_session_endpoint);
    if (idToken !== null) url.searchParams.set("id_token_hint", idToken);
    url.searchParams.set("client_id", this.#options.clientId);
    if (after !== null) url.searchParams.set("post_logout_redirect_uri", after);
    return url;
  }

  async #request(
    grantType: "authorization_code" | "refresh_token",
    form: Readonly<Record<string, string>>,
    nonce: string | null,
  ): Promise<RenewedTokens> {
    const oauth = this.#oauth;
    const metadata = await this.provider.metadata();
    const client = this.#client;
    const response = await oauth.genericTokenEndpointRequest(
      metadata,
      client,
      this.#authentication(metadata),
      grantType,
      form,
      this.#requestOptions,
    );
    const claims = await this.#idClaims(response.clone(), nonce);
    try {
      const process =
        nonce === null
          ? oauth.processRefreshTokenResponse(metadata, client, response)
          : oauth.processAuthorizationCodeResponse(metadata, client, response, {
              expectedNonce: nonce,
            });
      return { response: await process, claims };
    } catch (error) {
      throw await this.#refusal(error, response.status, Object.values(form));
    }
  }

  /** Null when the response has no id token. */
  async #idClaims(response: Response, nonce: string | null): Promise<Claims | null> {
    const body = (await response.json().catch(() => null)) as {
      readonly id_token?: unknown;
    } | null;
    const token = response.status === 200 ? body?.id_token : undefined;
    if (typeof token !== "string") return null;
    return await this.verifier.idClaims(token, { clientId: this.#options.clientId, nonce });
  }

  async #refusal(error: unknown, status: number, sent: readonly string[]): Promise<OidcError> {
    const { error: code, error_description: text } = await bodyOf(error);
    const secrets = [...sent, this.#options.clientSecret];
    const said = [code, text].map((word) => quote(word, secrets)).filter((word) => word !== "");
    const reason = status === 200 ? [messageOf(error)] : said;
    return new OidcError(
      status >= 500 ? "unusable" : "refused",
      `the token endpoint responded with ${[status, reason.join(": ")].filter(Boolean).join(", ")}`,
      { status, error: typeof code === "string" ? code : undefined },
    );
  }

  get #client(): Client {
    const { clock } = this.provider;
    return {
      client_id: this.#options.clientId,
      [this.#oauth.clockTolerance]: TOLERANCE_SECONDS,
      [this.#oauth.clockSkew]: Math.round((clock.now() - Date.now()) / 1000),
    };
  }

  get #requestOptions() {
    return {
      [this.#oauth.customFetch]: this.provider.send,
      // The endpoints are checked: without TLS they are on this machine.
      [this.#oauth.allowInsecureRequests]: true,
    };
  }

  #authentication({ token_endpoint_auth_methods_supported: methods }: Metadata): ClientAuth {
    const { clientSecret, clientAuth } = this.#options;
    if (clientSecret === null) return this.#oauth.None();
    const isBasic =
      clientAuth === "announced"
        ? (methods?.includes("client_secret_basic") ?? true)
        : clientAuth === "basic";
    return isBasic ? basic(clientSecret) : this.#oauth.ClientSecretPost(clientSecret);
  }
}

/**
 * RFC 6749 2.3.1: id and secret are form-encoded, so that they may contain a colon. Unlike the library's, it leaves hyphens and
 * underscores as they are, because some providers do not decode.
 */
const basic =
  (secret: string): ClientAuth =>
  (...[, { client_id: id }, , headers]) => {
    const encode = (text: string) => new URLSearchParams({ x: text }).toString().slice(2);
    const credentials = Buffer.from(`${encode(id)}:${encode(secret)}`).toString("base64");
    headers.set("authorization", `Basic ${credentials}`);
  };

function denial(response: { readonly error: string; readonly error_description?: string }) {
  const { error, error_description: text } = response;
  const said = [error, text].map((word) => quote(word, [])).filter((word) => word !== "");
  const isDown = error === "server_error" || error === "temporarily_unavailable";
  const kind = error === "access_denied" ? "denied" : isDown ? "unusable" : "refused";
  return new OidcError(kind, `the provider returned ${said.join(": ")}`, { error });
}

interface ErrorBody {
  readonly error?: unknown;
  readonly error_description?: unknown;
}

/** The error in the body of a response; the library does not read it when there is a challenge in the head. */
async function bodyOf(error: unknown): Promise<ErrorBody> {
  const known = error as ErrorBody & { readonly response?: unknown };
  if (known.error !== undefined || !(known.response instanceof Response)) return known;
  const body = (await known.response.json().catch(() => null)) as ErrorBody | null;
  return body ?? {};
}

/** Messages of the library have the name of a member, not its value. */
const messageOf = (error: unknown) => (error as Error).message;

const codeOf = (error: unknown) => (error as { readonly code?: unknown }).code;
