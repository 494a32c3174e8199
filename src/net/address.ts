// Parses and normalizes textual IP addresses; knows nothing of headers, sockets or trust.
import ipaddr from "ipaddr.js";

const DOT = 46;
const COLON = 58;
const ZERO = 48;

/**
 * The 32-bit value of a dotted quad, or -1. Leading zeros, short forms and hexadecimal parts are refused:
 * some C libraries read `010.1` as octal, so two programs would see two addresses.
 */
export function ipv4Value(text: string): number {
  let value = 0;
  let part = -1;
  let parts = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === DOT) {
      if (part < 0 || parts === 3) return -1;
      value = value * 256 + part;
      part = -1;
      parts++;
      continue;
    }
    const digit = code - ZERO;
    if (digit < 0 || digit > 9 || part === 0) return -1;
    part = part < 0 ? digit : part * 10 + digit;
    if (part > 255) return -1;
  }
  return part < 0 || parts !== 3 ? -1 : value * 256 + part;
}

function hexDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  const letter = code | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}

/** Fills `groups` (8 values of 16 bits) from an IPv6 address without brackets or zone; false when it is none (RFC 4291 2.2). */
export function readIpv6(text: string, groups: Uint16Array): boolean {
  let count = 0;
  let gap = -1;
  let at = 0;
  if (text.charCodeAt(0) === COLON) {
    if (text.charCodeAt(1) !== COLON) return false;
    gap = 0;
    at = 2;
  }
  while (at < text.length) {
    if (count === 8) return false;
    const end = groupEnd(text, at);
    if (end < text.length && text.charCodeAt(end) === DOT) {
      const tail = ipv4Value(text.slice(at));
      if (tail < 0 || count > 6) return false;
      groups[count++] = tail >>> 16;
      groups[count++] = tail & 0xffff;
      break;
    }
    if (end === at || end - at > 4) return false;
    groups[count++] = Number.parseInt(text.slice(at, end), 16);
    if (end === text.length) break;
    if (text.charCodeAt(end) !== COLON) return false;
    at = end + 1;
    if (text.charCodeAt(at) === COLON) {
      if (gap >= 0) return false;
      gap = count;
      at++;
    } else if (at === text.length) return false;
  }
  return gap < 0 ? count === 8 : spreadGap(groups, gap, count);
}

function groupEnd(text: string, from: number): number {
  let end = from;
  while (end < text.length && hexDigit(text.charCodeAt(end)) >= 0) end++;
  return end;
}

/** Moves the groups after `::` to the end and fills the gap with zeros; `::` must stand for at least one group. */
function spreadGap(groups: Uint16Array, gap: number, count: number): boolean {
  if (count > 7) return false;
  groups.copyWithin(8 - (count - gap), gap, count);
  groups.fill(0, gap, 8 - (count - gap));
  return true;
}

/** The 32-bit value of an IPv4-mapped address (`::ffff:a.b.c.d`), or -1 for any other. */
export function mappedIpv4Value(groups: Uint16Array): number {
  for (let i = 0; i < 5; i++) if (groups[i] !== 0) return -1;
  if (groups[5] !== 0xffff) return -1;
  return (groups[6] ?? 0) * 65_536 + (groups[7] ?? 0);
}

function formatIpv4(value: number): string {
  return `${value >>> 24}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`;
}

/**
 * The one spelling of an IP address: dotted quad, or RFC 5952 for IPv6; null when the text is no address.
 * IPv4-mapped IPv6 becomes IPv4 (a dual-stack socket reports IPv4 peers so), a zone id is dropped.
 * Brackets and a port, as some proxies write them into X-Forwarded-For, are accepted and dropped.
 */
export function normalizeAddress(text: string): string | null {
  if (ipv4Value(text) >= 0) return text;
  const bare = withoutPort(text.trim());
  if (bare === null) return null;
  if (bare.indexOf(":") < 0) return ipv4Value(bare) >= 0 ? bare : null;
  const zone = bare.indexOf("%");
  const address = zone < 0 ? bare : bare.slice(0, zone);
  const groups = new Uint16Array(8);
  if (zone === bare.length - 1 || !readIpv6(address, groups)) return null;
  const mapped = mappedIpv4Value(groups);
  return mapped >= 0 ? formatIpv4(mapped) : new ipaddr.IPv6([...groups]).toRFC5952String();
}

/** Parses `[v6]`, `[v6]:port` and `v4:port`; a bare IPv6 address has two colons or more and never a port. */
function withoutPort(text: string): string | null {
  if (text.charCodeAt(0) === 91) {
    const close = text.indexOf("]");
    if (close < 0) return null;
    const inside = text.slice(1, close);
    const rest = text.slice(close + 1);
    if (inside.indexOf(":") < 0) return null;
    return rest === "" || (rest.charCodeAt(0) === COLON && isPort(rest.slice(1))) ? inside : null;
  }
  const colon = text.indexOf(":");
  if (colon < 0 || text.indexOf(":", colon + 1) >= 0) return text;
  return isPort(text.slice(colon + 1)) ? text.slice(0, colon) : null;
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65_535;
}

/**
 * The network of one client: an IPv4 address itself, or the first bits of an IPv6 address, because a client can choose
 * addresses from a whole network. Expects a normalized address.
 */
export function networkOf(address: string, ipv6Prefix: number): string {
  if (!address.includes(":")) return address;
  const groups = new Uint16Array(8);
  if (!readIpv6(address, groups)) return address;
  for (let at = 0; at < groups.length; at++) {
    const bits = Math.min(16, Math.max(0, ipv6Prefix - at * 16));
    groups[at] = (groups[at] ?? 0) & (0xffff << (16 - bits));
  }
  return `${new ipaddr.IPv6([...groups]).toRFC5952String()}/${ipv6Prefix}`;
}

/** Reads addresses into words of 32 bits, without allocation. */
export class AddressReader {
  /** Those of the last address: one for IPv4, four for IPv6. */
  readonly words = new Uint32Array(4);
  readonly #groups = new Uint16Array(8);

  /** The number of words: 1 for IPv4 and IPv4-mapped IPv6, 4 for IPv6, 0 when the text is no address. Ignores a zone id. */
  read(address: string): 0 | 1 | 4 {
    const { words } = this;
    const groups = this.#groups;
    const value = ipv4Value(address);
    if (value >= 0) {
      words[0] = value;
      return 1;
    }
    const zone = address.indexOf("%");
    if (!readIpv6(zone < 0 ? address : address.slice(0, zone), groups)) return 0;
    const mapped = mappedIpv4Value(groups);
    if (mapped >= 0) {
      words[0] = mapped;
      return 1;
    }
    for (let i = 0; i < 4; i++) words[i] = (groups[2 * i] ?? 0) * 65_536 + (groups[2 * i + 1] ?? 0);
    return 4;
  }
}

/** An address and port for people. */
export const formatEndpoint = ({
  address,
  port,
}: {
  readonly address: string;
  readonly port: number;
}) => (address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`);
