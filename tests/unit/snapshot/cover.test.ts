// Routes that one of a higher priority hides: which are found, and that none of them could ever match a request.
import { describe, expect, test } from "bun:test";
import { routerOf } from "../../support/router.ts";
import type { Route } from "../../../src/model/route.ts";
import { warningsOf } from "../../../src/snapshot/compile.ts";
import { seedOfRun } from "../../support/random.ts";
import { compiled, configOf, route } from "../control/fixture.ts";
import { exact, prefix, Random, regex, routeOf, subjectOf } from "../router/sample-routes.ts";
import { findCoveredPlainly } from "./plain-cover.ts";

const hiddenIn = (routes: Route[]) => [...warningsOf(compiled(configOf({ routes }))).keys()];

describe("a route below one of a higher priority", () => {
  const wide = { priority: 1 };
  const cases: { why: string; high: object; low: object; isHidden: boolean }[] = [
    {
      why: "for all hosts and paths",
      high: wide,
      low: { hosts: ["a.test"], paths: ["/x"] },
      isHidden: true,
    },
    { why: "that has more conditions", high: wide, low: { methods: ["GET"] }, isHidden: true },
    {
      why: "of the same host",
      high: { ...wide, hosts: ["A.test."] },
      low: { hosts: ["a.test"], paths: ["/x"] },
      isHidden: true,
    },
    {
      why: "of a wildcard above it",
      high: { ...wide, hosts: ["*.test"] },
      low: { hosts: ["b.a.test", "*.a.test"] },
      isHidden: true,
    },
    {
      why: "of a prefix above it",
      high: { ...wide, paths: ["/api"] },
      low: { hosts: ["a.test"], paths: ["/api/v1", "=/api"] },
      isHidden: true,
    },
    { why: "with regular expressions", high: wide, low: { paths: ["~^/x"] }, isHidden: true },
    {
      why: "that takes one scheme only",
      high: { ...wide, protocols: ["https"] },
      low: { paths: ["/x"] },
      isHidden: false,
    },
    {
      why: "for its own scheme",
      high: { ...wide, protocols: ["https"] },
      low: { paths: ["/x"], protocols: ["https"] },
      isHidden: true,
    },
    {
      why: "with a condition",
      high: { ...wide, methods: ["GET"] },
      low: { paths: ["/x"] },
      isHidden: false,
    },
    {
      why: "that is off",
      high: { ...wide, enabled: false },
      low: { paths: ["/x"] },
      isHidden: false,
    },
    {
      why: "of another host",
      high: { ...wide, hosts: ["b.test"] },
      low: { hosts: ["a.test"] },
      isHidden: false,
    },
    {
      why: "of one of its hosts",
      high: { ...wide, hosts: ["a.test"] },
      low: { hosts: ["a.test", "b.test"] },
      isHidden: false,
    },
    {
      why: "of the host that the wildcard leaves out",
      high: { ...wide, hosts: ["*.a.test"] },
      low: { hosts: ["a.test"] },
      isHidden: false,
    },
    {
      why: "for some hosts, when it takes any",
      high: { ...wide, hosts: ["a.test"] },
      low: { paths: ["/x"] },
      isHidden: false,
    },
    {
      why: "of a prefix beside it",
      high: { ...wide, paths: ["/api"] },
      low: { paths: ["/apis"] },
      isHidden: false,
    },
    {
      why: "of a prefix, when it takes any path",
      high: { ...wide, paths: ["/api"] },
      low: { hosts: ["a.test"] },
      isHidden: false,
    },
    {
      why: "of an exact path",
      high: { ...wide, paths: ["=/api"] },
      low: { paths: ["/api/x"] },
      isHidden: false,
    },
  ];
  test.each(cases)("$why: $isHidden", ({ high, low, isHidden }) => {
    const routes = [route("high", high), route("low", low)];
    expect(hiddenIn(routes)).toEqual(isHidden ? ["low"] : []);
    expect(hiddenIn(routes.toReversed())).toEqual(isHidden ? ["low"] : []);
  });

  test("is not hidden by an equal: the more specific one is tried first", () => {
    expect(hiddenIn([route("wide"), route("narrow", { hosts: ["a.test"] })])).toEqual([]);
  });

  test("is reported by its name", () => {
    const routes = [route("low", { paths: ["/x"] }), route("high", { priority: 1 })];
    expect([...warningsOf(compiled(configOf({ routes }))).values()]).toEqual([
      'route "low" matches no request: route "high" has a higher priority and matches all requests for its hosts and paths',
    ]);
  });

  test("is reachable again when the other one is deleted", () => {
    const low = route("low", { paths: ["/x"] });
    const before = compiled(configOf({ routes: [low, route("high", { priority: 1 })] }));
    expect([...warningsOf(before).keys()]).toEqual(["low"]);
    const after = { ...before.config, routes: new Map([["low", low]]) };
    expect([...warningsOf(compiled(after, before)).keys()]).toEqual([]);
  });
});

