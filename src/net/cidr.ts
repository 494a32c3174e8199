// Networks in CIDR notation: validates them and tests addresses against a list; knows nothing of the list's purpose.
import { AddressReader } from "./address.ts";

/** One word of 32 bits for IPv4, four for IPv6; the bits after the prefix are zero. */
interface Network {
  readonly words: Uint32Array;
  /** Length of the prefix. */
  readonly bits: number;
}

/** Disjoint ranges in order: first and last addresses, `width` words each. */
interface Ranges {
  readonly width: number;
  readonly count: number;
  readonly firsts: Uint32Array;
  readonly lasts: Uint32Array;
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
  const { ipv4, ipv6 } = rangesOf(list);
  if (ipv4.count + ipv6.count === 0) return () => false;
  const inIpv4 = searchIn(ipv4);
  const inIpv6 = searchIn(ipv6);
  const reader = new AddressReader();
  return (address) => {
    const length = reader.read(address);
    if (length === 0) return false;
    return length === 1 ? inIpv4(reader.words) : inIpv6(reader.words);
  };
}

/** Whether the networks together hold every IPv4 address, or every global unicast address of IPv6 (2000::/3, RFC 4291 2.4). */
export function coversAllAddresses(list: readonly string[]): boolean {
  const { ipv4, ipv6 } = rangesOf(list);
  return (
    areAllIn(ipv4, { first: 0n, last: 2n ** 32n - 1n }) ||
    areAllIn(ipv6, { first: 2n ** 125n, last: 2n ** 126n - 1n })
  );
}

function areAllIn(
  { width, count, firsts, lasts }: Ranges,
  range: { readonly first: bigint; readonly last: bigint },
): boolean {
  let next = range.first;
  for (let row = 0; row < count && next <= range.last; row++) {
    if (numberAt(firsts, row, width) > next) break;
    const last = numberAt(lasts, row, width);
    if (last >= next) next = last + 1n;
  }
  return next > range.last;
}

function numberAt(words: Uint32Array, row: number, width: number): bigint {
  let number = 0n;
  for (let i = 0; i < width; i++) number = (number << 32n) | BigInt(words[row * width + i] ?? 0);
  return number;
}

function parseNetwork(text: string, reader = new AddressReader()): Network | null {
  const slash = text.indexOf("/");
  const address = slash < 0 ? text : text.slice(0, slash);
  // A zone names an interface, which a network has not.
  if (address.includes("%")) return null;
  const width = reader.read(address);
  if (width === 0) return null;
  const isMapped = width === 1 && address.includes(":");
  const length = width === 4 || isMapped ? 128 : 32;
  const bits = slash < 0 ? length : prefixLength(text.slice(slash + 1));
  if (bits < 0 || bits > length) return null;
  if (!isMapped) return masked(reader.words.slice(0, width), bits);
  if (bits >= 96) return masked(reader.words.slice(0, 1), bits - 96);
  return masked(Uint32Array.of(0, 0, 0xffff, reader.words[0] ?? 0), bits);
}

/** Number of bits after the slash; -1 when the text is none. */
export function prefixLength(text: string): number {
  return /^(?:0|[1-9]\d{0,2})$/.test(text) ? Number(text) : -1;
}

/** The bits of the prefix in the word at this place. */
function maskAt(word: number, bits: number): number {
  const ones = Math.max(0, Math.min(32, bits - word * 32));
  // A shift by 32 is one by 0.
  return ones === 0 ? 0 : (0xffff_ffff << (32 - ones)) >>> 0;
}

function masked(words: Uint32Array, bits: number): Network {
  for (let i = 0; i < words.length; i++) words[i] = (words[i] ?? 0) & maskAt(i, bits);
  return { words, bits };
}

/** Lists have up to 100,000 networks, and every worker compiles them while it serves: no objects for each byte. */
function rangesOf(list: readonly string[]): { readonly ipv4: Ranges; readonly ipv6: Ranges } {
  const reader = new AddressReader();
  const networks = list
    .map((text) => parseNetwork(text, reader))
    .filter((network) => network !== null);
  const ofWidth = (width: number) => networks.filter(({ words }) => words.length === width);
  return { ipv4: merge(ofWidth(1), 1), ipv6: merge(ofWidth(4), 4) };
}

/** Networks are nested or disjoint, never partly overlapping, so dropping the contained ones leaves disjoint ranges. */
function merge(networks: readonly Network[], width: number): Ranges {
  const firsts = new Uint32Array(networks.length * width);
  const lasts = new Uint32Array(networks.length * width);
  let count = 0;
  for (const { words, bits } of networks.toSorted(wideFirst)) {
    if (count > 0 && compareAt(lasts, (count - 1) * width, words) >= 0) continue;
    firsts.set(words, count * width);
    for (let i = 0; i < width; i++)
      lasts[count * width + i] = ((words[i] ?? 0) | ~maskAt(i, bits)) >>> 0;
    count++;
  }
  return { width, count, firsts, lasts };
}

const wideFirst = (a: Network, b: Network) => compareAt(a.words, 0, b.words) || a.bits - b.bits;

/** Negative, zero or positive: the number at this place is lower, equal or higher. */
function compareAt(words: Uint32Array, at: number, number: Uint32Array): number {
  for (let i = 0; i < number.length; i++) {
    const difference = (words[at + i] ?? 0) - (number[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** A search for the last range that starts at or before the address. */
function searchIn({ width, count, firsts, lasts }: Ranges): (address: Uint32Array) => boolean {
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
    let high = count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isAtOrBefore(middle, address)) low = middle + 1;
      else high = middle;
    }
    return low > 0 && !endsBefore(low - 1, address);
  };
}
