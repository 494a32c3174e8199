// Computes the line diff of two texts; renders nothing.

export interface DiffLine {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
}

/** Limit of the comparison table: longer texts would block the page and count as entirely different. */
const MAX_CELLS = 400_000;

/** All lines of both texts, common lines once. */
export function diffLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  const start = before.findIndex((line, index) => line !== after[index]);
  const head = start === -1 ? Math.min(before.length, after.length) : Math.min(start, after.length);
  const most = Math.min(before.length, after.length) - head;
  let tail = 0;
  while (tail < most && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const end = (lines: readonly string[]) => lines.slice(head, lines.length - tail);
  return [
    ...marked("same", before.slice(0, head)),
    ...middle(end(before), end(after)),
    ...marked("same", before.slice(before.length - tail)),
  ];
}

const marked = (kind: DiffLine["kind"], lines: readonly string[]): DiffLine[] =>
  lines.map((text) => ({ kind, text }));

/** By the longest common subsequence. */
function middle(before: readonly string[], after: readonly string[]): DiffLine[] {
  const width = after.length + 1;
  if (before.length * after.length > MAX_CELLS)
    return [...marked("removed", before), ...marked("added", after)];
  const common = new Uint32Array((before.length + 1) * width);
  const at = (row: number, column: number) => common[row * width + column] ?? 0;
  for (let row = before.length - 1; row >= 0; row--)
    for (let column = after.length - 1; column >= 0; column--)
      common[row * width + column] =
        before[row] === after[column]
          ? at(row + 1, column + 1) + 1
          : Math.max(at(row + 1, column), at(row, column + 1));
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < before.length || column < after.length) {
    const [old = "", now = ""] = [before[row], after[column]];
    if (row < before.length && column < after.length && old === now) {
      lines.push({ kind: "same", text: old });
      [row, column] = [row + 1, column + 1];
    } else if (row < before.length && at(row + 1, column) >= at(row, column + 1)) {
      lines.push({ kind: "removed", text: old });
      row++;
    } else if (column < after.length) {
      lines.push({ kind: "added", text: now });
      column++;
    } else {
      lines.push({ kind: "removed", text: old });
      row++;
    }
  }
  return lines;
}

/** A run of unchanged lines that is not shown. */
export interface Gap {
  readonly kind: "gap";
  readonly lines: number;
}

const CONTEXT = 3;

/** Collapses unchanged lines that are far from changes. */
export function withGaps(lines: readonly DiffLine[]): readonly (DiffLine | Gap)[] {
  const near = lines.map((_, index) =>
    lines
      .slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1)
      .some(({ kind }) => kind !== "same"),
  );
  const shown: (DiffLine | Gap)[] = [];
  let skipped = 0;
  const close = () => {
    if (skipped > 0) shown.push({ kind: "gap", lines: skipped });
    skipped = 0;
  };
  for (const [index, line] of lines.entries()) {
    if (near[index] !== true) {
      skipped++;
      continue;
    }
    close();
    shown.push(line);
  }
  close();
  return shown;
}

/** A configuration value as readable lines: strings as is, lists one item per line, the rest as JSON. */
export function linesOf(value: unknown): readonly string[] {
  if (value === null || value === undefined) return [];
  if (typeof value === "string") return value.split("\n");
  if (Array.isArray(value) && value.length > 0 && value.every(isScalar)) return value.map(String);
  return JSON.stringify(value, null, 2).split("\n");
}

const isScalar = (value: unknown): boolean =>
  value !== null && typeof value !== "object" && value !== "";
