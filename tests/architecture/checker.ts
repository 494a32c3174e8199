// Compares sources with the rules of the house and returns one plain sentence per breach; reads no files itself.
import { posix } from "node:path";

import {
  ASSET_RULES,
  BUILD_TIME_RULES,
  EMPTY_NAMES,
  ENTRY_FILES,
  EVERYTHING,
  HUBS,
  IMPURE_MODULES,
  MAX_LINES,
  PACKAGE_RULES,
  ROOMS,
  ROOMS_OF_OWN_PACKAGES,
  ROOMS_WITHOUT_TYPE_CIRCLES,
  SHARED_FILES,
  TYPE_ARROWS,
} from "./rules.ts";

/** Text of each source file by its path below src/, such as "dataplane/handler.ts". */
export type Sources = ReadonlyMap<string, string>;

const transpilers = {
  ts: new Bun.Transpiler({ loader: "ts" }),
  tsx: new Bun.Transpiler({ loader: "tsx" }),
};

/** Returns every breach of the rules; an empty list means that the house is in order. */
export function checkSources(sources: Sources): string[] {
  const breaches: string[] = [];
  const graph = new Map<string, string[]>();
  const types = new Map<string, string[]>();
  for (const [path, text] of sources) {
    breaches.push(...checkFile(path, text), ...checkMacros(path, text));
    const targets: string[] = [];
    for (const specifier of valueImports(path, text)) {
      const target = resolveSource(path, specifier);
      if (target !== undefined) targets.push(target);
      const breach = checkImport(path, specifier, sources);
      if (breach !== undefined) breaches.push(breach);
    }
    graph.set(path, targets);
    breaches.push(...checkTypes(path, text, targets));
    if (ROOMS_WITHOUT_TYPE_CIRCLES.includes(roomOf(path))) types.set(path, allImports(path, text));
  }
  return [...new Set([...breaches, ...findCycles(graph), ...findCycles(types)])];
}

/** The room of a file: the first folder of its path, or the file itself when it stands directly in src/. */
export function roomOf(path: string): string {
  const slash = path.indexOf("/");
  return slash === -1 ? path : path.slice(0, slash);
}

// scanImports drops type-only imports, and keeps value imports, re-exports and dynamic imports.
// Macros run when a file is bundled, so that nothing of them is imported; checkMacros holds them to their own table.
function valueImports(path: string, whole: string): string[] {
  const text = whole.replaceAll(MACRO_IMPORT, "");
  const transpiler = path.endsWith(".tsx") ? transpilers.tsx : transpilers.ts;
  try {
    return [...new Set(transpiler.scanImports(text).map((found) => found.path))];
  } catch (cause) {
    throw new Error(`src/${path} cannot be parsed`, { cause });
  }
}

const MACRO_IMPORT = /^import [^;]*? from "([^"]+)" with \{ type: "macro" \};$/gm;

function checkMacros(path: string, text: string): string[] {
  const targets = [...text.matchAll(MACRO_IMPORT)].map(([, specifier = ""]) =>
    posix.join(posix.dirname(path), specifier),
  );
  const isAllowed = (target: string) =>
    BUILD_TIME_RULES.some(({ room, file }) => room === roomOf(path) && file === target);
  return targets
    .filter((target) => !isAllowed(target))
    .map((target) => `${path} runs ${target} at build time, but no row of the table says so.`);
}

