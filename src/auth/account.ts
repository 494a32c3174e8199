// Passwords and second factors: changes by their users and by admins; knows no HTTP.
import type { Clock } from "../clock.ts";
import { hashPassword, verifyPassword } from "../crypto/password.ts";
import { decode } from "../model/decode.ts";
import { ApiError, invalid } from "../model/error.ts";
import { ownPasswordInput, passwordChangeInput, totpCodeInput, type User } from "../model/user.ts";
import type { AuditSink } from "../control/audit-entry.ts";
import type { Changes } from "../control/change.ts";
import { includesRole, type Principal } from "../control/principal.ts";
import type { WriteOptions, Written } from "../control/resource.ts";
import { checkPassword } from "./password.ts";
import type { Attempt } from "./throttle.ts";
import type { SecondFactors, TotpSetup } from "./totp.ts";
import { findUser, type Users, type UserView } from "./users.ts";

/** Counts wrong passwords, shared with the sign-in. */
export interface AttemptLimit {
  /** Counts an attempt as a failure until it is withdrawn; throws a 429 when there were too many. */
  begin(address: string, account: string): Attempt;
}

export interface AccountOptions {
  readonly changes: Changes;
  readonly users: Users;
  readonly secondFactors: SecondFactors;
  readonly attempts: AttemptLimit;
  readonly audit: AuditSink;
  readonly clock: Clock;
}

export class Account {
  readonly #options: AccountOptions;

  constructor(options: AccountOptions) {
    this.#options = options;
  }

  /** The sign-in methods of a user; users read their own, admins those of all. */
  signInMeans({ principal, key }: Omit<AccountCall, "body">): SignInMeans {
    const { id, password_hash, sso } = this.#userFor(principal, key);
    const { secondFactors } = this.#options;
    return {
      has_password: password_hash !== null,
      sso_linked: sso !== null,
      totp_enabled: secondFactors.needsSecondFactor(id),
      recovery_codes_left: secondFactors.recoveryCodesLeft(id),
    };
  }

  /** Users must send their old password, admins need none for others. The change ends the user's other sessions. */
  async changePassword(
    { principal, key, body }: AccountCall,
    options: WriteOptions,
  ): Promise<Written<UserView>> {
    const user = this.#userFor(principal, key);
    const { password, current_password: current } = decode(passwordChangeInput, body);
    checkPassword(password, [user.email, user.name]);
    const ofOneself = isSelf(principal, user);
    if (ofOneself) {
      // The identity provider revokes SSO users: a local password would outlive that.
      if (user.password_hash === null && !includesRole(principal.role, "admin"))
        throw new ApiError(403, "you have no password yet; an admin can give you one");
      await this.#prove(principal, user, current);
    }
    const hash = await hashPassword(password);
    const replacement = ofOneself ? { hash, instead: user.password_hash } : { hash };
    return await this.#options.users.replaceHash(user.id, replacement, options);
  }

  /** Only for the own account: the key is enough to generate codes. */
  async beginTotp({ principal, key, body }: AccountCall): Promise<TotpSetup> {
    const user = this.#self(principal, key);
    const { current_password: current } = decode(ownPasswordInput, body);
    await this.#prove(principal, user, current);
    const { changes, secondFactors } = this.#options;
    const setup = await changes.record(
      () => secondFactors.begin(this.#stillThere(user)),
      principal,
    );
    this.#record(principal, user, "create");
    return setup;
  }

  /** Returns the recovery codes. */
  async confirmTotp({ principal, key, body }: AccountCall): Promise<{
    readonly recovery_codes: readonly string[];
  }> {
    const user = this.#self(principal, key);
    const { code } = decode(totpCodeInput, body);
    const { changes, secondFactors, clock } = this.#options;
    const current = await secondFactors.currentCodes(user.id, clock.now());
    const codes = await changes.record(
      () => secondFactors.confirm(user.id, code, current),
      principal,
    );
    this.#record(principal, user, "enable");
    return { recovery_codes: codes };
  }

  /** Users must send their password, admins need none for others. `body` may be absent. */
  async removeTotp({ principal, key, body }: AccountCall): Promise<void> {
    const user = this.#userFor(principal, key);
    const { current_password: current } = decode(ownPasswordInput, body ?? {});
    if (isSelf(principal, user)) await this.#prove(principal, user, current);
    const { changes, secondFactors } = this.#options;
    if (!(await changes.record(() => secondFactors.remove(user.id), principal)))
      throw new ApiError(404, "the user has no second factor");
    this.#record(principal, user, "delete");
  }

  /** The user of the path: the own account, or any for admins. Does not reveal to others which users exist. */
  #userFor(principal: Principal, key: string): User {
    const user = findUser(this.#options.changes.config.users, key);
    if (!isSelf(principal, user) && !includesRole(principal.role, "admin"))
      throw new ApiError(403, "only the user or an admin can do this");
    if (user === null) throw new ApiError(404, `user "${key}" does not exist`);
    return user;
  }

  #self(principal: Principal, key: string): User {
    const user = this.#userFor(principal, key);
    if (!isSelf(principal, user)) throw new ApiError(403, "only the user can do this");
    return user;
  }

  /** The session may have been stolen: requires the password. */
  async #prove({ address }: Principal, user: User, password: string | undefined): Promise<void> {
    if (user.password_hash === null) return;
    if (password === undefined) throw invalid("current_password", "is required");
    const attempt = this.#options.attempts.begin(address, user.email);
    if (!(await verifyPassword(password, user.password_hash))) {
      attempt.failed();
      throw new ApiError(403, "current_password: is wrong");
    }
    attempt.withdraw();
  }

  /** The user may have changed during the slow check of the password. */
  #stillThere(user: User): User {
    const now = this.#options.changes.config.users.get(user.id);
    if (now?.enabled && now.password_hash === user.password_hash) return now;
    throw new ApiError(409, "the user was changed by another request meanwhile");
  }

  #record({ actor, method, address }: Principal, user: User, action: string): void {
    this.#options.audit.record({
      actor,
      method,
      address,
      action,
      kind: "totp",
      object_id: user.id,
      object_name: user.email,
      result: "ok",
      revision: null,
      detail: null,
    });
  }
}

/** The sign-in methods of a user. */
export interface SignInMeans {
  readonly has_password: boolean;
  readonly sso_linked: boolean;
  readonly totp_enabled: boolean;
  readonly recovery_codes_left: number;
}

/** The principal, the user of the path (id or e-mail address), and the body. */
export interface AccountCall {
  readonly principal: Principal;
  readonly key: string;
  readonly body: unknown;
}

const isSelf = ({ userId }: Principal, user: User | null) =>
  user !== null && userId !== null && userId === user.id;
