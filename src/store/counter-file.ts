// The counts of plugins that outlive the gateway, as a file in the data directory; knows not what is counted.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** How much of the counts a crash can take. */
const INTERVAL_MS = 5000;

/** What is kept. */
interface Counts {
  /** Null: there is nothing to keep. */
  snapshot(): Uint8Array | null;
  /** Takes what `snapshot` gave and ignores other bytes. */
  restore(bytes: Uint8Array): number;
}

interface Options {
  readonly dataDir: string;
  readonly log: { warn(message: string, fields?: Readonly<Record<string, unknown>>): void };
}

export interface KeptCounts {
  /** Writes for the last time, unless `resume` follows. */
  stop(): void;
  /** Goes on after `stop`, with the counts as they are in memory. */
  resume(): void;
}

/**
 * Brings back what was kept and writes it down every five seconds; call it before anybody counts. A file that cannot be read or
 * written costs the counts and nothing else: it is told once.
 */
export function keepCounts(counts: Counts, { dataDir, log }: Options): KeptCounts {
  const path = join(dataDir, "counters.bin");
  const next = `${path}.new`;
  let isTold = false;
  const attempt = (action: () => void) => {
    try {
      action();
    } catch (error) {
      failed(error);
    }
  };
  const failed = (error: unknown) => {
    if (!isTold) log.warn("counts of plugins cannot be kept", { path, error });
    isTold = true;
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
      // Whole or not at all: never half a file under the name that is read.
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
      // One that is under way must not come after this one with older counts.
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
