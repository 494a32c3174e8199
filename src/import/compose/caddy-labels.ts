// Reads the labels by which caddy-docker-proxy serves a container; knows no container engine.
import { type LabeledSite, plainSite, portOf } from "./site.ts";
import { storedNameOf } from "../../model/host-name.ts";

/** A directive of a Caddyfile with the directives inside of it. */
interface Directive {
  readonly name: string;
  args: string;
  readonly inner: Map<string, Directive>;
}

/** Directives that deny no client. */
const HARMLESS: ReadonlySet<string> = new Set([
  ...["encode", "log", "tls", "header", "tracing", "push", "root", "vars", "log_skip", "skip_log"],
  ...["log_append", "log_name", "bind"],
]);

const BCRYPT = /^\$2[aby]\$\d\d\$[A-Za-z0-9./]{53}$/;

/** The sites of a container: `caddy`, `caddy_0` and so on; empty: it has no such label. */
export function caddyLabelSites(
  labels: Readonly<Record<string, string>>,
  container: { readonly name: string },
): readonly LabeledSite[] {
  const roots = new Map<string, Directive>();
  for (const [key, value] of Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const [first = "", ...steps] = key.split(".");
    if (!/^caddy(?:_\d+)?$/i.test(first)) continue;
    plant(roots, [first.toLowerCase(), ...steps], value);
  }
  return [...roots.values()].flatMap((root) => sitesOf(root, container));
}

function plant(roots: Map<string, Directive>, steps: readonly string[], value: string): void {
  let level = roots;
  let found: Directive | null = null;
  for (const step of steps) {
    found = level.get(step) ?? { name: nameOf(step), args: "", inner: new Map() };
    level.set(step, found);
    level = found.inner;
  }
  if (found !== null) found.args = value.trim();
}

/** `0_reverse_proxy` and `reverse_proxy_0` are reverse_proxy: numbers order and distinguish directives. */
const nameOf = (step: string): string => step.replace(/^\d+_/, "").replace(/_\d+$/, "");

interface Scope {
  readonly path: string | null;
  readonly stripPath: boolean;
}

function sitesOf(root: Directive, container: { readonly name: string }): readonly LabeledSite[] {
  const problems: string[] = [];
  // Global options of Caddy, and snippets.
  if (root.args === "" || /^\(.*\)$/.test(root.args)) {
    const names = [...root.inner.values()].map(({ name }) => name);
    return names.length === 0
      ? []
      : [
          {
            ...plainSite,
            lost: "global options",
            problems: [`${names.join(", ")}: global options of Caddy are not imported`],
          },
        ];
  }
  const addresses = addressesOf(root.args, problems);
  if (addresses.hosts.length === 0 && !addresses.isAny)
    return [{ ...plainSite, lost: "its address", problems }];
  const found: Found = { proxies: [], users: [], lost: null, problems };
  read(root, { path: null, stripPath: false }, { found, container });
  if (found.proxies.length === 0) {
    problems.push(`${root.args} has no reverse_proxy`);
    found.lost ??= "a site without reverse_proxy";
    found.proxies.push({ path: null, stripPath: false, address: null, port: null, scheme: "http" });
  }
  const { hosts, https } = addresses;
  return found.proxies.map((proxy): LabeledSite => ({
    ...plainSite,
    ...proxy,
    hosts,
    https,
    users: found.users,
    lost: found.lost,
    problems,
  }));
}

type Proxy = Pick<LabeledSite, "path" | "stripPath" | "address" | "port" | "scheme">;

interface Found {
  readonly proxies: Proxy[];
  readonly users: LabeledSite["users"][number][];
  lost: string | null;
  readonly problems: string[];
}

interface Reading {
  readonly found: Found;
  readonly container: { readonly name: string };
}

function read({ inner }: Directive, scope: Scope, reading: Reading): void {
  const { found } = reading;
  for (const directive of inner.values()) {
    const { name, args } = directive;
    if (name === "reverse_proxy") addProxy(directive, scope, reading);
    else if (/^(?:handle|handle_path|route)$/.test(name)) {
      const path = pathOf(args);
      if (path === undefined || (path !== null && scope.path !== null))
        found.lost ??= `${name} ${args}`;
      else
        read(
          directive,
          { path: path ?? scope.path, stripPath: scope.stripPath || name === "handle_path" },
          reading,
        );
    } else if (/^basic_?auth$/.test(name)) addUsers(directive, found);
    else if (HARMLESS.has(name)) found.problems.push(`${name} is not imported`);
    else {
      found.problems.push(`${name} has no equivalent`);
      found.lost ??= name;
    }
  }
}

