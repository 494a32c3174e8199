// Leads new connections at ports that two processes of a gateway share to one of them, on Linux; knows nothing of what is served there.
import { FFIType, ptr } from "bun:ffi";
import { closeSync, openSync, readdirSync, readlinkSync, readSync } from "node:fs";
import { openLibc } from "./libc.ts";

/**
 * The system hands each new connection at a shared port to one of the sockets that listen there, and resets what still waits at a
 * socket when that is closed. A socket filter chooses the sockets of the other process instead, so that nothing waits at ours. It
 * needs no privilege. Where it is not to be had, everything goes on as the system does it by itself.
 */
export interface Steering {
  /** Whether no other process listens at our ports. */
  isAlone(): boolean;
  /** New connections go to our sockets, whoever else begins to listen there. Whether that can be relied on, as below. */
  keep(): boolean;
  /** New connections go to the sockets that were bound after ours, all of them in turn. */
  away(): boolean;
  /**
   * The same, to the first of them: while ours are closed one by one the others move up, and only that place always holds one
   * that stays. To be called after one of the others, at whose sockets it is done.
   */
  toOne(): boolean;
  /** Lets the system choose again, at all ports of this process. */
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
/** Where a load finds a random number. */
const RANDOM = 0xfffff000 + 56;

type Instruction = readonly [code: number, value: number];

/** Null where it is not to be had. */
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
      // Sockets that cannot share their port take no filter and need none.
      const isTaken = setOption(port.descriptors[0], SO_ATTACH_REUSEPORT_CBPF, program.header);
      return isTaken || port.others === 0;
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
        // There is nobody at ports that are not shared; nothing can be divided by 0.
        [MODULO, Math.max(others, 1)],
        [ADD, descriptors.length],
        [RETURN_ACCUMULATOR, 0],
      ]),
    toOne: () => attach(({ descriptors }) => [[RETURN_CONSTANT, descriptors.length]], known),
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

/** As the system takes it: a number of instructions, and where they are. */
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
  // The instructions must be there for as long as somebody has their address.
  return { header, body };
}

interface SharedPort {
  /** Of our own sockets that listen there. */
  readonly descriptors: readonly [number, ...number[]];
  /** How many sockets of other processes listen there. */
  readonly others: number;
}

/** The TCP ports at which this process listens. */
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

/** Most often that the tables are read to be read twice alike: others change them while they are read. */
const MOST_READS = 20;

function readPorts(): SharedPort[] {
  const listening = [...listeningSockets("tcp"), ...listeningSockets("tcp6")];
  const own = descriptorsOf(new Set(listening.map(({ inode }) => inode)));
  const places = Map.groupBy(listening, ({ place }) => place);
  return [...places.values()].flatMap((sockets) => {
    const [first, ...rest] = sockets.flatMap(({ inode }) => own.get(inode) ?? []);
    if (first === undefined) return [];
    return { descriptors: [first, ...rest] as const, others: sockets.length - rest.length - 1 };
  });
}

interface ListeningSocket {
  readonly inode: string;
  /** Address and port. */
  readonly place: string;
}

const LISTENING = "0A";
const CHUNK_BYTES = 65_536;

/** The system names sockets that listen before all others, of which there may be very many. */
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
        const [number = "", place = "", , state] = fields;
        if (!number.endsWith(":")) continue;
        if (state !== LISTENING) return found;
        found.push({ place: `${table} ${place}`, inode: fields[9] ?? "" });
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

/** Of those among our own descriptors that are one of the sockets. */
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
