// The indexed router returns the results of a plain scan, for any number of routes and any sequence of changes.
import { expect, test } from "bun:test";
import { Router } from "../../../src/dataplane/router.ts";
import { routerOf, withRoutes } from "../../support/router.ts";
import {
  type RouteSubject,
  compileMatch,
  firstMismatch,
} from "../../../src/dataplane/router/compiled-match.ts";
import { normalizeHost } from "../../../src/http/authority.ts";
import type { Route, ValueMatch } from "../../../src/model/route.ts";
import { naiveMatch } from "../../unit/router/naive-router.ts";
import {
  Random,
  exact,
  prefix,
  regex,
  routeOf,
  subjectOf,
} from "../../unit/router/sample-routes.ts";

const WORDS = ["a", "b", "api", "v1", "users", "x-y"];
const HOSTS = [
  "a.test",
  "b.a.test",
  "c.b.a.test",
  "d.c.b.a.test",
  "b.test",
  "other.example",
  "localhost",
];
const PATTERNS = [
  ...HOSTS,
  "A.Test",
  "b.test.",
  "*.a.test",
  "*.b.a.test",
  "*.test",
  "*.C.b.a.test",
];
const REGEXES = ["^/api", "users$", "^/[ab]/", "^/api/v\\d/users", "/x-y"];

function pathOf(random: Random): string {
  const segments = Array.from({ length: random.below(5) }, () => random.pick(WORDS));
  return `/${segments.join("/")}${segments.length > 0 && random.chance(15) ? "/" : ""}`;
}

function valueMatchOf(random: Random): ValueMatch {
  const op = random.pick(["equals", "regex", "present", "absent"] as const);
  return {
    name: random.pick(["One", "two"]),
    op,
    value: op === "regex" ? "^[12]$" : random.pick(["1", "2"]),
  };
}

function randomRoute(random: Random, id: string, samePriority: boolean): Route {
  const paths = random.some(
    [
      exact(pathOf(random)),
      prefix(pathOf(random)),
      prefix(pathOf(random)),
      regex(random.pick(REGEXES)),
    ],
    2,
  );
  const lists = random.chance(30);
  return routeOf({
    id,
    hosts: random.some(PATTERNS, 2),
    paths,
    grpc_methods: random.chance(20)
      ? [
          random.pick([
            { service: random.pick(WORDS), method: "" },
            { service: random.pick(WORDS), method: random.pick(WORDS) },
            { service: "", method: random.pick(WORDS) },
          ]),
        ]
      : [],
    methods: lists ? random.some(["GET", "POST", "PUT"], 2) : [],
    headers: random.chance(15) ? [valueMatchOf(random)] : [],
    query: random.chance(15) ? [valueMatchOf(random)] : [],
    cookies: random.chance(10) ? [valueMatchOf(random)] : [],
    client_cidrs: random.chance(10)
      ? [random.pick(["0.0.0.0/0", "192.0.2.1/32", "192.0.2.2/32"])]
      : [],
    protocols: random.chance(20) ? [random.pick(["http", "https"] as const)] : ["http", "https"],
    listener_ids: random.chance(10) ? random.some(["web", "lan"], 2) : [],
    priority: samePriority ? 0 : random.pick([0, 0, 0, 5, -3]),
    enabled: !random.chance(10),
    created_at: `2026-01-0${1 + random.below(4)}T00:00:00.000Z`,
  });
}

function randomSubject(random: Random): RouteSubject {
  const written = `${random.pick(HOSTS)}${random.pick(["", ".", ":80", ".:8443"])}`;
  const host = random.chance(30) ? written.toUpperCase() : written;
  const values = () =>
    random.pick([{}, { one: "1" }, { one: "2", two: "1" }]) as Record<string, string>;
  return subjectOf({
    host: normalizeHost(host)!,
    path: pathOf(random),
    method: random.pick(["GET", "POST", "PUT", "DELETE"]),
    query: random.pick(["", "One=1", "two=2&One=3", "two"]),
    protocol: random.pick(["http", "https"] as const),
    listenerId: random.pick(["web", "lan"]),
    headers: { ...values(), ...(random.chance(40) ? { cookie: "One=1; two=2" } : {}) },
    client: random.pick(["192.0.2.1", "192.0.2.2", "192.0.2.3"]),
  });
}

