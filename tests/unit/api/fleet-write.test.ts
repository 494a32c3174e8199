// How long a reply waits for other nodes, and how many must be present: what is accepted, and what is refused.
import { describe, expect, test } from "bun:test";
import {
  nodesHeaders,
  requirementOf,
  requireNodes,
  takeWait,
} from "../../../src/api/fleet-write.ts";
import type { NodeState } from "../../../src/control/fleet-view.ts";
import { type NodeRequirement, shortageOf } from "../../../src/control/node-requirement.ts";

describe("wait", () => {
  test.each([
    { text: "0", ms: 0 },
    { text: "5", ms: 5000 },
    { text: "0.5", ms: 500 },
    { text: "30s", ms: 30_000 },
    { text: "250ms", ms: 250 },
  ])("$text is $ms ms, and leaves the query", ({ text, ms }) => {
    const query = new URLSearchParams({ wait: text, dry_run: "1" });
    expect(takeWait(query)).toBe(ms);
    expect(query.toString()).toBe("dry_run=1");
  });

  test("is undefined when it is absent", () => {
    expect(takeWait(new URLSearchParams())).toBeUndefined();
  });

  test.each(["", "-1", "31", "30001ms", "1m", "1e1", " 1", "NaN"])("%p is refused", (text) => {
    expect(() => takeWait(new URLSearchParams({ wait: text }))).toThrow(/^wait: must be/);
  });
});

describe("Sluice-Require-Nodes", () => {
  const read = (text: string) => requirementOf(new Headers({ "sluice-require-nodes": text }));

  test.each([
    { text: "all", is: "all" },
    { text: " Majority ", is: "majority" },
    { text: "3", is: 3 },
  ] as const)("$text is read", ({ text, is }) => {
    expect(read(text)).toBe(is);
  });

  test("may be absent", () => {
    expect(requirementOf(new Headers())).toBeNull();
  });

  test.each(["", "0", "51", "-1", "1.5", "most", "all, 2"])("%p is refused", (text) => {
    expect(() => read(text)).toThrow(/^Sluice-Require-Nodes: must be/);
  });
});

const nodesOf = (...states: NodeState[]) =>
  states.map((state, index) => ({ name: `n${index + 1}`, state }));

describe("of nodes that are", () => {
  const cases: [NodeRequirement, NodeState[], boolean][] = [
    ["all", ["serving", "lagging", "draining", "joining"], true],
    ["all", ["serving", "away"], false],
    ["all", ["serving", "refused"], false],
    ["all", ["serving", "cut_off"], false],
    ["majority", ["serving", "serving", "away"], true],
    ["majority", ["serving", "away"], false],
    ["majority", ["serving", "serving", "away", "away"], false],
    [2, ["serving", "serving", "away"], true],
    [2, ["serving", "away"], false],
    [3, ["serving", "serving"], false],
  ];
  test.each(cases)("%p holds for %p: %p", (requirement, states, holds) => {
    expect(shortageOf(requirement, nodesOf(...states)) === null).toBe(holds);
  });

  test("the missing ones are named with their states", () => {
    expect(shortageOf("all", nodesOf("serving", "away", "refused"))).toBe(
      "the change requires all of 3 nodes, and 1 of 3 are present; missing: n2 (away), n3 (refused)",
    );
    expect(shortageOf(3, nodesOf("serving", "serving"))).toContain("there are no more");
  });
});

test("without a fleet one node is present", async () => {
  for (const requirement of ["all", "majority", 1] as const) await requireNodes(requirement, null);
  expect(requireNodes(2, null)).rejects.toMatchObject({ status: 409 });
});

test("a request that changed nothing asks for no nodes", async () => {
  const fleet = {
    reach: () => Promise.reject(new Error("was asked")),
  } as never;
  expect(await nodesHeaders(fleet, { requires: null, waitMs: 0, committed: null })).toEqual({});
  const committed = { position: 1, at: 0 };
  expect(await nodesHeaders(fleet, { requires: null, waitMs: 0, committed })).toEqual({
    "sluice-nodes": "1/?",
  });
});
