// Authentication as one object for the API: sign-in, sessions, tokens; knows no HTTP.
import type { Clock } from "../clock.ts";
import type { ManagementCookies } from "../http/management-cookies.ts";
import type { Log } from "../log.ts";
import type { AuditSink } from "../control/audit-entry.ts";
import type { Changes } from "../control/change.ts";
import type { CutOff } from "../control/cut-off.ts";
import type { Actor } from "../control/principal.ts";
import {
  AdminToken,
  type AdminTokenStatus,
  type AdminTokenStore,
  type CreatedAdminToken,
} from "./admin-token.ts";
import { Authenticator } from "./authenticator.ts";
import { SessionCookies } from "./session-cookie.ts";
import { endOrphans, SessionList } from "./session-list.ts";
import type { Sessions } from "./sessions.ts";
import { type SecondFactor, SignIn } from "./sign-in.ts";
import type { LoginThrottle } from "./throttle.ts";
import { createTokens } from "./tokens.ts";
import { TokenUse, type TokenUseStore } from "./token-use.ts";
import { VerificationQueue } from "./verification-queue.ts";

export interface AuthOptions {
  readonly changes: Changes;
  readonly sessions: Sessions;
  readonly cookies: ManagementCookies;
  readonly secondFactors: SecondFactor;
  readonly tokenStore: AdminTokenStore & TokenUseStore;
  readonly throttle: LoginThrottle;
  readonly cutOff: CutOff;
  readonly audit: AuditSink;
  readonly clock: Clock;
  readonly log: Log;
}

export class Auth {
  readonly authenticator: Authenticator;
  readonly cookies: SessionCookies;
  readonly signIn: SignIn;
  readonly sessionList: SessionList;
  readonly tokens: ReturnType<typeof createTokens>;
  readonly adminToken: AdminToken;
  readonly #options: AuthOptions;
  readonly tokenUse: TokenUse;

  constructor(options: AuthOptions) {
    const { changes, sessions, tokenStore: store } = options;
    this.#options = options;
    this.cookies = new SessionCookies(options.cookies);
    this.tokenUse = new TokenUse({ ...options, store });
    this.adminToken = new AdminToken({ ...options, store, use: this.tokenUse });
    this.tokens = createTokens(changes, this.tokenUse);
    endOrphans(changes, sessions);
    this.sessionList = new SessionList(options);
    this.signIn = new SignIn({ ...options, queue: new VerificationQueue() });
    // Created after the parts that end sessions, because it notifies others about their end.
    const { adminToken } = this;
    this.authenticator = new Authenticator({ ...options, adminToken, use: this.tokenUse });
    changes.refuseUnless((by) => this.authenticator.isStillValid(by));
  }

  /** Creates or replaces the admin token. */
  async rotateAdminToken(principal: Actor): Promise<CreatedAdminToken> {
    const action = this.adminToken.hash === null ? "create" : "update";
    const made = await this.adminToken.rotate(principal);
    this.#record(principal, action, { fingerprint: made.fingerprint });
    return made;
  }

  adminTokenStatus(): AdminTokenStatus {
    return this.adminToken.status();
  }

  /** Throws a 404 when there is none. */
  async removeAdminToken(principal: Actor): Promise<void> {
    const { fingerprint } = this.adminToken.status();
    await this.adminToken.remove(principal);
    this.#record(principal, "delete", { fingerprint });
  }

  /** Writes what was only remembered and forgets what is over; to be called about once a minute, and at the end with `isLast`. */
  runMaintenance(isLast = false): void {
    this.tokenUse.flush(isLast);
    this.#options.sessions.prune();
  }

  #record({ actor, method, address }: Actor, action: string, detail: unknown): void {
    this.#options.audit.record({
      actor,
      method,
      address,
      action,
      kind: "admin_token",
      object_id: null,
      object_name: null,
      result: "ok",
      revision: null,
      detail,
    });
  }
}