function expectSameAnswers(
  router: Router<Route>,
  routes: readonly Route[],
  run: { random: Random; requests: number },
) {
  for (let i = 0; i < run.requests; i++) {
    const subject = randomSubject(run.random);
    const found = router.match(subject)?.id ?? null;
    const wanted = naiveMatch(routes, subject)?.id ?? null;
    if (found !== wanted)
      throw new Error(`${found} instead of ${wanted} for ${subject.host}${subject.path}`);
  }
}

test.each([
  [1, 60, 50, "one route"],
  [
    99,
    20,
    200,
    "below a hundred: another gateway changed its algorithm there and lost case-insensitivity",
  ],
  [101, 20, 200, "above a hundred"],
  [10_000, 2, 40, "ten thousand"],
])(
  "%i routes give the results of a scan over all of them (%i tables, %i requests: %s)",
  (count, tables, requests) => {
    for (let seed = 1; seed <= tables; seed++) {
      const random = new Random(seed * 7919 + count);
      const routes = Array.from({ length: count }, (_, i) =>
        randomRoute(random, `r${i}`, seed % 2 === 0),
      );
      const router = routerOf(routes);
      expect(router.size).toBe(count);
      expectSameAnswers(router, routes, { random, requests });
    }
  },
);

test("any sequence of changes yields the table of a fresh build, and old versions match as before", () => {
  for (let seed = 1; seed <= 12; seed++) {
    const random = new Random(seed);
    let router = Router.empty<Route>();
    let routes = new Map<string, Route>();
    const versions: { router: typeof router; routes: Route[] }[] = [];
    for (let step = 0; step < 25; step++) {
      const ids = Array.from({ length: 1 + random.below(40) }, () => `r${random.below(120)}`);
      const upserts = [...new Set(ids)].map((id) => randomRoute(random, id, false));
      const removals = Array.from({ length: random.below(20) }, () => `r${random.below(120)}`);
      routes = new Map(routes);
      for (const id of removals) routes.delete(id);
      for (const route of upserts) routes.set(route.id, route);
      router = withRoutes(router, { upserts, removals });
      versions.push({ router, routes: [...routes.values()] });
    }
    for (const version of versions) {
      expect(version.router.size).toBe(version.routes.length);
      expectSameAnswers(version.router, version.routes, { random, requests: 25 });
    }
    const emptied = withRoutes(router, { removals: [...routes.keys()] });
    expect(emptied.size).toBe(0);
    expect(emptied.match(subjectOf())).toBeNull();
  }
});

test("changes to a table large enough to be kept in shards leave every version as it was", () => {
  const random = new Random(42);
  const hosted = (i: number, path: string) =>
    routeOf({ id: `r${i}`, hosts: [`h${i}.test`], paths: [prefix(path)] });
  const first = routerOf(Array.from({ length: 3000 }, (_, i) => hosted(i, `/p${i}`)));
  let latest = first;
  const changed = new Set<number>();
  for (let step = 0; step < 200; step++) {
    const i = random.below(3000);
    changed.add(i);
    latest = withRoutes(latest, { upserts: [hosted(i, "/moved")] });
  }
  for (let i = 0; i < 3000; i++) {
    const old = subjectOf({ host: `h${i}.test`, path: `/p${i}/x` });
    const moved = subjectOf({ host: `h${i}.test`, path: "/moved" });
    expect([first.match(old)?.id, first.match(moved)]).toEqual([`r${i}`, null]);
    expect(latest.match(changed.has(i) ? moved : old)?.id).toBe(`r${i}`);
  }
});

test("the explanation of a single route agrees with the router", () => {
  const random = new Random(7);
  for (let i = 0; i < 3000; i++) {
    const route = randomRoute(random, "r", true);
    const subject = randomSubject(random);
    const mismatch = firstMismatch(compileMatch(route), subject);
    expect(mismatch === null).toBe(routerOf([route]).match(subject) !== null);
  }
});
