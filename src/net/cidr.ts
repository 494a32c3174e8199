// Networks in CIDR notation: validates them and tests addresses against a list; knows nothing of the list's purpose.
import ipaddr from "ipaddr.js";
import { AddressReader, ipv4Value, readIpv6 } from "./address.ts";

/** First and last address of a network, as 4 or 16 bytes. */
interface Network {
  readonly first: Uint8Array;
  readonly last: Uint8Array;
}

/** Null for an IPv4 or IPv6 network or single address; otherwise the error, to follow a field name. */
export function cidrProblem(text: string): string | null {
  return parseNetwork(text) === null
    ? "must be an IP address or a network such as 10.0.0.0/8 or 2001:db8::/32"
    : null;
}

/**
 * Compiles a list of networks to a test for addresses: a binary search over merged ranges, on integers. The empty list holds
 * no address, and a text that is no address is in no network. Ignores entries that `cidrProblem` rejects, so check the list
 * first.
 */
export function compileCidrs(list: readonly string[]): (address: string) => boolean {
  const networks = list.map(parseNetwork).filter((network) => network !== null);
  if (networks.length === 0) return () => false;
  const inIpv4 = compileRanges(
    networks.filter(({ first }) => first.length === 4),
    1,
  );
  const inIpv6 = compileRanges(
    networks.filter(({ first }) => first.length === 16),
    4,
  );
  const reader = new AddressReader();
  return (address) => {
    const length = reader.read(address);
    if (length === 0) return false;
    return length === 1 ? inIpv4(reader.words) : inIpv6(reader.words);
  };
}

/** Whether the networks together hold every IPv4 address, or every global unicast address of IPv6 (2000::/3, RFC 4291 2.4). */
export function coversAllAddresses(list: readonly string[]): boolean {
  const networks = list.map(parseNetwork).filter((network) => network !== null);
  const ofLength = (bytes: number) => networks.filter(({ first }) => first.length === bytes);
  return (
    areAllIn(ofLength(4), { first: 0n, last: 2n ** 32n - 1n }) ||
    areAllIn(ofLength(16), { first: 2n ** 125n, last: 2n ** 126n - 1n })
  );
}

function areAllIn(
  networks: readonly Network[],
  range: { readonly first: bigint; readonly last: bigint },
): boolean {
  let next = range.first;
  for (const { first, last } of mergeNetworks(networks)) {
    if (numberOf(first) > next) break;
    if (numberOf(last) >= next) next = numberOf(last) + 1n;
  }
  return next > range.last;
}

const numberOf = (bytes: Uint8Array) => BigInt(`0x${bytes.toHex()}`);

function parseNetwork(text: string): Network | null {
  const slash = text.indexOf("/");
  const bytes = addressBytes(slash < 0 ? text : text.slice(0, slash));
  if (bytes === null) return null;
  const bits = slash < 0 ? bytes.length * 8 : prefixLength(text.slice(slash + 1));
  if (bits < 0 || bits > bytes.length * 8) return null;
  const mapped = bytes.length === 16 && bits >= 96 && isMappedPrefix(bytes);
  return mapped ? rangeOf(bytes.slice(12), bits - 96) : rangeOf(bytes, bits);
}

function addressBytes(text: string): Uint8Array | null {
  if (ipv4Value(text) < 0 && !readIpv6(text, new Uint16Array(8))) return null;
  return Uint8Array.from(ipaddr.parse(text).toByteArray());
}

/** Number of bits after the slash; -1 when the text is none. */
export function prefixLength(text: string): number {
  return /^(?:0|[1-9]\d{0,2})$/.test(text) ? Number(text) : -1;
}

function isMappedPrefix(bytes: Uint8Array): boolean {
  return (
    bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255
  );
}

function rangeOf(bytes: Uint8Array, bits: number): Network {
  const mask = (index: number) => (0xff00 >> Math.max(0, Math.min(8, bits - index * 8))) & 0xff;
  return {
    first: bytes.map((byte, index) => byte & mask(index)),
    last: bytes.map((byte, index) => byte | (~mask(index) & 0xff)),
  };
}

/** Sorted, merged ranges of `width` 32-bit words, and a search for the last one that starts at or before the address. */
function compileRanges(
  networks: readonly Network[],
  width: number,
): (address: Uint32Array) => boolean {
  const merged = mergeNetworks(networks);
  const firsts = wordsOf(
    merged.map(({ first }) => first),
    width,
  );
  const lasts = wordsOf(
    merged.map(({ last }) => last),
    width,
  );
  const isAtOrBefore = (row: number, address: Uint32Array) => {
    for (let i = 0; i < width; i++) {
      const start = firsts[row * width + i] ?? 0;
      const value = address[i] ?? 0;
      if (start !== value) return start < value;
    }
    return true;
  };
  const endsBefore = (row: number, address: Uint32Array) => {
    for (let i = 0; i < width; i++) {
      const end = lasts[row * width + i] ?? 0;
      const value = address[i] ?? 0;
      if (end !== value) return end < value;
    }
    return false;
  };
  return (address) => {
    let low = 0;
    let high = merged.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isAtOrBefore(middle, address)) low = middle + 1;
      else high = middle;
    }
    return low > 0 && !endsBefore(low - 1, address);
  };
}

/** Networks are nested or disjoint, never partly overlapping, so dropping the contained ones leaves disjoint ranges. */
function mergeNetworks(networks: readonly Network[]): Network[] {
  const wideFirst = (a: Network, b: Network) =>
    Buffer.compare(a.first, b.first) || Buffer.compare(b.last, a.last);
  const merged: Network[] = [];
  for (const network of [...networks].sort(wideFirst)) {
    const previous = merged.at(-1);
    if (previous === undefined || Buffer.compare(network.first, previous.last) > 0) {
      merged.push(network);
    }
  }
  return merged;
}

function wordsOf(rows: readonly Uint8Array[], width: number): Uint32Array {
  const words = new Uint32Array(rows.length * width);
  for (const [row, bytes] of rows.entries()) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let i = 0; i < width; i++) words[row * width + i] = view.getUint32(i * 4);
  }
  return words;
}
