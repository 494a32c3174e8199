// Routes by gRPC service and method: the matching cases of the Gateway API's GRPCRoute conformance, by its names, and the order.
import { describe, expect, test } from "bun:test";
import type { Route } from "../../../src/model/route.ts";
import { shadowSteps } from "../../../src/snapshot/shadow.ts";
import { finish } from "../../../src/pace.ts";
import { routeRuntime } from "../../../src/dataplane/route-runtime.ts";
import { routerOf } from "../../support/router.ts";
import { exact, prefix, regex, routeOf, type SubjectFields, subjectOf } from "./sample-routes.ts";

const grpc = (service: string, method = "") => ({ service, method });
const ECHO = "gateway_api_conformance.echo_basic.grpcecho.GrpcEcho";

interface Row {
  readonly name: string;
  readonly routes: readonly Route[];
  /** Path and more, and the route that matches; null: none. */
  readonly calls: readonly (readonly [SubjectFields, string | null])[];
}

const color = (name: string, value: string) => ({ name, op: "equals", value }) as const;

const rows: readonly Row[] = [
  {
    name: "GRPCExactMethodMatching",
    routes: [
      routeOf({ id: "v1", grpc_methods: [grpc(ECHO, "Echo")] }),
      routeOf({ id: "v2", grpc_methods: [grpc(ECHO, "EchoTwo")] }),
    ],
    calls: [
      [{ path: `/${ECHO}/Echo` }, "v1"],
      [{ path: `/${ECHO}/EchoTwo` }, "v2"],
      [{ path: `/${ECHO}/EchoThree` }, null],
      [{ path: `/${ECHO}/echo` }, null],
      [{ path: `/${ECHO}/Echo/` }, null],
      [{ path: `/${ECHO}` }, null],
      [{ path: "/other.GrpcEcho/Echo" }, null],
    ],
  },
  {
    name: "GRPCRouteHeaderMatching",
    routes: [
      routeOf({ id: "one", headers: [color("version", "one")] }),
      routeOf({ id: "two", headers: [color("version", "two")] }),
      routeOf({ id: "both", headers: [color("version", "two"), color("color", "orange")] }),
      routeOf({
        id: "blue",
        grpc_methods: [grpc(ECHO, "Echo")],
        headers: [color("color", "blue")],
      }),
    ],
    calls: [
      [{ path: `/${ECHO}/Echo`, headers: { version: "one" } }, "one"],
      [{ path: `/${ECHO}/Echo`, headers: { version: "two" } }, "two"],
      [{ path: `/${ECHO}/Echo`, headers: { version: "two", color: "orange" } }, "both"],
      [{ path: `/${ECHO}/Echo`, headers: { version: "one", color: "blue" } }, "blue"],
      [{ path: `/${ECHO}/EchoTwo`, headers: { color: "blue" } }, null],
      [{ path: `/${ECHO}/Echo`, headers: {} }, null],
    ],
  },
  {
    name: "GRPCRouteListenerHostnameMatching",
    routes: [
      routeOf({ id: "bar", hosts: ["bar.com"], grpc_methods: [grpc(ECHO)] }),
      routeOf({ id: "wildcard", hosts: ["*.bar.com"], grpc_methods: [grpc(ECHO)] }),
      routeOf({ id: "exact", hosts: ["foo.bar.com"], grpc_methods: [grpc(ECHO)] }),
    ],
    calls: [
      [{ host: "bar.com", path: `/${ECHO}/Echo` }, "bar"],
      [{ host: "foo.bar.com", path: `/${ECHO}/Echo` }, "exact"],
      [{ host: "baz.bar.com", path: `/${ECHO}/Echo` }, "wildcard"],
      [{ host: "boo.baz.bar.com", path: `/${ECHO}/Echo` }, "wildcard"],
      [{ host: "foo.com", path: `/${ECHO}/Echo` }, null],
    ],
  },
  {
    name: "the method before the service, the service before a method of any service, then any call",
    routes: [
      routeOf({ id: "any", methods: ["POST"] }),
      routeOf({ id: "everywhere", grpc_methods: [grpc("", "Echo")], methods: ["POST"] }),
      routeOf({ id: "service", grpc_methods: [grpc("a.B")], methods: ["POST"] }),
      routeOf({ id: "method", grpc_methods: [grpc("a.B", "Echo")] }),
    ],
    calls: [
      [{ path: "/a.B/Echo", method: "POST" }, "method"],
      [{ path: "/a.B/Other", method: "POST" }, "service"],
      [{ path: "/a.C/Echo", method: "POST" }, "everywhere"],
      [{ path: "/a.C/Other", method: "POST" }, "any"],
      [{ path: "/a.C/Echo/more", method: "POST" }, "any"],
    ],
  },
  {
    name: "paths beside methods, in any spelling that targets read alike",
    routes: [routeOf({ id: "r", paths: [prefix("/web")], grpc_methods: [grpc("a.B", "C")] })],
    calls: [
      [{ path: "/web/x" }, "r"],
      [{ path: "/a.B/C" }, "r"],
      [{ path: "/a.B/%43" }, "r"],
      [{ path: "//a.B//C" }, "r"],
      [{ path: "/aXB/C" }, null],
      [{ path: "/a.B/CC" }, null],
    ],
  },
];

describe("GRPCRoute", () => {
  test.each([...rows])("$name", ({ routes, calls }) => {
    const router = routerOf(routes);
    for (const [fields, wanted] of calls)
      expect([fields.path, router.match(subjectOf(fields))?.id ?? null]).toEqual([
        fields.path,
        wanted,
      ]);
  });
});

test("a route by methods that a route with a wider path hides has a warning", () => {
  const wide = routeOf({ id: "wide", paths: [prefix("/a.B")], priority: 1 });
  const narrow = routeOf({ id: "narrow", grpc_methods: [grpc("a.B", "C")] });
  const twin = routeOf({ id: "twin", paths: [exact("/a.B/C")], created_at: "2027" });
  const anywhere = routeOf({ id: "anywhere", grpc_methods: [grpc("", "C")] });
  const same = routeOf({ id: "same", paths: [regex("^/[^/]+/C$")], created_at: "2027" });
  const upserts = [wide, narrow, twin, anywhere, same];
  const all = new Map(upserts.map((route) => [route.id, route]));
  const { cover, hiddenBy } = finish(shadowSteps(null, { upserts, removals: [] }, all));
  expect([...cover.coveredBy].sort()).toEqual([
    ["narrow", "wide"],
    ["twin", "wide"],
  ]);
  expect([...hiddenBy].sort()).toEqual([
    ["same", "anywhere"],
    ["twin", "narrow"],
  ]);
});

test("the path of a call is never stripped or replaced", () => {
  const { prefixes } = routeRuntime(
    routeOf({
      id: "r",
      grpc_methods: [grpc("a.B")],
      paths: [prefix("/web")],
      strip_path: true,
    }),
  );
  expect(prefixes).toEqual(["/web"]);
});
