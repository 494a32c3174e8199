// Finds positions in JSON texts for error messages; jsonc-parser reads them.
import { findNodeAtLocation, type Node, parse, type ParseError, parseTree } from "jsonc-parser";

/** A member name or a list index. */
export type PathStep = string | number;

/** Line and column, from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Position of the first syntax error (RFC 8259), which Bun's parser does not report; null when there is none. */
export function findJsonError(text: string): Position | null {
  const errors: ParseError[] = [];
  parse(text, errors, { disallowComments: true });
  const [first] = errors;
  return first === undefined ? null : positionOf(text, first.offset);
}

/** Finds a path, or its last existing step: a member at its name. */
export type FindPosition = (path: readonly PathStep[]) => Position;

/** Reads the text once, which must be valid. */
export function positionsInJson(text: string): FindPosition {
  const tree = parseTree(text);
  return (path) => {
    let node = tree;
    let offset = 0;
    for (const step of path) {
      offset = startOf(node) ?? offset;
      node = node && findNodeAtLocation(node, [step]);
    }
    return positionOf(text, startOf(node) ?? offset);
  };
}

/** Of a member its name. */
const startOf = (node: Node | undefined): number | undefined =>
  node?.parent?.type === "property" ? node.parent.offset : node?.offset;

export function positionOf(text: string, offset: number): Position {
  const before = text.slice(0, offset);
  return { line: before.split("\n").length, column: before.length - before.lastIndexOf("\n") };
}
