// Reads the files beside a configuration of another program, for the command `import`; knows no format.
import { existsSync } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve } from "node:path";
import { Glob } from "bun";
import { readRegular } from "../control/trusted-file.ts";
import type { SourceFiles } from "../import/nginx/tree.ts";

const MAX_BYTES = 33_554_432;
const MAX_MATCHES = 10_000;

/** The folders that paths of nginx usually begin with: a copy of one may be elsewhere. */
const USUAL_FOLDER = /^\/(?:usr\/local\/)?(?:etc|config|data|opt|var\/lib)\/(?:nginx\/)?/;

/** Relative paths begin at the folder of the file, as in nginx. */
export function sourceFilesBeside(file: string): SourceFiles {
  const folder = dirname(resolve(file));
  const located = (path: string): string => {
    if (!isAbsolute(path)) return join(folder, path);
    const beside = join(folder, path.replace(USUAL_FOLDER, ""));
    return existsSync(path) || !existsSync(beside) ? path : beside;
  };
  return {
    read(path) {
      try {
        return readRegular(located(path), MAX_BYTES).toString("utf8");
      } catch {
        return null;
      }
    },
    match(pattern) {
      if (!/[*?[]/.test(pattern)) return existsSync(located(pattern)) ? [located(pattern)] : null;
      const found = matches(isAbsolute(pattern) ? pattern : join(folder, pattern));
      if (found.length > 0 || !isAbsolute(pattern)) return found;
      if (existsSync(dirname(pattern))) return [];
      const beside = join(folder, pattern.replace(USUAL_FOLDER, ""));
      return existsSync(dirname(beside)) ? matches(beside) : null;
    },
    shown(path) {
      const short = relative(folder, path);
      return short.startsWith("..") ? path : short;
    },
  };
}

function matches(pattern: string): readonly string[] {
  const [, start = "/"] = /^(\/(?:[^*?[\]]*\/)?)/.exec(pattern) ?? [];
  if (!existsSync(start)) return [];
  const found: string[] = [];
  for (const path of new Glob(pattern.slice(start.length)).scanSync({
    cwd: start,
    absolute: true,
    dot: false,
  })) {
    found.push(path);
    if (found.length >= MAX_MATCHES) break;
  }
  return found.toSorted();
}
