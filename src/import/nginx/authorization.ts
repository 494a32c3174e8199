// Converts auth_request with the location that it asks to the plugin forward-auth; knows no route.
import type { AccessPlugin } from "./access.ts";
import type { NginxContext } from "./nginx.ts";
import { destinationOf } from "./proxy.ts";
import { type Directive, type Level, shownPlace } from "./tree.ts";

/** Servers with a protocol of their own for nginx: the gateway uses the one of the preset. */
const SERVERS: readonly (readonly [RegExp, string, string])[] = [
  [/^\/api\/verify$/, "authelia", "/api/verify"],
  [/^\/api\/authz\/(?:auth-request|forward-auth)$/, "authelia", "/api/authz/forward-auth"],
  [
    /^\/outpost\.goauthentik\.io\/auth\/(?:nginx|traefik|caddy)$/,
    "authentik",
    "/outpost.goauthentik.io/auth/traefik",
  ],
  [/^\/oauth2\/auth$/, "oauth2-proxy", "/oauth2/auth"],
];

/** Headers that tell the server about the request, in a form of their own. */
const ABOUT_REQUEST = /^x-(?:original|auth-request|sent)-|^x-(?:uri|url|request-(?:uri|method))$/i;

/** The location of an internal request. */
export interface AskedLocation {
  readonly level: Level;
  /** Its path; null: an expression or a name. */
  readonly value: string | null;
}

interface Asked {
  readonly directive: Directive;
  /** The level that asks. */
  readonly level: Level;
  /** The location with the path of the directive; null: there is none. */
  readonly location: AskedLocation | null;
}

export function forwardAuthOf(
  { directive, level, location }: Asked,
  context: NginxContext,
): AccessPlugin | { readonly lost: string } {
  const what = `auth_request ${directive.args[0]} at ${shownPlace(directive.place)}`;
  const authLevel = location?.level ?? null;
  const pass = authLevel?.own("proxy_pass").at(-1);
  if (authLevel === null || pass === undefined) return { lost: what };
  if (["rewrite", "if", "return"].some((name) => authLevel.own(name).length > 0))
    return { lost: what };
  const destination = destinationOf(pass, authLevel);
  if (destination === null) return { lost: what };
  const { scheme, authority, uri } = destination;
  const address = context.upstreams.get(authority)?.firstAddress ?? authority;
  if (address.startsWith("unix:")) return { lost: what };
  // A server with several hosts may allow what arrives for another one.
  const [host] = authLevel
    .nearest("proxy_set_header")
    .filter(({ args }) => args[0]?.toLowerCase() === "host");
  const name = host?.args[1] ?? "$proxy_host";
  if (!/^\$\{?(?:host|http_host|proxy_host)\b/.test(name) && name !== authority)
    return { lost: `${what}: its server needs the Host ${name}, and` };
  const asked = directive.args[0] ?? "/";
  const start = location?.value ?? null;
  if (uri !== null && (start === null || /[?$]/.test(uri))) return { lost: what };
  const path =
    (uri === null ? asked : uri + asked.slice((start ?? "").length)).split("?")[0] ?? "/";
  if (!path.startsWith("/")) return { lost: what };
  const server = SERVERS.find(([pattern]) => pattern.test(path));
  const about = authLevel
    .nearest("proxy_set_header")
    .filter(({ args }) => ABOUT_REQUEST.test(args[0] ?? ""));
  // Such a server would decide without these headers, and may allow what it denied.
  if (server === undefined && about.length > 0)
    return {
      lost: `${what}: its server reads ${about.map(({ args }) => args[0]).join(", ")}, and`,
    };
  return {
    name: "forward-auth",
    what,
    config: {
      url: `${scheme}://${address}${server?.[2] ?? path}`,
      ...(server === undefined ? {} : { preset: server[1] }),
      response_headers_to_upstream: identityHeaders(level),
      run_on_preflight: true,
    },
  };
}

/** Headers that the target gets from the response of the server, under the same name. */
const identityHeaders = (level: Level): readonly string[] =>
  level
    .nearest("proxy_set_header")
    .filter(({ args: [name = "", value = ""] }) => {
      const source = identitySource(value, level);
      return source !== null && source === name.toLowerCase() && !source.startsWith("x-forwarded-");
    })
    .map(({ args }) => args[0] ?? "");

/** The header of the server's response that a value stands for; null: it is something else. */
export function identitySource(value: string, level: Level): string | null {
  const [, name] = /^\$\{?(\w+)\}?$/.exec(value) ?? [];
  if (name === undefined) return null;
  const set = level.nearest("auth_request_set").find(({ args }) => args[0] === `$${name}`);
  const [, header] = /^\$\{?upstream_http_(\w+)\}?$/.exec(set?.args[1] ?? "") ?? [];
  return header === undefined ? null : header.replaceAll("_", "-").toLowerCase();
}