/** Null: any; undefined: it is no plain prefix. */
function pathOf(matcher: string): string | null | undefined {
  if (matcher === "" || matcher === "*" || matcher === "/*") return null;
  const [, prefix] = /^(\/[^*\s]*)\*$/.exec(matcher) ?? [];
  return prefix;
}

function addProxy({ args, inner }: Directive, scope: Scope, { found, container }: Reading): void {
  const [, matcher = "", rest = ""] = /^([/*@]\S*\s+)?(.*)$/s.exec(args) ?? [];
  const path = pathOf(matcher.trim());
  if (path === undefined || (path !== null && scope.path !== null)) {
    found.lost ??= `reverse_proxy ${args}`;
    return;
  }
  const upstreams = rest.match(/\{\{[^}]*\}\}|\S+/g) ?? [];
  if (upstreams.length > 1)
    found.problems.push(`reverse_proxy: only the first of ${upstreams.length} upstreams is used`);
  const target = upstreamOf(upstreams[0] ?? "", container);
  if (target === null) {
    found.problems.push(`reverse_proxy: ${rest} cannot be read`);
    found.lost ??= "its upstream";
    return;
  }
  for (const { name } of inner.values())
    found.problems.push(`reverse_proxy.${name} is not imported: set it in the service`);
  const own = path ?? scope.path;
  found.proxies.push({ ...target, path: own, stripPath: scope.stripPath && own !== null });
}

/** `{{upstreams 80}}`, `{{upstreams https 443}}`, `http://host:80`, `host:80`; an upstream without a port has port 80. */
function upstreamOf(
  text: string,
  container: { readonly name: string },
): Pick<Proxy, "address" | "port" | "scheme"> | null {
  const [template, words = ""] = /^\{\{\s*upstreams\b([^}]*)\}\}$/.exec(text) ?? [];
  if (template !== undefined) {
    const given = words.trim().split(/\s+/);
    const scheme = given.includes("https") ? "https" : "http";
    const numbers = given.flatMap((word) => portOf(word) ?? []);
    const isKnown = given.every((word) => word === "" || /^(?:https?|h2c|\d+)$/.test(word));
    return isKnown ? { address: null, port: numbers[0] ?? null, scheme } : null;
  }
  const [, scheme = "http", host, port] =
    /^(?:(https?):\/\/)?([A-Za-z0-9_.-]+)(?::(\d+))?\/?$/.exec(storedNameOf(text)) ?? [];
  if (host === undefined) return null;
  const isHttps = scheme === "https";
  return {
    address: host === container.name ? null : host,
    port: portOf(port ?? (isHttps ? "443" : "80")),
    scheme: isHttps ? "https" : "http",
  };
}

function addUsers({ args, inner }: Directive, found: Found): void {
  const names = [...inner.entries()];
  if (args !== "" && args !== "bcrypt") found.lost ??= `basic_auth ${args}`;
  if (names.length === 0) found.lost ??= "basic_auth without users";
  for (const [username, { args: hash }] of names) {
    const [given = ""] = hash.split(/\s+/);
    if (BCRYPT.test(given)) found.users.push({ username, password_hash: given });
    else {
      found.problems.push(`basic_auth: the password of ${username} has no hash of bcrypt`);
      found.lost ??= `the user ${username} of basic_auth`;
    }
  }
}

function addressesOf(text: string, problems: string[]) {
  const hosts: string[] = [];
  let isAny = false;
  let isPlain = false;
  for (const address of text.split(/[\s,]+/)) {
    const [, scheme, given = "", port, path] =
      /^(?:(https?):\/\/)?([^:/]*)(?::(\d+))?(\/.*)?$/i.exec(address) ?? [];
    const host = storedNameOf(given);
    const isUsual = port === undefined || port === "80" || port === "443";
    const isKnown = /^(?:\*\.)?[A-Za-z0-9_.-]*$/.test(host) && (path ?? "/") === "/";
    if (!isKnown || !isUsual) {
      if (address !== "") problems.push(`${address} is not supported, and is not served`);
      continue;
    }
    if (scheme === "http" || port === "80") isPlain = true;
    if (host === "") isAny = true;
    else hosts.push(host.toLowerCase());
  }
  return { hosts: isAny ? [] : hosts, isAny, https: !isPlain && !isAny };
}
