// Login and logout of browsers at the provider; knows nothing of requests to the application.
import { type PluginResponse, reject, type Reply, reply } from "../../pdk/response.ts";
import type { RequestContext } from "../../pdk/context.ts";
import { isSameHash, hashToken } from "../../pdk/crypto.ts";
import type { PluginKit } from "../../pdk/kit.ts";
import { type BegunSignIn, type OidcClient, OidcError } from "../../pdk/oidc.ts";
import { CookieBox } from "./cookie-box.ts";
import type { Identity } from "./identity.ts";
import { nowSeconds, type Sessions } from "./sessions.ts";
import type { Config } from "./settings.ts";

/** The state of a login between the redirect to the provider and the callback. */
interface Pending {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** Path and query to return to. */
  readonly target: string;
  /** Sent to the provider; the token request must repeat it. */
  readonly redirectUri: string;
  readonly at: number;
}

/** Time limit for a login. */
const PENDING_SECONDS = 600;
/** Allows concurrent logins in several tabs, and bounds their cookies. */
const SLOTS = 4;
const MAX_TARGET = 1500;

export interface LoginFlowOptions {
  readonly own: Config;
  readonly kit: PluginKit;
  readonly client: OidcClient;
  readonly identity: Identity;
  readonly sessions: Sessions;
  /** Clears the session's cookies. */
  readonly sessionCookies: CookieBox;
  readonly pendingKey: Uint8Array;
}

export class LoginFlow {
  readonly #options: LoginFlowOptions;
  readonly #pending: readonly CookieBox[];

  constructor(options: LoginFlowOptions) {
    this.#options = options;
    const { own, pendingKey: key } = options;
    this.#pending = Array.from({ length: SLOTS }, (_, slot) => {
      const name = `${own.session.cookie_name}.p${slot}`;
      // Browsers do not send a Strict cookie with the provider's redirect.
      return new CookieBox({ name, key, sameSite: "Lax" });
    });
  }

  /** Redirects the browser to the provider. */
  async begin(context: RequestContext): Promise<PluginResponse> {
    const { own, client } = this.#options;
    const redirectUri = originOf(context) + own.redirect_path;
    let begun: BegunSignIn;
    try {
      begun = await client.begin({ redirectUri, scopes: own.scopes, pkce: own.pkce });
    } catch (error) {
      return this.#failed(error, []);
    }
    const { url, state, nonce, codeVerifier: verifier } = begun;
    const target = this.#targetOf(context);
    const pending: Pending = { state, nonce, verifier, target, redirectUri, at: nowSeconds() };
    const cookies = this.#box(state)?.write(context, JSON.stringify(pending), PENDING_SECONDS);
    return redirect(url.href, "auth.oidc.begin", cookies ?? []);
  }

  /** Handles the provider's callback. */
  async finish(context: RequestContext): Promise<PluginResponse> {
    const { own } = this.#options;
    const parameters = new URLSearchParams(context.query);
    const one = (name: string) => {
      const all = parameters.getAll(name);
      return all.length === 1 ? (all[0] ?? null) : null;
    };
    const state = one("state") ?? "";
    const box = this.#box(state);
    const pending = pendingOf(box?.read(context) ?? null);
    const isKnown = box !== null && pending !== null && isSame(pending.state, state);
    if (!isKnown || (await this.#isUsed(state)))
      return reject(400, "auth.oidc.state", {
        detail: "this login did not start in this browser, was used already, or took too long",
        headers: { "Cache-Control": "no-store" },
        token: "http_request_error",
      });
    const cleared = box.clear(context);
    try {
      if (pending.redirectUri !== originOf(context) + own.redirect_path)
        throw new OidcError("invalid", "the login started under another address");
      return await this.#exchange(context, { pending, parameters, cleared });
    } catch (error) {
      return this.#failed(error, cleared);
    }
  }

  async #exchange(
    context: RequestContext,
    {
      pending,
      parameters,
      cleared,
    }: {
      readonly pending: Pending;
      readonly parameters: URLSearchParams;
      readonly cleared: readonly string[];
    },
  ): Promise<PluginResponse> {
    const { own, client, identity, sessions } = this.#options;
    const { response: tokens, claims } = await client.exchange({
      code: await client.codeOf(parameters),
      redirectUri: pending.redirectUri,
      codeVerifier: own.pkce ? pending.verifier : null,
      nonce: pending.nonce,
    });
    let known = identity.pick(claims);
    if (!identity.isComplete(known))
      known = identity.pick(claims, await sessions.userinfo(tokens, claims));
    const session = sessions.create(claims, known, tokens);
    const cookies = sessions.write(context, session);
    if (cookies === null)
      throw new OidcError("unusable", "tokens and claims are too large for cookies");
    const all = [...cleared, ...cookies];
    if (own.session.same_site === "Strict") return stepOver(pending.target, all);
    return redirect(pending.target, "auth.oidc.done", all);
  }

  /** Ends the session, then redirects to the provider's logout. */
  async logout(context: RequestContext): Promise<PluginResponse> {
    const { own, client, sessions, sessionCookies } = this.#options;
    const session = sessions.read(context);
    if (session !== null) await sessions.end(session);
    const cookies = sessionCookies.clear(context);
    const after = own.post_logout_redirect_uri;
    const url = await client.logoutUrl(session?.idToken ?? null, after);
    const next = url?.href ?? after;
    return next === null ? signedOut(cookies) : redirect(next, "auth.oidc.out", cookies);
  }

  /** Null: not a state of this gateway. */
  #box(state: string): CookieBox | null {
    if (!/^[A-Za-z0-9_-]{43}$/.test(state)) return null;
    return this.#pending[state.charCodeAt(0) % SLOTS] ?? null;
  }

  /** Each state is valid once, in all workers of all nodes, so that a copied cookie cannot be replayed. */
  async #isUsed(state: string): Promise<boolean> {
    const { counters, shared } = this.#options.kit;
    const key = `state ${state}`;
    const { current, previous } = counters.add(key, 1, PENDING_SECONDS * 1000);
    if (current + previous > 1) return true;
    if (shared === null) return false;
    const isFirst = await shared.once(key, 2 * PENDING_SECONDS * 1000);
    if (isFirst === null) shared.noteFallback();
    return isFirst === false;
  }

  /** The page that the browser wanted, if it is on this host. */
  #targetOf({ target }: RequestContext): string {
    const { redirect_path: callback, logout_path: logout } = this.#options.own;
    const [path] = target.split("?");
    if (target.length > MAX_TARGET || path === callback || path === logout) return "/";
    // Browsers read a backslash as a slash, and two slashes as the start of a host.
    return /^\/(?![/\\])[\x21-\x7e]*$/.test(target) ? target : "/";
  }

  #failed(error: unknown, cookies: readonly string[]): PluginResponse {
    if (!(error instanceof OidcError)) throw error;
    const { isOutage: isDown, message } = error;
    this.#options.kit.log("warn", "a login failed", { error: message });
    const [cookie] = cookies;
    return reject(isDown ? 503 : 403, isDown ? "auth.oidc.unavailable" : "auth.oidc.refused", {
      detail: isDown ? "login is not possible at the moment" : "the login was rejected",
      headers: {
        "Cache-Control": "no-store",
        ...(cookie === undefined ? {} : { "Set-Cookie": cookie }),
      },
      token: isDown ? "proxy_internal_response" : "http_request_denied",
    });
  }
}

