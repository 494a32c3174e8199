// Nests flat names such as a.b[0].c, as Traefik does for labels and flags; knows no setting.
import type { Document } from "../../control/body.ts";

/** Names are case-insensitive; the first spelling stays, because others reference it. */
export function treeOf(pairs: readonly (readonly [name: string, value: string])[]): Document {
  const root = newNode("");
  for (const [name, value] of pairs) plant(root, stepsOf(name), value);
  return documentOf(root) as Document;
}

interface Node {
  readonly name: string;
  value: string | null;
  readonly children: Map<string, Node>;
}

const newNode = (name: string): Node => ({ name, value: null, children: new Map() });

/** `a.b[0].c`: `a`, `b`, `[0]`, `c`. */
const stepsOf = (key: string): readonly string[] =>
  key.split(".").flatMap((part) => part.match(/\[\d+\]|[^[]+|\[/g) ?? [part]);

function plant(root: Node, steps: readonly string[], value: string): void {
  let node = root;
  for (const step of steps) {
    const key = step.toLowerCase();
    const next = node.children.get(key) ?? newNode(step);
    node.children.set(key, next);
    node = next;
  }
  node.value = value;
}

function documentOf({ value, children }: Node): unknown {
  if (children.size === 0) return value ?? {};
  const inner = [...children.values()];
  if (inner.every(({ name }) => /^\[\d+\]$/.test(name)))
    return inner
      .toSorted((a, b) => Number(a.name.slice(1, -1)) - Number(b.name.slice(1, -1)))
      .map(documentOf);
  return Object.fromEntries(inner.map((child) => [child.name, documentOf(child)]));
}
