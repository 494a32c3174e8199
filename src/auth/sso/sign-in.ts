// Runs a sign-in from its start to the session; knows no HTTP of the management API.
import type { Clock } from "../../clock.ts";
import type { SecretBox } from "../../crypto/secret-box.ts";
import { createRandomText } from "../../crypto/token.ts";
import type { Sso } from "../../model/sso.ts";
import type { Changes } from "../../control/change.ts";
import { resolveSecret } from "../../control/secret-references.ts";
import { claimAt } from "./account.ts";
import type { AccountProvisioner, SignedIn, ClientOrigin } from "./account-provisioner.ts";
import { OidcClient } from "../../oidc/client.ts";
import type { OidcProvider } from "../../oidc/provider.ts";
import type { Claims } from "../../oidc/verification.ts";
import { SsoError } from "./failure.ts";
import type { PendingSignIn, PendingSignIns } from "./pending.ts";
import type { Providers } from "./provider.ts";

export const CALLBACK_PATH = "/api/v1/auth/sso/callback";

/** The redirect URI to register at the provider. `origin`: scheme and host of the browser's request. */
export function redirectUriOf(publicUrl: string | null, origin: string): string {
  return `${(publicUrl ?? origin).replace(/\/$/, "")}${CALLBACK_PATH}`;
}

export interface SignInParts {
  readonly changes: Changes;
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly providers: Providers;
  readonly pending: PendingSignIns;
  readonly accounts: AccountProvisioner;
}

export interface Start {
  /** Local path of the final redirect, validated. */
  readonly redirect: string;
  readonly redirectUri: string;
}

/** Parameters of the callback, and the browser's secret. */
export interface Return extends ClientOrigin {
  readonly parameters: URLSearchParams;
  /** The browser's secret from `start`; null when the cookie is missing. */
  readonly browser: string | null;
}

export class SignIns {
  readonly #parts: SignInParts;

  constructor(parts: SignInParts) {
    this.#parts = parts;
  }

  /** The authorization URL and the secret for the browser's cookie; throws an SsoError. */
  async start({ redirect, redirectUri }: Start): Promise<{ url: string; browser: string }> {
    const { changes, providers, pending } = this.#parts;
    const { sso, users } = changes.config;
    if (users.size === 0) throw new SsoError("setup_required", "no user exists yet");
    const client = await this.clientOf(providers.of(sso.issuer), sso);
    const scopes = [...new Set(["openid", ...sso.scopes])];
    const { url, state, nonce, codeVerifier } = await client.begin({
      redirectUri,
      scopes,
      pkce: true,
    });
    const browser = createRandomText();
    const { issuer, client_id: clientId } = sso;
    pending.add(state, browser, { nonce, codeVerifier, redirect, redirectUri, issuer, clientId });
    return { url: url.href, browser };
  }

  /** Ends the sign-in with a session; throws an SsoError. */
  async finish(back: Return): Promise<SignedIn & { readonly redirect: string }> {
    const { changes, pending, accounts } = this.#parts;
    const signIn = pending.take(back.parameters.get("state") ?? "", back.browser);
    const { sso, users } = changes.config;
    if (signIn === null)
      throw new SsoError("invalid_state", "no pending sign-in of this browser has this state");
    if (!sso.enabled) throw new SsoError("sso_disabled", "single sign-on is turned off");
    if (users.size === 0) throw new SsoError("setup_required", "no user exists yet");
    if (signIn.issuer !== sso.issuer || signIn.clientId !== sso.client_id)
      throw new SsoError("invalid_state", "the settings were changed during the sign-in");
    const claims = await this.#claims(back.parameters, signIn, sso);
    const signedIn = await accounts.signIn(claims, back);
    return { ...signedIn, redirect: signIn.redirect };
  }

  async #claims(parameters: URLSearchParams, signIn: PendingSignIn, sso: Sso): Promise<Claims> {
    const client = await this.clientOf(this.#parts.providers.of(sso.issuer), sso);
    const code = await client.codeOf(parameters);
    const { codeVerifier, redirectUri, nonce } = signIn;
    const { response, claims } = await client.exchange({ code, redirectUri, codeVerifier, nonce });
    if (!lacksClaims(claims, sso)) return claims;
    const { OAuth2Tokens } = await import("arctic");
    const accessToken = new OAuth2Tokens(response).accessToken();
    return withUserinfo(claims, await client.userinfo(accessToken, claims.sub));
  }

  /** The gateway as a client of the provider; throws an SsoError when the secret cannot be decrypted. */
  clientOf(provider: OidcProvider, sso: Sso): Promise<OidcClient> {
    const { client_id: clientId, token_auth: clientAuth } = sso;
    return OidcClient.open({ provider, clientId, clientSecret: this.#secretOf(sso), clientAuth });
  }

  #secretOf({ client_secret }: Sso): string | null {
    const { changes, box } = this.#parts;
    try {
      return resolveSecret(changes.config, client_secret, box);
    } catch (error) {
      throw new SsoError("internal_error", "the client secret cannot be decrypted", {
        cause: error,
      });
    }
  }
}

/** The claims of the signed token, which always win, with those of the userinfo endpoint. */
function withUserinfo(claims: Claims, userinfo: Readonly<Record<string, unknown>> | null): Claims {
  const { email, email_verified, ...rest } = userinfo ?? {};
  const known = { ...rest, ...claims };
  // email and email_verified must come from the same source.
  return claims["email"] === undefined ? { ...known, email, email_verified } : known;
}

/** Providers may return some claims from the userinfo endpoint only. */
function lacksClaims(claims: Claims, { role_claim }: Sso): boolean {
  return (
    claims["email"] === undefined ||
    (role_claim !== "" && claimAt(claims, role_claim) === undefined)
  );
}
