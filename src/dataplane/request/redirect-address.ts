// Redirects of a target that name its own address: they get the address that the client has requested; knows no socket.
import { parseAuthority } from "../../http/authority.ts";
import { withoutSlash } from "../../http/request-target.ts";
import { changedPrefix, type RouteRuntime } from "../route-runtime.ts";
import type { ServiceRuntime, TargetRuntime } from "../service-runtime.ts";
import { listOf } from "../upstream/response-head.ts";
import type { ResponseHead } from "../upstream/response-head.ts";
import type { ClientRequest } from "./client-request.ts";

/** The attempt that a response belongs to. */
interface Attempt {
  readonly request: ClientRequest;
  readonly route: RouteRuntime;
  readonly service: ServiceRuntime;
  readonly target: TargetRuntime | null;
}

/**
 * An absolute URL without user information. White space and backslashes, which programs read differently, occur in none; nor do two
 * fields that were joined.
 */
const ABSOLUTE = /^(https?):\/\/([^/?#@\\\s]+)((?:[/?#][^\\\s]*)?)$/i;

/** The delay, the URL and an optional quote behind it. Its parts begin with different characters, so that it takes linear time. */
const REFRESH = /^([^;,]*[;,]\s*url\s*=\s*["']?)([^"'\s]*)(["']?\s*)$/i;

/**
 * The head with the client's address in Location and Refresh where these have scheme, host and port of the target, as
 * `proxy_redirect default` of nginx does. All others stay as they are.
 */
export function withClientAddress(head: ResponseHead, attempt: Attempt): ResponseHead {
  const { service, target } = attempt;
  if (!service.service.rewrite_redirects || target === null) return head;
  const fields = listOf(head);
  const location = rewritten(fields.get("location"), attempt, target);
  const [, before = "", url = "", after = ""] = REFRESH.exec(fields.get("refresh") ?? "") ?? [];
  const refresh = rewritten(url, attempt, target);
  if (location === null && refresh === null) return head;
  // Equal responses share the head.
  if (location !== null) fields.set("Location", location);
  if (refresh !== null) fields.set("Refresh", before + refresh + after);
  return head.with(fields.lines);
}

/** Null: the URL does not name the target, or nothing that the route serves there. */
function rewritten(url: string | null, attempt: Attempt, target: TargetRuntime): string | null {
  const [, scheme, authority = "", rest = ""] = ABSOLUTE.exec(url ?? "") ?? [];
  if (scheme === undefined) return null;
  const { request } = attempt;
  const own = target.endpoint.tls === null ? "http" : "https";
  const named = originHost(authority, own);
  if (scheme.toLowerCase() !== own || named === null) return null;
  if (named !== originHost(target.authority, own)) return null;
  const clientScheme = request.clientScheme();
  const clientHost = request.clientHost();
  // The target has the public address: its own redirects lead to the right place.
  if (named === originHost(clientHost, clientScheme)) return null;
  const path = clientPath(rest.startsWith("/") ? rest : `/${rest}`, attempt);
  return path === null ? null : `${clientScheme}://${clientHost}${path}`;
}

/** Host and port, without the default one of the scheme; null: not valid. */
function originHost(authority: string, scheme: "http" | "https"): string | null {
  const parsed = parseAuthority(authority);
  if (parsed === null) return null;
  const { host, port } = parsed;
  return port === null || port === (scheme === "http" ? 80 : 443) ? host : `${host}:${port}`;
}

/** Path, query and fragment with the client's prefix in the place of the target's; null when it has another one. */
function clientPath(rest: string, { request, route, service }: Attempt): string | null {
  const prefix =
    request.edits?.hasOwnPath === true ? undefined : changedPrefix(route, request.path);
  const replacement = prefix === undefined ? "" : withoutSlash(route.replacement ?? "");
  const ofTarget = withoutSlash(service.service.path) + replacement;
  if (!rest.startsWith(ofTarget) || !/^(?:[/?#]|$)/.test(rest.slice(ofTarget.length))) return null;
  const path = withoutSlash(prefix ?? "") + rest.slice(ofTarget.length);
  return path.startsWith("/") ? path : `/${path}`;
}
