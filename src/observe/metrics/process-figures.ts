// Figures of this process from the operating system; knows no metric.
import { readdirSync, readFileSync } from "node:fs";

export interface ProcessFigures {
  readonly cpuSeconds: number;
  readonly residentBytes: number;
  /** Milliseconds since the Unix epoch. */
  readonly startedAt: number;
  /** Null where the system does not report it. */
  readonly openFiles: number | null;
  readonly maxFiles: number | null;
}

export function readProcessFigures(): ProcessFigures {
  const { user, system } = process.cpuUsage();
  return {
    cpuSeconds: (user + system) / 1e6,
    residentBytes: process.memoryUsage.rss(),
    startedAt: Date.now() - process.uptime() * 1000,
    openFiles: openFiles(),
    maxFiles: maxFiles(),
  };
}

function openFiles(): number | null {
  try {
    // One of them is the directory being read.
    return readdirSync("/proc/self/fd").length - 1;
  } catch {
    return null;
  }
}

function maxFiles(): number | null {
  try {
    const [, limit] =
      /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return limit === undefined ? null : Number(limit);
  } catch {
    return null;
  }
}
