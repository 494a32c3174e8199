// Whether something listens on a port; which addresses a process listens on, read from /proc as `ss` does, on Linux only.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { connect } from "node:net";
import { eventually } from "./poll.ts";

/** Waits until connections to the port are accepted. */
export async function untilListening(port: number): Promise<void> {
  await eventually(
    () =>
      new Promise<boolean>((done) => {
        const probe = connect({ port, host: "127.0.0.1" }, () => {
          probe.destroy();
          done(true);
        });
        probe.on("error", () => done(false));
      }),
  );
}

/** `127.0.0.1:9080`, sorted, each once; IPv6 in brackets and unabridged. */
export function listeningAddresses(pid: number): string[] {
  const inodes = socketsOf(pid);
  const found = ["tcp", "tcp6"].flatMap((table) =>
    // The tables of the process, so that this also works for one in another network namespace.
    readFileSync(`/proc/${pid}/net/${table}`, "utf8")
      .split("\n")
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode]) => state === LISTEN && inodes.has(inode ?? ""))
      .map(([, local = ""]) => toAddress(local)),
  );
  return [...new Set(found)].sort();
}

const LISTEN = "0A";

function socketsOf(pid: number): Set<string> {
  const inodes = new Set<string>();
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1];
      if (inode !== undefined) inodes.add(inode);
    } catch {
      // Closed since the directory was read.
    }
  }
  return inodes;
}

/** The kernel prints each group of four bytes in the machine's own order, which is little-endian here. */
function toAddress(local: string): string {
  const [hex = "", port = ""] = local.split(":");
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) =>
    (word.match(/../g) ?? []).reverse().map((byte) => Number.parseInt(byte, 16)),
  );
  const number = Number.parseInt(port, 16);
  if (bytes.length === 4) return `${bytes.join(".")}:${number}`;
  const groups = Array.from({ length: 8 }, (_, index) =>
    (((bytes[index * 2] ?? 0) << 8) | (bytes[index * 2 + 1] ?? 0)).toString(16),
  );
  return `[${groups.join(":")}]:${number}`;
}
