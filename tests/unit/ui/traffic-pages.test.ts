// What the pages of routes, services, stream routes and listeners compute without a browser.
import { expect, test } from "bun:test";
import { ApiError, portErrorOf } from "../../../src/ui/api/error.ts";
import { isOwnListener, mayDisconnect } from "../../../src/ui/pages/listeners/own-listener.ts";
import { matchText, type PathMatch, matchesPath } from "../../../src/ui/pages/routes/route-text.ts";
import { addressOf, shareOf } from "../../../src/ui/pages/services/target-weight.ts";
import { ageOf, inBytes } from "../../../src/ui/pages/stream-routes/stream-numbers.ts";

const path = (type: PathMatch["type"], value: string): PathMatch => ({ type, value });

test.each([
  [path("prefix", "/shop"), "/shop/cart", true, "below it"],
  [path("prefix", "/shop"), "/shopping", false, "a prefix ends at a slash"],
  [path("prefix", "/shop/"), "/shop", true, "its own slash does not count"],
  [path("prefix", "/"), "/anything", true, "everything"],
  [path("exact", "/shop"), "/shop/", false, "exactly"],
  [path("regex", "^/u/[0-9]+$"), "/u/42", true, "a regular expression"],
  [path("regex", "("), "/u/42", null, "none that can be read"],
])("%j matches %s: %p, because %s", (match, asked, expected, _why) => {
  expect(matchesPath(match, asked)).toBe(expected);
});

const call = (service: string, method: string) => ({ service, method });

test.each([
  [{ hosts: [], paths: [] }, "any host"],
  [{ hosts: ["a.test"], paths: [path("prefix", "/")] }, "a.test"],
  [{ hosts: ["a.test"], paths: [path("prefix", "/api")] }, "a.test/api/*"],
  [{ hosts: ["a.test", "b.test"], paths: [path("exact", "/x")] }, "a.test +1 /x"],
  [{ hosts: ["a.test"], paths: [path("regex", "^/x")] }, "a.test ~ ^/x"],
  [{ hosts: ["a.test"], paths: [], grpc_methods: [call("b.C", "D")] }, "a.test/b.C/D"],
  [
    { hosts: ["a.test"], paths: [], grpc_methods: [call("b.C", ""), call("", "D")] },
    "a.test/b.C/* +1",
  ],
])("%j is shown as %s", (given, expected) => {
  expect(matchText({ grpc_methods: [], ...given })).toBe(expected);
});

test.each([
  ['listener "x": port 80 on 1.2.3.4: address already in use by nginx (pid 7)', "port"],
  ['listener "x": port 80 on 1.2.3.4: no such address on this machine', "address"],
  ['listener "x": UDP port 443 on 0.0.0.0: address already in use', "port"],
  ['stream route "s": port 53 on 127.0.0.1: address already in use', "port"],
  ["name: exists already", null],
])("%s belongs to the field %p", (message, field) => {
  expect(portErrorOf(new ApiError(409, message))?.field ?? null).toBe(field as never);
});

test.each([
  [{ port: 443, protocol: "https" }, { port: "", protocol: "https:" }, true],
  [{ port: 80, protocol: "http" }, { port: "", protocol: "https:" }, false],
  [{ port: 8080, protocol: "http" }, { port: "8080", protocol: "http:" }, true],
  [{ port: 8080, protocol: "http" }, { port: "9080", protocol: "http:" }, false],
] as const)("%j serves a page at %j: %p", (of, at, expected) => {
  expect(isOwnListener(of, at)).toBe(expected);
  expect(mayDisconnect(of, { port: true }, at)).toBe(expected);
  expect(mayDisconnect(of, { tags: true }, at)).toBe(false);
});

test("shares are counted within a tier, among targets that receive traffic", () => {
  const target = (id: string, weight: number, priority = 0, enabled = true) => ({
    id,
    weight,
    priority,
    enabled,
  });
  const all = [target("a", 100), target("b", 50), target("c", 10, 1), target("d", 100, 0, false)];
  expect(all.map((one) => shareOf(one, all))).toEqual([67, 33, 100, null]);
  expect(shareOf(target("e", 0), all)).toBeNull();
  expect(addressOf({ host: "::1", port: 80 })).toBe("[::1]:80");
});

test("bytes and ages are formatted", () => {
  expect([0, 999, 1500, 2_345_678].map(inBytes)).toEqual(["0 B", "999 B", "1.5 kB", "2.3 MB"]);
  const now = Date.parse("2026-01-02T00:00:00Z");
  const at = (seconds: number) => ageOf(new Date(now - seconds * 1000).toISOString(), now);
  expect([5, 90, 7500, 400_000].map(at)).toEqual(["5 s", "1 min", "2 h 5 min", "4 days"]);
});
