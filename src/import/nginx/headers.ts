// Converts proxy_set_header, proxy_hide_header and add_header; knows no route.
import type { Document } from "../../control/body.ts";
import { HOP_BY_HOP } from "../../http/hop-by-hop.ts";
import { GATEWAY_FIELDS } from "../../http/gateway-fields.ts";
import { isToken } from "../../http/fields.ts";
import type { Report } from "../report.ts";
import { identitySource } from "./authorization.ts";
import type { HostMode } from "./proxy.ts";
import { type Directive, type Level, shownPlace } from "./tree.ts";
import { hasVariables, templateOf, withFixed } from "./variables.ts";

/** Values of the headers that the gateway sends itself. */
const USUAL =
  /^\$\{?(?:remote_addr|realip_remote_addr|proxy_add_x_forwarded_for|scheme|host|http_host|server_port|server_name|http_(?:x_forwarded_\w+|cf_connecting_ip)|proxy_x_forwarded_\w+|this_host|thescheme|\w*x_forwarded_\w+)\}?(?::\$server_port)?(?:,\s*\$\w+)?$/i;

export interface RequestHeaders {
  readonly host: HostMode;
  readonly isWebSocket: boolean;
  /** Of the plugin transform; null: no change. */
  readonly changes: Document | null;
}

interface HeaderOptions {
  readonly serverName: string | null;
  readonly report: Report;
}

export function requestHeadersOf(level: Level, options: HeaderOptions): RequestHeaders {
  const set: Record<string, string> = {};
  const remove: string[] = [];
  let host: HostMode = "target";
  let isWebSocket = false;
  for (const directive of level.nearest("proxy_set_header")) {
    const [name = "", value = ""] = directive.args;
    const lower = name.toLowerCase();
    const what = `proxy_set_header ${name} at ${shownPlace(directive.place)}`;
    if (lower === "host") host = hostOf(value, level, { ...options, what });
    else if (lower === "upgrade") isWebSocket = value !== "";
    else if (GATEWAY_FIELDS.has(lower) || HOP_BY_HOP.has(lower)) {
      if (lower.startsWith("x-") && !USUAL.test(withFixed(value, level)))
        options.report.changed(what, "the gateway sets this header itself, to the actual value");
    } else if (value === "") remove.push(name);
    // What clients send stays, and nothing is sent where they send nothing.
    else if (isOfClient(name, withFixed(value, level))) continue;
    else if (identitySource(value, level) !== null) {
      // The plugin forward-auth copies headers of the same name.
      if (identitySource(value, level) === lower) continue;
      remove.push(name);
      options.report.changed(what, "is removed from requests: the header cannot be renamed");
    } else {
      const { text, unknown } = templateOf(value, level, options);
      if (unknown.length === 0) set[name] = text;
      else {
        // Clients could set it themselves, such as their identity.
        remove.push(name);
        const variables = unknown.map((each) => `$${each}`).join(", ");
        options.report.changed(
          what,
          `is removed from requests: it has no equivalent of ${variables}`,
        );
      }
    }
  }
  const changes = {
    ...(Object.keys(set).length > 0 ? { set } : {}),
    ...(remove.length > 0 ? { remove: [...new Set(remove)] } : {}),
  };
  return { host, isWebSocket, changes: Object.keys(changes).length > 0 ? changes : null };
}

/** Whether a value is the header of the same name of the client. */
export const isOfClient = (name: string, value: string): boolean =>
  new RegExp(`^\\$\\{?http_${name.replaceAll(/\W/g, "_")}\\}?$`, "i").test(value);

function hostOf(
  value: string,
  level: Level,
  { serverName, report, what }: HeaderOptions & { readonly what: string },
): HostMode {
  const fixed = withFixed(value, level);
  if (/^\$\{?(?:host|http_host)\}?(?::.*)?$/.test(fixed)) return "preserve";
  if (/^\$\{?(?:proxy_host|upstream_addr)\}?(?::\$\{?proxy_port\}?)?$/.test(fixed)) return "target";
  if (fixed === "$server_name" && serverName !== null) return { name: serverName };
  if (!hasVariables(fixed) && /^[A-Za-z0-9._:[\]-]+$/.test(fixed)) return { name: fixed };
  report.changed(what, "became the Host header of the client");
  return "preserve";
}

export interface ResponseHeaders {
  readonly add: Readonly<Record<string, string>>;
  readonly remove: readonly string[];
}

export function responseHeadersOf(level: Level, options: HeaderOptions): ResponseHeaders {
  const add: Record<string, string> = {};
  for (const directive of level.nearest("add_header")) {
    const [name = "", value = ""] = directive.args;
    if (value === "") continue;
    const what = `add_header ${name} at ${shownPlace(directive.place)}`;
    const problem = addHeader(add, { name, value, level }, options);
    // A cookie of the authorization server reaches the client anyway.
    if (problem !== null && !isOfAuthorization(directive, level))
      options.report.omitted(what, problem);
  }
  const hidden = level.nearest("proxy_hide_header").map(({ args }) => args[0] ?? "");
  return { add, remove: [...new Set(hidden.filter((name) => isToken(name)))] };
}

const isOfAuthorization = ({ args }: Directive, level: Level): boolean =>
  level.nearest("auth_request_set").some(({ args: [variable] }) => variable === args[1]);

/** The problem; null: none. */
function addHeader(
  add: Record<string, string>,
  { name, value, level }: { readonly name: string; readonly value: string; readonly level: Level },
  options: HeaderOptions,
): string | null {
  const lower = name.toLowerCase();
  if (!isToken(name) || HOP_BY_HOP.has(lower) || lower === "content-length")
    return "the gateway sets this header itself";
  const { text, unknown } = templateOf(value.replaceAll(/\s*[\r\n]+\s*/g, " "), level, options);
  if (unknown.length > 0)
    return `it has no equivalent of ${unknown.map((each) => `$${each}`).join(", ")}`;
  const same = Object.keys(add).find((other) => other.toLowerCase() === lower);
  if (same !== undefined && lower === "set-cookie") return "only one cookie can be added";
  if (same === undefined) add[name] = text;
  else add[same] = `${add[same]}, ${text}`;
  return null;
}
