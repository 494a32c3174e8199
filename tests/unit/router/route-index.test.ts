// Routes of one version are decoded when they are first used, and a bounded number of them stays.
import { expect, test } from "bun:test";
import { ReadyRoutes, RouteIndex, RouteRecords } from "../../../src/dataplane/route-index.ts";
import type { RouteRuntime } from "../../../src/dataplane/route-runtime.ts";
import { Router } from "../../../src/dataplane/router.ts";
import { RouteStore } from "../../../src/supervisor/route-store.ts";
import { routeOf, subjectOf } from "./sample-routes.ts";

async function indexOf(count: number, most: number) {
  const store = new RouteStore();
  const routes = Array.from({ length: count }, (_, index) =>
    routeOf({ id: `r${index}`, hosts: [`h${index}.test`] }),
  );
  const { table, upserts } = await store.write({ upserts: routes, removals: [] });
  const records = new RouteRecords(table!, null);
  const edit = Router.empty<RouteRuntime | null>().edit();
  for (const position of upserts) edit.add(records.at(position), null);
  const index = new RouteIndex(edit.finish(), records, new ReadyRoutes(most));
  return {
    index,
    entryOf: (host: string) => index.router.match(subjectOf({ host }))!,
  };
}

test("a route is decoded once", async () => {
  const { index, entryOf } = await indexOf(3, 10);
  const route = index.of(entryOf("h1.test"));
  expect(route.id).toBe("r1");
  expect(route.route.hosts).toEqual(["h1.test"]);
  expect(index.of(entryOf("h1.test"))).toBe(route);
});

test("the oldest is evicted for another, and is decoded again when it is used", async () => {
  const { index, entryOf } = await indexOf(20, 5);
  const all = Array.from({ length: 20 }, (_, at) => entryOf(`h${at}.test`));
  for (let round = 0; round < 3; round++)
    for (const [at, entry] of all.entries()) {
      expect(index.of(entry).id).toBe(`r${at}`);
      expect(all.filter(({ value }) => value !== null).length).toBeLessThanOrEqual(5);
    }
});
