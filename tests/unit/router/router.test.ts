// What a route matches and which of two matching routes wins.
import { describe, expect, test } from "bun:test";
import { routerOf, withRoutes } from "../../support/router.ts";
import { compileMatch, firstMismatch } from "../../../src/dataplane/router/compiled-match.ts";
import type { Route } from "../../../src/model/route.ts";
import { type SubjectFields, exact, prefix, regex, routeOf, subjectOf } from "./sample-routes.ts";

type Fields = Partial<Route>;
const value = (name: string, op: "equals" | "regex" | "present" | "absent", text = "") => ({
  name,
  op,
  value: text,
});

describe("a route", () => {
  test.each<{ why: string; route: Fields; yes?: SubjectFields[]; no?: SubjectFields[] }>([
    {
      why: "without conditions takes everything",
      route: {},
      yes: [{}, { path: "/x/y" }, { host: "[::1]", method: "DELETE", protocol: "https" }],
    },
    { why: "that is disabled takes nothing", route: { enabled: false }, no: [{}] },
    {
      why: "takes a prefix on segment borders only",
      route: { paths: [prefix("/api")] },
      yes: [{ path: "/api" }, { path: "/api/" }, { path: "/api/x" }],
      no: [
        { path: "/apix" },
        { path: "/" },
        { path: "/x/api" },
        { path: "/API" },
        { path: "/api.." },
      ],
    },
    {
      why: "does not count the trailing slash of a prefix, so that a rule for /api/ is not missed by leaving it out",
      route: { paths: [prefix("/api/")] },
      yes: [{ path: "/api" }, { path: "/api/" }, { path: "/api/x" }],
      no: [{ path: "/apix" }],
    },
    {
      why: "takes an exact path with its trailing slash or without, as written",
      route: { paths: [exact("/a/"), exact("/b")] },
      yes: [{ path: "/a/" }, { path: "/b" }],
      no: [{ path: "/a" }, { path: "/b/" }, { path: "/a/x" }],
    },
    {
      why: "takes the exact root only",
      route: { paths: [exact("/")] },
      yes: [{ path: "/" }],
      no: [{ path: "/x" }],
    },
    {
      why: "runs a regular expression anywhere in the path and never on the query",
      route: { paths: [regex("\\.png$")] },
      yes: [{ path: "/a.png" }, { path: "/a.png", query: "x" }],
      no: [{ path: "/a", query: ".png" }],
    },
    {
      why: "cannot be slipped past by another spelling of the path",
      route: { paths: [prefix("/admin"), exact("/@me")] },
      yes: [
        { path: "//admin" },
        { path: "/admin//x" },
        { path: "/admin%2Fx" },
        { path: "/admin;v=1/x" },
        { path: "/admin;x" },
        { path: "/%40me" },
        { path: "/admin%5Cx" },
      ],
      no: [{ path: "/admin%252Fx" }, { path: "/x;/admin" }],
    },
    {
      why: "takes names below a wildcard at any depth, not the name itself or a name that only ends alike",
      route: { hosts: ["*.example.com"] },
      yes: [{ host: "a.example.com" }, { host: "a.b.example.com" }],
      no: [{ host: "example.com" }, { host: "badexample.com" }, { host: "example.com.evil.test" }],
    },
    {
      why: "writes its host in any case and with a trailing dot",
      route: { hosts: ["App.Example.COM."] },
      yes: [{ host: "app.example.com" }],
      no: [{ host: "example.com" }],
    },
    {
      why: "takes one of its hosts",
      route: { hosts: ["a.test", "b.test"] },
      yes: [{ host: "b.test" }],
      no: [{ host: "c.test" }],
    },
    {
      why: "takes one of its methods, which people may write in lower case",
      route: { methods: ["get", "POST"] },
      yes: [{}, { method: "POST" }],
      no: [{ method: "PUT" }],
    },
    {
      why: "asks for all of its headers",
      route: {
        headers: [
          value("X-A", "equals", "1"),
          value("x-b", "present"),
          value("X-C", "absent"),
          value("x-d", "regex", "^v\\d$"),
        ],
      },
      yes: [{ headers: { "x-a": "1", "x-b": "", "x-d": "v2" } }],
      no: [
        { headers: { "x-a": "1", "x-d": "v2" } },
        { headers: { "x-a": "2", "x-b": "", "x-d": "v2" } },
        { headers: { "x-a": "1", "x-b": "", "x-c": "", "x-d": "v2" } },
        { headers: { "x-a": "1", "x-b": "", "x-d": "v22" } },
      ],
    },
    {
      why: "asks for all of its parameters and cookies",
      route: { query: [value("v", "equals", "a b")], cookies: [value("beta", "equals", "1")] },
      yes: [{ query: "x=1&v=a%20b", headers: { cookie: "a=b; beta=1" } }],
      no: [
        { query: "v=a%20b" },
        { query: "v=ab", headers: { cookie: "beta=1" } },
        { headers: { cookie: "beta=1" } },
      ],
    },
    {
      why: "takes clients from one of its networks",
      route: { client_cidrs: ["10.0.0.0/8", "2001:db8::/32"] },
      yes: [{ client: "10.1.2.3" }, { client: "2001:db8::1" }],
      no: [{}, { client: "2001:db9::1" }],
    },
    {
      why: "can be for one protocol",
      route: { protocols: ["https"] },
      yes: [{ protocol: "https" }],
      no: [{}],
    },
    {
      why: "can be for some listeners",
      route: { listener_ids: ["web"] },
      yes: [{}],
      no: [{ listenerId: "lan" }],
    },
  ])("$why", ({ route, yes = [], no = [] }) => {
    const router = routerOf([routeOf({ id: "r", ...route })]);
    for (const subject of yes)
      expect([subject, router.match(subjectOf(subject))?.id]).toEqual([subject, "r"]);
    for (const subject of no)
      expect([subject, router.match(subjectOf(subject))]).toEqual([subject, null]);
  });
});

