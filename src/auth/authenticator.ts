// Authenticates credentials to a Principal, and revalidates earlier principals; knows no HTTP message.
import type { Clock } from "../clock.ts";
import { hashToken, isSameHash } from "../crypto/token.ts";
import type { ManagementCookies } from "../http/management-cookies.ts";
import { ApiError } from "../model/error.ts";
import type { Token } from "../model/token.ts";
import { compileCidrs } from "../net/cidr.ts";
import type { AuditSink } from "../control/audit-entry.ts";
import type { Changes } from "../control/change.ts";
import type { CutOff } from "../control/cut-off.ts";
import { type Actor, anonymous, includesRole, type Principal } from "../control/principal.ts";
import { ADMIN_TOKEN_ID, type AdminToken } from "./admin-token.ts";
import type { Sessions } from "./sessions.ts";
import type { TokenUse } from "./token-use.ts";

/** The raw credentials of a request; null for absent ones. */
export interface Credentials {
  readonly authorization: string | null;
  readonly adminToken: string | null;
  /** The whole Cookie header. */
  readonly cookie: string | null;
  /** Only where a token in the query is allowed. */
  readonly accessToken: string | null;
}

export interface AuthenticatorOptions {
  readonly changes: Changes;
  readonly sessions: Sessions;
  readonly cookies: ManagementCookies;
  readonly audit: AuditSink;
  readonly adminToken: AdminToken;
  readonly use: TokenUse;
  readonly clock: Clock;
  /** Absent: sessions are always trusted. */
  readonly cutOff?: Pick<CutOff, "sessionProblem">;
}

/** A principal without the address. */
type Identity = Omit<Principal, "address">;

