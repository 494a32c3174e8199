// One event for each transition of a node, whatever is seen how often.
import { expect, test } from "bun:test";
import type { NodeState } from "../../../src/control/fleet-view.ts";
import { NodeWatch } from "../../../src/fleet/node-watch.ts";

function watch() {
  const events: string[] = [];
  const nodes = new NodeWatch();
  nodes.on(({ event, name, why }) =>
    events.push(`${name} ${event}${why === null ? "" : ` ${why}`}`),
  );
  const see = (states: Readonly<Record<string, NodeState>>, error = "") => {
    events.length = 0;
    nodes.observe(
      Object.entries(states).map(([name, state]) => ({ id: name, name, state, error })),
    );
    return [...events];
  };
  return { nodes, events, see };
}

test("the nodes of the first look have not joined, later ones have", () => {
  const { see } = watch();
  expect(see({ n1: "serving", n2: "lagging" })).toEqual([]);
  expect(see({ n1: "serving", n2: "serving" })).toEqual([]);
  expect(see({ n1: "serving", n2: "serving", n3: "lagging" })).toEqual(["n3 joined"]);
  expect(see({ n1: "serving", n3: "serving" })).toEqual(["n2 left"]);
});

test.each([
  { state: "away", error: "", event: "away" },
  { state: "cut_off", error: "", event: "cut_off" },
  { state: "refused", error: "port taken", event: "refused port taken" },
  { state: "outdated", error: "too new", event: "outdated too new" },
  { state: "diverged", error: "", event: "diverged" },
  { state: "draining", error: "", event: "draining" },
] as const)("a node that is $state is an event once, and its return another", (row) => {
  const { see } = watch();
  see({ n1: "serving" });
  expect(see({ n1: row.state }, row.error)).toEqual([`n1 ${row.event}`]);
  expect(see({ n1: row.state }, row.error)).toEqual([]);
  expect(see({ n1: "lagging" })).toEqual(["n1 back"]);
  expect(see({ n1: "serving" })).toEqual([]);
});

test("a node that goes from one fault to another is an event of the other", () => {
  const { see } = watch();
  see({ n1: "refused" });
  expect(see({ n1: "away" })).toEqual(["n1 away"]);
});

test("this node alone is seen while it is cut off, also before the first look", () => {
  const { nodes, events, see } = watch();
  const own = { id: "n1", name: "n1", state: "cut_off", error: "" } as const;
  nodes.observeOne(own);
  expect(events).toEqual(["n1 cut_off"]);
  expect(see({ n1: "serving", n2: "serving" })).toEqual(["n1 back"]);
  nodes.observeOne(own);
  expect(nodes.counts()).toEqual({ live: 1, nodes: 2 });
  expect(nodes.states()).toEqual(
    new Map([
      ["cut_off", 1],
      ["serving", 1],
    ]),
  );
});
