// Which routes are rejected, and with which errors.
import { expect, test } from "bun:test";
import { routePatternProblems } from "../../../src/control/route-pattern.ts";
import type { Route } from "../../../src/model/route.ts";
import { exact, prefix, regex, routeOf } from "./sample-routes.ts";

const value = (name: string, op: "equals" | "regex" | "present" | "absent", text = "") => ({
  name,
  op,
  value: text,
});

test.each<{ why: string; fields: Partial<Route> }>([
  { why: "nothing asked for", fields: {} },
  {
    why: "host names and wildcards",
    fields: { hosts: ["app.example.com", "*.example.com", "localhost", "my_app", "App.Test."] },
  },
  { why: "addresses", fields: { hosts: ["127.0.0.1", "[::1]"] } },
  {
    why: "ordinary paths",
    fields: {
      paths: [prefix("/"), prefix("/api/"), exact("/a%20b"), exact("/@me:x"), regex("^/v\\d+/")],
    },
  },
  {
    why: "gRPC services and methods",
    fields: {
      grpc_methods: [
        { service: "helloworld.Greeter", method: "" },
        { service: "helloworld.Greeter", method: "SayHello" },
        { service: "", method: "Check" },
      ],
    },
  },
  { why: "one path by two means", fields: { paths: [prefix("/a"), exact("/a")] } },
  {
    why: "conditions on one name",
    fields: {
      headers: [value("x", "present"), value("X", "regex", "^a")],
      query: [value("a[b]", "present")],
    },
  },
])("accepted: $why", ({ fields }) => {
  expect(routePatternProblems(routeOf({ id: "r", ...fields }))).toEqual([]);
});

