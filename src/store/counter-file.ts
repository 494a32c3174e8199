// Persists the counters of plugins in a file of the data directory; knows nothing of their meaning.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A crash loses the counts of at most this time. */
const INTERVAL_MS = 5000;

/** The counters to persist. */
interface Counts {
  /** Null: nothing to persist. */
  snapshot(): Uint8Array | null;
  /** Restores bytes of `snapshot` and ignores other bytes. */
  restore(bytes: Uint8Array): number;
}

interface Options {
  readonly dataDir: string;
  readonly log: { warn(message: string, fields?: Readonly<Record<string, unknown>>): void };
}

export interface PersistedCounters {
  /** Writes a last time and stops. */
  stop(): void;
  /** Continues after `stop`, with the counts in memory. */
  resume(): void;
}

/**
 * Restores the counters and writes them every five seconds; call it before the first count. An unreadable or unwritable file
 * loses the counts and nothing else, with one warning.
 */
export function persistCounters(counts: Counts, { dataDir, log }: Options): PersistedCounters {
  const path = join(dataDir, "counters.bin");
  const next = `${path}.new`;
  let hasWarned = false;
  const attempt = (action: () => void) => {
    try {
      action();
    } catch (error) {
      failed(error);
    }
  };
  const failed = (error: unknown) => {
    if (!hasWarned) log.warn("the counters of plugins cannot be stored", { path, error });
    hasWarned = true;
  };
  attempt(() => {
    if (existsSync(path)) counts.restore(readFileSync(path));
  });
  let isWriting = false;
  const write = async () => {
    const bytes = isWriting ? null : counts.snapshot();
    if (bytes === null) return;
    isWriting = true;
    try {
      // Atomically: never a partial file under the final name.
      await writeFile(next, bytes, { mode: 0o600 });
      if (isWriting) await rename(next, path);
    } catch (error) {
      failed(error);
    }
    isWriting = false;
  };
  let timer = setInterval(() => void write(), INTERVAL_MS);
  return {
    resume() {
      clearInterval(timer);
      timer = setInterval(() => void write(), INTERVAL_MS);
    },
    stop() {
      clearInterval(timer);
      // A pending write must not overwrite this one with older counts.
      isWriting = false;
      const bytes = counts.snapshot();
      if (bytes === null) return;
      attempt(() => {
        const last = `${path}.last`;
        writeFileSync(last, bytes, { mode: 0o600 });
        renameSync(last, path);
      });
    },
  };
}
