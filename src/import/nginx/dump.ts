// Reads the output of `nginx -T`, which contains all files of a configuration; knows no directive.
import { dirname, join } from "node:path/posix";
import { Glob } from "bun";
import type { SourceFiles } from "./tree.ts";

const MARK = /^# configuration file (\S.*):$/gm;

/** For a source without other files. */
export const noFiles: SourceFiles = {
  match: () => null,
  read: () => null,
  shown: (path) => path,
};

export interface Dump {
  readonly text: string;
  /** Name of the main file in the report. */
  readonly name: string;
  readonly files: SourceFiles;
}

/** Null: the text is an ordinary file. `present` has the other files, such as certificates. */
export function dumpedFiles(text: string, present: SourceFiles | null): Dump | null {
  const marks = [...text.matchAll(MARK)];
  const [first] = marks;
  if (first === undefined) return null;
  // Only what nginx itself prints may precede.
  const front = text.slice(0, first.index).split("\n");
  if (front.some((line) => line.trim() !== "" && !line.startsWith("nginx: "))) return null;
  const texts = new Map<string, string>();
  for (const [at, mark] of marks.entries()) {
    const end = marks[at + 1]?.index ?? text.length;
    texts.set(mark[1] ?? "", text.slice(mark.index + mark[0].length + 1, end));
  }
  const main = first[1] ?? "";
  const directory = dirname(main);
  const absolute = (path: string) => (path.startsWith("/") ? path : join(directory, path));
  const shown = (path: string) =>
    path.startsWith(`${directory}/`) ? path.slice(directory.length + 1) : path;
  return {
    text: texts.get(main) ?? "",
    name: shown(main),
    files: {
      shown,
      read: (path) => texts.get(absolute(path)) ?? present?.read(absolute(path)) ?? null,
      match(pattern) {
        const wanted = absolute(pattern);
        if (texts.has(wanted)) return [wanted];
        const isPattern = /[*?[]/.test(wanted);
        if (!isPattern) return null;
        const glob = new Glob(wanted);
        return [...texts.keys()].filter((path) => glob.match(path)).toSorted();
      },
    },
  };
}
