// Principals of the management API and their roles; knows nothing of authentication.
import type { AuthMethod } from "../model/audit-entry.ts";
import { type Role, roles } from "../model/user.ts";

export type { Role } from "../model/user.ts";

/** The actor of a change, for the history. */
export interface Actor {
  /** E-mail address of a user, name of a token, or a word such as `anonymous`. */
  readonly actor: string;
  readonly method: AuthMethod;
  /** Address of the socket; empty on the machine itself. */
  readonly address: string;
  /** The session; null for other methods. */
  readonly sessionId: string | null;
}

export interface Principal extends Actor {
  readonly role: Role;
  /** Null for tokens, and before the first user exists. */
  readonly userId: string | null;
  /** Id of a named token, `admin` for the admin token. */
  readonly tokenId: string | null;
  /** RFC 3339: expiry of the session or token; null: never. */
  readonly expiresAt: string | null;
}

/** Whether `role` includes all rights of `needed`. */
export function includesRole(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed);
}

/** The role in a change. An actor that is no principal is the program itself. */
export function roleOf(by: Actor | Principal): Role {
  return "role" in by ? by.role : "admin";
}

/** Any caller, while there are no users. */
export function anonymous(address: string): Principal {
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

/** The program itself, or a command on the data directory. */
export const local: Actor = { actor: "sluice", method: "local", address: "", sessionId: null };
