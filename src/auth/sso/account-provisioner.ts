// Creates or updates the user of a sign-in with an ordinary change and opens the session; knows no protocol.
import type { Log } from "../../log.ts";
import { ApiError } from "../../model/error.ts";
import type { User } from "../../model/user.ts";
import type { AuditSink } from "../../control/audit-entry.ts";
import type { Changes } from "../../control/change.ts";
import type { Draft } from "../../control/draft.ts";
import type { Actor } from "../../control/principal.ts";
import type { Session, Sessions } from "../sessions.ts";
import { chooseAccount } from "./account.ts";
import type { Claims } from "../../oidc/verification.ts";
import { SsoError } from "./failure.ts";

export interface AccountParts {
  readonly changes: Changes;
  readonly sessions: Sessions;
  readonly audit: AuditSink;
  readonly log: Log;
}

/** The origin of a sign-in. */
export interface ClientOrigin {
  readonly address: string;
  readonly userAgent: string;
  /** Whether the cookie of the session is for HTTPS only. */
  readonly isSecure: boolean;
}

export interface SignedIn {
  readonly cookie: string;
  readonly session: Session;
  readonly user: User;
}

export class AccountProvisioner {
  readonly #parts: AccountParts;

  constructor(parts: AccountParts) {
    this.#parts = parts;
  }

  /** Links, creates or updates the user according to the claims, and opens a session; throws an SsoError when access is denied. */
  async signIn(claims: Claims, client: ClientOrigin): Promise<SignedIn> {
    const { changes, sessions } = this.#parts;
    const { id } = await this.#bringUpToDate(claims, client.address);
    // Another request may have changed the user while the workers activated the change.
    const { address, userAgent, isSecure } = client;
    return await changes.record(() => {
      const user = changes.config.users.get(id);
      if (user === undefined || !user.enabled)
        throw new SsoError("user_disabled", "the user was disabled or deleted during the sign-in");
      const signIn = { method: "sso", address, userAgent, isSecure } as const;
      const { value, facts } = sessions.create(id, signIn);
      return { value: { ...value, user }, facts };
    });
  }

  async #bringUpToDate(claims: Claims, address: string): Promise<User> {
    const by: Actor = { actor: "single sign-on", method: "session", address, sessionId: null };
    const write = (keepRole: boolean) =>
      this.#parts.changes.run({
        by,
        dryRun: false,
        mutate: (draft) => writeAccount(draft, claims, keepRole),
      });
    try {
      return (await write(false)).value;
    } catch (error) {
      // The only conflict of the role map: it would demote the last admin.
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
      const { value } = await write(true);
      this.#warn(value, by, error.message);
      return value;
    }
  }

  #warn(user: User, by: Actor, reason: string): void {
    const { audit, log } = this.#parts;
    log.warn("the role from single sign-on was rejected; the user's role is unchanged", {
      user: user.email,
      role: user.role,
      reason,
    });
    const { actor, method, address } = by;
    audit.record({
      actor,
      method,
      address,
      action: "update",
      kind: "user",
      object_id: user.id,
      object_name: user.email,
      result: "refused",
      revision: null,
      detail: { method: "sso", kept_role: user.role, reason },
    });
  }
}

function writeAccount(draft: Draft, claims: Claims, keepRole: boolean): User {
  const account = chooseAccount(draft.config, claims);
  if (account.kind === "new") {
    const at = draft.stamp();
    const id = Bun.randomUUIDv7();
    const user = { id, ...account.fields, created_at: at, updated_at: at };
    draft.put("users", user);
    draft.summary = `create user "${user.email}" at the first single sign-on`;
    return user;
  }
  const old = draft.config.users.get(account.user.id);
  const wanted = keepRole && old ? { ...account.user, role: old.role } : account.user;
  if (old !== undefined && Bun.deepEquals(wanted, old)) return old;
  const user = { ...wanted, updated_at: draft.stamp() };
  draft.put("users", user);
  draft.summary = `update user "${user.email}" at single sign-on`;
  return user;
}
