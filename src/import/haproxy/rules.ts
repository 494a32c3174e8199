// Converts the rules of a frontend or backend of HAProxy (deny, auth, headers, redirects) to plugins; knows no server.
import type { Document } from "../../control/body.ts";
import { passwordHashProblem } from "../../crypto/foreign-password.ts";
import { hashBasic } from "../../control/credential-secrets.ts";
import { portable } from "../expression.ts";
import type { Report } from "../report.ts";
import type { NamedConversion } from "../traefik/middlewares.ts";
import { type Acls, type Condition, conditionOf, readAcls } from "./conditions.ts";
import type { Line, Section } from "./sections.ts";
import { exceptionsOf, overConditions } from "./terms.ts";

/** Rules of one section, for all routes that pass it. */
export interface SectionRules {
  readonly converted: readonly NamedConversion[];
  /** Each as a unique text. */
  readonly protections: readonly string[];
}

/** Users with plain passwords by the name of their list; HAProxy's other hashes are not known. */
export type UserLists = ReadonlyMap<
  string,
  readonly { readonly username: string; readonly password_hash: string }[]
>;

/** Hashes of crypt(3). */
const CRYPT = /^\$(?:2[aby]|[156])\$/;

const isKnownHash = (hash: string): boolean =>
  CRYPT.test(hash) && passwordHashProblem(hash) === null;

export async function readUserLists(
  sections: readonly Section[],
  report: Report,
): Promise<UserLists> {
  const found = new Map<string, { username: string; password_hash: string }[]>();
  for (const { kind, name, lines } of sections) {
    if (kind !== "userlist") continue;
    const users: { username: string; password_hash: string }[] = [];
    for (const { words, number } of lines) {
      const [keyword, username = "", type, password = ""] = words;
      if (keyword !== "user") continue;
      if (type === "insecure-password")
        users.push({ username, password_hash: await hashBasic(password, null) });
      else if (type === "password" && isKnownHash(password))
        users.push({ username, password_hash: password });
      else
        report.omitted(
          `user "${username}" of userlist "${name}" (line ${number})`,
          "set a new password: its hash is none of bcrypt, $1$, $5$ and $6$",
        );
    }
    found.set(name, users);
  }
  return found;
}

/** Keywords of a proxy that deny access to no client. */
const HARMLESS: ReadonlySet<string> = new Set([
  ...[
    "mode",
    "acl",
    "bind",
    "log",
    "log-format",
    "log-format-sd",
    "log-tag",
    "log-steps",
    "maxconn",
  ],
  ...[
    "timeout",
    "option",
    "no",
    "server",
    "default-server",
    "server-template",
    "balance",
    "cookie",
  ],
  ...["use_backend", "default_backend", "use-server", "errorfile", "errorloc", "errorloc302"],
  ...["errorloc303", "errorfiles", "http-error", "compression", "capture", "stick-table", "stick"],
  ...["http-reuse", "description", "id", "unique-id-format", "unique-id-header", "monitor-uri"],
  ...["monitor-net", "monitor", "backlog", "fullconn", "retries", "retry-on", "http-check"],
  ...["tcp-check", "hash-type", "hash-balance-factor", "load-server-state-from-file", "stats"],
  ...[
    "rate-limit",
    "email-alert",
    "source",
    "declare",
    "enabled",
    "disabled",
    "guid",
    "max-keep-alive-queue",
  ],
  ...[
    "force-persist",
    "ignore-persist",
    "persist",
    "error-log-format",
    "external-check",
    "clitcpka-cnt",
  ],
  ...["clitcpka-idle", "clitcpka-intvl", "srvtcpka-cnt", "srvtcpka-idle", "srvtcpka-intvl"],
]);

