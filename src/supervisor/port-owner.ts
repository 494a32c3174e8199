// Finds the program that listens on a TCP or UDP port, as far as Linux lets this process see; knows nothing of listeners.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

export interface PortOwner {
  readonly pid: number;
  /** `nginx (pid 812)`. */
  readonly name: string;
}

/** Null when it is unknown: not Linux, or a program of another user. */
export function ownerOfPort(port: number, transport: "tcp" | "udp"): PortOwner | null {
  const tables = [`/proc/net/${transport}`, `/proc/net/${transport}6`];
  const inodes = new Set(tables.flatMap((table) => inodesIn(table, port, OPEN[transport])));
  if (inodes.size === 0) return null;
  for (const pid of numbersIn("/proc")) {
    if (!holdsAny(pid, inodes)) continue;
    const name = read(`/proc/${pid}/comm`)?.trim();
    return { pid: Number(pid), name: name === undefined ? `pid ${pid}` : `${name} (pid ${pid})` };
  }
  return null;
}

/** States of a socket that has the port: listening, or for UDP any that has not been connected. */
const OPEN = { tcp: "0A", udp: "07" } as const;

/** Inodes of the sockets that hold the port: column 2 is the local address, 4 the state, 10 the inode (proc(5)). */
function inodesIn(path: string, port: number, state: string): string[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const inodes: string[] = [];
  for (const line of (read(path) ?? "").split("\n").slice(1)) {
    const columns = line.trim().split(/\s+/);
    if (columns[1]?.endsWith(wanted) && columns[3] === state && columns[9] !== undefined)
      inodes.push(columns[9]);
  }
  return inodes;
}

function holdsAny(pid: string, inodes: ReadonlySet<string>): boolean {
  for (const descriptor of numbersIn(`/proc/${pid}/fd`)) {
    const inode = /^socket:\[(\d+)\]$/.exec(link(`/proc/${pid}/fd/${descriptor}`) ?? "")?.[1];
    if (inode !== undefined && inodes.has(inode)) return true;
  }
  return false;
}

function numbersIn(path: string): string[] {
  try {
    return readdirSync(path).filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

function link(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
