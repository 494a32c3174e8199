// Converts what allows and denies clients: networks, passwords, authorization servers, client certificates; knows no path.
import type { Document } from "../../control/body.ts";
import { readUsers, type User } from "./users.ts";
import type { NginxContext } from "./nginx.ts";
import { type AskedLocation, forwardAuthOf } from "./authorization.ts";
import { isHarmlessInclude, kindOf } from "./directives.ts";
import { type Directive, type Level, shownPlace } from "./tree.ts";

export interface AccessPlugin {
  readonly name: string;
  readonly config: Document;
  readonly what: string;
}

export interface Access {
  readonly plugins: readonly AccessPlugin[];
  /** Protections without an equivalent: the route is closed. */
  readonly lost: readonly string[];
  /** Each protection as a unique text; null: it denies all clients. */
  readonly protections: ReadonlySet<string> | null;
}

export const deniedAccess: Access = { plugins: [], lost: [], protections: null };

/** `locations` finds the location of an internal request by its path. */
export async function accessOf(
  level: Level,
  context: NginxContext,
  locationAt: (path: string) => AskedLocation | null,
): Promise<Access> {
  const lost = [...unknownIn(level), ...certificatesIn(level)];
  const users = await usersOf(level, context);
  if (users !== null && users.users.length === 0) lost.push(users.what);
  const request = level.last("auth_request");
  const path = request?.args[0] ?? "off";
  const forward =
    request === null || path === "off"
      ? null
      : forwardAuthOf({ directive: request, level, location: locationAt(path) }, context);
  if (forward !== null && "lost" in forward) lost.push(forward.lost);
  const isEither = level.value("satisfy") === "any";
  const hasLogin = users !== null || forward !== null;
  if (isEither && users !== null && forward !== null)
    lost.push(
      `satisfy any at ${placeOf(level.last("satisfy"))}: a password or an authorization server`,
    );
  const rules = rulesOf(level, { isEither: isEither && hasLogin });
  if (rules.lost !== null) lost.push(rules.lost);
  if (rules.plugin !== null && hidesAddresses(level))
    lost.push(
      `${rules.plugin.what}: addresses are those of a proxy in front, set trusted_proxies of the settings and`,
    );
  const plugins = [
    ...(rules.plugin === null ? [] : [rules.plugin]),
    ...(users === null || users.users.length === 0 ? [] : [passwordPlugin(users)]),
    ...(forward === null || "lost" in forward ? [] : [forward]),
  ];
  if (lost.length > 0 || rules.deniesAll) return { plugins, lost, protections: null };
  const protections = new Set([
    ...(rules.plugin === null ? [] : [JSON.stringify(rules.plugin.config)]),
    ...(users === null ? [] : [users.key]),
    ...(forward === null || "lost" in forward ? [] : [JSON.stringify(forward.config)]),
  ]);
  return { plugins, lost, protections };
}

const placeOf = (directive: Directive | null): string =>
  directive === null ? "" : shownPlace(directive.place);

/** Directives around a location that the import does not know. */
function unknownIn(level: Level): readonly string[] {
  const known = unknown.get(level);
  if (known !== undefined) return known;
  const own = level.block
    .filter(({ name, args }) => isUnknown(name, args))
    .map(({ name, args, place }) =>
      name === "include"
        ? `include ${args[0]} at ${shownPlace(place)}`
        : `${name} at ${shownPlace(place)}`,
    );
  const outer = level.parent === null ? [] : unknownIn(level.parent);
  const all = own.length === 0 ? outer : [...own, ...outer];
  unknown.set(level, all);
  return all;
}

/** Many locations have the same blocks around them. */
const unknown = new WeakMap<Level, readonly string[]>();

function isUnknown(name: string, args: readonly string[]): boolean {
  if (name === "include") return !isHarmlessInclude(args[0] ?? "");
  return kindOf(name) === "unknown";
}

function certificatesIn(level: Level): string[] {
  const verify = level.last("ssl_verify_client");
  if (verify === null || verify.args[0] !== "on") return [];
  return [`ssl_verify_client at ${shownPlace(verify.place)}: set client_auth of the listener,`];
}