test.each<{ fields: Partial<Route>; path: string; says: string }>([
  {
    // Each host has a tree of the segments of all paths.
    fields: {
      hosts: Array.from({ length: 500 }, (_, at) => `h${at}.test`),
      paths: Array.from({ length: 101 }, (_, at) => prefix(`/p${at}`)),
    },
    path: "paths",
    says: "have 101 segments, for each of 500 hosts; the product may be at most 50,000",
  },
  { fields: { hosts: ["ok.test", "a b"] }, path: "hosts[1]", says: "must be a host name such as" },
  { fields: { hosts: ["http://a.test"] }, path: "hosts[0]", says: "must be a host name" },
  { fields: { hosts: ["a.test:8080"] }, path: "hosts[0]", says: "without a port" },
  { fields: { hosts: ["*"] }, path: "hosts[0]", says: "or *.example.com" },
  { fields: { hosts: ["a.*.test"] }, path: "hosts[0]", says: "or *.example.com" },
  { fields: { hosts: ["*a.test"] }, path: "hosts[0]", says: "or *.example.com" },
  { fields: { hosts: ["*.10.0.0.1"] }, path: "hosts[0]", says: "or *.example.com" },
  { fields: { hosts: ["999.1.1.1"] }, path: "hosts[0]", says: "must be a host name" },
  { fields: { hosts: ["*.bücher.example"] }, path: "hosts[0]", says: "must be a host name" },
  { fields: { hosts: ["a.test", "A.test."] }, path: "hosts[1]", says: "duplicates hosts[0]" },
  { fields: { paths: [prefix("api")] }, path: "paths[0].value", says: 'must start with "/"' },
  {
    fields: { grpc_methods: [{ service: "", method: "" }] },
    path: "grpc_methods[0]",
    says: "needs a service, a method or both",
  },
  ...[".a", "a..b", "a."].map((service) => ({
    fields: { grpc_methods: [{ service, method: "" }] },
    path: "grpc_methods[0]",
    says: "must have a service name",
  })),
  {
    fields: {
      grpc_methods: [
        { service: "a.B", method: "C" },
        { service: "a.B", method: "C" },
      ],
    },
    path: "grpc_methods[1]",
    says: "duplicates grpc_methods[0]",
  },
  {
    fields: { grpc_methods: [{ service: "a.B", method: "" }], prefix_rewrite: "/x" },
    path: "prefix_rewrite",
    says: "needs a path of the type prefix",
  },
  { fields: { paths: [prefix("/a?b")] }, path: "paths[0].value", says: "must not have a query" },
  { fields: { paths: [prefix("/a#b")] }, path: "paths[0].value", says: "must not have a fragment" },
  {
    fields: { paths: [prefix("/a/../b")] },
    path: "paths[0].value",
    says: "must be in canonical form: /b",
  },
  {
    fields: { paths: [exact("/%7euser")] },
    path: "paths[0].value",
    says: "must be in canonical form: /~user",
  },
  {
    fields: { paths: [exact("/café au lait")] },
    path: "paths[0].value",
    says: "must be in canonical form: /caf%C3%A9%20au%20lait",
  },
  {
    fields: { paths: [exact("/a{b}")] },
    path: "paths[0].value",
    says: "must be in canonical form: /a%7Bb%7D",
  },
  { fields: { paths: [exact("/a%zz")] }, path: "paths[0].value", says: "no malformed escapes" },
  { fields: { paths: [exact("/..%2Fb")] }, path: "paths[0].value", says: "no dot segments" },
  { fields: { paths: [prefix("/a//b")] }, path: "paths[0].value", says: 'by one "/": /a/b' },
  { fields: { paths: [prefix("/a%2Fb")] }, path: "paths[0].value", says: 'by one "/": /a/b' },
  { fields: { paths: [prefix("/a;b")] }, path: "paths[0].value", says: "must not contain a `;`" },
  {
    fields: { paths: [regex("(")] },
    path: "paths[0].value",
    says: "must be a regular expression: ",
  },
  {
    fields: { paths: [regex("^/(a|a)*$")] },
    path: "paths[0].value",
    says: "takes exponential time on '/",
  },
  {
    fields: { paths: [prefix("/a"), prefix("/a/")] },
    path: "paths[1]",
    says: "duplicates paths[0]",
  },
  { fields: { methods: ["GE T"] }, path: "methods[0]", says: "must be a method" },
  { fields: { methods: ["GET", "get"] }, path: "methods[1]", says: "duplicates methods[0]" },
  {
    fields: { headers: [value("a b", "present")] },
    path: "headers[0].name",
    says: "must be a header name",
  },
  {
    fields: { cookies: [value("a;b", "present")] },
    path: "cookies[0].name",
    says: "must be a cookie name",
  },
  {
    fields: { headers: [value("a", "regex", "(x+x+)+y")] },
    path: "headers[0].value",
    says: "exponential",
  },
  {
    fields: { query: [value("a", "present"), value("a", "present")] },
    path: "query[1]",
    says: "duplicates query[0]",
  },
  {
    fields: { path_rewrite: { regex: "[", to: "" } },
    path: "path_rewrite.regex",
    says: "must be a regular expression",
  },
  { fields: { prefix_rewrite: "new" }, path: "prefix_rewrite", says: 'must start with "/"' },
  { fields: { prefix_rewrite: "/a?b" }, path: "prefix_rewrite", says: "without a query" },
  {
    fields: { prefix_rewrite: "/a/../b" },
    path: "prefix_rewrite",
    says: "must be in canonical form",
  },
  { fields: { prefix_rewrite: "/a//b" }, path: "prefix_rewrite", says: "separate segments" },
  {
    fields: { prefix_rewrite: "/a", strip_path: true },
    path: "prefix_rewrite",
    says: "cannot be combined with strip_path",
  },
  {
    fields: { prefix_rewrite: "/a", paths: [{ type: "exact", value: "/x" }] },
    path: "prefix_rewrite",
    says: "needs a path of the type prefix",
  },
])("rejected: $path $says", ({ fields, path, says }) => {
  const problems = routePatternProblems(routeOf({ id: "r", ...fields }));
  expect(problems.map((problem) => problem.path)).toEqual([path]);
  expect(problems[0]!.message).toContain(says);
});
