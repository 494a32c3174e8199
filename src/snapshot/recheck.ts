// Loads the checker of regular expressions, which is large, on first use; knows nothing of verdicts.
import type { checkSync } from "recheck";

export interface Recheck {
  readonly checkSync: typeof checkSync;
}

const loaded: { recheck: Recheck | null } = { recheck: null };

/**
 * The pure JavaScript build: the package's main entry may start Java or a native program. It is 2.9 MB, a sixth of that packed in
 * the executable, and takes about 100 ms to load, so that only a process that checks an expression loads it.
 */
export function findRecheck(): Recheck {
  loaded.recheck ??= load();
  return loaded.recheck;
}

/** Not a literal in `require`, or the bundler would add the unpacked file to the executable as well. */
const BROWSER_BUILD = "recheck/lib/browser.js";

function load(): Recheck {
  const packed = findPacked();
  if (packed === null) return require(`${import.meta.dir}/../../node_modules/${BROWSER_BUILD}`);
  const source = new TextDecoder().decode(Bun.zstdDecompressSync(packed));
  const module = { exports: {} as Recheck };
  new Function("module", "exports", source)(module, module.exports);
  return module.exports;
}

/** Null in a checkout without a build; the executable always has it. */
function findPacked(): Uint8Array<ArrayBuffer> | null {
  try {
    return require("../../dist/packed/recheck.js").packed;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND") return null;
    throw error;
  }
}
