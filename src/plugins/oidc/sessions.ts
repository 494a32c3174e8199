// Sessions in cookies of browsers: reading, extending, renewing and ending them; knows no login.
import { Cache } from "../../pdk/cache.ts";
import type { RequestContext } from "../../pdk/context.ts";
import { hashToken } from "../../pdk/crypto.ts";
import type { PluginKit } from "../../pdk/kit.ts";
import type { CookieBox } from "./cookie-box.ts";
import type { Identity, Known } from "./identity.ts";
import { type Claims, type OidcClient, OidcError, type RenewedTokens } from "../../pdk/oidc.ts";
import type { Config } from "./settings.ts";

type TokenResponse = RenewedTokens["response"];

/** Times in seconds since 1970. */
export interface Session {
  readonly id: string;
  readonly sub: string;
  readonly known: Known;
  readonly created: number;
  readonly used: number;
  /** When the access token expires and when it was issued; null when the provider does not say. */
  readonly token: { readonly from: number; readonly until: number } | null;
  /** Stored when it goes upstream. */
  readonly access: string | null;
  readonly refresh: string | null;
  /** For the logout at the provider. */
  readonly idToken: string | null;
}

type Renewal =
  | { readonly kind: "renewed"; readonly session: Session }
  | { readonly kind: "refused" | "unavailable" };

/** A browser may send several requests with the old refresh token before it has the new one. */
const RENEWAL_MS = 30_000;
const MAX_RENEWALS = 10_000;

export interface SessionsOptions {
  readonly own: Config;
  readonly kit: PluginKit;
  readonly cookies: CookieBox;
  readonly client: OidcClient;
  readonly identity: Identity;
}

