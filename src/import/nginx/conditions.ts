// Converts if to conditions of routes, with what these requests get; knows no location.
import type { Document } from "../../control/body.ts";
import { caseless, escaped, portable } from "../expression.ts";
import { regexProblem } from "../../snapshot/regex-safety.ts";
import type { Branch, Conditions, Content, ContentOptions } from "./content.ts";
import { kindOf } from "./directives.ts";
import { mapOf } from "./maps.ts";
import { redirectOf, responseOf } from "./responses.ts";
import { hostCondition, hostExpression } from "./server-names.ts";
import { type Directive, type Level, shownPlace } from "./tree.ts";

interface Test {
  readonly variable: string;
  /** Empty: whether it has a value. */
  readonly operator: string;
  readonly value: string;
}

interface Body {
  /** Its only directive that decides. */
  readonly first: Directive;
  readonly label: string;
  readonly level: Level;
  readonly options: ContentOptions;
}

/** Null: it may deny access, and has no equivalent. */
export function readCondition(
  directive: Directive,
  level: Level,
  options: ContentOptions,
): readonly Branch[] | null {
  const [first, ...others] = (directive.block ?? []).filter(({ name }) => mayDecide(name));
  if (first === undefined) return [];
  const test = testOf(directive.args.join(" "));
  if (others.length > 0 || test === null) return null;
  const label = `if at ${shownPlace(directive.place)}`;
  const body = { first, label, level, options };
  const ofValue = ofRequestValue(test, body);
  if (ofValue !== null) return ofValue;
  if (isEvadable(directive)) {
    options.report.omitted(label, "its redirect depends on a header, and is not imported");
    return [];
  }
  if (isAnyValue(test)) return ofMap(test.variable, body);
  const isHost = test.variable === "host" || test.variable === "http_host";
  if (isHost && test.operator !== "=") return ofHost(test, body);
  const conditions = conditionsOf(test);
  return conditions === null ? null : branchOf(conditions, body);
}

/** A condition that changes only headers and variables. */
export const isWithoutEffect = ({ block }: Directive): boolean =>
  !(block ?? []).some(({ name }) => mayDecide(name));

/**
 * Whether clients choose if they get what it responds, a redirect, by sending a header or not: it denies nothing. One that lacks a header may
 * have to authenticate first.
 */
function isEvadable({ args, block }: Directive): boolean {
  const test = testOf(args.join(" "));
  const deciding = (block ?? []).filter(({ name }) => mayDecide(name));
  if (test === null || !/^(?:http|cookie)_(?!host$)/.test(test.variable)) return false;
  const { operator, value } = test;
  const found = operator === "=" ? escaped(value) : (portable(value)?.source ?? "");
  // What matches an empty text holds without the header.
  const isPositive = /^(?:=|~\*?)$/.test(operator) && !new RegExp(`^(?:${found})$`).test("");
  return isPositive && deciding.every(isRedirect);
}

