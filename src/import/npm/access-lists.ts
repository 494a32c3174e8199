// Converts access lists of Nginx Proxy Manager: allowed networks, users, or either of them.
import { hashBasic } from "../../control/credential-secrets.ts";
import type { Members } from "../members.ts";
import type { Output } from "../output.ts";
import { idOf, isSet, type RowContext, rowsOf, timesOf } from "./rows.ts";

export interface AccessList {
  readonly label: string;
  readonly users: readonly { readonly username: string; readonly password_hash: string }[];
  readonly rules: readonly { readonly address: string; readonly isAllowed: boolean }[];
  /** Whether an allowed network or a valid password is enough (`satisfy any`). */
  readonly isEither: boolean;
  /** Whether the list has users, none of which has a password: no client can authenticate. */
  readonly asksInVain: boolean;
  /** Whether the list has conditions that the import does not support. */
  readonly isUnknown: boolean;
  /** Whether the rules end with `deny all`: always before version 2.15, where a list of passwords alone denied every client. */
  readonly endsWithDenial: boolean;
  /** Whether the gateway forwards the password to targets. */
  readonly passesAuth: boolean;
}

/** By row id. */
export async function readAccessLists(context: RowContext): Promise<Map<number, AccessList>> {
  const auths = byList(rowsOf("access_list_auth", context));
  const clients = byList(rowsOf("access_list_client", context));
  const lists = new Map<number, AccessList>();
  // Tables of forks: client certificates, countries.
  const isBeyond = context.tables.names.some(
    (name) => /^access_list_(?!auth$|client$)/.test(name) && context.tables.rows(name).length > 0,
  );
  const isRecent = context.tables
    .rows("proxy_host")
    .some((row) => Object.hasOwn(row, "trust_forwarded_proto"));
  for (const members of rowsOf("access_list", context)) {
    const id = idOf(members);
    members.setLabel(`access list "${members.text("name") ?? id}"`);
    timesOf(members);
    members.object("meta")?.ignoreRest();
    const users: AccessList["users"][number][] = [];
    for (const auth of auths.get(id) ?? []) users.push(...(await readUser(auth, members.label)));
    // Of users with the same name, nginx knows the last one.
    const last = new Map(users.map((user) => [user.username, user]));
    const rules = (clients.get(id) ?? []).map(readRule);
    const own = [members, ...(auths.get(id) ?? []), ...(clients.get(id) ?? [])];
    lists.set(id, {
      label: members.label,
      users: [...last.values()],
      asksInVain: users.length === 0 && auths.has(id),
      rules,
      endsWithDenial: rules.length > 0 || users.length === 0 || !isRecent,
      isEither: isSet(members, "satisfy_any"),
      passesAuth: isSet(members, "pass_auth"),
      isUnknown: isBeyond || own.some((row) => row.hasUnknown()),
    });
    context.report.imported(members.label, "became plugins of the routes that use it");
  }
  return lists;
}

function byList(rows: readonly Members[]): Map<number, Members[]> {
  const found = new Map<number, Members[]>();
  for (const row of rows) {
    const id = row.number("access_list_id") ?? 0;
    found.set(id, [...(found.get(id) ?? []), row]);
  }
  return found;
}

async function readUser(auth: Members, list: string) {
  const username = auth.text("username") ?? "";
  const password = auth.text("password") ?? "";
  auth.setLabel(`user "${username}" of ${list}`);
  timesOf(auth);
  auth.object("meta")?.ignoreRest();
  auth.raw("hint");
  if (username === "" || password === "") {
    auth.drop("without a password, the source does not admit it either");
    return [];
  }
  auth.report.imported(auth.label, "became a user of the plugin basic-auth");
  return [{ username, password_hash: await hashBasic(password, null) }];
}

function readRule(client: Members) {
  const address = client.text("address") ?? "";
  client.setLabel(`rule for ${address}`);
  timesOf(client);
  client.object("meta")?.ignoreRest();
  return { address, isAllowed: client.text("directive") === "allow" };
}

/** A route beside one that denies access: servers may read such a path as one of either. */
const resembling = { when: { ambiguous_path: true }, action: "deny" } as const;

export interface AccessOptions {
  readonly routeId: string;
  /** Name in the report. */
  readonly of: string;
  /** Whether to deny paths that only resemble those of the route. */
  readonly isStrict: boolean;
}

/** For a route without a list. */
export function denyResembling(output: Output, { routeId, of }: AccessOptions): void {
  output.plugin({
    name: "access-policy",
    key: `${routeId} networks`,
    what: `paths of ${of}`,
    scope: { route_id: routeId },
    protects: true,
    config: { rules: [resembling] },
  });
}

/** Adds the plugins of a list to a route. Rules run in order, as in nginx. */
export function addAccess(
  output: Output,
  list: AccessList,
  { routeId, of, isStrict }: AccessOptions,
): void {
  const { users, rules, isEither, passesAuth, label } = list;
  const common = { scope: { route_id: routeId }, protects: true };
  if (list.isUnknown) output.loseProtection({ scope: common.scope, what: label });
  const denyAction = isEither && users.length > 0 ? "challenge" : "deny";
  const allowAction = isEither ? "allow" : list.asksInVain ? "deny" : "continue";
  if (!list.endsWithDenial && isStrict) denyResembling(output, { routeId, of, isStrict });
  if (list.endsWithDenial)
    output.plugin({
      ...common,
      name: "access-policy",
      key: `${routeId} networks`,
      what: `networks of ${label} for ${of}`,
      config: {
        rules: [
          ...(isStrict ? [resembling] : []),
          ...rules.map(({ address, isAllowed }) => ({
            when: address === "all" ? {} : { cidr: [address] },
            action: isAllowed ? allowAction : denyAction,
          })),
        ],
        default: denyAction,
      },
    });
  if (users.length > 0)
    output.plugin({
      ...common,
      name: "basic-auth",
      key: `${routeId} users`,
      what: `users of ${label} for ${of}`,
      config: {
        users,
        realm: "Authorization required",
        hide_credentials: !passesAuth,
        consumers: false,
        run_on_preflight: true,
      },
    });
}
