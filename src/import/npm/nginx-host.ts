// Converts a proxy host of Nginx Proxy Manager by the importer of nginx, as the server that its template makes; for hosts whose own
// directives need more than fields. Knows no column.
import { ApiError } from "../../model/error.ts";
import { noFiles } from "../nginx/dump.ts";
import type { NginxContext } from "../nginx/nginx.ts";
import { addServers } from "../nginx/servers.ts";
import { type Directive, Level, readTree, type SourceFiles } from "../nginx/tree.ts";
import { Output, type OutputObject } from "../output.ts";
import { Report } from "../report.ts";
import type { AccessList } from "./access-lists.ts";
import type { NpmContext } from "./npm.ts";

export interface NginxHost {
  /** In the report: `proxy host "shop.test"`. */
  readonly label: string;
  /** Unique in the source. */
  readonly key: string;
  readonly domains: readonly string[];
  readonly isOn: boolean;
  /** `http://app:8080`. */
  readonly target: string;
  readonly hasCertificate: boolean;
  readonly redirectsToHttps: boolean;
  /** Value of Strict-Transport-Security; null: none. */
  readonly hsts: string | null;
  readonly isWebsocket: boolean;
  /** Null: none, and every client is allowed. */
  readonly accessList: AccessList | null;
  /** Directives that its users added. */
  readonly advanced: string;
  readonly locations: readonly NginxLocation[];
}

export interface NginxLocation {
  /** With its modifier. */
  readonly path: string;
  readonly target: string;
  readonly advanced: string;
}

/** What hosts have in common. */
export interface NginxHosts {
  readonly context: NginxContext;
  /** Of the files custom/http_top.conf and custom/http.conf. */
  readonly http: readonly Directive[];
  /** Of custom/server_proxy.conf. */
  readonly server: readonly Directive[];
}

/** Routes of a name go before those of a wildcard, also before those of hosts that are converted otherwise. */
const NAMES_FIRST = 100_000;

/** Its routes; null: its directives cannot be read or would close all of them, and nothing is added. */
export async function addByNginx(
  host: NginxHost,
  hosts: NginxHosts,
  npm: NpmContext,
): Promise<readonly OutputObject[] | null> {
  const { output } = hosts.context;
  const trial = new Output("npm", new Report(), output);
  const tried = await addHost(host, { ...hosts, context: contextFor(trial, hosts.context) }, npm);
  const lost = new Set(trial.lostProtections.map(({ scope }) => scope.route_id));
  if (tried === null) return null;
  if (tried.every(({ id }) => lost.has(id))) {
    for (const { what } of trial.lostProtections)
      output.report.omitted(what, "it may deny access, and has no equivalent");
    return null;
  }
  return await addHost(host, hosts, npm);
}

/** A context for other objects. */
const contextFor = (output: Output, { files, upstreams }: NginxContext): NginxContext => ({
  output,
  files,
  upstreams,
  services: new Map(),
  listeners: new Map(),
  users: new Map(),
  certificates: new Set(),
});

async function addHost(
  host: NginxHost,
  { context, http, server }: NginxHosts,
  npm: NpmContext,
): Promise<readonly OutputObject[] | null> {
  const { output } = context;
  const directives = serverOf(host, server, npm);
  if (directives === null) return null;
  const level = new Level(
    {
      place: placeOf(host.label),
      block: [
        ...TIMEOUTS,
        ...http,
        { ...directive("server"), block: directives, place: placeOf(host.label) },
      ],
    },
    null,
  );
  const before = output.objects.length;
  if (host.accessList !== null) context.users.set(usersPath(host), host.accessList.users);
  await addServers(level, context);
  for (const scheme of ["HTTP", "HTTPS"])
    output.report.retract("changed", `unknown hosts over ${scheme}`);
  // Should one of them be invalid, its requests must not reach the host of a wildcard.
  for (const [at, object] of output.objects.entries())
    if (at >= before && object.collection === "routes")
      output.objects[at] = { ...object, protects: host.isOn };
  const routes = output.objects.slice(before).filter(({ collection }) => collection === "routes");
  for (const { fields } of routes) {
    const hosts = (fields["hosts"] ?? []) as readonly string[];
    const isWild = hosts.some((name) => name.startsWith("*."));
    fields["priority"] = Number(fields["priority"] ?? 0) + (isWild ? -NAMES_FIRST : NAMES_FIRST);
  }
  return routes;
}

/** Where its directives stand, in the report. */
export const placeOf = (file: string) => ({ file, line: 1, column: 1 });

export const directive = (name: string, ...args: readonly string[]): Directive => ({
  name,
  args,
  block: null,
  place: placeOf("Nginx Proxy Manager"),
});

/** Of its nginx.conf. */
const TIMEOUTS = ["connect", "send", "read"].map((kind) =>
  directive(`proxy_${kind}_timeout`, "90s"),
);

