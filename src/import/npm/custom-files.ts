// Reads the custom files of Nginx Proxy Manager, which its templates include, and applies them; knows no row.
import { kindOf } from "../nginx/directives.ts";
import { noFiles } from "../nginx/dump.ts";
import type { Directive } from "../nginx/tree.ts";
import { readUpstreams } from "../nginx/upstreams.ts";
import { directive, type NginxHosts, placeOf, readOwn } from "./nginx-host.ts";
import { isHarmless } from "./nginx-lines.ts";
import type { NpmContext } from "./npm.ts";

/** Custom files apply to all hosts. */
export function nginxHosts(context: NpmContext): NginxHosts {
  const { output } = context;
  const { http, server } = readCustom(context);
  return {
    http,
    server,
    context: {
      output,
      files: noFiles,
      upstreams: readUpstreams(http, output.report),
      services: new Map(),
      listeners: new Map(),
      users: new Map(),
      certificates: new Set(),
    },
  };
}

/** A directive of a custom file that changes nothing about who is served. */
export const isHarmlessHere = (one: Directive): boolean =>
  isHarmless(one) ||
  kindOf(one.name) === "harmless" ||
  kindOf(one.name) === "elsewhere" ||
  DEFINITIONS.has(one.name);

const DEFINITIONS = new Set(["upstream", "map", "limit_req_zone", "limit_conn_zone"]);

const CUSTOM = "/data/nginx/custom";

/** Directives of its folder for custom files, which its templates include. */
function readCustom(npm: NpmContext): Pick<NginxHosts, "http" | "server"> & {
  /** Directives of streams and of other servers. */
  readonly others: ReadonlyMap<string, readonly Directive[]>;
} {
  const read = (name: string): readonly Directive[] => {
    const found = npm.findFile?.(`${CUSTOM}/${name}.conf`) ?? null;
    if (found === null) return [];
    const unreadable = [{ ...directive("unreadable"), place: placeOf(`custom/${name}.conf`) }];
    if ("problem" in found) return unreadable;
    return readOwn(found.text, `custom/${name}.conf`, npm) ?? unreadable;
  };
  const others = ["stream", "server_stream", "server_stream_tcp", "server_stream_udp"];
  return {
    http: [...read("http_top"), ...read("http")],
    server: read("server_proxy"),
    others: new Map(
      [...others, "server_redirect", "server_dead", "root", "root_top", "root_end", "events"].map(
        (name) => [name, read(name)],
      ),
    ),
  };
}

/** Files of nginx that apply to others than proxy hosts. */
export function applyCustomFiles(context: NpmContext): void {
  const { output, findFile } = context;
  if (findFile === null) {
    output.report.changed(
      "custom files of nginx",
      "only the database is there: directives in data/nginx/custom, which may deny access, are missing. Import the folder",
    );
    return;
  }
  for (const [name, directives] of readCustom(context).others) {
    const first = directives.find((one) => !isHarmlessHere(one));
    if (directives.length === 0) continue;
    const what = `${(first ?? directives[0])?.name} at custom/${name}.conf:${(first ?? directives[0])?.place.line}`;
    output.report.omitted(what, "it is not imported");
    if (first === undefined || !name.includes("stream")) continue;
    for (const { collection, id } of output.objects)
      if (collection === "stream_routes")
        output.loseProtection({ scope: { stream_route_id: id }, what });
  }
}
