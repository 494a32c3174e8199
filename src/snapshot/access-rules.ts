// Rules about management access: an admin always remains, addresses and names are unique, references exist.
import { UUID_PATTERN } from "../model/fields.ts";
import { referencesOf, secretHolders } from "../model/secret-reference.ts";
import { emailKey, type User } from "../model/user.ts";
import type { Candidate, ConfigDifference, RuleContext } from "./cross-rules.ts";
import { checkName } from "./field-rules.ts";
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
  const wanted = new Map<string, string>();
  for (const user of upserts) wanted.set(emailKey(user.email), user.id);
  for (const user of config.users.values()) {
    const claimant = wanted.get(emailKey(user.email));
    if (claimant !== undefined && claimant !== user.id)
      list.of("users", claimant)("email", "belongs to another user already", 409);
  }
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

function checkTokens(
  { config, previous, difference }: Candidate,
  { checks }: RuleContext,
  list: ProblemList,
): void {
  for (const token of difference.tokens.upserts) {
    const report = list.of("tokens", token.id);
    checkName(token, report);
    for (const [index, text] of token.allowed_cidrs.entries()) {
      const problem = checks.cidr(text);
      if (problem !== null) report(`allowed_cidrs[${index}]`, problem);
    }
    if (previous?.tokens.get(token.id)?.name === token.name) continue;
    for (const other of config.tokens.values())
      if (other.id !== token.id && other.name === token.name)
        report("name", `token "${token.name}" exists already`, 409);
  }
}

function checkSecretReferences({ config, difference }: Candidate, list: ProblemList): void {
  const { upserts } = difference.secrets;
  for (const secret of upserts) {
    const report = list.of("secrets", secret.id);
    if (UUID_PATTERN.test(secret.name)) report("name", "must not look like an id");
    for (const other of config.secrets.values())
      if (other.id !== secret.id && other.name === secret.name)
        report("name", `secret "${secret.name}" exists already`, 409);
  }
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
