// Reads tokens from requests and authenticates their clients; knows no cryptography.
import { type Outcome, reject } from "../../pdk/response.ts";
import { isExempt, storeClaims, refuse } from "../../pdk/authentication.ts";
import type { ConsumerView, RequestContext } from "../../pdk/context.ts";
import type { PluginHandlers } from "../../pdk/definition.ts";
import { cookieValues, isFieldValue } from "../../pdk/http.ts";
import type { PluginKit } from "../../pdk/kit.ts";
import type { JwtConfig } from "../jwt.ts";
import { claimOf, type Claims, scopesOf, toFieldValue } from "./claims.ts";
import { type Accepted, type Refused, Verifier } from "./verifier.ts";

export function createJwtHandlers(own: JwtConfig, kit: PluginKit): PluginHandlers {
  const authenticator = new Authenticator(own, kit);
  const handlers: PluginHandlers = {
    auth: (context) => authenticator.auth(context),
    authSkipped: (context) => authenticator.authSkipped(context),
  };
  if (Object.keys(own.claims_to_headers).length === 0) return handlers;
  return {
    ...handlers,
    stripIdentity: (context) => authenticator.clearFields(context),
  };
}

const REFUSED = 'Bearer error="invalid_token"';

class Authenticator {
  readonly #own: JwtConfig;
  readonly #kit: PluginKit;
  readonly #verifier: Verifier;
  /** Lower-case names of upstream headers and their claims. */
  readonly #fields: ReadonlyMap<string, string>;

  constructor(own: JwtConfig, kit: PluginKit) {
    this.#own = own;
    this.#kit = kit;
    this.#verifier = new Verifier(own, kit);
    this.#fields = new Map(
      Object.entries(own.claims_to_headers).map(([claim, name]) => [name.toLowerCase(), claim]),
    );
  }

  /** Removes what clients send under these names. */
  clearFields({ upstream }: RequestContext): void {
    for (const name of this.#fields.keys()) upstream.removeHeader(name);
  }

  auth(context: RequestContext): Outcome | Promise<Outcome> {
    const own = this.#own;
    if (isExempt(context, own)) return undefined;
    const tokens = tokensOf(context, own);
    const [token] = tokens;
    if (token === undefined)
      return refuse(context, own, {
        reason: "auth.jwt.missing",
        detail: "a token is required",
        // RFC 6750 section 3.1: no error code without a token.
        challenge: "Bearer",
      });
    if (tokens.length > 1)
      return reject(401, "auth.jwt.duplicate", {
        detail: "the request has several tokens",
        headers: {
          "WWW-Authenticate": `Bearer realm="${own.realm}", error="invalid_token", error_description="the request has several tokens"`,
        },
      });
    return this.#judge(context, token);
  }

  /** A token of another issuer may be for the application. */
  authSkipped(context: RequestContext): void {
    const own = this.#own;
    if (!own.hide_credentials) return;
    const isOurs = tokensOf(context, { ...own, cookie_names: [], query_names: [] }).some((token) =>
      this.#verifier.isOurs(token, context.consumers),
    );
    hide(context, isOurs ? own : { ...own, header_names: own.header_names.filter(isOwnField) });
  }

  async #judge(context: RequestContext, token: string): Promise<Outcome> {
    const verdict = await this.#verifier.verify(token, context.consumers);
    if (verdict.kind === "refused") return this.#reject(context, verdict);
    if (verdict.kind === "unavailable")
      return reject(503, "auth.jwt.keys_unavailable", {
        detail: "tokens cannot be verified at the moment",
        headers: { "Retry-After": String(this.#own.jwks_refresh_min_interval) },
        token: "destination_unavailable",
      });
    const consumer = this.#consumerOf(context, verdict);
    if (consumer === undefined)
      return this.#reject(context, {
        reason: "auth.jwt.consumer_unknown",
        detail: "the token has no known consumer",
      });
    return this.#hasScopes(verdict.claims)
      ? this.#accept(context, verdict, consumer)
      : this.#allowsTooLittle(context);
  }

  /** Null: no consumer is expected; undefined: the consumer is unknown. */
  #consumerOf(
    { consumers }: RequestContext,
    { credential, claims }: Accepted,
  ): ConsumerView | null | undefined {
    // The holder of a consumer's key could write any name into the claim.
    if (credential !== null) return credential.consumer;
    const { consumer_claim: name } = this.#own;
    if (name === null) return null;
    const value = claimOf(claims, name);
    if (typeof value !== "string") return undefined;
    return consumers.byCustomId(value) ?? consumers.byUsername(value) ?? undefined;
  }

  #hasScopes(claims: Claims): boolean {
    const { scopes_required: needed } = this.#own;
    if (needed.length === 0) return true;
    const held = scopesOf(claims);
    return needed.every((scope) => held.has(scope));
  }

  #allowsTooLittle(context: RequestContext): Outcome {
    const detail = "the token lacks a required scope";
    const scope = this.#own.scopes_required.join(" ");
    return refuse(context, this.#own, {
      reason: "auth.jwt.scope",
      detail,
      status: 403,
      challenge: `Bearer error="insufficient_scope", error_description="${detail}", scope="${scope}"`,
    });
  }

  #accept(context: RequestContext, verdict: Accepted, consumer: ConsumerView | null): Outcome {
    const { claims, credential } = verdict;
    const { sub } = claims;
    const credentialId = typeof sub === "string" && isFieldValue(sub) ? sub : null;
    context.authenticate(consumer, { credential, credentialId });
    storeClaims(context, claims);
    if (credential !== null) this.#kit.used(credential.id);
    this.#tell(context, claims);
    if (this.#own.hide_credentials) hide(context, this.#own);
    return undefined;
  }

  #tell({ upstream }: RequestContext, claims: Claims): void {
    for (const [name, claim] of this.#fields) {
      const value = toFieldValue(claimOf(claims, claim));
      if (value !== null) upstream.setHeader(name, value);
    }
  }

  #reject(context: RequestContext, { reason, detail }: Omit<Refused, "kind">): Outcome {
    const challenge = `${REFUSED}, error_description="${detail}"`;
    return refuse(context, this.#own, { reason, detail, challenge });
  }
}

/** All tokens of the request. */
function tokensOf(context: RequestContext, own: JwtConfig): string[] {
  const tokens: string[] = [];
  for (const header of own.header_names) {
    const name = header.toLowerCase();
    const value = context.header(name);
    if (value === null) continue;
    const [, token] = /^bearer +(.*)$/i.exec(value) ?? [];
    if (token !== undefined) tokens.push(token);
    // Authorization of another scheme is not for this plugin.
    else if (name !== "authorization") tokens.push(value);
  }
  for (const cookie of own.cookie_names)
    tokens.push(...cookieValues(context.header("cookie"), cookie));
  if (own.query_names.length > 0)
    for (const [name, value] of new URLSearchParams(context.query))
      if (own.query_names.includes(name)) tokens.push(value);
  return tokens;
}

/** A header for this plugin only. */
const isOwnField = (name: string) => name.toLowerCase() !== "authorization";

function hide({ upstream, headers }: RequestContext, own: JwtConfig): void {
  for (const name of own.header_names.map((each) => each.toLowerCase()))
    // Keeps values for others.
    if (isOwnField(name) || /^bearer /i.test(headers[name] ?? "")) upstream.removeHeader(name);
  for (const name of own.cookie_names) upstream.removeCookie(name);
  for (const name of own.query_names) upstream.removeQuery(name);
}
