// Restricts DNS providers that run programs of this machine to admins. Knows no HTTP.
import { ApiError } from "../model/error.ts";
import type { DnsProvider } from "../model/dns-provider.ts";
import type { Draft } from "./draft.ts";
import { type Actor, roleOf } from "./principal.ts";
import { describeProblem } from "./reference.ts";

/** Whether only an admin may use it. */
export const needsAdmin = (provider: Pick<DnsProvider, "type"> | undefined): boolean =>
  provider?.type === "exec";

/** Throws a 403 when a role below admin would write or delete a DNS provider that runs a program, or ran one before. */
export function requireAdminForPrograms(draft: Draft, by: Actor): void {
  const { dns_providers: now } = draft.config;
  const { dns_providers: before } = draft.base;
  if (roleOf(by) === "admin" || now === before) return;
  const { upserts, removals } = draft.change().dns_providers;
  for (const id of [...upserts.map((provider) => provider.id), ...removals]) {
    if (!needsAdmin(before.get(id)) && !needsAdmin(now.get(id))) continue;
    const message = "only an admin may write or delete a DNS provider of the type exec";
    const problem = { collection: "dns_providers", id, path: "", message, status: 400 } as const;
    throw new ApiError(403, describeProblem(problem, draft));
  }
}
