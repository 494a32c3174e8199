// Route tables of every kind, built at once and by changes: each request matches the route that a linear scan finds.
import fc from "fast-check";
import type { Router } from "../../../src/dataplane/router.ts";
import { routerOf, withRoutes } from "../../support/router.ts";
import { compileMatch, firstMismatch } from "../../../src/dataplane/router/compiled-match.ts";
import type { Route } from "../../../src/model/route.ts";
import { naiveMatch } from "../../unit/router/naive-router.ts";
import { routeOf, type SubjectFields, subjectOf } from "../../unit/router/sample-routes.ts";
import { defineTarget, mustEqual } from "../target.ts";

interface Input {
  readonly routes: readonly Partial<Route>[];
  /** Replace the routes with these indexes, by changes. */
  readonly changed: readonly { readonly at: number; readonly to: Partial<Route> | null }[];
  readonly requests: readonly SubjectFields[];
}

const few = <T>(...items: readonly T[]) => fc.subarray([...items], { maxLength: 2 });
const seldom = <T>(items: fc.Arbitrary<T[]>) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant<T[]>([]) }, { weight: 1, arbitrary: items });

const path = fc
  .tuple(fc.array(fc.constantFrom("a", "b", "api", "v1", "x-y"), { maxLength: 4 }), fc.boolean())
  .map(([parts, hasSlash]) => `/${parts.join("/")}${hasSlash && parts.length > 0 ? "/" : ""}`);
const pathMatch = fc.oneof(
  path.map((value) => ({ type: "exact", value }) as const),
  path.map((value) => ({ type: "prefix", value }) as const),
  fc
    .constantFrom("^/api", "b$", "^/[ab]/", "/v\\d", "")
    .map((value) => ({ type: "regex", value }) as const),
);
const valueMatch = fc.oneof(
  fc.record({
    name: fc.constantFrom("One", "two"),
    op: fc.constantFrom("equals" as const, "present" as const, "absent" as const),
    value: fc.constantFrom("1", "2"),
  }),
  fc.constant({ name: "One", op: "regex" as const, value: "^[12]$" }),
);
const condition = seldom(fc.array(valueMatch, { minLength: 1, maxLength: 2 }));

const route: fc.Arbitrary<Partial<Route>> = fc.record({
  hosts: few(
    "a.test",
    "b.a.test",
    "*.a.test",
    "*.b.a.test",
    "*.test",
    "A.Test",
    "b.test.",
    "localhost",
  ),
  paths: fc.array(pathMatch, { maxLength: 2 }),
  methods: seldom(few("GET", "POST")),
  headers: condition,
  query: condition,
  cookies: condition,
  client_cidrs: seldom(few("0.0.0.0/0", "192.0.2.1/32", "192.0.2.2/32")),
  protocols: fc.constantFrom<Route["protocols"]>(["http", "https"], ["http"], ["https"]),
  listener_ids: seldom(few("web", "lan")),
  priority: fc.constantFrom(0, 0, 0, 5, -3),
  enabled: fc.constantFrom(true, true, true, true, false),
  created_at: fc.constantFrom("2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"),
});

const request: fc.Arbitrary<SubjectFields> = fc.record({
  host: fc.constantFrom(
    "a.test",
    "b.a.test",
    "c.b.a.test",
    "d.c.b.a.test",
    "b.test",
    "other.example",
    "localhost",
  ),
  path,
  method: fc.constantFrom("GET", "POST", "PUT"),
  query: fc.constantFrom("", "One=1", "two=2&One=3", "two"),
  protocol: fc.constantFrom("http", "https"),
  listenerId: fc.constantFrom("web", "lan"),
  headers: fc.constantFrom({}, { one: "1" }, { one: "2", two: "1" }, { cookie: "One=1; two=2" }),
  client: fc.constantFrom("192.0.2.1", "192.0.2.2", "192.0.2.3"),
});

export const target = defineTarget<Input>({
  name: "router",
  share: 60,
  inputs: fc.record({
    routes: fc.array(route, { maxLength: 10, size: "max" }),
    changed: fc.array(fc.record({ at: fc.nat(12), to: fc.option(route) }), { maxLength: 4 }),
    requests: fc.array(request, { minLength: 1, maxLength: 4 }),
  }),
  check({ routes, changed, requests }) {
    const table = new Map(
      routes.map((fields, at) => [`r${at}`, routeOf({ id: `r${at}`, ...fields })]),
    );
    let router = routerOf([...table.values()]);
    checkAnswers(router, table, requests);
    for (const { at, to } of changed) {
      const id = `r${at}`;
      table.delete(id);
      if (to !== null) table.set(id, routeOf({ id, ...to }));
      const upserts = [...table.values()].filter((each) => each.id === id);
      router = withRoutes(router, { upserts, removals: to === null ? [id] : [] });
    }
    checkAnswers(router, table, requests);
  },
});

function checkAnswers(
  router: Router<Route>,
  table: ReadonlyMap<string, Route>,
  requests: readonly SubjectFields[],
): void {
  mustEqual(router.size, table.size, "number of routes");
  for (const fields of requests) {
    const subject = subjectOf(fields);
    const found = router.match(subject)?.id ?? null;
    mustEqual(found, naiveMatch([...table.values()], subject)?.id ?? null, "the route");
    for (const each of table.values()) {
      const wanted = naiveMatch([each], subject) !== null;
      mustEqual(
        firstMismatch(compileMatch(each), subject) === null,
        wanted,
        `explanation of ${each.id}`,
      );
    }
  }
}
