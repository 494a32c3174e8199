// Rules about one route that a schema cannot express; knows no other object.
import { checkList, type ObjectRules } from "./object-rules.ts";
import { checkRawPaths } from "./path-handling.ts";
import type { Route } from "./route.ts";

export const routeRules: ObjectRules<Route> = (route, checks, report) => {
  for (const { path, message } of checks.route(route, checks.regex)) report(path, message);
  checkList(route.client_cidrs, checks.cidr, { path: "client_cidrs", report });
  checkList(route.upgrade_protocols, checks.upgradeProtocol, { path: "upgrade_protocols", report });
  checkRawPaths(route, report);
  const bypass = route.maintenance?.bypass_cidrs ?? [];
  checkList(bypass, checks.cidr, { path: "maintenance.bypass_cidrs", report });
};
