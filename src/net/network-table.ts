// Networks with a value and an end each, in memory that threads share, searched without allocation; knows nothing of their purpose.
import type { Steps } from "../pace.ts";
import { AddressReader, ipv4Value, mappedIpv4Value, readIpv6 } from "./address.ts";
import { prefixLength } from "./cidr.ts";

export interface NetworkEntry {
  /** From `networkKey`. */
  readonly key: string;
  /** What `NetworkLookup.find` returns: 0 to 255. */
  readonly value: number;
  /** Seconds since 1970, from which on the entry does not count; `NEVER`: it has no end. */
  readonly until: number;
}

export const NEVER = 0xffff_ffff;

/** Entries in the order of their keys: a network is behind those that hold it. */
interface Rows {
  /** First and last address of each, in words of 32 bits. */
  readonly first: Uint32Array;
  readonly last: Uint32Array;
  readonly until: Uint32Array;
  readonly value: Uint8Array;
  /** The row of the smallest network around it; -1: none. */
  readonly parent: Int32Array;
}

/** Typed arrays over shared memory: a message to another thread copies none of it. */
export interface NetworkTable {
  /** Number of networks. */
  readonly size: number;
  readonly ipv4: Rows;
  readonly ipv6: Rows;
}

const hex = (value: number, digits: number) => value.toString(16).padStart(digits, "0");

/**
 * One text for each network, whatever its notation: family, first address and prefix length in hexadecimal, so that keys sort as
 * rows do. Null when the text is neither an address nor a network.
 */
export function networkKey(text: string): string | null {
  const slash = text.indexOf("/");
  const address = slash < 0 ? text : text.slice(0, slash);
  const given = slash < 0 ? null : prefixLength(text.slice(slash + 1));
  const value = ipv4Value(address);
  if (value >= 0) return ipv4Key(value, given ?? 32);
  const groups = new Uint16Array(8);
  const bits = given ?? 128;
  if (!readIpv6(address, groups) || bits < 0 || bits > 128) return null;
  const mapped = mappedIpv4Value(groups);
  if (mapped >= 0 && bits >= 96) return ipv4Key(mapped, bits - 96);
  let key = "6";
  for (let at = 0; at < 8; at++) {
    const kept = Math.min(16, Math.max(0, bits - at * 16));
    key += hex((groups[at] ?? 0) & (0xffff << (16 - kept)), 4);
  }
  return key + hex(bits, 2);
}

function ipv4Key(value: number, bits: number): string | null {
  if (bits < 0 || bits > 32) return null;
  // A shift by 32 bits shifts by none.
  const first = bits === 0 ? 0 : (value & (0xffff_ffff << (32 - bits))) >>> 0;
  return `4${hex(first, 8)}${hex(bits, 2)}`;
}

/** Of several entries with the same network the one that ends last counts. */
export function* compileNetworks(entries: Iterable<NetworkEntry>): Steps<NetworkTable> {
  const byKey = new Map<string, NetworkEntry>();
  for (const entry of entries) {
    const before = byKey.get(entry.key);
    if (before === undefined || before.until < entry.until) byKey.set(entry.key, entry);
    yield;
  }
  const keys = [...byKey.keys()].sort();
  const border = keys.findIndex((key) => key.startsWith("6"));
  const ipv4 = border < 0 ? keys : keys.slice(0, border);
  const ipv6 = border < 0 ? [] : keys.slice(border);
  return {
    size: keys.length,
    ipv4: yield* compileRows(ipv4, byKey, 1),
    ipv6: yield* compileRows(ipv6, byKey, 4),
  };
}

function* compileRows(
  keys: readonly string[],
  byKey: ReadonlyMap<string, NetworkEntry>,
  width: number,
): Steps<Rows> {
  const words = () => new Uint32Array(new SharedArrayBuffer(keys.length * width * 4));
  const rows: Rows = {
    first: words(),
    last: words(),
    until: new Uint32Array(new SharedArrayBuffer(keys.length * 4)),
    value: new Uint8Array(new SharedArrayBuffer(keys.length)),
    parent: new Int32Array(new SharedArrayBuffer(keys.length * 4)),
  };
  const around: number[] = [];
  for (const [row, key] of keys.entries()) {
    const bits = Number.parseInt(key.slice(-2), 16);
    for (let at = 0; at < width; at++) {
      const word = Number.parseInt(key.slice(1 + at * 8, 9 + at * 8), 16);
      const free = Math.min(32, Math.max(0, (at + 1) * 32 - bits));
      rows.first[row * width + at] = word;
      rows.last[row * width + at] = word + 2 ** free - 1;
    }
    rows.until[row] = byKey.get(key)?.until ?? 0;
    rows.value[row] = byKey.get(key)?.value ?? 0;
    const first = rows.first.subarray(row * width, (row + 1) * width);
    while (around.length > 0 && compare(rows.last, around.at(-1) ?? 0, first) < 0) around.pop();
    rows.parent[row] = around.at(-1) ?? -1;
    around.push(row);
    yield;
  }
  return rows;
}

/** Negative, 0 or positive, as the address in this row is before, at or after the other one. */
function compare(list: Uint32Array, row: number, address: Uint32Array): number {
  const width = list.length === 0 ? 0 : address.length;
  for (let at = 0; at < width; at++) {
    const difference = (list[row * width + at] ?? 0) - (address[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Finds addresses in a table; each thread has its own. */
export class NetworkLookup {
  readonly #table: NetworkTable;
  readonly #reader = new AddressReader();
  readonly #ipv4: Uint32Array;

  constructor(table: NetworkTable) {
    this.#table = table;
    this.#ipv4 = this.#reader.words.subarray(0, 1);
  }

  /** The value of the smallest network that holds the address and has not ended; -1: none. `now`: milliseconds since 1970. */
  find(address: string, now: () => number): number {
    const length = this.#reader.read(address);
    if (length === 0) return -1;
    return length === 1
      ? search(this.#table.ipv4, this.#ipv4, now)
      : search(this.#table.ipv6, this.#reader.words, now);
  }
}

/** Networks are nested or disjoint: all that hold the address are around the last one that begins at or before it, or are it. */
function search(rows: Rows, address: Uint32Array, now: () => number): number {
  let low = 0;
  let high = rows.value.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(rows.first, middle, address) <= 0) low = middle + 1;
    else high = middle;
  }
  for (let row = low - 1; row >= 0; row = rows.parent[row] ?? -1) {
    if (compare(rows.last, row, address) < 0) continue;
    const until = rows.until[row] ?? 0;
    if (until === NEVER || until > now() / 1000) return rows.value[row] ?? -1;
  }
  return -1;
}
