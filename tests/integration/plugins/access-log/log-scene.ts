// What the tests of access logs share: a folder, and the lines of a file in it.
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../../../support/poll.ts";

export interface LogFolder {
  readonly directory: string;
  readonly directories: { readonly directory: string; readonly absolute: string | null };
  /** All lines of a file. */
  lines(name?: string): string[];
  /** Waits until there are so many lines. */
  receives(count: number, name?: string): Promise<string[]>;
  names(): string[];
  remove(): void;
}

export function logFolder(absolute: string | null = null): LogFolder {
  const root = mkdtempSync(join(tmpdir(), "sluice-logs-"));
  const directory = join(root, "logs");
  const lines = (name = "access.log") => {
    const path = join(directory, name);
    if (!existsSync(path)) return [];
    const text = readFileSync(path, "utf8");
    // A line that is not ended is none yet.
    return text.split("\n").slice(0, -1);
  };
  return {
    directory,
    directories: { directory, absolute },
    lines,
    receives: (count, name) =>
      eventually(() => {
        const found = lines(name);
        return found.length >= count ? found : null;
      }),
    names: () => (existsSync(directory) ? readdirSync(directory).sort() : []),
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}

/** Records are handed over soon. */
export const quick = { max_coalescing_delay: 0.005 };
