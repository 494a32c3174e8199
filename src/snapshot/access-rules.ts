// Rules about management access: an admin always remains, and secrets that are referred to exist.
import { referencesOf, secretHolders } from "../model/secret-reference.ts";
import type { User } from "../model/user.ts";
import type { Candidate, ConfigDifference, RuleContext } from "./candidate.ts";
import type { ProblemList } from "./problem.ts";

export function checkAccess(candidate: Candidate, context: RuleContext, list: ProblemList): void {
  checkUsers(candidate, list);
  checkTokens(candidate, context, list);
  checkSecretReferences(candidate, list);
}

/** Whether the user could administer the gateway right now. */
const isActiveAdmin = (user: User) => user.role === "admin" && user.enabled;

function checkUsers({ config, previous, difference }: Candidate, list: ProblemList): void {
  const { upserts, removals } = difference.users;
  if (upserts.length + removals.length === 0) return;
  if ([...config.users.values()].some(isActiveAdmin)) return;
  const [first] = upserts;
  if ((previous?.users.size ?? 0) === 0 && first !== undefined)
    // Otherwise the first user would lock out all clients, including that user.
    list.of("users", first.id)("role", "must be admin for the first user", 400);
  else
    list.of("users", first?.id ?? removals[0] ?? "")(
      "",
      "the last admin cannot be deleted, demoted or disabled",
      409,
    );
}

function checkTokens({ difference }: Candidate, { checks }: RuleContext, list: ProblemList): void {
  for (const token of difference.tokens.upserts) {
    const report = list.of("tokens", token.id);
    for (const [index, text] of token.allowed_cidrs.entries()) {
      const problem = checks.cidr(text);
      if (problem !== null) report(`allowed_cidrs[${index}]`, problem);
    }
  }
}

function checkSecretReferences({ config, difference }: Candidate, list: ProblemList): void {
  if (!["secrets" as const, ...secretHolders].some((name) => isChanged(difference, name))) return;
  const names = new Set([...config.secrets.values()].map((secret) => secret.name));
  for (const { collection, id, path, name } of referencesOf(config))
    if (!names.has(name)) list.of(collection, id)(path, `there is no secret "${name}"`);
}

function isChanged(difference: ConfigDifference, name: keyof ConfigDifference): boolean {
  const changed = difference[name];
  if (typeof changed === "boolean") return changed;
  return changed.upserts.length + changed.removals.length > 0;
}
