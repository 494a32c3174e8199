// Lists and ends sessions for users and admins, and ends those of changed users; knows no HTTP.
import { ApiError } from "../model/error.ts";
import type { User } from "../model/user.ts";
import type { AuditSink } from "../control/audit-entry.ts";
import type { Changes } from "../control/change.ts";
import type { PendingChange } from "../control/change-contract.ts";
import { includesRole, type Principal } from "../control/principal.ts";
import type { Session, Sessions } from "./sessions.ts";
import { findUser } from "./users.ts";

export type SessionView = Session & {
  readonly email: string;
  /** Whether it is the session of the request. */
  readonly current: boolean;
};

export interface SessionListOptions {
  readonly changes: Changes;
  readonly sessions: Sessions;
  readonly audit: AuditSink;
}

export class SessionList {
  readonly #options: SessionListOptions;

  constructor(options: SessionListOptions) {
    this.#options = options;
    const { changes, sessions } = options;
    // Stored with the change: a crash between the two would restore them.
    changes.addFacts((pending) => {
      const ids = idsToEnd(pending, sessions);
      return ids.length === 0 ? [] : [{ kind: "sessions_ended", ids }];
    });
    // Also those that began while the change was stored.
    changes.onStored((event) => sessions.endAll(idsToEnd(event, sessions)));
  }

  /**
   * One's own, oldest first. Admins may ask for those of another user by id or e-mail address, and for all with an empty
   * text, which is what callers without sessions of their own are given.
   */
  list(principal: Principal, userKey: string | null): SessionView[] {
    const isAdmin = includesRole(principal.role, "admin");
    if (userKey === null) {
      const own = principal.userId ?? undefined;
      return own === undefined && !isAdmin ? [] : this.#views(principal, own);
    }
    const user = this.#findUser(userKey);
    if (!isAdmin && (user === undefined || user.id !== principal.userId))
      throw new ApiError(403, "user_id: only admins may list the sessions of others");
    if (userKey === "") return this.#views(principal, undefined);
    return user === undefined ? [] : this.#views(principal, user.id);
  }

  /** Own ones, for admins any; throws a 404 for all others, existing or not. */
  end(principal: Principal, id: string): void {
    const { sessions, audit } = this.#options;
    const session = sessions.get(id);
    const isOwn = session !== null && session.user_id === principal.userId;
    if (session === null || !(isOwn || includesRole(principal.role, "admin")))
      throw new ApiError(404, `session "${id}" does not exist`);
    const { actor, method, address } = principal;
    sessions.end(id);
    audit.record({
      actor,
      method,
      address,
      action: "delete",
      kind: "session",
      object_id: id,
      object_name: this.#emailOf(session),
      result: "ok",
      revision: null,
      detail: null,
    });
  }

  #views(principal: Principal, userId: string | undefined): SessionView[] {
    return this.#options.sessions.list(userId).map((session) => ({
      ...session,
      email: this.#emailOf(session) ?? "",
      current: session.id === principal.sessionId,
    }));
  }

  #findUser(key: string): User | undefined {
    return findUser(this.#options.changes.config.users, key) ?? undefined;
  }

  #emailOf({ user_id }: Session): string | null {
    return this.#options.changes.config.users.get(user_id)?.email ?? null;
  }
}

/** Ends the sessions of deleted or disabled users, in case of a crash between the two writes. */
export function endOrphans(changes: Changes, sessions: Sessions): void {
  for (const session of sessions.list())
    if (changes.config.users.get(session.user_id)?.enabled !== true) sessions.end(session.id);
}

/** Sessions that a change ends: of deleted, disabled or demoted users, and all others when a password changes. */
function idsToEnd({ change, before, by }: PendingChange, sessions: Sessions): string[] {
  const ids = [...change.users.removals].flatMap((id) => sessions.list(id));
  for (const user of change.users.upserts) {
    const old = before.users.get(user.id);
    if (old === undefined) continue;
    const isShutOut = !user.enabled || !includesRole(user.role, old.role);
    if (!isShutOut && user.password_hash === old.password_hash) continue;
    const own = sessions.list(user.id);
    ids.push(...(isShutOut ? own : own.filter(({ id }) => id !== by.sessionId)));
  }
  return ids.map(({ id }) => id);
}
