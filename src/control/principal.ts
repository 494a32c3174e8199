// Who calls the management API and what the roles include; knows nothing of how somebody proves who they are.
import { type Role, roles } from "../model/user.ts";

export type { Role } from "../model/user.ts";

/** Who does something, for the history. */
export interface Actor {
  /** E-mail address of a user, name of a token, or a word such as `anonymous`. */
  readonly actor: string;
  /** How the caller was recognised; `disabled` while there are no users, `local` on the machine itself. */
  readonly method: "disabled" | "session" | "token" | "local";
  /** Address of the socket; empty on the machine itself. */
  readonly address: string;
  /** The session that it was done in; null for everything else. */
  readonly sessionId: string | null;
}

export interface Principal extends Actor {
  readonly role: Role;
  /** Null for tokens, and for everybody while there are no users. */
  readonly userId: string | null;
  /** Id of a named token, `admin` for the admin token. */
  readonly tokenId: string | null;
  /** RFC 3339: when the session or token ends; null: never. */
  readonly expiresAt: string | null;
}

/** Whether `role` includes everything that `needed` may do. */
export function includesRole(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed);
}

/** What somebody may do in a change. An actor that is no principal was not let in by anybody: it is the program itself. */
export function roleOf(by: Actor | Principal): Role {
  return "role" in by ? by.role : "admin";
}

/** Everybody, while there are no users. */
export function anybody(address: string): Principal {
  return {
    role: "admin",
    method: "disabled",
    actor: "anonymous",
    address,
    userId: null,
    sessionId: null,
    tokenId: null,
    expiresAt: null,
  };
}

/** The program itself, or a person who has the data directory. */
export const local: Actor = { actor: "sluice", method: "local", address: "", sessionId: null };