describe("of two matching routes, the winner is", () => {
  const at = (day: number) => `2026-01-0${day}T00:00:00.000Z`;
  test.each<{ why: string; winner: Fields; loser: Fields; subject?: SubjectFields }>([
    {
      why: "the higher priority, before any host",
      winner: { priority: 1 },
      loser: { hosts: ["app.example.com"], paths: [exact("/")] },
    },
    {
      why: "the higher priority, before any path",
      winner: { priority: 1 },
      loser: { paths: [prefix("/x")] },
      subject: { path: "/x" },
    },
    {
      why: "the exact host before the wildcard",
      winner: { hosts: ["app.example.com"] },
      loser: { hosts: ["*.example.com"], paths: [exact("/")] },
    },
    {
      why: "the longer wildcard",
      winner: { hosts: ["*.b.test"] },
      loser: { hosts: ["*.test"], paths: [exact("/")] },
      subject: { host: "a.b.test" },
    },
    {
      why: "the wildcard before any host",
      winner: { hosts: ["*.com"] },
      loser: { paths: [exact("/")] },
    },
    {
      why: "the exact path before the prefix",
      winner: { paths: [exact("/x")] },
      loser: { paths: [prefix("/x")], methods: ["GET"] },
      subject: { path: "/x" },
    },
    {
      why: "the longer prefix",
      winner: { paths: [prefix("/x/y")] },
      loser: { paths: [prefix("/x")], methods: ["GET"] },
      subject: { path: "/x/y/z" },
    },
    {
      why: "the prefix before the regular expression",
      winner: { paths: [prefix("/x")] },
      loser: { paths: [regex("^/x/y")], methods: ["GET"] },
      subject: { path: "/x/y" },
    },
    {
      why: "the regular expression before any path",
      winner: { paths: [regex("^/x")] },
      loser: { paths: [prefix("/")], methods: ["GET"] },
      subject: { path: "/x" },
    },
    {
      why: "the one with more conditions",
      winner: { methods: ["GET"], created_at: at(2) },
      loser: { created_at: at(1) },
    },
    { why: "the older one", winner: { created_at: at(1) }, loser: { created_at: at(2) } },
    {
      why: "the one whose host matches exactly, though it names a wildcard too",
      winner: { hosts: ["*.test", "a.test"] },
      loser: { hosts: ["*.test"], methods: ["GET"] },
      subject: { host: "a.test" },
    },
  ])("$why", ({ winner, loser, subject = {} }) => {
    const routes = [routeOf({ id: "loser", ...loser }), routeOf({ id: "winner", ...winner })];
    expect(routerOf(routes).match(subjectOf(subject))?.id).toBe("winner");
    expect(routerOf(routes.reverse()).match(subjectOf(subject))?.id).toBe("winner");
  });

  test("by id when everything else is equal, so that all workers agree", () => {
    const routes = ["b", "a", "c"].map((id) => routeOf({ id }));
    expect(routerOf(routes).match(subjectOf())?.id).toBe("a");
  });
});

describe("a change", () => {
  test("leaves the old table as it was", () => {
    const first = routerOf([routeOf({ id: "a", paths: [prefix("/x")] })]);
    const second = withRoutes(first, {
      upserts: [routeOf({ id: "a", paths: [prefix("/y")] })],
    });
    const third = withRoutes(second, { removals: ["a", "unknown"] });
    const seen = [first, second, third].map((router) =>
      ["/x", "/y"].map((path) => router.match(subjectOf({ path })) !== null),
    );
    expect(seen).toEqual([
      [true, false],
      [false, true],
      [false, false],
    ]);
    expect([first.size, second.size, third.size]).toEqual([1, 1, 0]);
  });

  test("keeps the entries of the routes that it does not name", () => {
    const before = routerOf([routeOf({ id: "kept", paths: [prefix("/kept")] })]);
    const after = withRoutes(before, { upserts: [routeOf({ id: "new" })] });
    const subject = subjectOf({ path: "/kept" });
    expect(after.match(subject)).toBe(before.match(subject)!);
    expect(after.match(subject)?.id).toBe("kept");
  });

  test("of nothing gives the same table", () => {
    const router = routerOf([routeOf({ id: "a" })]);
    expect(router.edit().finish()).toBe(router);
  });

  test("with one id twice applies the last", () => {
    const twice = [1, 0].map((priority) => routeOf({ id: "a", priority }));
    expect(routerOf(twice).match(subjectOf())?.priority).toBe(0);
  });
});

test.each([
  ["enabled", { enabled: false }],
  ["hosts", { hosts: ["other.test"] }],
  ["paths", { paths: [prefix("/other")] }],
  ["methods", { methods: ["PUT"] }],
  ["headers[1]", { headers: [value("a", "absent"), value("b", "present")] }],
  ["query[0]", { query: [value("a", "present")] }],
  ["cookies[0]", { cookies: [value("a", "equals", "1")] }],
  ["client_cidrs", { client_cidrs: ["10.0.0.0/8"] }],
  ["protocols", { protocols: ["https"] }],
  ["listener_ids", { listener_ids: ["lan"] }],
] as [string, Fields][])("a mismatch is explained by the field %s", (name, fields) => {
  expect(firstMismatch(compileMatch(routeOf({ id: "r", ...fields })), subjectOf())).toBe(name);
});
