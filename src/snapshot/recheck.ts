// Loads the judge of regular expressions, which is large, when it is first needed; knows nothing of verdicts.
import type { checkSync } from "recheck";

export interface Recheck {
  readonly checkSync: typeof checkSync;
}

const loaded: { recheck: Recheck | null } = { recheck: null };

/**
 * The pure build: the package's main entry may start Java or a native program. It is 2.9 MB, a third of that as the executable
 * holds it, and takes about 100 ms to load, so only a process that checks an expression does that.
 */
export function findRecheck(): Recheck {
  loaded.recheck ??= load();
  return loaded.recheck;
}

/** Not written as one literal where it is required, or the bundler would put the large form into the executable as well. */
const BROWSER_BUILD = "recheck/lib/browser.js";

function load(): Recheck {
  const packed = findPacked();
  if (packed === null) return require(`${import.meta.dir}/../../node_modules/${BROWSER_BUILD}`);
  const source = new TextDecoder().decode(Bun.gunzipSync(Buffer.from(packed, "base64")));
  const module = { exports: {} as Recheck };
  new Function("module", "exports", source)(module, module.exports);
  return module.exports;
}

/** Null in a checkout in which nothing was built; the executable always has it. */
function findPacked(): string | null {
  try {
    return require("../../dist/packed/recheck.js").packed;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "MODULE_NOT_FOUND") return null;
    throw error;
  }
}