/** The server of its template proxy_host.conf; null: a text of its users cannot be read. */
function serverOf(
  host: NginxHost,
  custom: readonly Directive[],
  npm: NpmContext,
): readonly Directive[] | null {
  const read = (text: string, where: string) => readOwn(text, where, npm);
  const own = read(host.advanced, `advanced of ${host.label}`);
  const locations = host.locations.map(({ path, target, advanced }) => {
    const inner = read(advanced, `advanced of location ${path} of ${host.label}`);
    if (inner === null) return null;
    return {
      ...directive("location", ...path.trim().split(/\s+/)),
      place: placeOf(host.label),
      block: [...inner, ...accessOf(host), ...forwardOf(host, target)],
    };
  });
  if (own === null || locations.some((one) => one === null)) return null;
  const found = locations.filter((one) => one !== null);
  const hasMain = [...own, ...found].some(
    ({ name, args }) => name === "location" && args.length === 1 && args[0] === "/",
  );
  const [, scheme = "", address = "", port = ""] =
    /^(https?):\/\/(.*?)(?::(\d+))?(?:\/.*)?$/.exec(host.target) ?? [];
  return [
    directive("set", "$forward_scheme", scheme),
    directive("set", "$server", address),
    directive("set", "$port", port),
    directive("listen", "80"),
    ...(host.hasCertificate ? [directive("listen", "443", "ssl")] : []),
    directive("server_name", ...host.domains),
    ...(host.hsts === null
      ? []
      : [directive("add_header", "Strict-Transport-Security", host.hsts, "always")]),
    ...(host.redirectsToHttps ? [TO_HTTPS] : []),
    ...own,
    ...found,
    ...(hasMain
      ? []
      : [
          {
            ...directive("location", "/"),
            place: placeOf(host.label),
            block: [...accessOf(host), ...forwardOf(host, host.target)],
          },
        ]),
    ...custom,
  ];
}

const TO_HTTPS: Directive = {
  ...directive("if", "($scheme", "=", "http)"),
  block: [directive("return", "301", "https://$host$request_uri")],
};

function forwardOf(host: NginxHost, target: string): readonly Directive[] {
  const { isWebsocket, accessList } = host;
  const hidesPassword =
    accessList !== null && accessList.users.length > 0 && !accessList.passesAuth;
  return [
    directive("proxy_set_header", "Host", "$host"),
    directive("proxy_set_header", "X-Forwarded-Scheme", "$scheme"),
    ...(isWebsocket ? [directive("proxy_set_header", "Upgrade", "$http_upgrade")] : []),
    ...(hidesPassword ? [directive("proxy_set_header", "Authorization", "")] : []),
    directive("proxy_pass", target),
  ];
}

const usersPath = ({ key }: NginxHost): string => `users of ${key}`;

/** In each location that the template makes; those that users write have none. */
function accessOf(host: NginxHost): readonly Directive[] {
  const { accessList } = host;
  if (accessList === null) return [];
  const { users, rules, isEither, asksInVain, endsWithDenial } = accessList;
  const asks = users.length > 0 || asksInVain;
  return [
    ...(asks
      ? [
          directive("auth_basic", "Authorization required"),
          directive("auth_basic_user_file", usersPath(host)),
        ]
      : []),
    ...rules.map(({ address, isAllowed }) => directive(isAllowed ? "allow" : "deny", address)),
    ...(endsWithDenial ? [directive("deny", "all")] : []),
    directive("satisfy", isEither ? "any" : "all"),
  ];
}

/** Files of its image that users include. */
const OWN_FILES: Readonly<Record<string, string>> = {
  "proxy.conf":
    "proxy_set_header Host $host; proxy_set_header X-Forwarded-Scheme $scheme; proxy_pass $forward_scheme://$server:$port$request_uri;",
  "letsencrypt-acme-challenge.conf": "",
  "assets.conf": "",
  "ssl-ciphers.conf": "",
  "ip_ranges.conf": "",
  "force-ssl.conf": "if ($scheme = http) { return 301 https://$host$request_uri; }",
};

/** Null: the text would not be valid in nginx, or might mean something else. */
export function readOwn(
  text: string,
  where: string,
  { findFile }: NpmContext,
): readonly Directive[] | null {
  const content = (path: string): string | null => {
    const [, own = ""] = /^(?:\/etc\/nginx\/)?conf\.d\/include\/([\w.-]+)$/.exec(path) ?? [];
    const known = Object.hasOwn(OWN_FILES, own) ? OWN_FILES[own] : undefined;
    if (known !== undefined) return known;
    // A text of users must not name files elsewhere.
    const found = /(?:^|\/)\.\.(?:\/|$)/.test(path) ? null : (findFile?.(path) ?? null);
    return found !== null && "text" in found ? found.text : null;
  };
  const files: SourceFiles = {
    ...noFiles,
    match: (pattern) => (/[*?[]/.test(pattern) || content(pattern) === null ? null : [pattern]),
    read: content,
  };
  // The template ends the last line.
  for (const one of [text, `${text};`])
    try {
      return readTree(one, where, files);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  return null;
}
