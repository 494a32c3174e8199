// oidc: authenticates users with an OpenID Connect provider; knows no application.
import type { Outcome } from "../pdk/response.ts";
import { isExempt, refuse } from "../pdk/authentication.ts";
import { Cache } from "../pdk/cache.ts";
import type { RequestContext } from "../pdk/context.ts";
import { hashToken } from "../pdk/crypto.ts";
import { authScopes, definePlugin } from "../pdk/definition.ts";
import { negotiate } from "../pdk/http.ts";
import type { PluginKit } from "../pdk/kit.ts";
import { CookieBox, hideCookies } from "./oidc/cookie-box.ts";
import { Identity } from "./oidc/identity.ts";
import { type Claims, OidcClient, OidcError } from "../pdk/oidc.ts";
import { providerOf } from "./oidc/provider.ts";
import { nowSeconds, type Session, Sessions } from "./oidc/sessions.ts";
import { type Config, problemsOf, schema } from "./oidc/settings.ts";
import { LoginFlow } from "./oidc/login-flow.ts";

/** Cache size: verifying a signature takes longer than everything else here. */
const BEARER_MS = 60_000;
const MAX_BEARERS = 10_000;
const MAX_BEARER_LENGTH = 16_384;

interface Parts {
  readonly own: Config;
  readonly kit: PluginKit;
  readonly client: OidcClient;
  readonly bearerAudience: readonly string[];
  readonly identity: Identity;
  readonly sessions: Sessions;
  readonly login: LoginFlow;
  readonly bearers: Cache<Claims>;
  /** Memory key of the cookies for the response. */
  readonly memoryKey: object;
}

async function partsOf(own: Config, kit: PluginKit): Promise<Parts> {
  const identity = new Identity(own);
  const client = await OidcClient.open({
    provider: providerOf(own, kit),
    clientId: own.client_id,
    clientSecret: own.client_secret ?? null,
    clientAuth: "announced",
  });
  // A change of the client, or of the required claims, invalidates sessions.
  const about = hashToken(JSON.stringify([own.issuer, own.client_id, identity.names]));
  const { cookie_name: name, same_site: sameSite } = own.session;
  const cookies = new CookieBox({ name, sameSite, key: kit.deriveKey(`session ${about}`) });
  const sessions = new Sessions({ own, kit, cookies, client, identity });
  const login = new LoginFlow({
    own,
    kit,
    client,
    identity,
    sessions,
    sessionCookies: cookies,
    pendingKey: kit.deriveKey(`pending ${about}`),
  });
  const bearers = new Cache<Claims>({ maxEntries: MAX_BEARERS, ttlMs: BEARER_MS });
  const bearerAudience = own.bearer_audience.length === 0 ? [own.client_id] : own.bearer_audience;
  const memoryKey = {};
  return { own, kit, client, bearerAudience, identity, sessions, login, bearers, memoryKey };
}

/** Whether a browser loads a page and can be redirected; programs cannot use a login page. */
function isNavigation(context: RequestContext): boolean {
  if (context.method !== "GET" || context.header("upgrade") !== null) return false;
  if (context.header("x-requested-with")?.toLowerCase() === "xmlhttprequest") return false;
  const mode = context.header("sec-fetch-mode");
  if (mode !== null && mode !== "navigate") return false;
  const accept = context.header("accept");
  if (accept !== null && /\bjson\b/i.test(accept) && !/\btext\/html\b/i.test(accept)) return false;
  return negotiate(accept, ["text/html"]) !== null;
}

/** The token, null when there is none. */
const bearerOf = (context: RequestContext) =>
  /^bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(context.header("authorization") ?? "")?.[1] ?? null;

function authenticate(context: RequestContext, parts: Parts): Outcome | Promise<Outcome> {
  const { own, login } = parts;
  if (context.path === own.logout_path && /^(?:GET|POST)$/.test(context.method))
    return login.logout(context);
  if (context.path === own.redirect_path && context.method === "GET") return login.finish(context);
  if (isExempt(context, own)) return undefined;
  const token = own.bearer_allowed ? bearerOf(context) : null;
  return token === null ? bySession(context, parts, null) : byBearer(context, parts, token);
}

async function byBearer(context: RequestContext, parts: Parts, token: string): Promise<Outcome> {
  const { own, kit, client, bearerAudience, identity, bearers } = parts;
  const key = hashToken(token);
  let claims = bearers.get(key);
  if (claims === undefined) {
    try {
      if (token.length > MAX_BEARER_LENGTH) throw new OidcError("invalid", "it is too long");
      claims = await client.verifier.bearerClaims(token, bearerAudience);
    } catch (error) {
      if (!(error instanceof OidcError)) throw error;
      kit.log("debug", "a Bearer token was rejected", { error: error.message });
      // It may be for the application, beside a session.
      return bySession(context, parts, 'Bearer error="invalid_token"');
    }
    const left = ((claims.exp ?? 0) - nowSeconds()) * 1000;
    bearers.set(key, claims, Math.min(BEARER_MS, left));
  }
  const outcome = identity.admit(context, claims.sub, identity.pick(claims));
  if (own.hide_credentials && !own.forward_access_token)
    context.upstream.removeHeader("authorization");
  return outcome;
}

