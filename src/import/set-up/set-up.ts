// Finds the configuration of a program in a folder or an archive; the programs' own folders read it.
import { posix } from "node:path";
import { Glob } from "bun";
import { ApiError } from "../../model/error.ts";
import type { SourceFiles } from "../nginx/tree.ts";
import type { FindFile } from "../npm/tables.ts";
import type { ImportSource } from "../programs.ts";
import { decodeText } from "../transfer/source.ts";
import { folderOf, joined, nearest, type SourceTree, textIn } from "./tree.ts";

const NAMES = {
  npm: /(?:^|\/)database\.sqlite$/,
  nginx: /(?:^|\/)nginx\.conf$/,
  sites: /(?:^|\/)(?:sites-enabled|conf\.d)\/[^/]+$/,
  caddy: /(?:^|\/)(?:Caddyfile|caddy\.json)$/,
  haproxy: /(?:^|\/)haproxy\.cfg$/,
  compose: /(?:^|\/)(?:docker-)?compose\.ya?ml$/,
  data: /\.(?:ya?ml|json)$/i,
  traefik: /\.(?:ya?ml|toml|json)$/i,
} as const;

const find = (tree: SourceTree, name: RegExp): string | null =>
  nearest(tree, (path) => name.test(path));

/** The only file whose name ends so; null: there is none, or there are several. */
function only(tree: SourceTree, ending: RegExp): string | null {
  const [first = null, ...others] = tree.paths().filter((path) => ending.test(path));
  return others.length === 0 ? first : null;
}

const missing = (what: string) => new ApiError(400, `there is no ${what} in the files`);

/** Files that a configuration of Traefik may consist of. */
export const traefikFiles = (tree: SourceTree): readonly string[] =>
  tree.paths().filter((path) => NAMES.traefik.test(path) && !NAMES.compose.test(path));

/** Files that a configuration of Kong may consist of. */
export const kongFiles = (tree: SourceTree): readonly string[] =>
  tree.paths().filter((path) => NAMES.data.test(path) && !NAMES.compose.test(path));

/** Files of Docker Compose, the nearest to the root first. */
export const composeFiles = (tree: SourceTree): readonly string[] =>
  tree.paths().filter((path) => NAMES.compose.test(path));

