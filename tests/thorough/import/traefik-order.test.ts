// Priorities of Traefik's routers: few, in its order, and without comparing all pairs.
import { expect, test } from "bun:test";
import { type OrderedRoute, prioritiesOf } from "../../../src/import/traefik/order.ts";

const route = (rank: number, host: string, path = ""): OrderedRoute => ({
  rank,
  hosts: host === "" ? [] : [host],
  paths: path === "" ? [] : [{ type: "prefix", value: path }],
  protocols: ["http", "https"],
  conditions: 0,
});

test("a route has a priority only over one that would precede it", () => {
  const routes = [
    route(10, "a.test"),
    route(20, "a.test", "/api"),
    route(100, "a.test", "/"),
    route(200, "*.test"),
    route(300, ""),
    route(1, "b.other"),
  ];
  expect(prioritiesOf(routes)).toEqual([0, 0, 1, 2, 3, 0]);
});

test("routes of other hosts and other protocols do not count", () => {
  const plain = { ...route(5, "a.test"), protocols: ["http"] };
  const secure = { ...route(9, "a.test"), protocols: ["https"] };
  expect(prioritiesOf([plain, secure, route(7, "b.test"), route(1, "*.a.test")])).toEqual([
    0, 0, 0, 0,
  ]);
});

test("ten thousand hosts get none", () => {
  const routes = Array.from({ length: 10_000 }, (_, at) => route(at, `h${at}.test`));
  expect(prioritiesOf(routes).every((priority) => priority === 0)).toBeTrue();
});

// 1414 routes of one host are 998,991 pairs, and 1415 are 1,000,405.
test.each([
  [1414, 0],
  [1415, 1414],
])("%i routes of one host keep their order, with priorities up to %i", (length, highest) => {
  const routes = Array.from({ length }, (_, at) => route(at, "a.test", `/${"x".repeat(at)}`));
  const found = prioritiesOf(routes);
  expect(found.at(-1)).toBe(highest);
  expect(found).toEqual(found.toSorted((a, b) => a - b));
});