/** `challenge`: of a rejected Bearer token; null: there was none. */
function bySession(
  context: RequestContext,
  parts: Parts,
  challenge: string | null,
): Outcome | Promise<Outcome> {
  const { sessions } = parts;
  const session = sessions.read(context);
  if (session === null) return withoutSession(context, parts, challenge);
  const isEnded = sessions.hasEndedElsewhere(session);
  const go = (ended: boolean) =>
    ended
      ? withoutSession(context, parts, challenge)
      : byLiveSession(context, parts, { session, challenge });
  return isEnded instanceof Promise ? isEnded.then(go) : go(isEnded);
}

function byLiveSession(
  context: RequestContext,
  parts: Parts,
  { session, challenge }: { readonly session: Session; readonly challenge: string | null },
): Outcome | Promise<Outcome> {
  const { sessions } = parts;
  if (!sessions.isDue(session)) return withSession(context, parts, session);
  return sessions.renew(session).then((renewed) => {
    if (renewed === null) return withoutSession(context, parts, challenge);
    return withSession(context, parts, renewed);
  });
}

function withSession(
  context: RequestContext,
  parts: Parts,
  session: Session,
): Outcome | Promise<Outcome> {
  const { own, sessions, identity, memoryKey } = parts;
  if (sessions.isSpent(session)) return withoutSession(context, parts, null);
  if (sessions.isDrowsy(session)) {
    const cookies = sessions.write(context, session);
    if (cookies !== null) context.memory.set(memoryKey, cookies);
  }
  const outcome = identity.admit(context, session.sub, session.known);
  if (own.forward_access_token && session.access !== null)
    context.upstream.setHeader("Authorization", `Bearer ${session.access}`);
  return outcome;
}

function withoutSession(
  context: RequestContext,
  { own, login }: Parts,
  challenge: string | null,
): Outcome | Promise<Outcome> {
  const { unauth_action: action, anonymous_consumer: anonymous } = own;
  const isOptional = context.authMode !== "require";
  if (action === "pass" && isOptional && anonymous === null) {
    context.note("auth.oidc.none");
    return undefined;
  }
  const standsIn = isOptional && anonymous !== null;
  if (action === "auth" && !standsIn && challenge === null && isNavigation(context))
    return login.begin(context);
  return refuse(context, own, {
    reason: challenge === null ? "auth.oidc.none" : "auth.oidc.bearer",
    detail: challenge === null ? "a login is required" : "the token is not valid",
    challenge: challenge ?? "Bearer",
  });
}

export default definePlugin({
  name: "oidc",
  summary: "Authenticates users with an OpenID Connect provider",
  description: `The gateway redirects a page request without a session to the provider, and returns the user to that page after the login. Other
requests (not GET, \`X-Requested-With\`, a \`Sec-Fetch-Mode\` other than navigate, an \`Accept\` that prefers JSON) get 401. Register
\`https://<host>/_sluice/oidc/callback\` as redirect URI for every protected host, and make sure that the route matches that path
and \`logout_path\`.

The session is stored encrypted (AES-256-GCM) in cookies of the browser, and nowhere else. It ends after \`session.idle\` seconds
without a request, after \`session.absolute\` seconds in any case, when the provider refuses to renew its tokens, and at the logout,
after which copies of the cookie are rejected until the gateway restarts; with a server of [shared
counters](../shared-counters.md), on all nodes of a fleet until the session would have ended. A change of issuer, client or list of claims ends all
sessions. Two instances on one host need different values of \`session.cookie_name\`.

Over plain HTTP cookies can neither have the prefix \`__Host-\` nor be \`Secure\`: the gateway omits the prefix, and anyone who can
read or change the traffic can hijack sessions. Behind a proxy that terminates TLS, add it to the listener's \`trusted_proxies\`.

The gateway removes the cookie, and what clients send under the names in \`headers\`, from upstream requests, also from those that
\`when\` excludes. In these headers lists are joined with commas; percent signs, characters outside of ASCII and commas inside of
members are percent-encoded.

A Bearer token must be a JWT that the provider has signed for \`bearer_audience\`. A rejected token does not end a session. Tokens
must be canonical base64url; an id token may be issued at most 30 seconds from now, and its \`typ\` is \`JWT\` or absent.`,
  group: "authentication",
  order: 8000,
  phases: ["auth", "response"],
  scopes: authScopes,
  config: schema,
  example: {
    issuer: "https://id.example.com",
    client_id: "gateway",
    allowed_groups: ["staff"],
    groups_claim: "groups",
  },
  onError: "closed",
  perNode: () => "logouts, and that a login is used once, are known to one node only",
  check: problemsOf,
  async create(own, kit) {
    const parts = await partsOf(own, kit);
    const { identity, memoryKey } = parts;
    return {
      stripIdentity(context) {
        identity.strip(context);
        hideCookies(context, own.session.cookie_name);
      },
      auth: (context) => authenticate(context, parts),
      authSkipped(context) {
        const token = own.bearer_allowed ? bearerOf(context) : null;
        const hides = own.hide_credentials && !own.forward_access_token;
        if (hides && token !== null && parts.client.verifier.isOfProvider(token))
          context.upstream.removeHeader("authorization");
      },
      response(context, { headers }) {
        const cookies = context.memory.get(memoryKey) as readonly string[] | undefined;
        for (const cookie of cookies ?? []) headers.append("Set-Cookie", cookie);
      },
    };
  },
});