export const nowSeconds = () => Math.floor(Date.now() / 1000);

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #underWay = new Map<string, Promise<Renewal>>();
  readonly #renewals = new Cache<Renewal>({ maxEntries: MAX_RENEWALS, ttlMs: RENEWAL_MS });

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** A new session from the provider's tokens. */
  create(claims: Claims, known: Known, tokens: TokenResponse): Session {
    const now = nowSeconds();
    const id = crypto.randomUUID();
    const base = { id, sub: claims.sub, known, created: now, used: now };
    return { ...base, ...this.#tokenParts(tokens, now), idToken: tokens.id_token ?? null };
  }

  #tokenParts({ access_token, refresh_token, expires_in = 0 }: TokenResponse, now: number) {
    const { own } = this.#options;
    const seconds = Math.floor(expires_in);
    return {
      token: seconds > 0 ? { from: now, until: now + seconds } : null,
      access: own.forward_access_token ? access_token : null,
      refresh: own.refresh ? (refresh_token ?? null) : null,
    };
  }

  /** The valid session of the browser's cookie. */
  read(context: RequestContext): Session | null {
    const text = this.#options.cookies.read(context);
    if (text === null) return null;
    const session = JSON.parse(text) as Session;
    const { idle, absolute } = this.#options.own.session;
    const now = nowSeconds();
    if (now >= session.created + absolute || now >= session.used + idle) return null;
    return this.#hasEnded(session) ? null : session;
  }

  /** Whether it has to be renewed before it is used. */
  isDue({ token, refresh }: Session): boolean {
    if (token === null || refresh === null) return false;
    // Early, so that losing a race for the renewal with another worker does not end the session.
    const ahead = Math.min(60, Math.floor((token.until - token.from) / 5));
    return nowSeconds() >= token.until - ahead;
  }

  /** Whether its access token must go upstream and has expired. */
  isSpent({ access, token }: Session): boolean {
    return access !== null && token !== null && nowSeconds() >= token.until;
  }

  /** Whether the cookie needs a new time of last use. */
  isDrowsy({ used }: Session): boolean {
    return nowSeconds() - used >= Math.min(60, Math.ceil(this.#options.own.session.idle / 10));
  }

  /** Values of Set-Cookie for the session, used now; null when it is too long for cookies. */
  write(context: RequestContext, session: Session): string[] | null {
    const { own, cookies } = this.#options;
    const now = nowSeconds();
    const left = session.created + own.session.absolute - now;
    const maxAge = Math.max(1, Math.min(own.session.idle, left));
    const awake = { ...session, used: now };
    return (
      cookies.write(context, JSON.stringify(awake), maxAge) ??
      // The hint for the logout is optional.
      cookies.write(context, JSON.stringify({ ...awake, idToken: null }), maxAge)
    );
  }

  /** Invalidates copies of the cookie too, in all workers until the gateway stops, and on all nodes with a server of counters. */
  async end({ id }: Session): Promise<void> {
    const { kit, own } = this.#options;
    const keepMs = own.session.absolute * 1000;
    kit.counters.add(`ended ${id}`, 1, keepMs);
    const { shared } = kit;
    if (shared !== null && (await shared.once(`ended ${id}`, keepMs)) === null)
      shared.noteFallback();
  }

  /** Whether another node has ended it; false at once without a server of counters. */
  hasEndedElsewhere({ id }: Session): boolean | Promise<boolean> {
    const { shared } = this.#options.kit;
    if (shared === null) return false;
    const judge = (isEnded: boolean | null) => {
      if (isEnded === null) shared.noteFallback();
      return isEnded === true;
    };
    const known = shared.isKnown(`ended ${id}`);
    return known === null ? judge(null) : known.then(judge);
  }

  #hasEnded({ id }: Session): boolean {
    const { kit, own } = this.#options;
    const { current, previous } = kit.counters.add(`ended ${id}`, 0, own.session.absolute * 1000);
    return current + previous > 0;
  }

  /** The session with new tokens; unchanged when the provider is unavailable; null when the provider has ended it. */
  async renew(session: Session): Promise<Session | null> {
    const { id, refresh, token } = session;
    if (refresh === null) return session;
    const key = hashToken(`${id} ${refresh}`);
    const known = this.#renewals.get(key);
    const renewal = known ?? (await this.#renewOnce(key, session, refresh));
    if (renewal.kind === "renewed") return renewal.session;
    // Refresh tokens are single-use: another worker may have used this one a moment ago.
    const isStillValid = token !== null && nowSeconds() < token.until;
    return isStillValid || renewal.kind === "unavailable" ? session : null;
  }

  #renewOnce(key: string, session: Session, refresh: string): Promise<Renewal> {
    const running = this.#underWay.get(key);
    if (running !== undefined) return running;
    const renewal = this.#ask(session, refresh)
      .catch((error: unknown): Renewal => {
        if (!(error instanceof OidcError)) throw error;
        this.#options.kit.log("info", "cannot renew a session", { error: error.message });
        return { kind: error.isOutage ? "unavailable" : "refused" };
      })
      .then((result) => {
        this.#renewals.set(key, result, result.kind === "unavailable" ? 2000 : RENEWAL_MS);
        return result;
      })
      .finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, renewal);
    return renewal;
  }

  async #ask(session: Session, refresh: string): Promise<Renewal> {
    const { client, identity } = this.#options;
    const { response: tokens, claims } = await client.renew(refresh);
    const now = nowSeconds();
    const parts = this.#tokenParts(tokens, now);
    // Forces a new cookie.
    const next = { ...session, ...parts, refresh: parts.refresh ?? refresh, used: 0 };
    if (claims === null) return { kind: "renewed", session: next };
    // OpenID Connect Core 12.2.
    if (claims.sub !== session.sub) throw new OidcError("invalid", "the token is of another user");
    const first = identity.pick(claims);
    const more = identity.isComplete(first) ? {} : await this.#userinfoIfUp(tokens, claims);
    const known = identity.pick(claims, more, session.known);
    return { kind: "renewed", session: { ...next, known, idToken: tokens.id_token ?? null } };
  }

  /** Claims of the userinfo endpoint; empty when the provider has none for this token. */
  async userinfo({ access_token }: TokenResponse, { sub }: Claims): Promise<Known> {
    try {
      return (await this.#options.client.userinfo(access_token, sub)) ?? {};
    } catch (error) {
      if (error instanceof OidcError && error.kind === "refused") return {};
      throw error;
    }
  }

  /** The refresh token is used up: a failure here would end the session. */
  async #userinfoIfUp(tokens: TokenResponse, claims: Claims): Promise<Known> {
    try {
      return await this.userinfo(tokens, claims);
    } catch (error) {
      if (error instanceof OidcError && error.isOutage) return {};
      throw error;
    }
  }
}