/** Whether nginx reads the client address from a header or the PROXY protocol. */
function hidesAddresses(level: Level): boolean {
  return (
    level.nearest("set_real_ip_from").length > 0 ||
    level.nearest("real_ip_header").length > 0 ||
    level.chain.some((each) =>
      each.own("listen").some(({ args }) => args.includes("proxy_protocol")),
    )
  );
}

interface Users {
  readonly users: readonly User[];
  readonly what: string;
  readonly realm: string;
  readonly key: string;
}

async function usersOf(level: Level, context: NginxContext): Promise<Users | null> {
  const basic = level.last("auth_basic");
  if (basic === null || basic.args[0] === "off") return null;
  const file = level.last("auth_basic_user_file");
  const path = file?.args[0] ?? "";
  const what = `auth_basic at ${shownPlace(basic.place)}`;
  const realm = basic.args[0] ?? "";
  const users = path === "" ? [] : await readUsers(path, what, context);
  return {
    users,
    what,
    realm: /[$"\\]/.test(realm) ? "restricted" : realm,
    key: `users of ${path}`,
  };
}

const passwordPlugin = ({ users, what, realm }: Users): AccessPlugin => ({
  name: "basic-auth",
  what,
  config: {
    users,
    ...(/^[\x20-\x7e]{1,100}$/.test(realm) ? { realm } : {}),
    hide_credentials: false,
    consumers: false,
    run_on_preflight: true,
  },
});

interface Rules {
  readonly plugin: AccessPlugin | null;
  readonly deniesAll: boolean;
  readonly lost: string | null;
}

function rulesOf(level: Level, { isEither }: { readonly isEither: boolean }): Rules {
  const [allowAction, denyAction] = isEither ? ["allow", "challenge"] : ["continue", "deny"];
  // Inherited together: a block with either of them has a list of its own.
  const owner = level.chain.find(hasRules);
  const own = (owner?.block ?? []).filter(isRule);
  const limits = level.own("limit_except");
  const lost = limits.find(({ block }) => !block?.every(isRule));
  const exceptions = limits.flatMap(({ args, block }) => exceptionsOf(args, block ?? []));
  const all = [
    ...exceptions,
    ...own.map(({ name, args }) => ({
      when: networkOf(args[0] ?? ""),
      action: name === "allow" ? allowAction : denyAction,
    })),
  ];
  const wrong = [...own, ...limits.flatMap(({ block }) => (block ?? []).filter(isRule))].find(
    ({ args }) => networkOf(args[0] ?? "") === null,
  );
  const first = limits[0] ?? own[0];
  if (first === undefined) return { plugin: null, deniesAll: false, lost: null };
  const what = `${first.name} at ${shownPlace(first.place)}`;
  const problem = wrong ?? lost;
  return {
    deniesAll: !isEither && own[0]?.name === "deny" && own[0].args[0] === "all",
    lost: problem === undefined ? null : `${problem.name} at ${shownPlace(problem.place)}`,
    plugin: {
      name: "access-policy",
      what,
      config: {
        rules: all.filter(({ when }) => when !== null),
        // Where no rule matches, nginx continues with the other conditions.
        default: isEither ? "challenge" : "continue",
      },
    },
  };
}

const isRule = ({ name }: Directive): boolean => name === "allow" || name === "deny";
const hasRules = (level: Level): boolean =>
  level.own("allow").length > 0 || level.own("deny").length > 0;

/** Null: not a network. */
function networkOf(text: string): Document | null {
  if (text === "all") return {};
  return /^[\da-fA-F:.]+(?:\/\d{1,3})?$/.test(text) && !text.startsWith("unix:")
    ? { cidr: [text] }
    : null;
}

/** Rules for all but some methods; they replace the others, as a block of their own. */
function exceptionsOf(methods: readonly string[], block: readonly Directive[]) {
  const listed = methods.includes("GET") ? [...methods, "HEAD"] : methods;
  const not = { method: [...new Set(listed)] };
  const rules = block.filter(isRule).map(({ name, args }) => {
    const network = networkOf(args[0] ?? "");
    return {
      when: network === null ? null : { ...network, not },
      action: name === "allow" ? "continue" : "deny",
    };
  });
  return rules.length === 0 ? [] : [...rules, { when: { not }, action: "continue" }];
}
