// Reads the environment variables by which nginx-proxy and acme-companion serve a container; knows no container engine.
import { isDocument } from "../../control/body.ts";
import { type LabeledSite, plainSite, portOf } from "./site.ts";
import { storedNameOf } from "../../model/host-name.ts";
import type { HostFiles } from "./nginx-proxy-files.ts";

/** Variables that change nothing about who is served. */
const HARMLESS: ReadonlySet<string> = new Set([
  ...[
    "LETSENCRYPT_EMAIL",
    "LETSENCRYPT_TEST",
    "LETSENCRYPT_KEYSIZE",
    "LETSENCRYPT_SINGLE_DOMAIN_CERTS",
  ],
  ...["LETSENCRYPT_RESTART_CONTAINER", "ACME_CA_URI", "ACME_PREFERRED_CHAIN"],
]);

/** The proxy's files of a host and path. */
type FilesOf = (host: string, path: string | null) => HostFiles;

const noFiles: FilesOf = () => ({ users: null, lost: null, problems: [] });

/** The sites of a container; empty: it has no VIRTUAL_HOST. */
export function nginxProxySites(
  environment: Readonly<Record<string, string>>,
  filesOf: FilesOf = noFiles,
): readonly LabeledSite[] {
  const problems: string[] = [];
  const value = (name: string): string => environment[name]?.trim() ?? "";
  const wanted = hostsOf(value("VIRTUAL_HOST"), problems);
  const multiple = value("VIRTUAL_HOST_MULTIPORTS");
  if (wanted.length === 0 && multiple === "" && value("VIRTUAL_HOST") === "") return [];
  const secured = new Set(listOf(value("LETSENCRYPT_HOST") || value("ACME_HOST")));
  const method = value("HTTPS_METHOD").toLowerCase();
  if (method === "noredirect") problems.push("HTTPS_METHOD: plain requests are redirected");
  const isSecured = (host: string) =>
    method !== "nohttps" && (secured.has(host) || value("CERT_NAME") !== "");
  const protocol = value("VIRTUAL_PROTO").toLowerCase() || "http";
  const isKnown = protocol === "http" || protocol === "https";
  if (!isKnown) problems.push(`VIRTUAL_PROTO: ${protocol} is not supported`);
  const isInternal = value("NETWORK_ACCESS").toLowerCase() === "internal";
  for (const name of HARMLESS)
    if (/EMAIL|URI/.test(name) && value(name) !== "")
      problems.push(`${name}: set it in the ACME account`);
  const common = {
    ...plainSite,
    scheme: protocol === "https" ? "https" : "http",
    lost: isInternal ? "NETWORK_ACCESS" : isKnown ? null : "VIRTUAL_PROTO",
    problems,
  } as const;
  const places = multiple === "" ? [placeOf(value)] : null;
  const perHost =
    places === null ? multiport(multiple, problems) : wanted.map((host) => ({ host, places }));
  const sites = perHost.flatMap(({ host, places: own }) =>
    own.map((place) => ({ host, place, https: isSecured(host), files: filesOf(host, place.path) })),
  );
  return grouped(sites).map(({ hosts, place, https, files }): LabeledSite => {
    const { dest, ...rest } = place;
    const isStripped = rest.path !== null && dest === "/";
    const isOdd = dest !== "" && !isStripped;
    const users = (files.users ?? []).map(userOf);
    // Without users, nginx denies every client.
    const noUsers = files.users !== null && users.length === 0 ? "an empty file of htpasswd" : null;
    const all = [...problems, ...files.problems];
    return {
      ...common,
      ...rest,
      hosts,
      https,
      stripPath: isStripped,
      users,
      problems: isOdd ? [...all, `VIRTUAL_DEST: ${dest} is not supported`] : all,
      lost: common.lost ?? files.lost ?? noUsers ?? (isOdd ? "VIRTUAL_DEST" : null),
    };
  });
}

interface Place {
  readonly path: string | null;
  readonly port: number | null;
  /** Path that replaces the prefix; empty: none. */
  readonly dest: string;
}

function placeOf(value: (name: string) => string): Place {
  const path = value("VIRTUAL_PATH");
  return {
    path: path === "" || path === "/" ? null : path,
    port: portOf(value("VIRTUAL_PORT")),
    dest: value("VIRTUAL_DEST"),
  };
}

const listOf = (text: string): readonly string[] =>
  text
    .split(",")
    .flatMap((item) => (item.trim() === "" ? [] : [storedNameOf(item.trim()).toLowerCase()]));

function hostsOf(text: string, problems: string[]): readonly string[] {
  return listOf(text).filter((host) => {
    const isKnown = !host.startsWith("~") && !/\*/.test(host.replace(/^\*\./, ""));
    if (!isKnown) problems.push(`VIRTUAL_HOST: ${host} is not supported, and is not served`);
    return isKnown;
  });
}

/** `{host: {path: {port, dest}}}`, as YAML or JSON. */
function multiport(text: string, problems: string[]) {
  const value = parse(text);
  if (!isDocument(value)) {
    problems.push("VIRTUAL_HOST_MULTIPORTS: it cannot be read");
    return [];
  }
  return Object.entries(value).flatMap(([name, inner]) => {
    const places = isDocument(inner) ? Object.entries(inner) : [];
    const own = places.map(([path, settings]): Place => {
      const given = isDocument(settings) ? settings : {};
      const { port = "", dest = "" } = given;
      return {
        path: path === "/" || !path.startsWith("/") ? null : path,
        port: portOf(String(port)),
        dest: String(dest),
      };
    });
    const usual: Place = { path: null, port: null, dest: "" };
    return hostsOf(name, problems).map((host) => ({
      host,
      places: own.length === 0 ? [usual] : own,
    }));
  });
}

function parse(text: string): unknown {
  try {
    return Bun.YAML.parse(text);
  } catch {
    return null;
  }
}

interface HostPlace {
  readonly host: string;
  readonly place: Place;
  readonly https: boolean;
  readonly files: HostFiles;
}

/** A line of htpasswd. */
function userOf(line: string): LabeledSite["users"][number] {
  const at = line.indexOf(":");
  return { username: line.slice(0, Math.max(0, at)), password_hash: line.slice(at + 1) };
}

/** Hosts with the same place become one site. */
function grouped(sites: readonly HostPlace[]) {
  const found = new Map<string, Omit<HostPlace, "host"> & { hosts: string[] }>();
  for (const { host, ...rest } of sites) {
    const key = JSON.stringify(rest);
    const known = found.get(key);
    if (known === undefined) found.set(key, { hosts: [host], ...rest });
    else known.hosts.push(host);
  }
  return [...found.values()];
}
