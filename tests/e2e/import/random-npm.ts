// Random hosts of Nginx Proxy Manager, most of which deny some requests.
import { Random } from "../../support/random.ts";
import type { Location, NpmSite } from "./npm-sites.ts";

const LINES = [
  ...["", "", "", "client_max_body_size 1m;", "add_header X-A b;", "deny all;", "deny all;"],
  ...["return 302 /x;", "return 403;", "allow 127.0.0.2; deny all;", "proxy_read_timeout 5m;"],
  ...["if ($arg_x) { return 403; }"],
];
const PATHS = [
  ...["/", "/admin", "/admin/", "/admin/open", "/admin/open/", "/adm", "/api/", "/x", "/caf\u00e9"],
  ...["= /exact", "= /admin", "^~ /admin", "~ \\.php$", "~* ^/admin", "~ ^/admin/o"],
];
const RULES = ["allow 127.0.0.2", "deny 127.0.0.2", "allow all", "allow 127.0.0.0/8", "deny all"];

export function randomSites(seed: number, count: number): readonly NpmSite[] {
  const random = new Random(seed);
  const chance = (share: number) => random.next() < share;
  return Array.from({ length: count }, (): NpmSite => {
    const taken = new Set<string>();
    const locations = Array.from({ length: random.between(0, 4) }, () => random.pick(PATHS))
      .filter((path) => isNew(path, taken))
      .map((path): Location => ({ path, advanced: random.pick(LINES) }));
    const own = Array.from({ length: random.between(0, 3) }, () => random.pick(PATHS))
      .filter((path) => isNew(path, taken))
      .map((path) => {
        const target = chance(0.7) ? "proxy_pass http://127.0.0.1:TWO;" : "return 302 /y;";
        return `location ${path} { ${random.pick(LINES)} ${target} }`;
      });
    const lines = chance(0.2) ? random.pick(LINES) : "";
    const list = {
      any: chance(0.5),
      users: chance(0.5),
      rules: Array.from({ length: random.between(0, 3) }, () => random.pick(RULES)),
    };
    return {
      why: `random ${seed}`,
      advanced: [lines, ...own].join("\n"),
      locations,
      ...(chance(0.4) ? { list } : {}),
    };
  });
}

/** nginx rejects a path twice, with and without `^~`. */
function isNew(path: string, taken: Set<string>): boolean {
  const key = path.replace("^~ ", "");
  if (taken.has(key)) return false;
  taken.add(key);
  return true;
}