const originOf = ({ scheme, clientHost }: RequestContext) => `${scheme}://${clientHost}`;

const isSame = (one: string, other: string) => isSameHash(hashToken(one), hashToken(other));

function pendingOf(text: string | null): Pending | null {
  if (text === null) return null;
  const pending = JSON.parse(text) as Pending;
  return nowSeconds() < pending.at + PENDING_SECONDS ? pending : null;
}

function respond(
  status: number,
  reason: string,
  parts: {
    readonly headers: Readonly<Record<string, string>>;
    readonly cookies: readonly string[];
    readonly body?: string;
  },
): Reply {
  const headers = new Headers({ "Cache-Control": "no-store", ...parts.headers });
  for (const cookie of parts.cookies) headers.append("Set-Cookie", cookie);
  return reply(status, reason, { headers, body: parts.body ?? null });
}

const redirect = (location: string, reason: string, cookies: readonly string[]) =>
  respond(302, reason, { headers: { Location: location }, cookies });

const page = (body: string, reason: string, cookies: readonly string[]) =>
  respond(200, reason, {
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": "default-src 'none'",
      "Referrer-Policy": "no-referrer",
    },
    cookies,
    body: `<!doctype html><meta charset="utf-8">${body}\n`,
  });

const signedOut = (cookies: readonly string[]) =>
  page("<title>Logged out</title><p>You are logged out.", "auth.oidc.out", cookies);

/** With a redirect the browser would treat the request as cross-site and omit a Strict cookie. */
function stepOver(target: string, cookies: readonly string[]): Reply {
  const url = target.replace(/[&"'<>]/g, (character) => `&#${character.charCodeAt(0)};`);
  const refresh = `<title>Logged in</title><meta http-equiv="refresh" content="0;url=${url}">`;
  return page(`${refresh}<p><a href="${url}">Continue</a>`, "auth.oidc.done", cookies);
}
