// Who calls the management API and what the roles include; knows nothing of how somebody proves who they are.

/** From the least to the most. */
export const roles = ["viewer", "editor", "admin"] as const;
export type Role = (typeof roles)[number];

export interface Principal {
  readonly role: Role;
  /** How the caller was recognised; `disabled` while there are no users. */
  readonly method: "disabled" | "session" | "token";
  /** For the history. */
  readonly actor: string;
}

/** Whether `role` includes everything that `needed` may do. */
export function includesRole(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed);
}

/** Everybody, while there are no users. */
export const anybody: Principal = { role: "admin", method: "disabled", actor: "anonymous" };
