// Texts with `${...}` variables, compiled once and rendered for each request; knows no plugin.
import type { RequestContext } from "./context.ts";

/** A compiled template. A variable without a value renders as the empty text. */
export type Template = (context: RequestContext) => string;

/** Variables of a plugin, which precede the general ones; null: unknown name. */
export type OwnVariables = (
  variable: string,
) => ((context: RequestContext) => string | null) | null;

const NO_VARIABLES: OwnVariables = () => null;

type Part = string | ((context: RequestContext) => string);

const PLACEHOLDER = /\$\{([^{}]*)\}/g;

/** Environment variables that configurations may read: no others, or an editor could read the gateway's own. */
const ENVIRONMENT = "SLUICE_ENV_";

/** Variables without a name of their own behind a dot. */
const plain: Readonly<Record<string, (context: RequestContext) => string | null>> = {
  "request.id": ({ id }) => id,
  "request.method": ({ method }) => method,
  "request.scheme": ({ scheme }) => scheme,
  "request.host": ({ host }) => host,
  "request.path": ({ path }) => path,
  "request.query": ({ query }) => query,
  "request.target": ({ target }) => target,
  "client.address": (context) => context.clientAddress(),
  "client.country": (context) => context.country(),
  "client.asn": (context) => context.asn()?.toString() ?? null,
  "consumer.id": ({ consumer }) => consumer?.id ?? null,
  "consumer.username": ({ consumer }) => consumer?.username ?? null,
  "consumer.custom_id": ({ consumer }) => consumer?.customId ?? null,
  "consumer.groups": ({ groups }) => groups.join(","),
  "credential.name": ({ credential }) => credential?.name ?? null,
  "route.id": ({ route }) => route?.id ?? null,
  "route.name": ({ route }) => route?.name ?? null,
  "service.id": ({ service }) => service?.id ?? null,
  "service.name": ({ service }) => service?.name ?? null,
};

/** Variables that end in a name: `request.header.user-agent`. */
const named: Readonly<Record<string, (context: RequestContext, name: string) => string | null>> = {
  "request.header.": (context, name) => context.header(name.toLowerCase()),
  "request.query.": (context, name) => context.queryValue(name),
  "request.cookie.": (context, name) => context.cookie(name),
  "path.": (context, name) => context.path.split("/")[Number(name)] ?? null,
  "env.": (_, name) => process.env[name] ?? null,
};

/**
 * Null for a valid template; otherwise the problem, worded to follow a field name. Variables:
 * `request.id|method|scheme|host|path|query|target`, `request.header.<name>`, `request.query.<name>`,
 * `request.cookie.<name>`, `path.<number>` (segment of the path, from 1), `client.address|country|asn`,
 * `consumer.id|username|custom_id|groups`, `credential.name`, `route.id|name`, `service.id|name`, `env.SLUICE_ENV_<name>`.
 */
export function templateProblem(source: string, own = NO_VARIABLES): string | null {
  for (const [, variable = ""] of source.matchAll(PLACEHOLDER)) {
    if (own(variable) !== null) continue;
    if (Object.hasOwn(plain, variable)) continue;
    const prefix = Object.keys(named).find((each) => variable.startsWith(each));
    if (prefix === undefined) return `has the unknown variable \${${variable}}`;
    const name = variable.slice(prefix.length);
    if (name === "") return `has \${${variable}} without a name`;
    if (prefix === "path." && !/^[1-9]\d{0,2}$/.test(name))
      return `has \${${variable}}: path segments are numbered from 1`;
    if (prefix === "env." && !name.startsWith(ENVIRONMENT))
      return `has \${${variable}}: only environment variables named ${ENVIRONMENT}... can be read`;
  }
  return /\$\{[^}]*$/.test(source.replace(PLACEHOLDER, "")) ? "has ${ without }" : null;
}

/** Compiles a template for which `templateProblem` returns null. `escaped` is applied to the values of variables. */
export function compileTemplate(
  source: string,
  escaped: ((value: string) => string) | null = null,
  own = NO_VARIABLES,
): Template {
  const parts: Part[] = [];
  let end = 0;
  for (const match of source.matchAll(PLACEHOLDER)) {
    if (match.index > end) parts.push(source.slice(end, match.index));
    const read = variableOf(match[1] ?? "", own);
    parts.push(escaped === null ? read : (context) => escaped(read(context)));
    end = match.index + match[0].length;
  }
  if (end < source.length) parts.push(source.slice(end));
  const [first] = parts;
  if (parts.length === 0) return () => "";
  if (parts.length === 1 && typeof first === "string") return () => first;
  return (context) => {
    let text = "";
    for (const part of parts) text += typeof part === "string" ? part : part(context);
    return text;
  };
}

function variableOf(variable: string, own: OwnVariables): (context: RequestContext) => string {
  const readOwn = own(variable);
  if (readOwn !== null) return (context) => readOwn(context) ?? "";
  const read = Object.hasOwn(plain, variable) ? plain[variable] : undefined;
  if (read !== undefined) return (context) => read(context) ?? "";
  const prefix = Object.keys(named).find((each) => variable.startsWith(each)) ?? "";
  const find = named[prefix];
  const name = variable.slice(prefix.length);
  if (prefix === "env." && !name.startsWith(ENVIRONMENT)) return () => "";
  return (context) => find?.(context, name) ?? "";
}