export class Authenticator {
  readonly #options: AuthenticatorOptions;
  /** The credentials of each principal for its revalidation: the hash of a token or the id of a session. */
  readonly #proofs = new WeakMap<
    object,
    { readonly token: string } | { readonly session: string }
  >();
  readonly #listeners: (() => void)[] = [];
  #tokens: ReadonlyMap<string, Token> | null = null;
  #byHash = new Map<string, Token>();

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    const { changes, sessions, adminToken } = options;
    changes.onStored(({ change }) => {
      if (change.users.upserts.length + change.users.removals.length > 0) this.#revoke();
      else if (change.tokens.upserts.length + change.tokens.removals.length > 0) this.#revoke();
    });
    sessions.onEnd(() => this.#revoke());
    adminToken.onChange(() => this.#revoke());
  }

  /** Whether credentials are required: from the first user on. */
  get isEnabled(): boolean {
    return this.#options.changes.config.users.size > 0;
  }

  /**
   * Null without credentials; throws a 401 for wrong ones. Headers win over the query and the cookie: a valid cookie does not
   * compensate a wrong header.
   */
  authenticate(credentials: Credentials, peer: string): Principal | null {
    if (!this.isEnabled) return anonymous(peer);
    const token = tokenOf(credentials);
    if (token !== null) return this.#byToken(hashToken(token), peer);
    return this.#bySession(credentials.cookie, peer);
  }

  /**
   * Whether the credentials of an earlier principal are still valid, with at least the same role. False for the copy of a
   * principal, true for an actor that is none, such as the program itself.
   */
  isStillValid(principal: Actor): boolean {
    if (principal.method === "disabled") return !this.isEnabled;
    // Its read is short, and its stream ends soon.
    if (principal.method === "node") return true;
    const proof = this.#proofs.get(principal);
    if (proof === undefined) return !("role" in principal);
    const identity =
      "session" in proof
        ? this.#identityOfSession(proof.session)
        : this.#identityOfToken(proof.token, principal.address);
    return identity !== null && includesRole(identity.role, (principal as Principal).role);
  }

  /**
   * Calls `listener` in the turn in which credentials may have become invalid; `isStillValid` tells whose. Expiry is in
   * `expiresAt` and does not call it.
   */
  onRevoked(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Call it when sessions may no longer be trusted, or are again. */
  recheck(): void {
    this.#revoke();
  }

  #revoke(): void {
    for (const listener of this.#listeners) listener();
  }

  /**
   * Applications on other ports of the same host, and other hosts of the domain, can set cookies of the same name: ignores
   * unknown values, and rejects requests with sessions of several users.
   */
  #bySession(field: string | null, peer: string): Principal | null {
    const { cookies, sessions } = this.#options;
    const shown = cookies.sessionsIn(field);
    if (shown.length === 0) return null;
    const problem = this.#options.cutOff?.sessionProblem() ?? null;
    if (problem !== null) throw refused(problem);
    const live = shown.flatMap((cookie) => {
      const session = sessions.find(cookie.value, cookie.isSecure);
      const identity = session === null ? null : this.#identityOfSession(session.id);
      return session === null || identity === null ? [] : [{ cookie, session, identity }];
    });
    const [first] = live;
    if (first === undefined) throw refused("the session has ended");
    if (live.some(({ session }) => session.user_id !== first.session.user_id)) {
      for (const { session, identity } of live) this.#endAmbiguous(session.id, identity, peer);
      throw new SeveralUsers(live.map(({ cookie }) => cookie.name));
    }
    return this.#issue(first.identity, peer, { session: first.session.id });
  }

  /** A cookie of another path or domain cannot be deleted: its session ends instead. */
  #endAmbiguous(id: string, { actor }: Identity, address: string): void {
    if (!this.#options.sessions.end(id)) return;
    this.#options.audit.record({
      actor,
      method: "session",
      address,
      action: "logout",
      kind: "session",
      object_id: id,
      object_name: actor,
      result: "ok",
      revision: null,
      detail: { reason: "one request brought sessions of several users" },
    });
  }

  #byToken(hash: string, peer: string): Principal {
    const identity = this.#identityOfToken(hash, peer);
    if (identity === null) throw refused("the token is not valid");
    this.#options.use.touch(identity.tokenId ?? "");
    return this.#issue(identity, peer, { token: hash });
  }

  #issue(
    identity: Identity,
    address: string,
    proof: { readonly token: string } | { readonly session: string },
  ): Principal {
    const principal = { ...identity, address };
    this.#proofs.set(principal, proof);
    return principal;
  }

  #identityOfSession(id: string): Identity | null {
    const { sessions, changes, cutOff } = this.#options;
    if ((cutOff?.sessionProblem() ?? null) !== null) return null;
    const session = sessions.get(id);
    const user = session === null ? undefined : changes.config.users.get(session.user_id);
    if (session === null || user === undefined || !user.enabled) return null;
    return {
      role: user.role,
      method: "session",
      actor: user.email,
      userId: user.id,
      sessionId: session.id,
      tokenId: null,
      expiresAt: session.expires_at,
    };
  }

  /** Looks hashes up instead of comparing them, so that the timing reveals nothing about tokens. */
  #identityOfToken(hash: string, peer: string): Identity | null {
    const shared = { method: "token", userId: null, sessionId: null } as const;
    const { hash: adminHash } = this.#options.adminToken;
    if (adminHash !== null && isSameHash(hash, adminHash))
      return {
        ...shared,
        role: "admin",
        actor: "admin token",
        tokenId: ADMIN_TOKEN_ID,
        expiresAt: null,
      };
    const token = this.#tokenOfHash(hash);
    if (token === undefined || !token.enabled || this.#isOver(token)) return null;
    if (token.allowed_cidrs.length > 0 && !compileCidrs(token.allowed_cidrs)(peer)) return null;
    return {
      ...shared,
      role: token.role,
      actor: token.name,
      tokenId: token.id,
      expiresAt: token.expires_at,
    };
  }

  #isOver({ expires_at }: Token): boolean {
    return expires_at !== null && Date.parse(expires_at) <= this.#options.clock.now();
  }

  #tokenOfHash(hash: string): Token | undefined {
    const { tokens } = this.#options.changes.config;
    if (tokens !== this.#tokens) {
      this.#tokens = tokens;
      this.#byHash = new Map([...tokens.values()].map((token) => [token.token_hash, token]));
    }
    return this.#byHash.get(hash);
  }
}

/** The 401 of a request with sessions of several users, which have ended. */
export class SeveralUsers extends ApiError {
  /** Names of the cookies to delete. */
  readonly cookieNames: readonly string[];

  constructor(cookieNames: readonly string[]) {
    super(401, "the request brought sessions of several users; they have ended, sign in again");
    this.cookieNames = [...new Set(cookieNames)];
  }
}

/** The 401 of wrong or missing credentials. */
export const refused = (message: string): ApiError => new ApiError(401, message);

/** The token of the request; null when there is none. Throws a 401 for a malformed one, and for two different ones. */
function tokenOf({ authorization, adminToken, accessToken }: Credentials): string | null {
  const sent = new Set<string>();
  if (authorization !== null) {
    const [, token] = /^Bearer +([A-Za-z0-9._~+/-]+=*) *$/i.exec(authorization) ?? [];
    if (token === undefined) throw refused("Authorization must be Bearer and one token");
    sent.add(token);
  }
  if (adminToken !== null) sent.add(adminToken.trim());
  if (sent.size > 1) throw refused("Authorization and X-Admin-Token hold different tokens");
  const [token] = sent;
  return token ?? accessToken;
}
