// Sign-in with a password, sign-out, and the identity of the client; one error for all wrong credentials. Knows no HTTP.
import type { Clock } from "../clock.ts";
import { verifyPassword } from "../crypto/password.ts";
import { decode } from "../model/decode.ts";
import { ApiError } from "../model/error.ts";
import { signInInput } from "../model/sign-in.ts";
import { emailKey, type User } from "../model/user.ts";
import type { AuditSink } from "../control/audit-entry.ts";
import type { Changes } from "../control/change.ts";
import type { RecordedFacts } from "../control/change-contract.ts";
import type { Principal, Role } from "../control/principal.ts";
import { refused } from "./authenticator.ts";
import type { Session, Sessions } from "./sessions.ts";
import type { Attempt, LoginThrottle } from "./throttle.ts";
import type { CurrentCodes } from "./totp.ts";
import type { VerificationQueue } from "./verification-queue.ts";

/** The second factor of users, verified after the password. */
export interface SecondFactor {
  needsSecondFactor(userId: string): boolean;
  /** The facts consume the code. */
  verifySecondFactor(
    userId: string,
    code: string,
    current: CurrentCodes | null,
  ): RecordedFacts<boolean>;
  currentCodes(userId: string, now: number): Promise<CurrentCodes | null>;
}

export interface SignInOptions {
  readonly changes: Changes;
  readonly sessions: Sessions;
  readonly secondFactors: SecondFactor;
  readonly throttle: LoginThrottle;
  readonly queue: VerificationQueue;
  readonly audit: AuditSink;
  readonly clock: Clock;
}

/** The client's own identity. */
export interface WhoIs {
  readonly authentication: "disabled" | "enabled";
  readonly user: Pick<User, "id" | "email" | "name" | "role"> | null;
  readonly role: Role;
  readonly method: "disabled" | "session" | "token";
  readonly expires_at: string | null;
}

export interface SignedIn {
  /** Value of the cookie to set. */
  readonly cookie: string;
  readonly who: WhoIs;
}

/** The origin of a sign-in; `address` is the socket's. */
export interface ClientOrigin {
  readonly address: string;
  readonly userAgent: string;
  /** Whether the cookie of the session is for HTTPS only. */
  readonly isSecure: boolean;
}

export class SignIn {
  readonly #options: SignInOptions;

  constructor(options: SignInOptions) {
    this.#options = options;
  }

  /** Throws one 401 for all wrong credentials, and a 429 after too many failures. */
  async signIn(body: unknown, client: ClientOrigin): Promise<SignedIn> {
    const { email, password, totp } = decode(signInInput, body);
    const { changes, throttle } = this.#options;
    if (changes.config.users.size === 0)
      throw refused("no user exists yet, so sign-in is not possible");
    // Before the password is checked: the response must not reveal whether it is right.
    changes.requireStore();
    const attempt = this.#begin(throttle, email, client);
    try {
      const user = await this.#userOf(email, password);
      const signedIn = await this.#secondStep(user, totp, client);
      attempt.withdraw();
      return signedIn;
    } catch (error) {
      // Counts wrong credentials only, not unchecked ones.
      const isWrong = error instanceof ApiError && error.status === 401 && !isQuestion(error);
      if (!isWrong) attempt.withdraw();
      else {
        attempt.failed();
        this.#record(client, { email, error: error.message });
      }
      throw error;
    }
  }

  /** Ends the session of the caller, if it is one. */
  signOut(principal: Principal): void {
    if (principal.sessionId === null) return;
    if (!this.#options.sessions.end(principal.sessionId)) return;
    const { actor, method, address, sessionId } = principal;
    this.#options.audit.record({
      actor,
      method,
      address,
      action: "logout",
      kind: "session",
      object_id: sessionId,
      object_name: actor,
      result: "ok",
      revision: null,
      detail: null,
    });
  }

  who(principal: Principal): WhoIs {
    const { users } = this.#options.changes.config;
    const user = principal.userId === null ? undefined : users.get(principal.userId);
    const { role, method, expiresAt } = principal;
    return {
      authentication: users.size === 0 ? "disabled" : "enabled",
      user: user === undefined ? null : publicly(user),
      role,
      method: method === "local" || method === "node" ? "token" : method,
      expires_at: expiresAt,
    };
  }

  #begin(throttle: LoginThrottle, email: string, client: ClientOrigin): Attempt {
    try {
      return throttle.begin(client.address, email);
    } catch (error) {
      this.#record(client, { email, error: (error as Error).message });
      throw error;
    }
  }

  /** Constant time, also for users that do not exist, are disabled or have no password. */
  async #userOf(email: string, password: string): Promise<User> {
    const before = this.#find(email);
    const hash = before?.password_hash ?? null;
    const fits = await this.#options.queue.run(() => verifyPassword(password, hash));
    // The user may have changed during the slow check.
    const user = this.#find(email);
    if (!fits || user === undefined || !user.enabled || user.password_hash !== hash)
      throw refused("wrong e-mail address or password");
    return user;
  }

  /** Recorded together with the session, so that only a session consumes a code. */
  async #secondStep(user: User, code: string | undefined, client: ClientOrigin): Promise<SignedIn> {
    const { changes, secondFactors, sessions, clock } = this.#options;
    const current = await secondFactors.currentCodes(user.id, clock.now());
    const { cookie, session } = await changes.record(() => {
      const now = changes.config.users.get(user.id);
      if (now?.enabled !== true || now.password_hash !== user.password_hash)
        throw refused("wrong e-mail address or password");
      const { value, facts } = sessions.create(user.id, { ...client, method: "password" });
      if (!secondFactors.needsSecondFactor(user.id)) return { value, facts };
      if (code === undefined || code === "") throw codeRequired();
      const used = secondFactors.verifySecondFactor(user.id, code, current);
      if (!used.value) throw refused("totp: the code is wrong");
      return { value, facts: [...used.facts, ...facts] };
    });
    this.#recordSignIn(user, session);
    const { expires_at } = session;
    const { role } = user;
    const who = { authentication: "enabled", user: publicly(user), role, expires_at } as const;
    return { cookie, who: { ...who, method: "session" } };
  }

  #find(email: string): User | undefined {
    const wanted = emailKey(email.trim());
    const { users } = this.#options.changes.config;
    return [...users.values()].find((user) => emailKey(user.email) === wanted);
  }

  #recordSignIn({ email }: User, { id, address }: Session): void {
    this.#options.audit.record({
      actor: email,
      method: "session",
      address,
      action: "login",
      kind: "session",
      object_id: id,
      object_name: email,
      result: "ok",
      revision: null,
      detail: null,
    });
  }

  #record({ address }: ClientOrigin, { email, error }: { email: string; error: string }): void {
    // The input may be a password in the wrong field: records existing names only.
    const known = this.#find(email)?.email ?? null;
    this.#options.audit.record({
      actor: "anonymous",
      method: "none",
      address,
      action: "login",
      kind: "session",
      object_id: null,
      object_name: known,
      result: "refused",
      revision: null,
      detail: { error },
    });
  }
}

const TOTP_REQUIRED = "x-totp-required";

const codeRequired = () =>
  new ApiError(401, "totp: a code is required", {
    headers: { [TOTP_REQUIRED]: "true" },
  });

/** The password is correct, and the response requests the second factor. */
const isQuestion = ({ headers }: ApiError) => TOTP_REQUIRED in headers;

const publicly = ({ id, email, name, role }: User) => ({ id, email, name, role });