/** Actions that deny access to no client, and change nothing that applications see. */
const IGNORED =
  /^(?:set-log-level|set-nice|set-tos|set-mark|set-priority-\w+|set-timeout|capture|track-sc\d+|sc-\S*|set-map\S*|del-map\S*|add-acl\S*|del-acl\S*|early-hint|disable-l7-retry|wait-for-body|wait-for-handshake|set-var\S*|unset-var\S*|cache-use|do-log|normalize-uri|inspect-delay|set-bandwidth-limit|strict-mode|set-fc-\w+|set-bc-\w+)$/;

const DENYING: ReadonlySet<string> = new Set(["deny", "tarpit", "reject", "silent-drop"]);

/** Headers that the gateway itself sets. */
const RESERVED =
  /^(?:host|x-forwarded-(?:for|proto|host|port)|x-real-ip|via|connection|upgrade|content-length)$/i;

interface Reading {
  readonly section: Section;
  readonly acls: Acls;
  readonly users: UserLists;
  readonly report: Report;
  readonly converted: NamedConversion[];
  readonly protections: string[];
}

export function readRules(section: Section, users: UserLists, report: Report): SectionRules {
  const lines = [...section.defaults, ...section.lines];
  const converted: NamedConversion[] = [];
  const protections: string[] = [];
  const reading = { section, acls: readAcls(lines), users, report, converted, protections };
  for (const line of lines) readLine(line, reading);
  return { converted, protections };
}

const labelOf = ({ kind, name }: Section, { words, number }: Line): string =>
  `${words.slice(0, 2).join(" ")} of ${kind} "${name}" (line ${number})`;

function readLine(line: Line, reading: Reading): void {
  const { words } = line;
  const [keyword = "", action = ""] = words;
  const what = labelOf(reading.section, line);
  if (keyword === "http-request" || keyword === "tcp-request" || keyword === "redirect") {
    // `tcp-request connection reject`, `tcp-request content reject`.
    const isLayered = keyword === "tcp-request" && /^(?:connection|content|session)$/.test(action);
    const rest = keyword === "redirect" ? words : words.slice(isLayered ? 2 : 1);
    request({ what, words: rest, line }, reading);
  } else if (keyword === "http-response" || keyword === "http-after-response")
    response({ what, words: words.slice(1), line }, reading);
  else if (keyword === "filter" && /^(?:compression|cache|trace|bwlim-\w+)$/.test(action)) return;
  else if (!HARMLESS.has(keyword)) lose(what, "it may deny access, and has no equivalent", reading);
}

interface Rule {
  readonly what: string;
  /** The action and what follows it. */
  readonly words: readonly string[];
  readonly line: Line;
}

/** A protection without an equivalent closes the routes. */
function lose(what: string, why: string, { report, converted, protections }: Reading): void {
  report.omitted(what, why);
  converted.push({ what, lost: what });
  protections.push(what);
}

const conditionAt = (words: readonly string[]): number => {
  const at = words.findIndex((word) => word === "if" || word === "unless");
  return at === -1 ? words.length : at;
};