const HOSTS = ["a.test", "b.a.test", "c.b.a.test", "b.test"];
const PATTERNS = [...HOSTS, "*.a.test", "*.test", "*.b.a.test"];
const PATHS = ["/", "/x", "/x/", "/x/y", "/x/y/z", "/xx", "/x%20y", "/x;p/y", "//x"];

function randomRoute(random: Random, id: string): Route {
  const path = () => random.pick(PATHS.slice(0, 7));
  return routeOf({
    id,
    name: id,
    hosts: random.some(random.chance(20) ? ["A.Test."] : PATTERNS, 2),
    paths: random.some([exact(path()), prefix(path()), regex("^/x/y")], 2),
    methods: random.chance(20) ? ["GET"] : [],
    protocols: random.chance(20) ? ["https"] : ["http", "https"],
    priority: random.pick([0, 0, 1, 2]),
    enabled: !random.chance(10),
    created_at: `2026-01-0${1 + random.below(4)}T00:00:00.000Z`,
  });
}

test(`no route with a warning ever matches a request (seed ${seedOfRun()})`, () => {
  const random = new Random(seedOfRun());
  let warned = 0;
  for (let table = 0; table < 150; table++) {
    const routes = Array.from({ length: 2 + random.below(8) }, (_, i) =>
      randomRoute(random, `r${i}`),
    );
    const hidden = new Set(hiddenIn(routes));
    warned += hidden.size;
    const router = routerOf(routes);
    for (const host of HOSTS)
      for (const path of PATHS)
        for (const method of ["GET", "POST"])
          for (const protocol of ["http", "https"] as const) {
            const subject = subjectOf({ host, path, method, protocol });
            const taken = router.match(subject)?.id ?? "";
            if (hidden.has(taken))
              throw new Error(
                `${taken} took ${JSON.stringify(subject)} of ${JSON.stringify(routes)}`,
              );
          }
  }
  expect(warned).toBeGreaterThan(50);
});

/** One of so many for the same host that the search does not compare all pairs. */
const crowdedRoute = (random: Random, id: string): Route => ({
  ...randomRoute(random, id),
  hosts: random.some(["a.test"], 1),
  paths: [prefix(`/p${random.below(50)}`)],
  methods: [],
});

/** A change as a person or an import makes it; most leave most routes as they are. */
function changeRoutes(
  random: Random,
  routes: Map<string, Route>,
  make: (id?: string) => Route,
): void {
  for (let left = random.pick([1, 1, 1, 2, 30]); left > 0; left--) {
    const id = routes.size === 0 ? "" : random.pick([...routes.keys()]);
    const old = routes.get(id);
    const kind = random.pick(["add", "add", "replace", "label", "switch", "rank", "remove"]);
    if (kind === "add" || old === undefined) {
      const added = make();
      routes.set(added.id, added);
    } else if (kind === "remove") routes.delete(id);
    else if (kind === "replace") routes.set(id, make(id));
    else if (kind === "label") routes.set(id, { ...old, tags: [...old.tags, "x"] });
    else if (kind === "switch") routes.set(id, { ...old, enabled: !old.enabled });
    else routes.set(id, { ...old, priority: random.below(4) });
  }
}

test(`after each of many changes the hidden routes are those of a search from the start (seed ${seedOfRun()})`, () => {
  const random = new Random(seedOfRun());
  let found = 0;
  for (let run = 0; run < 30; run++) {
    let count = 0;
    const kind = run % 2 === 0 ? randomRoute : crowdedRoute;
    const make = (id = `r${count++}`) => kind(random, id);
    let before = compiled(configOf({ routes: Array.from({ length: run * 4 }, () => make()) }));
    let routes = new Map(before.config.routes);
    for (let step = 0; step < 40; step++) {
      routes = new Map(routes);
      changeRoutes(random, routes, make);
      const after = compiled({ ...before.config, routes }, before);
      const { coveredBy } = after.shadows.cover;
      found += coveredBy.size;
      expect(new Map(coveredBy)).toEqual(new Map(findCoveredPlainly(routes)));
      // Some changes are rejected or fail: the next one builds on the state before.
      if (random.chance(70)) before = after;
      else routes = new Map(before.config.routes);
    }
  }
  expect(found).toBeGreaterThan(1_000);
});
