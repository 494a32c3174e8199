// Nodes of a fleet as a command shows them; asks nothing.
import { defaultTimes } from "../fleet/times.ts";
import type { FleetNode } from "../fleet/source.ts";

/** As the node says, which the database could be made to say as well: only nodes verify signatures. */
export const stateOf = ({ seenMsAgo, state }: FleetNode) =>
  seenMsAgo > defaultTimes.away ? "away" : state;

export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}
