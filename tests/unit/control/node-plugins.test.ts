// The list of nodes with their plugins: a node that differs from others says so, and a node that cannot be compared does not.
import { expect, test } from "bun:test";
import type { NodeState, NodeView } from "../../../src/control/fleet-view.ts";
import { withPlugins } from "../../../src/control/node-plugins.ts";

/** State and hashes by name of the plugin; null: not reported. */
type Sketch = readonly [hashes: Readonly<Record<string, string>> | null, state?: NodeState];

/** Warnings of nodes n1, n2, … */
function warningsOf(...sketches: readonly Sketch[]): readonly (readonly string[])[] {
  const nodes = sketches.map(([, state = "serving"], index): NodeView => ({
    id: `id-${index + 1}`,
    name: `n${index + 1}`,
    url: null,
    version: "1.0.0",
    state,
    draining: false,
    leader: false,
    stored: 1,
    served: 1,
    error: "",
    seen_ms_ago: 0,
    clock_offset_ms: 0,
  }));
  const reported = new Map(
    sketches.flatMap(([hashes], index) =>
      hashes === null
        ? []
        : [[`id-${index + 1}`, Object.entries(hashes).map(([name, hash]) => ({ name, hash }))]],
    ),
  );
  return withPlugins(nodes, reported).map(({ warnings }) => warnings);
}

const many = (count: number) => Array.from({ length: count }, (): Sketch => [{ own: "a" }]);

test.each<{ why: string; nodes: readonly Sketch[]; warnings: readonly (readonly string[])[] }>([
  { why: "no plugins", nodes: [[{}], [{}]], warnings: [[], []] },
  { why: "the same code", nodes: [[{ own: "a" }], [{ own: "a" }]], warnings: [[], []] },
  {
    why: "other code",
    nodes: [[{ own: "a" }], [{ own: "b" }]],
    warnings: [
      ['plugin "own" has other code than on n2'],
      ['plugin "own" has other code than on n1'],
    ],
  },
  {
    why: "a node lacks one, also while it cannot follow",
    nodes: [[{ own: "a", two: "x" }], [{ two: "x" }, "refused"]],
    warnings: [[], ['lacks plugin "own" of n1']],
  },
  {
    why: "one lacks it, two have other code",
    nodes: [[{ own: "a" }], [{ own: "b" }], [{}]],
    warnings: [
      ['plugin "own" has other code than on n2'],
      ['plugin "own" has other code than on n1'],
      ['lacks plugin "own" of n1, n2'],
    ],
  },
  { why: "an older node", nodes: [[{ own: "a" }], [null]], warnings: [[], []] },
  { why: "a node that is away", nodes: [[{}], [{ own: "b" }, "away"]], warnings: [[], []] },
  { why: "a node that stops", nodes: [[{}], [{ own: "b" }, "leaving"]], warnings: [[], []] },
  {
    why: "three are named",
    nodes: [...many(3), [{}]],
    warnings: [[], [], [], ['lacks plugin "own" of n1, n2, n3']],
  },
  {
    why: "further ones are counted",
    nodes: [...many(5), [{}]],
    warnings: [[], [], [], [], [], ['lacks plugin "own" of n1, n2, n3 and 2 more']],
  },
])("warnings: $why", ({ nodes, warnings }) => {
  expect(warningsOf(...nodes)).toEqual(warnings);
});
