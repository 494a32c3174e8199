// A router over routes alone for tests: built at once, changed by lists, returning the routes themselves.
import { Router } from "../../src/dataplane/router.ts";
import type { Route } from "../../src/model/route.ts";

/** The table after the changes, removals first; `before` stays unchanged. */
export function withRoutes(
  before: Router<Route>,
  { upserts = [], removals = [] }: { upserts?: readonly Route[]; removals?: readonly string[] },
): Router<Route> {
  const edit = before.edit();
  for (const id of removals) edit.remove(id);
  for (const route of upserts) edit.add(route, route);
  return edit.finish();
}

export const routerOf = (routes: readonly Route[]): Router<Route> =>
  withRoutes(Router.empty(), { upserts: routes });