function request({ what, words, line }: Rule, reading: Reading): void {
  const [given = ""] = words;
  const action = given.replace(/\(.*$/, "");
  const at = conditionAt(words);
  const args = words.slice(1, at);
  const condition = conditionOf(words.slice(at), reading.acls);
  const isAlways = at === words.length;
  if (DENYING.has(action)) deny({ what, args, condition }, reading);
  else if (action === "return") {
    reading.report.changed(what, "the requests get 403: use the plugin respond");
    deny({ what, args: [], condition }, reading);
  } else if (action === "auth") authenticate({ what, args, condition }, reading);
  else if (action === "redirect") redirect({ what, args, condition }, reading);
  else if (/^(?:set-header|add-header|del-header)$/.test(action))
    header({ what, action, args, isAlways, side: "request" }, reading);
  else if (action === "replace-path" || action === "set-path")
    rewrite({ what, action, args, isAlways }, reading);
  else if (action === "accept" && line.words[0] === "tcp-request" && isAlways) return;
  else if (IGNORED.test(action)) return;
  else lose(what, "it may deny access, and has no equivalent", reading);
}

interface Conditional {
  readonly what: string;
  readonly args: readonly string[];
  readonly condition: Condition | null;
}

/** Counters of requests limit clients, but restrict no one to a part of them. */
const isRate = (condition: Condition | null): boolean =>
  condition?.every((literals) =>
    literals.some(({ test }) => /^(?:sc\d?_|src_(?:http|conn|bytes|sess|get_gpc))/.test(test.text)),
  ) ?? false;

function deny({ what, args, condition }: Conditional, reading: Reading): void {
  const { report, converted, protections } = reading;
  if (isRate(condition)) return report.omitted(what, "use the plugin rate-limit");
  const rules = condition === null ? null : denials(condition);
  if (rules === null) return lose(what, "its condition has no equivalent", reading);
  const at = args.findIndex((word) => word === "deny_status" || word === "status");
  const status = Number(args[at + 1] ?? 403);
  const isStatus = at !== -1 && status >= 400 && status <= 599;
  protections.push(JSON.stringify(rules));
  converted.push({
    what,
    plugins: [
      {
        name: "access-policy",
        protects: true,
        config: { rules, ...(isStatus ? { deny_status: status } : {}) },
      },
    ],
  });
}

/** Rules of the plugin access-policy, of which the first that matches decides. */
function denials(condition: Condition): readonly Document[] | null {
  const conditions = overConditions(condition);
  if (conditions !== null) return conditions.map((when) => ({ when, action: "deny" }));
  const found = exceptionsOf(condition);
  if (found === null) return null;
  return [
    ...found.exceptions.map((when) => ({ when, action: "continue" })),
    { when: found.when, action: "deny" },
  ];
}

/** Requires users of the list that the condition excludes; other parts of it make exceptions, which are not imported. */
function authenticate({ what, args, condition }: Conditional, reading: Reading): void {
  const { users, report, converted, protections } = reading;
  const literals = condition?.flat() ?? [];
  const lists = literals.filter(({ test, isNegated }) => test.kind === "auth" && isNegated);
  const [list, ...others] = [...new Set(lists.map(({ test }) => test.name))];
  const known = list === undefined ? undefined : users.get(list);
  if (known === undefined || known.length === 0 || others.length > 0)
    return lose(what, "it names no list of users that could be imported", reading);
  if (literals.length > lists.length)
    report.changed(what, "all requests must authenticate: its other conditions do not apply");
  const at = args.indexOf("realm");
  const realm = (args[at + 1] ?? "").replaceAll(/[^ -~]|["\\]/g, "-").slice(0, 128);
  protections.push(`users ${list}`);
  converted.push({
    what,
    plugins: [
      {
        name: "basic-auth",
        protects: true,
        config: {
          users: known,
          consumers: false,
          hide_credentials: false,
          run_on_preflight: true,
          ...(at === -1 || realm === "" ? {} : { realm }),
        },
      },
    ],
  });
}

/** Whether the condition is that the request is not encrypted. */
const isPlain = (condition: Condition | null): boolean =>
  condition?.length === 1 &&
  condition[0]?.length === 1 &&
  condition[0].every(({ test, isNegated }) => test.kind === "ssl" && isNegated);

function redirect({ what, args, condition }: Conditional, reading: Reading): void {
  const { report, converted } = reading;
  const [type = "", target = ""] = args;
  const at = args.indexOf("code");
  const code = at === -1 ? 302 : Number(args[at + 1]);
  if (type === "scheme" && target === "https" && (isPlain(condition) || isAnything(condition))) {
    if (![301, 308].includes(code)) report.changed(what, `${code} became 308`);
    converted.push({ what, fields: { https_redirect: code === 301 ? 301 : 308 } });
    return;
  }
  const conditions = condition === null ? null : overConditions(condition);
  const [when, ...others] = conditions ?? [];
  const isKnown = (type === "location" || type === "prefix") && !/%\[|\$/.test(target);
  const isStatus = [301, 302, 303, 307, 308].includes(code);
  if (when === undefined || others.length > 0 || !isKnown || !isStatus)
    return report.omitted(what, "it has no equivalent: use the plugin redirect");
  const keeps = type === "prefix";
  const config = { to: target, status: code, keep_path: keeps, keep_query: keeps };
  converted.push({
    what,
    plugins: [{ name: "redirect", config, ...(Object.keys(when).length === 0 ? {} : { when }) }],
  });
}

const isAnything = (condition: Condition | null): boolean =>
  condition?.length === 1 && condition[0]?.length === 0;

interface HeaderRule {
  readonly what: string;
  readonly action: string;
  readonly args: readonly string[];
  readonly isAlways: boolean;
  readonly side: "request" | "response";
}

function header({ what, action, args, isAlways, side }: HeaderRule, reading: Reading): void {
  const { report, converted } = reading;
  const [name = "", given = ""] = args;
  if (RESERVED.test(name)) return;
  const isScheme = isClientScheme({ name, given, isAlways });
  const value = isScheme ? "${request.scheme}" : given;
  const isLiteral = !given.includes("%") && !given.includes("${");
  const isSet = action !== "del-header" && ((isAlways && isLiteral) || isScheme);
  if (!isSet && (!isAlways || !isLiteral))
    report.omitted(what, "its condition or its value has no equivalent: use the plugin transform");
  // A client must not send what the gateway no longer sets.
  if (side === "response" && !isSet && action !== "del-header") return;
  if (side === "response" && !isAlways) return;
  const changes = isSet
    ? { [action === "set-header" ? "set" : "add"]: { [name]: value } }
    : { remove: [name] };
  const config: Document = { [side]: { headers: changes } };
  converted.push({ what, plugins: [{ name: "transform", config, protects: side === "request" }] });
}

/** `%[ssl_fc,iif(https,http)]`, and `https if { ssl_fc }`. */
const isClientScheme = (rule: {
  readonly name: string;
  readonly given: string;
  readonly isAlways: boolean;
}): boolean =>
  /^x-forwarded-scheme$/i.test(rule.name) &&
  (rule.isAlways ? rule.given === "%[ssl_fc,iif(https,http)]" : /^https?$/.test(rule.given));

function response({ what, words }: Rule, reading: Reading): void {
  const [action = ""] = words;
  const at = conditionAt(words);
  const isAlways = at === words.length;
  if (/^(?:set-header|add-header|del-header)$/.test(action))
    header({ what, action, args: words.slice(1, at), isAlways, side: "response" }, reading);
  else if (DENYING.has(action)) lose(what, "responses cannot be denied", reading);
  else if (!IGNORED.test(action.replace(/\(.*$/, "")) && action !== "cache-store")
    reading.report.omitted(what, "use the plugin transform");
}

interface RewriteRule {
  readonly what: string;
  readonly action: string;
  readonly args: readonly string[];
  readonly isAlways: boolean;
}

/** `replace-path (regex) \1`, and `set-path %[path,regsub(regex,text)]`. */
function rewrite({ what, action, args, isAlways }: RewriteRule, reading: Reading): void {
  const [first = "", second = ""] = args;
  const [, inner, by = ""] = /^%\[path,regsub\(([^,()]+),([^,()]*)\)\]$/.exec(first) ?? [];
  const source = action === "replace-path" ? first : inner;
  const regex = source === undefined ? undefined : portable(source)?.source;
  const to = action === "replace-path" ? second : by;
  if (regex === undefined || !isAlways || to.includes("%"))
    return lose(what, "it may restrict clients to some paths, and has no equivalent", reading);
  const replacement = to.replaceAll("$", "$$$$").replaceAll(/\\(\d)/g, "$$$1");
  reading.converted.push({ what, path: { kind: "replace", regex, to: replacement } });
}
