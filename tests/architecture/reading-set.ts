// What a reader of one file has to know: all files that it imports, directly and by way of others, types included; reads no files itself.
import { allImports, roomOf, type Sources } from "./checker.ts";

export interface ReadingSet {
  /** Below src/, each with the file by way of which it is in the set; null for the first one. */
  readonly files: ReadonlyMap<string, string | null>;
  readonly lines: number;
  /** Lines by room, the largest first. */
  readonly rooms: readonly (readonly [room: string, lines: number])[];
}

/** `path`: below src/. Throws for a file that is not there. */
export function readingSet(sources: Sources, path: string): ReadingSet {
  if (!sources.has(path)) throw new Error(`there is no src/${path}`);
  const files = new Map<string, string | null>([[path, null]]);
  const rooms = new Map<string, number>();
  let lines = 0;
  // Grows while it is walked.
  for (const file of files.keys()) {
    const text = sources.get(file) ?? "";
    const count = text.replace(/\n$/, "").split("\n").length;
    lines += count;
    rooms.set(roomOf(file), (rooms.get(roomOf(file)) ?? 0) + count);
    for (const next of allImports(file, text))
      if (sources.has(next) && !files.has(next)) files.set(next, file);
  }
  return { files, lines, rooms: [...rooms].toSorted(([, one], [, other]) => other - one) };
}