/** The sources that a file imports values or types of. */
export function allImports(path: string, text: string): string[] {
  const found = text.matchAll(
    /^(?:import|export)\s[^;"]*?\sfrom\s+"(\.[^"]+)";$|\bimport\("(\.[^"]+)"\)/gm,
  );
  return [...found].flatMap(
    ([, specifier, imported]) => resolveSource(path, specifier ?? imported ?? "") ?? [],
  );
}

/** A type is knowledge as well: whoever reads the file has to read the other one. */
function checkTypes(path: string, text: string, values: readonly string[]): string[] {
  return allImports(path, text)
    .filter((target) => !values.includes(target))
    .flatMap((target) => {
      const arrow = `${roomOf(path)} -> ${roomOf(target)}`;
      const breach = TYPE_ARROWS[arrow] === undefined ? checkArrow(path, target) : undefined;
      return breach === undefined ? [] : [breach.replace(" imports ", " imports types of ")];
    });
}

/** The rows of `TYPE_ARROWS` that no import needs. */
export const needlessTypeArrows = (sources: Sources): string[] => {
  const used = new Set<string>();
  for (const [path, text] of sources)
    for (const target of allImports(path, text)) used.add(`${roomOf(path)} -> ${roomOf(target)}`);
  return Object.keys(TYPE_ARROWS).filter((arrow) => !used.has(arrow));
};

function checkFile(path: string, text: string): string[] {
  const breaches: string[] = [];
  const lines = text.replace(/\n$/, "").split("\n");
  if (ROOMS[roomOf(path)] === undefined) {
    breaches.push(`${path} stands in no room: "${roomOf(path)}" is not in the table.`);
  }
  if (EMPTY_NAMES.test(path)) {
    breaches.push(`${path} has a name that does not say what is inside.`);
  }
  const most = HUBS[path]?.maxLines ?? MAX_LINES;
  if (lines.length > most) {
    breaches.push(`${path} has ${lines.length} lines, more than ${most}: give it a second room.`);
  }
  if (!startsWithSentence(lines)) {
    breaches.push(
      `${path} does not start with a comment sentence that says what it is and what it must not know.`,
    );
  }
  if (/\.\.\.\{/.test(text)) {
    breaches.push(`${path} spreads an object literal, which only saves lines: write its members.`);
  }
  if (path !== "main.ts" && /new URL\(\s*["'`][^"'`]*worker\.ts["'`]/.test(text)) {
    breaches.push(
      `${path} forms the address of worker.ts, but only main.ts may, because from any other file it is wrong in the executable.`,
    );
  }
  return breaches;
}

function startsWithSentence(lines: readonly string[]): boolean {
  const first = lines[0]?.startsWith("#!") ? lines[1] : lines[0];
  const comment = /^(?:\/\/|\/\*\*?)\s*(.*)$/.exec(first ?? "")?.[1] ?? lines[1] ?? "";
  const isComment = /^(\/\/|\/\*)/.test(first ?? "");
  return isComment && comment.replace(/^\s*\*\s*/, "").split(/\s+/).length >= 5;
}

function checkImport(path: string, specifier: string, sources: Sources): string | undefined {
  if (!specifier.startsWith(".")) return checkPackage(path, specifier);
  if (!/\.tsx?$/.test(specifier)) return checkAsset(path, specifier);
  const target = resolveSource(path, specifier);
  if (target === undefined) return `${path} imports ${specifier}, which lies outside src/.`;
  if (!sources.has(target)) return `${path} imports ${target}, which does not exist.`;
  return checkArrow(path, target);
}

function checkArrow(path: string, target: string): string | undefined {
  const from = roomOf(path);
  const to = roomOf(target);
  if (from === to || SHARED_FILES.includes(target)) return undefined;
  if (ENTRY_FILES.includes(target)) {
    return `${path} imports ${target}, but nothing may, because it starts a thread.`;
  }
  const room = ROOMS[from];
  if (room === undefined) return undefined;
  const isAllowed =
    room.imports === EVERYTHING ? !room.except?.includes(to) : room.imports.includes(to);
  if (isAllowed) return undefined;
  return `${path} imports ${target}, but ${from} may not import ${to}, because ${room.reason}.`;
}

function checkPackage(path: string, specifier: string): string | undefined {
  const from = roomOf(path);
  for (const rule of PACKAGE_RULES) {
    const isExcepted = rule.except?.room === from && rule.except.packages.test(specifier);
    if (rule.packages.test(specifier) && from !== rule.room && !isExcepted) {
      return `${path} imports the package ${specifier}, but only ${rule.room} may, because ${rule.reason}.`;
    }
  }
  const isOwn = PACKAGE_RULES.some(
    ({ packages, room }) => room === from && packages.test(specifier),
  );
  if (ROOMS_OF_OWN_PACKAGES.includes(from) && !isOwn) {
    return `${path} imports the package ${specifier}, but ${from} may import its own packages only, because ${ROOMS[from]?.reason}.`;
  }
  if (ROOMS[from]?.pure && IMPURE_MODULES.test(specifier)) {
    return `${path} imports ${specifier}, but ${from} is pure, because ${ROOMS[from].reason}.`;
  }
  return undefined;
}

function checkAsset(path: string, specifier: string): string | undefined {
  const asset = posix.join("src", posix.dirname(path), specifier);
  const from = roomOf(path);
  if (posix.extname(asset) === "") {
    return `${path} imports ${specifier} without its file extension.`;
  }
  if (ASSET_RULES.some((rule) => rule.room === from && rule.path.test(asset))) return undefined;
  return `${path} embeds ${asset}, but ${from} may not, because no row of the asset table says so.`;
}

// The path below src/ that a relative import of a source file leads to; undefined for everything else.
function resolveSource(path: string, specifier: string): string | undefined {
  if (!specifier.startsWith(".") || !/\.tsx?$/.test(specifier)) return undefined;
  const target = posix.join(posix.dirname(path), specifier);
  return target.startsWith("../") ? undefined : target;
}

function findCycles(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const done = new Set<string>();
  const trail: string[] = [];
  const breaches: string[] = [];
  const visit = (path: string): void => {
    const start = trail.indexOf(path);
    if (start !== -1) {
      const loop = [...trail.slice(start), path].join(" -> ");
      breaches.push(`${path} imports itself in a circle: ${loop}.`);
      return;
    }
    if (done.has(path)) return;
    trail.push(path);
    for (const target of graph.get(path) ?? []) visit(target);
    trail.pop();
    done.add(path);
  };
  for (const path of graph.keys()) visit(path);
  return breaches;
}
