// Limits that the machine and the cgroup set for this process; reads, decides nothing.
import { openSync, readFileSync, readSync } from "node:fs";
import { totalmem } from "node:os";

/** Reads a text file; null when it does not exist. */
export type ReadText = (path: string) => string | null;

function readText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

/** Files and sockets that the process may have open; null where the system does not report it. */
export function descriptorLimit(read: ReadText = readText): number | null {
  const [, limit] = /^Max open files\s+(\d+)/m.exec(read("/proc/self/limits") ?? "") ?? [];
  return limit === undefined ? null : Number(limit);
}

/** Bytes of memory that the process may use: those of the machine, or the lower limit of a cgroup. */
export function allowedMemory(read: ReadText = readText, machine = totalmem()): number {
  return Math.min(machine, ...groupFiles(read).map((path) => bytesOf(read(path))));
}

/** Bytes of resident memory; opens the file once, because no descriptor may be free later. */
export function residentMemory(): () => number {
  let descriptor: number;
  try {
    descriptor = openSync("/proc/self/status", "r");
  } catch {
    return () => process.memoryUsage.rss();
  }
  const text = Buffer.alloc(4096);
  return () => {
    const length = readSync(descriptor, text, 0, text.length, 0);
    const [, kilobytes = "0"] = /^VmRSS:\s+(\d+)/m.exec(text.toString("latin1", 0, length)) ?? [];
    return Number(kilobytes) * 1024;
  };
}

/** The limits of all parent cgroups apply as well. */
function groupFiles(read: ReadText): readonly string[] {
  const files: string[] = [];
  for (const line of (read("/proc/self/cgroup") ?? "").split("\n")) {
    const [, controllers = "", path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === undefined) continue;
    const isOld = controllers.split(",").includes("memory");
    if (controllers !== "" && !isOld) continue;
    const root = isOld ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    const file = isOld ? "memory.limit_in_bytes" : "memory.max";
    const names = path.split("/").filter((name) => name !== "");
    for (let depth = names.length; depth >= 0; depth--)
      files.push([root, ...names.slice(0, depth), file].join("/"));
  }
  return files;
}

/** `max`, or an empty file: no limit. */
function bytesOf(text: string | null): number {
  const bytes = Number.parseInt(text ?? "", 10);
  return Number.isNaN(bytes) || bytes <= 0 ? Number.POSITIVE_INFINITY : bytes;
}
