// In which form a route takes the paths of requests: the canonical one, or as they came; knows no request.
import { oneOf } from "./fields.ts";
import type { Report } from "./object-rules.ts";
import { since } from "./resource.ts";
import type { Route } from "./route.ts";

export const pathHandling = since(
  9,
  oneOf(["canonical", "raw"], {
    default: "canonical",
    description:
      "canonical: paths that servers may read differently are refused or resolved, and the target receives the path that was matched; raw: the target receives path and query byte for byte, as object stores need that sign them. Only for routes that match by host alone and whose plugins do not read the path",
    form: {
      title: "Paths",
      help: "As they came: for object stores that sign paths. The route must match by host alone",
      options: { canonical: "Canonical", raw: "As they came" },
      group: "forward",
      order: 2,
    },
  }),
);

/** Fields that make a route match by path, or change the path. */
const otherFields = {
  grpc_methods: ({ grpc_methods: methods }: Route) => methods.length > 0,
  strip_path: ({ strip_path: strips }: Route) => strips,
  prefix_rewrite: ({ prefix_rewrite: prefix }: Route) => prefix !== null,
  path_rewrite: ({ path_rewrite: rewrite }: Route) => rewrite !== null,
} as const;

/** Reports what a route with raw paths must not have: its path decides nothing. */
export function checkRawPaths(route: Route, report: Report): void {
  if (route.path_handling !== "raw") return;
  const needs = 'path_handling "raw"';
  if (route.hosts.length === 0)
    report("hosts", `must name the hosts of a route with ${needs}, which matches by host alone`);
  for (const [index, path] of route.paths.entries())
    if (path.type !== "prefix" || path.value !== "/")
      report(`paths[${index}]`, `must be absent with ${needs}: the route matches by host alone`);
  for (const [field, isSet] of Object.entries(otherFields))
    if (isSet(route)) report(field, `cannot be combined with ${needs}`);
}
