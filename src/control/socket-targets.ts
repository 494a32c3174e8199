// Restricts targets with a unix socket to admins: sockets of this machine bypass the protection of the network. Knows no HTTP.
import { ApiError } from "../model/error.ts";
import { isSocketHost } from "../model/target.ts";
import type { Draft } from "./draft.ts";
import { type Actor, roleOf } from "./principal.ts";
import { describeProblem } from "./reference.ts";

/** Throws a 403 that names the first field by which a role below admin would point a target at a new socket. */
export function requireAdminForSockets(draft: Draft, by: Actor): void {
  if (roleOf(by) === "admin" || draft.config.targets === draft.base.targets) return;
  for (const { id, host } of draft.change().targets.upserts) {
    if (!isSocketHost(host) || draft.base.targets.get(id)?.host === host) continue;
    const message = "only an admin may point a target at a unix socket";
    const problem = { collection: "targets", id, path: "host", message, status: 400 } as const;
    throw new ApiError(403, describeProblem(problem, draft));
  }
}
