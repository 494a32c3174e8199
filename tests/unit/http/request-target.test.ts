// The canonical path, the form for comparison, and which targets are rejected.
import { expect, test } from "bun:test";
import { splitTarget } from "../../support/request-target.ts";
import {
  canonicalPath,
  comparablePath,
  isAmbiguousPath,
  stripPrefix,
} from "../../../src/http/request-target.ts";

test.each([
  ["http://h/", "/", "", "/"],
  ["https://h:8443/a/b?c=d", "/a/b", "c=d", "/a/b?c=d"],
  ["http://h/?", "/", "", "/?"],
  ["http://h/??a", "/", "?a", "/??a"],
  ["http://[::1]/x", "/x", "", "/x"],
  ["http://h//a", "//a", "", "//a"],
  ["http://h/%61?x=%61", "/a", "x=%61", "/a?x=%61"],
  ["http://h/a?x=/../b", "/a", "x=/../b", "/a?x=/../b"],
  ["/only/target?q", "/only/target", "q", "/only/target?q"],
])("%s is split", (url, path, query, target) => {
  expect(splitTarget(url)).toEqual({ path, query, target });
});

test.each([
  ["http://h/a#b", "a fragment would fool rules on the end of a path"],
  ["http://h/a?b#c", "a fragment after the query"],
  ["http://h", "no path"],
  ["http://999.1.1.1/p/../q", "Bun left the dot segment because the host is odd"],
  ["/p/../q", "Bun gave the bare target because the host is no host"],
  ["http://999.1.1.1/p\\..\\q", "a backslash that Bun would have turned"],
  ["http://999.1.1.1/\u00e9", "a character that Bun would have encoded"],
  ["http://999.1.1.1/a?\u00e9", "the same in the query"],
  ["http://h/a?b c", "a space would end the target in a request line"],
])("%s is rejected: %s", (url) => {
  expect(splitTarget(url)).toBeNull();
});

test.each([
  ["/a/b", "/a/b", "plain"],
  ["/%61dmin", "/admin", "RFC 3986 6.2.2.2: unreserved characters mean the same escaped"],
  ["/%7Euser/%2D%5f", "/~user/-_", "the same for marks"],
  ["/caf%c3%a9", "/caf%C3%A9", "RFC 3986 6.2.2.1: escapes in upper case"],
  ["/a%2fb", "/a%2Fb", "an escaped slash is data to some servers"],
  ["/%40me", "/%40me", "reserved characters keep their spelling: some servers sign it"],
  ["/%2561", "/%2561", "decoded once, never twice"],
  ["//a///b", "//a///b", "empty segments are kept"],
  ["/.well-known/x", "/.well-known/x", "a name may begin with a dot"],
  ["/...", "/...", "three dots are a name"],
  ["/a..", "/a..", "dots at the end of a name"],
  ["/a;v=1", "/a;v=1", "parameters are kept"],
])("%s has the canonical form %s: %s", (path, canonical) => {
  expect(canonicalPath(path)).toBe(canonical);
  expect(canonicalPath(canonical)).toBe(canonical);
});

const DOTS = ["..", ".", "%2e%2e", "%2E.", ".%2e", "%2e"];
const SEPARATORS = ["/", "%2f", "%2F", "%5c", "%5C"];
const TRAVERSALS = DOTS.flatMap((dots) =>
  SEPARATORS.flatMap((before) =>
    ["/", "%2f", "%5C", ";x/", ";", ""].map((after) => `/a${before}${dots}${after}`),
  ),
);

test.each([
  ...TRAVERSALS,
  "/a;b%2fc",
  "/a/b;c;d%5Ce",
  "/..",
  "/../",
  "/a/\\..",
  "/%00",
  "/a%00.png",
  "/%",
  "/%2",
  "/%zz",
  "/%u002e",
  "a",
  "",
  "/a b",
  "/a\tb",
  "/a\x7f",
])("%s has no canonical form", (path) => {
  expect(canonicalPath(path)).toBeNull();
});

test.each([
  ["/a/b", "/a/b"],
  ["//a///b/", "/a/b/"],
  ["/a%2Fb", "/a/b"],
  ["/a%5Cb", "/a/b"],
  ["/a%2F%2Fb", "/a/b"],
  ["/a;x=1/b;y", "/a/b"],
  ["/a;x%2Fb", "/a/b"],
  ["/%40a%20b", "/@a b"],
  ["/%252F", "/%252F"],
  ["/caf%C3%A9", "/caf%C3%A9"],
  ["/a%3Bb", "/a"],
  ["/a%0D%0Ab", "/a%0D%0Ab"],
])("%s is compared as %s", (path, comparable) => {
  expect(comparablePath(path)).toBe(comparable);
});

test.each([
  ["//a", true],
  ["/a;", true],
  ["/a%2F", true],
  ["/a%5C", true],
  ["/a%3B", true],
  ["/a%20%C3%A9%252F", false],
  ["/", false],
])("servers may read %s differently: %p", (path, isAmbiguous) => {
  expect(isAmbiguousPath(path)).toBe(isAmbiguous);
});

test.each([
  ["/api/x", "/api", "/x"],
  ["/api", "/api", ""],
  ["/api/", "/api", "/"],
  ["/api%2F", "/api", "/"],
  ["/api;v=1", "/api", ""],
  ["//api", "/api", ""],
  ["/api/x", "/api/", "/x"],
  ["/api", "/api/", ""],
  ["/", "/", "/"],
  ["/x", "/", "/x"],
  ["/api//x", "/api", "//x"],
  ["//api/x", "/api", "/x"],
  ["/a//b/x", "/a/b", "/x"],
  ["/%40me/x", "/@me", "/x"],
  ["/api%2Fx%2Fy", "/api", "/x%2Fy"],
  ["/api;v=1/x", "/api", "/x"],
  ["/apix", "/api", null],
  ["/api..", "/api", null],
  ["/other", "/api", null],
])("%s without the prefix %s is %s", (path, prefix, rest) => {
  expect(stripPrefix(path, prefix)).toBe(rest);
});

test("a long path of many segments is stripped in one pass", () => {
  expect(stripPrefix("//".repeat(4000) + "api/x", "/api")).toBe("/x");
});
