// Converts texts as configurations of nginx, alone or with files beside them.
import { parseJson } from "../../../src/api/json-body.ts";
import { convert } from "../../../src/import/convert.ts";
import { openTables } from "../../../src/import/foreign-tables.ts";
import type { SourceFiles } from "../../../src/import/nginx/tree.ts";
import { catalogueOf } from "../../../src/pdk/catalogue.ts";
import { plugins } from "../../support/plugins.ts";
import { type Anything, bytesOf, convertWith } from "./samples.ts";

export async function made(text: string) {
  const { document, report } = await convertWith("nginx", text);
  return shown(document, report);
}

function shown(document: Anything, report: Anything) {
  const routes = (document.routes ?? []) as Anything[];
  const route = (name: string) => routes.find((each) => each.name === name);
  const pluginsOf = (name: string): Anything =>
    Object.fromEntries(
      ((document.plugins ?? []) as Anything[])
        .filter(({ route_id: id }) => id === route(name)?.id)
        .map((each) => [each.name, each.config]),
    );
  const says = JSON.stringify(report);
  return { document, report, routes, route, pluginsOf, says };
}

export const site = (body: string, more = "") =>
  made(`${more} server { listen 80; server_name a.test; ${body} }`);

export const isClosed = (route: Anything) => route.maintenance !== undefined;

/** Files of a folder that is only here. */
function withFiles(texts: Readonly<Record<string, string>>): SourceFiles {
  return {
    read: (path) => texts[path] ?? null,
    match: (pattern) =>
      pattern.includes("*")
        ? Object.keys(texts).filter((path) => new Bun.Glob(pattern).match(path))
        : pattern in texts
          ? [pattern]
          : null,
    shown: (path) => path,
  };
}

export async function madeWith(texts: Readonly<Record<string, string>>) {
  const { document, report } = await convert("nginx", bytesOf(texts["nginx.conf"]), {
    plugins: catalogueOf(plugins),
    parseJson,
    openTables,
    files: withFiles(texts),
  });
  return shown(document, report);
}
