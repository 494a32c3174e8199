// Sessions as their users and admins see and end them, and changes of users that end them; no HTTP words.
import { ApiError } from "../../model/error.ts";
import type { User } from "../../model/user.ts";
import type { AuditSink } from "../audit-entry.ts";
import type { Changes, PendingChange } from "../change.ts";
import { includesRole, type Principal } from "../principal.ts";
import type { Session, Sessions } from "./sessions.ts";
import { findUser } from "./users.ts";

export type SessionView = Session & {
  readonly email: string;
  /** Whether it is the one that asks. */
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
    // Deleted with the change itself: a crash between the two would bring them back.
    changes.onCommit((event) => sessions.deleteRows(idsToEnd(event, sessions)));
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
      throw new ApiError(403, "user_id: only admins see the sessions of others");
    if (userKey === "") return this.#views(principal, undefined);
    return user === undefined ? [] : this.#views(principal, user.id);
  }

  /** Own ones, for admins any; throws a 404 for all others, whether there is such a session or not. */
  end(principal: Principal, id: string): void {
    const { sessions, audit } = this.#options;
    const session = sessions.get(id);
    const isOwn = session !== null && session.user_id === principal.userId;
    if (session === null || !(isOwn || includesRole(principal.role, "admin")))
      throw new ApiError(404, `session "${id}" does not exist`);
    const { actor, method, address } = principal;
    sessions.end(id);
    audit.record({
      ...{ actor, method, address, action: "delete", kind: "session", object_id: id },
      ...{ object_name: this.#emailOf(session), result: "ok", revision: null, detail: null },
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

/** Forgets the sessions of users who are gone or disabled, should the process have died between the two writes. */
export function endOrphans(changes: Changes, sessions: Sessions): void {
  for (const session of sessions.list())
    if (changes.config.users.get(session.user_id)?.enabled !== true) sessions.end(session.id);
}

/** Sessions that a change shuts out: of users who are gone, disabled or demoted, and all others when a password changes. */
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
