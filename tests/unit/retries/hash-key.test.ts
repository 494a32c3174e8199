// What consistent_hash hashes of a request, and when the fallback decides.
import { describe, expect, test } from "bun:test";
import { hashText } from "../../../src/dataplane/balancer/consistent-hash.ts";
import { hashKey } from "../../../src/dataplane/hash-key.ts";
import type { ClientRequest } from "../../../src/dataplane/request/client-request.ts";
import type { Service } from "../../../src/model/service.ts";
import { requestOf } from "./fixture.ts";

type HashOn = Service["hash_on"];

const keyOf = (context: ClientRequest, source: HashOn["source"], more: Partial<HashOn> = {}) =>
  hashKey({ hash_on: { source, name: "X-User", fallback: source, ...more } } as Service, context);
const keys = (text: string) => hashText(text);
const ADDRESS = keys("192.0.2.7");

describe("each source", () => {
  const context = requestOf(
    "GET",
    { "x-user": "ada", cookie: "a=b; X-User=bob; X-User=eve" },
    { path: "/some/path", query: "q=1&X-User=c%20d&X-User=e" },
  );

  test.each([
    ["ip", "192.0.2.7"],
    ["header", "ada"],
    ["cookie", "bob"],
    ["query", "c d"],
    ["path", "/some/path"],
  ] as const)("%s: %s", (source, text) => {
    expect(keyOf(context, source)).toBe(keys(text));
  });

  test("path is without the query", () => {
    const paths = ["a=1", "a=2", ""].map((query) => requestOf("GET", {}, { path: "/p", query }));
    expect(new Set(paths.map((each) => keyOf(each, "path")))).toEqual(new Set([keys("/p")]));
  });
});

describe("the fallback", () => {
  test.each([
    ["header", {}, ""],
    ["header", { "x-user": "" }, ""],
    ["cookie", {}, ""],
    ["cookie", { cookie: "other=1" }, ""],
    ["cookie", { cookie: "X-User=" }, ""],
    ["query", {}, ""],
    ["query", {}, "other=1"],
    ["query", {}, "X-User="],
    ["query", {}, "X-User"],
    ["consumer", {}, ""],
  ] as const)("decides when there is no %s: %p %p", (source, headers, query) => {
    const context = requestOf("GET", headers, { query });
    expect(keyOf(context, source, { fallback: "ip" })).toBe(ADDRESS);
    expect(keyOf(context, source, { fallback: "path" })).toBe(keys("/"));
    // Both are absent: there is nothing to hash, and a target is chosen at random.
    expect(keyOf(context, source)).toBeNull();
  });

  test("does not decide when there is a value", () => {
    expect(keyOf(requestOf("GET", { "x-user": "0" }), "header", { fallback: "ip" })).toBe(
      keys("0"),
    );
  });
});
