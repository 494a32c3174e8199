// Tells which program listens on a TCP port, as far as Linux lets this process see; knows nothing of listeners.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** `nginx (pid 812)`; null when it cannot be told: another system, or another user's program. */
export function ownerOfPort(port: number): string | null {
  const inodes = new Set([...inodesIn("/proc/net/tcp", port), ...inodesIn("/proc/net/tcp6", port)]);
  if (inodes.size === 0) return null;
  for (const pid of numbersIn("/proc")) {
    if (!holdsAny(pid, inodes)) continue;
    const name = read(`/proc/${pid}/comm`)?.trim();
    return name === undefined ? `pid ${pid}` : `${name} (pid ${pid})`;
  }
  return null;
}

const LISTENING = "0A";

/** Inodes of the sockets that listen on the port: column 2 is the local address, 4 the state, 10 the inode (proc(5)). */
function inodesIn(path: string, port: number): string[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const inodes: string[] = [];
  for (const line of (read(path) ?? "").split("\n").slice(1)) {
    const columns = line.trim().split(/\s+/);
    if (columns[1]?.endsWith(wanted) && columns[3] === LISTENING && columns[9] !== undefined)
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
