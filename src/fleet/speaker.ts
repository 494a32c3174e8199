// The process that wants to speak for a node: one start in one data directory on one machine; sends no query.
import { readFileSync, statSync } from "node:fs";
import { hostname, networkInterfaces } from "node:os";
import type { ContactStore } from "./contact.ts";

/** In the node's own database: the last start there that spoke for the node. */
const KEY = "fleet_start";

/** Another process with the id of this node, so with a copy of its data directory. */
export interface OtherProcess {
  /** Of its machine; empty: unknown, because it is of an older version. */
  readonly address: string;
  /** Whether it is the one that speaks for the node, so that this one must not. */
  readonly speaks: boolean;
}

export class Speaker {
  /** Id of the node. */
  readonly id: string;
  /** Only one process has it at a time, by the lock of the data directory. */
  readonly place: string;
  readonly address: string;
  readonly #store: ContactStore;
  #start: string = crypto.randomUUID();
  #beats = 0;

  /** `lockedDir`: the data directory, which this process has locked. */
  constructor(id: string, lockedDir: string, store: ContactStore) {
    const { dev, ino } = statSync(lockedDir);
    this.id = id;
    this.place = `${bootId()} ${dev} ${ino}`;
    this.address = ownAddress();
    this.#store = store;
  }

  /** A UUID. */
  get start(): string {
    return this.#start;
  }

  /** Number of the next heartbeat. */
  nextBeat(): number {
    return ++this.#beats;
  }

  /**
   * The last start in this data directory that spoke for the node; null: none. It has ended when its place is this one: two machines
   * from one snapshot may have the same boot, but not the same last start.
   */
  get former(): string | null {
    return this.#store.get(KEY);
  }

  /** This start speaks for the node now, or none in this directory. */
  noteSpeaks(): void {
    try {
      this.#store.set(KEY, this.#start);
    } catch {
      // With a full disk the next start waits until this one is certainly silent.
    }
  }

  /** Becomes another start: a process with the same one exists, after the snapshot of a running machine. */
  renew(): void {
    this.#start = crypto.randomUUID();
    // The former start is that of the other process.
    this.noteSpeaks();
  }
}

/** Differs between boots and machines, but not between containers of one machine. */
function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // Not Linux: another boot of the same machine has ended all processes as well.
    return `${hostname()} ${macAddress()}`;
  }
}

const interfaces = () =>
  Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal }) => !internal);

const macAddress = () => interfaces()[0]?.mac ?? "";

function ownAddress(): string {
  const external = interfaces();
  const { address } = external.find(({ family }) => family === "IPv4") ??
    external[0] ?? { address: "127.0.0.1" };
  return `${hostname()} (${address}, process ${process.pid})`;
}
