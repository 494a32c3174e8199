// What versions with the engines `standard`, `full` and both at once said of listeners and routes, and what is said today.
import { describe, expect, test } from "bun:test";
import {
  formerParts,
  presentParts,
  withoutExactResponses,
  withPresentEngine,
} from "../../../src/model/former-engines.ts";

describe("a listener", () => {
  test.each<[why: string, former: object, present: object]>([
    ["of standard", { engine: "standard", shared_engines: false }, { engine: "sluice" }],
    ["of full", { engine: "full", shared_engines: false }, { engine: "sluice" }],
    ["of both", { engine: "standard", shared_engines: true }, { engine: "sluice" }],
    ["of both, by default", { shared_engines: true }, { engine: "sluice" }],
    ["of sluice", { engine: "sluice", shared_engines: false }, { engine: "sluice" }],
    ["of sluice alone", { engine: "sluice" }, { engine: "sluice" }],
    ["of bun", { engine: "bun", max_connections: 1 }, { engine: "bun", max_connections: 1 }],
    ["without engine", { max_connections: 1 }, { max_connections: 1 }],
  ])("%s", (_, former, present) => {
    expect(withPresentEngine({ name: "l", ...former })).toEqual({ name: "l", ...present });
  });

  test("that has no former value is the same object", () => {
    for (const one of [{ engine: "sluice" }, { engine: "bun" }, {}])
      expect(withPresentEngine(one)).toBe(one);
  });
});

test("a route has no exact_responses", () => {
  expect(withoutExactResponses({ name: "r", exact_responses: "on" })).toEqual({ name: "r" });
  const present = { name: "r" };
  expect(withoutExactResponses(present)).toBe(present);
});

describe("a change for nodes of such a version", () => {
  const part = (...upserts: object[]) => ({ upserts, removals: ["x"] }) as never;

  test("names what they know, and comes back", () => {
    const change = { listeners: part({ engine: "sluice", max_connections: 0 }), routes: part({}) };
    const former = formerParts(change);
    expect(former as object).toEqual({
      listeners: part({ engine: "standard", max_connections: 0, shared_engines: false }),
      routes: part({ exact_responses: "off" }),
    });
    expect(presentParts(former)).toEqual(change);
  });

  test("of a version without engines has one", () => {
    const change = { listeners: part({ name: "a" }, { name: "b", proxy_protocol: true }) };
    expect(presentParts(change, "standard") as object).toEqual({
      listeners: part(
        { name: "a", engine: "sluice" },
        { name: "b", engine: "sluice", proxy_protocol: true },
      ),
    });
    expect(presentParts(change)).toEqual(change);
  });
});
