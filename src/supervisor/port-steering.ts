// Steers new connections to one of two gateway processes that share a port, on Linux; knows nothing of what is served there.
import { FFIType, ptr } from "bun:ffi";
import { closeSync, openSync, readdirSync, readlinkSync, readSync } from "node:fs";
import { openLibc } from "../system/libc.ts";

/**
 * The system hands each new connection at a shared port (SO_REUSEPORT) to one of the listening sockets, and resets the backlog of
 * a socket when that is closed. A socket filter (classic BPF) chooses the sockets of the other process instead, so that the
 * backlog of ours stays empty. It needs no privilege. Without it the system distributes connections itself.
 */
export interface Steering {
  /** Whether no other process listens on our ports. */
  isAlone(): boolean;
  /** New connections go to our sockets, also when another process starts to listen. Returns whether that holds, as below. */
  keep(): boolean;
  /** New connections go to the sockets that were bound after ours, at random. */
  away(): boolean;
  /**
   * The same, to the first of them: while ours are closed one by one the others move up, and only that index always has a socket
   * that stays. Call it after one of the others: it uses the sockets that they found.
   */
  toOne(): boolean;
  /** New connections go to the last one of our own sockets that was bound, at ports that no other process has. */
  toNewest(): void;
  /** Removes the filter from all ports of this process. */
  forget(): void;
}

const SOL_SOCKET = 1;
const SO_ATTACH_REUSEPORT_CBPF = 51;
const SO_DETACH_REUSEPORT_BPF = 68;

/** Classic BPF: load, modulo, add, return. */
const LOAD_WORD = 0x20;
const MODULO = 0x94;
const ADD = 0x04;
const RETURN_CONSTANT = 0x06;
const RETURN_ACCUMULATOR = 0x16;
/** SKF_AD_OFF + SKF_AD_RANDOM: a load from here gives a random number. */
const RANDOM = 0xfffff000 + 56;

type Instruction = readonly [code: number, value: number];

/** Null where setsockopt cannot be called. */
export function createSteering(): Steering | null {
  const setOption = loadSetOption();
  if (setOption === null) return null;
  let known: readonly SharedPort[] = [];
  const attach = (
    choose: (port: SharedPort) => readonly Instruction[],
    ports: readonly SharedPort[] = sharedPorts(),
  ) => {
    known = ports;
    const done = ports.map((port) => {
      const program = assemble(choose(port));
      // Sockets without SO_REUSEPORT reject the filter and need none.
      const isAttached = setOption(port.descriptors[0], SO_ATTACH_REUSEPORT_CBPF, program.header);
      return isAttached || port.others === 0;
    });
    return ports.length > 0 && done.every((isDone) => isDone);
  };
  return {
    isAlone: () => sharedPorts().every(({ others }) => others === 0),
    keep: () =>
      attach(({ descriptors }) => [
        [LOAD_WORD, RANDOM],
        [MODULO, descriptors.length],
        [RETURN_ACCUMULATOR, 0],
      ]),
    away: () =>
      attach(({ descriptors, others }) => [
        [LOAD_WORD, RANDOM],
        // Ports that are not shared have no others; a division by 0 is not allowed.
        [MODULO, Math.max(others, 1)],
        [ADD, descriptors.length],
        [RETURN_ACCUMULATOR, 0],
      ]),
    toOne: () => attach(({ descriptors }) => [[RETURN_CONSTANT, descriptors.length]], known),
    toNewest() {
      const shared = sharedPorts().filter(({ others }) => others === 0);
      attach(({ descriptors }) => [[RETURN_CONSTANT, descriptors.length - 1]], shared);
    },
    forget() {
      for (const { descriptors } of sharedPorts())
        setOption(descriptors[0], SO_DETACH_REUSEPORT_BPF, new Uint8Array(4));
    },
  };
}

type SetOption = (descriptor: number, option: number, value: Uint8Array) => boolean;

function loadSetOption(): SetOption | null {
  const { i32, u32, ptr: pointer } = FFIType;
  const libc = openLibc({
    setsockopt: { args: [i32, i32, i32, pointer, u32], returns: i32 },
  });
  if (libc === null) return null;
  return (descriptor, option, value) =>
    libc.setsockopt(descriptor, SOL_SOCKET, option, ptr(value), value.length) === 0;
}

/** `struct sock_fprog`: the number of instructions and their address. */
function assemble(instructions: readonly Instruction[]) {
  const body = new Uint8Array(instructions.length * 8);
  const view = new DataView(body.buffer);
  for (const [index, [code, value]] of instructions.entries()) {
    view.setUint16(index * 8, code, true);
    view.setUint32(index * 8 + 4, value, true);
  }
  const header = new Uint8Array(16);
  const head = new DataView(header.buffer);
  head.setUint16(0, instructions.length, true);
  head.setBigUint64(8, BigInt(ptr(body)), true);
  // A reference to the instructions, because the header has only their address.
  return { header, body };
}

interface SharedPort {
  /** Our own listening sockets. */
  readonly descriptors: readonly [number, ...number[]];
  /** Number of listening sockets of other processes. */
  readonly others: number;
}

/** The TCP ports on which this process listens. */
function sharedPorts(): readonly SharedPort[] {
  let before = "";
  for (let reads = 0; reads < MOST_READS; reads++) {
    const ports = readPorts();
    const text = JSON.stringify(ports);
    if (text === before) return ports;
    before = text;
  }
  return [];
}

/** Attempts to read the same tables twice in a row: they change while they are read. */
const MOST_READS = 20;

function readPorts(): SharedPort[] {
  const listening = [...listeningSockets("tcp"), ...listeningSockets("tcp6")];
  const own = descriptorsOf(new Set(listening.map(({ inode }) => inode)));
  const endpoints = Map.groupBy(listening, ({ endpoint }) => endpoint);
  return [...endpoints.values()].flatMap((sockets) => {
    const [first, ...rest] = sockets.flatMap(({ inode }) => own.get(inode) ?? []);
    if (first === undefined) return [];
    return { descriptors: [first, ...rest] as const, others: sockets.length - rest.length - 1 };
  });
}

interface ListeningSocket {
  readonly inode: string;
  /** Address and port. */
  readonly endpoint: string;
}

const LISTENING = "0A";
const CHUNK_BYTES = 65_536;

/** The table lists listening sockets first; the others, of which there may be very many, are not read. */
function listeningSockets(table: "tcp" | "tcp6"): ListeningSocket[] {
  const file = openTable(table);
  if (file === null) return [];
  const found: ListeningSocket[] = [];
  const chunk = Buffer.alloc(CHUNK_BYTES);
  let rest = "";
  try {
    for (;;) {
      const count = readSync(file, chunk);
      if (count === 0) return found;
      const lines = (rest + chunk.toString("latin1", 0, count)).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const fields = line.trim().split(/\s+/);
        const [number = "", endpoint = "", , state] = fields;
        if (!number.endsWith(":")) continue;
        if (state !== LISTENING) return found;
        found.push({ endpoint: `${table} ${endpoint}`, inode: fields[9] ?? "" });
      }
    }
  } finally {
    closeSync(file);
  }
}

function openTable(table: string): number | null {
  try {
    return openSync(`/proc/self/net/${table}`, "r");
  } catch {
    return null;
  }
}

/** Our own descriptors of these sockets, by inode. */
function descriptorsOf(inodes: ReadonlySet<string>): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const name of readdirSync("/proc/self/fd")) {
    const inode = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/self/fd/${name}`))?.[1];
    if (inode !== undefined && inodes.has(inode)) found.set(inode, Number(name));
  }
  return found;
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