const STATIC = /^\s*"?(?:entryPoints|certificatesResolvers|providers)"?\s*[:\]]|^\[entryPoints/im;
const DYNAMIC =
  /^\s*"?(?:http|tcp|udp)"?\s*:\s*$[\s\S]*?^\s+"?(?:routers|middlewares)"?\s*:|^\s*\[+(?:http|tcp|udp)\./im;
/** By these a proxy finds containers. */
const LABELS =
  /\btraefik\.|\bimage:\s*["']?(?:\S*\/)?traefik\b|\bVIRTUAL_HOST\b|\bcaddy(?:_\d+)?["']?\s*[:=]|\bsluice\.enable\b/;
const KONG = /^\s*"?_format_version"?\s*:/m;

/** The program whose configuration the files are; throws a 400 when there are several or none. */
export function programOf(tree: SourceTree): ImportSource {
  const hasText = (paths: readonly string[], pattern: RegExp) =>
    paths.some((path) => pattern.test(textIn(tree, path) ?? ""));
  const found: ImportSource[] = [];
  if (find(tree, NAMES.npm) !== null) found.push("npm");
  else if (find(tree, NAMES.nginx) !== null || find(tree, NAMES.sites) !== null)
    found.push("nginx");
  const compose = composeFiles(tree);
  if (compose.length > 0 && hasText(compose, LABELS)) found.push("compose");
  else if (hasText(traefikFiles(tree), STATIC) || hasText(traefikFiles(tree), DYNAMIC))
    found.push("traefik");
  if (find(tree, NAMES.caddy) !== null) found.push("caddy");
  if (find(tree, NAMES.haproxy) !== null) found.push("haproxy");
  if (hasText(kongFiles(tree), KONG)) found.push("kong");
  // Most gateways run by a file of Compose, which describes no site.
  if (found.length === 0 && compose.length > 0) found.push("compose");
  const [first, ...others] = found;
  if (first === undefined)
    throw new ApiError(400, "the files hold no configuration that can be imported");
  if (others.length > 0)
    throw new ApiError(
      400,
      `the files hold configurations of ${found.join(", ")}: name one of them with from`,
    );
  return first;
}

/** Whether a text that cannot be read may be meant for a program with these members. */
export const seemsToHave = (text: string, members: readonly string[]): boolean =>
  new RegExp(
    `^\\s*["']?(?:${members.join("|")})["']?\\s*:|^\\s*\\[+(?:${members.join("|")})\\b`,
    "im",
  ).test(text);

/** The main file of a program that has one; throws a 400 without it. */
export function mainFile(from: "npm" | "caddy" | "haproxy", tree: SourceTree): string {
  const endings = { npm: /\.sqlite3?$/, caddy: /\.json$|(?:^|\/)Caddyfile/, haproxy: /\.cfg$/ };
  const names = {
    npm: "database.sqlite",
    caddy: "Caddyfile or caddy.json",
    haproxy: "haproxy.cfg",
  };
  const found = find(tree, NAMES[from]) ?? only(tree, endings[from]);
  if (found === null) throw missing(names[from]);
  return found;
}

/** The bytes of a file that is there. */
export function bytesIn(tree: SourceTree, path: string): Uint8Array {
  const bytes = tree.read(path);
  if (bytes === null) throw new ApiError(400, `${path}: cannot be read`);
  return bytes;
}

/** Files that Nginx Proxy Manager's container has as /data/x and /etc/letsencrypt/x. */
export function npmFiles(tree: SourceTree, database: string): FindFile {
  const data = folderOf(database);
  const volumes = [joined(data, "../letsencrypt"), joined(data, "letsencrypt")];
  const candidates = (path: string): readonly (string | null)[] => {
    if (path.startsWith("/data/")) return [joined(data, path.slice("/data/".length))];
    const inner = path.replace(/^\/etc\/letsencrypt\//, "");
    return inner === path
      ? []
      : volumes.map((folder) => (folder === null ? null : joined(folder, inner)));
  };
  return (path) => {
    for (const candidate of candidates(path)) {
      const bytes = candidate === null ? null : tree.read(candidate);
      if (bytes !== null) return { text: decodeText(bytes) };
    }
    return null;
  };
}

/** The main file of nginx; null: there are only files of sites, if any. */
export const nginxFile = (tree: SourceTree): string | null => find(tree, NAMES.nginx);

export interface NginxSetUp {
  readonly bytes: Uint8Array;
  readonly files: SourceFiles;
}

/** Folders whose files nginx.conf of a package includes. */
const SITE_FOLDERS = ["conf.d", "sites-enabled"];

/** nginx.conf with the files beside it, or the files of sites alone; throws a 400 for neither. */
export function nginxSetUp(tree: SourceTree): NginxSetUp {
  const main = nginxFile(tree);
  if (main !== null) return { bytes: bytesIn(tree, main), files: filesIn(tree, folderOf(main)) };
  const site = find(tree, NAMES.sites) ?? nearest(tree, (path) => path.endsWith(".conf"));
  if (site === null) throw missing("nginx.conf and no *.conf");
  const folder = folderOf(site);
  const isUsual = NAMES.sites.test(site);
  const root = isUsual ? folderOf(folder) : folder;
  const patterns = isUsual ? SITE_FOLDERS.map((name) => `${name}/*`) : ["*.conf"];
  const files = filesIn(tree, root);
  const text = patterns
    .filter((pattern) => (files.match(pattern) ?? []).length > 0)
    .map((pattern) => `include ${pattern};`);
  return { bytes: new TextEncoder().encode(text.join("\n")), files };
}

/** The folders that paths of nginx usually begin with: the archive has a copy of one. */
const USUAL_FOLDER =
  /^\/(?:usr\/local\/)?(?:etc|config|data|opt|var\/lib)\/(?:nginx\/|openresty\/)?/;

/** Relative paths begin at the folder of the main file, absolute ones at the folder that it is a copy of. */
function filesIn(tree: SourceTree, folder: string): SourceFiles {
  const candidates = (path: string): readonly string[] => {
    if (!path.startsWith("/")) return [joined(folder, path)].filter((one) => one !== null);
    const inner = [joined(folder, path.replace(USUAL_FOLDER, "")), joined("", path.slice(1))];
    return inner.filter((one) => one !== null);
  };
  return {
    read(path) {
      const found = [...candidates(path), path].find((one) => tree.read(one) !== null);
      return found === undefined ? null : textIn(tree, found);
    },
    match(pattern) {
      const wanted = candidates(pattern);
      if (!/[*?[]/.test(pattern)) {
        const found = wanted.find((path) => tree.read(path) !== null);
        return found === undefined ? null : [found];
      }
      for (const one of wanted) {
        const glob = new Glob(one);
        const found = tree
          .paths()
          .filter((path) => glob.match(path) && !/(?:^|\/)\.[^/]*$/.test(path));
        if (found.length > 0) return found;
      }
      // A folder that is there may be empty; any other one may hold what denies access.
      const isThere = wanted.some((one) => tree.hasFolder(posix.dirname(one).replace(/^\.$/, "")));
      return isThere ? [] : null;
    },
    shown: (path) =>
      folder !== "" && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path,
  };
}