function isRedirect({ name, args }: Directive): boolean {
  if (name === "return") return /^(?:30[12378]$|https?:\/\/)/.test(args[0] ?? "");
  return (
    name === "rewrite" &&
    (args[2] === "redirect" || args[2] === "permanent" || /^https?:\/\//.test(args[1] ?? ""))
  );
}

/** Headers, cookies and paths. Null: it is about something else, or has no equivalent. */
function ofRequestValue(test: Test, body: Body): readonly Branch[] | null {
  const { variable, operator, value } = test;
  if ((variable === "uri" || variable === "document_uri") && /^~\*?$/.test(operator)) {
    const path = operator === "~" ? value : `(?i)${value}`;
    // A rewrite has an expression of its own.
    if (body.first.name !== "return" || hasGroups(body.first) || portable(path) === null)
      return null;
    return branchOf({ path }, body);
  }
  const conditions = headerConditions(test);
  if (conditions === null || hasGroups(body.first)) return null;
  const branches = conditions.map((headers) => branchOf({ headers: [headers] }, body));
  return branches.some((branch) => branch === null) ? null : branches.flatMap((one) => one ?? []);
}

/** Conditions of which one must hold; an absent header is an empty one in nginx. Null: none has the same meaning. */
function headerConditions({ variable, operator, value }: Test): readonly Document[] | null {
  const [, kind, name = ""] = /^(http|cookie)_(\w+)$/.exec(variable) ?? [];
  if (kind === undefined || (kind === "http" && name === "host")) return null;
  const header = kind === "http" ? name.replaceAll("_", "-") : "cookie";
  const matching =
    kind === "http" ? headerExpression(operator, value) : cookieOf(name, operator, value);
  if (matching === null || regexProblem(matching) !== null) return null;
  const isEmptiness = value === "" && (operator === "=" || operator === "!=");
  const isNegated = operator.startsWith("!") !== isEmptiness;
  if (!isNegated) return [{ name: header, op: "regex", value: matching }];
  const without = `^(?![^]*?(?:${matching}))`;
  if (regexProblem(without) !== null) return null;
  return [
    { name: header, op: "absent" },
    { name: header, op: "regex", value: without },
  ];
}

/** What the test looks for, without its negation. */
function headerExpression(operator: string, value: string): string | null {
  // `if ($http_x)`, and a comparison with nothing.
  if (operator === "") return "^(?!0$)[^]";
  if (operator === "=" || operator === "!=") return value === "" ? "[^]" : `^${escaped(value)}$`;
  const found = portable(value, operator.endsWith("*"))?.source ?? null;
  return found === null || new RegExp(found).test("") ? null : found;
}

function cookieOf(name: string, operator: string, value: string): string | null {
  if (operator.includes("~") || !/^[\w.-]*$/.test(value)) return null;
  const start = `(?:^|;) *${caseless(name)}=`;
  if (operator === "") return `${start}(?!0 *(?:;|$))[^; ]`;
  return value === "" ? `${start} *[^; ]` : `${start}${escaped(value)} *(?:;|$)`;
}

const HARMLESS_HERE = new Set(["set", "add_header", "break", "default_type", "proxy_set_header"]);

const mayDecide = (name: string): boolean =>
  !HARMLESS_HERE.has(name) && (kindOf(name) === "converted" || kindOf(name) === "unknown");

function testOf(text: string): Test | null {
  const source = text.replace(/^\(\s*/, "").replace(/\s*\)$/, "");
  const [, variable, operator = "", quoted = ""] =
    /^\$\{?(\w+)\}?\s*(?:(!?=|!?~\*?)\s*(\S*))?$/.exec(source) ?? [];
  if (variable === undefined) return null;
  const value = quoted.replace(/^(["'])(.*)\1$/, "$2");
  return { variable, operator, value };
}

/** Whether it only asks for a value. */
const isAnyValue = ({ operator, value }: Test): boolean =>
  operator === "" || (operator === "!=" && value === "");

/** Null: no route has the condition. */
function conditionsOf({ variable, operator, value }: Test): Conditions | null {
  if (operator !== "=" && operator !== "!=") return null;
  const isEqual = operator === "=";
  if ((variable === "host" || variable === "http_host") && isEqual && /^[\w.-]+$/.test(value))
    return { hosts: [value.toLowerCase()] };
  if (variable === "request_method" && isEqual && /^[A-Z]+$/.test(value))
    return { methods: [value] };
  const isPlain =
    (variable === "scheme" && (isEqual ? value === "http" : value === "https")) ||
    (variable === "server_port" && (isEqual ? value === "80" : value === "443")) ||
    (variable === "https" && (isEqual ? value === "" : value === "on"));
  return isPlain ? { protocols: ["http"] } : null;
}

/** What the requests get; null: it has no equivalent. */
function branchOf(
  conditions: Conditions,
  { first, label, level, options }: Body,
): readonly Branch[] | null {
  if (first.name === "return")
    return [{ label, conditions, content: responseOf(first, level, options) }];
  const path = first.args[0] ?? "";
  const content = first.name === "rewrite" ? redirectOf(first, level, options) : null;
  // Other paths continue behind it.
  return content === null || portable(path) === null
    ? null
    : [{ label, conditions: { ...conditions, path }, content }];
}

function ofHost({ variable, operator, value }: Test, body: Body): readonly Branch[] | null {
  const isNegated = operator.startsWith("!");
  const source = operator.includes("~") ? value : `^${escaped(value)}$`;
  // nginx compares the name in lower case.
  const isImpossible =
    /^!?~$/.test(operator) && /[A-Z]/.test(value.replaceAll(/\\.|\(\?P?<\w+>/g, ""));
  const expression = isImpossible ? null : hostExpression(source);
  // With a port, $http_host is another text.
  if (expression === null || (isNegated && variable !== "host")) return null;
  const { exact, isAll } = body.options.hosts;
  const found = exact
    .map((host) => ({ host, match: new RegExp(expression).exec(host) }))
    .filter(({ match }) => (match !== null) !== isNegated);
  if (!isNegated && hasGroups(body.first)) {
    const named = found.flatMap(({ host, match }) => {
      const first = withGroups(body.first, match ?? []);
      return branchOf({ hosts: [host] }, { ...body, first }) ?? [];
    });
    if (isAll) return named;
    const content = denied("the redirect has a part of the host");
    const headers = [hostCondition(expression)];
    return [...named, { label: body.label, conditions: { headers }, content }];
  }
  if (isAll)
    return found.length === 0 ? [] : branchOf({ hosts: found.map(({ host }) => host) }, body);
  const condition = isNegated ? withoutHost(source, expression) : expression;
  return condition === null ? null : branchOf({ headers: [hostCondition(condition)] }, body);
}

/** Hosts that the expression does not match; null: it might match a port. */
function withoutHost(source: string, expression: string): string | null {
  const isWhole = /^\^[^|]*[a-z]\$$/i.test(source.replaceAll(/\([^()]*\)/g, ""));
  const made = `^(?!${expression.replace(/^\^/, "")})`;
  return isWhole && regexProblem(made) === null ? made : null;
}

const denied = (why: string): Content => ({ kind: "closed", status: 503, why, isDenial: true });

/** A rewrite has groups of its own. */
const hasGroups = ({ name, args }: Directive): boolean =>
  name === "return" && args.some((arg) => /\$\{?[1-9]/.test(arg));

const withGroups = (directive: Directive, groups: readonly string[]): Directive => ({
  ...directive,
  args: directive.args.map((arg) =>
    arg.replaceAll(/\$(?:([1-9])|\{([1-9])\})/g, (_, one, two) => groups[one ?? two] ?? ""),
  ),
});

/** `if ($new) { return 301 $new; }` with a map of paths: a redirect for each of them. */
function ofMap(variable: string, body: Body): readonly Branch[] | null {
  const map = mapOf(variable, body.level);
  if (map === null || !/^(?:uri|document_uri|request_uri)$/.test(map.source)) return null;
  if (map.rest !== "" && map.rest !== "0") return null;
  // Others are escaped in some requests and not in others.
  if ([...map.texts.keys()].some((text) => !/^\/[\w\-.~/]*$/.test(text))) return null;
  const paths = [...map.texts].map(([text, value]) => [`(?i)^${escaped(text)}$`, value] as const);
  const branches: Branch[] = [];
  for (const [path, value] of [...paths, ...map.expressions]) {
    const content = redirectFor(path, { variable, value }, body);
    // What an empty value excludes, a later expression would match.
    if (content === null || value === "" || value === "0" || portable(path) === null) return null;
    const label = `${body.label}, ${map.label}`;
    branches.push({ label, conditions: { path }, content });
  }
  return branches;
}

function redirectFor(
  path: string,
  { variable, value }: { readonly variable: string; readonly value: string },
  { first, level, options }: Body,
): Content | null {
  const isReturn = first.name === "return";
  const [code = "", text = ""] =
    isReturn && first.args.length === 1 ? ["302", first.args[0]] : first.args;
  if (!isReturn && (first.name !== "rewrite" || !/^\^$|^\^?\.\*\$?$/.test(code))) return null;
  if (isReturn && !/^30[12378]$/.test(code)) return null;
  const to = text.replaceAll(
    new RegExp(`\\$(?:${variable}\\b|\\{${variable}\\})`, "g"),
    () => value,
  );
  const flag = isReturn ? "redirect" : (first.args[2] ?? "redirect");
  // `return` adds no query.
  const args = [path, isReturn ? `${to}?` : to, flag];
  const content = to === text ? null : redirectOf({ ...first, args }, level, options);
  if (content?.kind !== "response" || !isReturn) return content;
  return { ...content, config: { ...content.config, status: Number(code) } };
}
