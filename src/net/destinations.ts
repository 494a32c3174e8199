// Decides where the gateway may connect to, for everything that it opens; pure: resolves no name and opens no socket.
import { normalizeAddress, readIpv6 } from "./address.ts";
import { compileCidrs } from "./cidr.ts";
import { isLoopbackAddress } from "./loopback.ts";

/** An address and port that the gateway itself listens on; `unix:/path` has the port -1. */
export interface ListenAddress {
  readonly address: string;
  readonly port: number;
}

/** What decides; plain data. */
export interface DestinationRules {
  /** Link-local and metadata addresses that an admin permits, in CIDR notation. */
  readonly permitted: readonly string[];
  /** Where the management API listens. */
  readonly management: readonly ListenAddress[];
}

export interface Destination {
  /** A name or an address, without brackets. */
  readonly host: string;
  /** Null: none, as for a unix socket. */
  readonly port: number | null;
}

/**
 * Link-local addresses (RFC 3927, RFC 4291 section 2.5.6), at which clouds serve credentials of the machine, and their metadata and
 * configuration services elsewhere: AWS, Google, Alibaba, Oracle, Azure.
 */
const isMetadata = compileCidrs([
  ...["169.254.0.0/16", "fe80::/10"],
  ...["fd00:ec2::/32", "fd20:ce::/64"],
  ...["100.100.100.200", "192.0.0.192", "168.63.129.16"],
]);

/**
 * Why the gateway must not connect there, to follow the name of the field or of the host; null: it may. Names are decided by
 * themselves, so ask again with the addresses that they resolve to, and connect to those.
 */
export function destinationProblem(
  { host, port }: Destination,
  { permitted, management }: DestinationRules,
): string | null {
  if (host.startsWith("unix:"))
    return management.some(({ address }) => address === host)
      ? "is the control socket of this gateway, which must not be proxied"
      : null;
  const name = canonical(host);
  const addresses = addressesIn(name);
  const isOwn = management.some((bound) =>
    [name, ...addresses].some((at) => reaches(at, port, bound)),
  );
  if (isOwn) return "is the management API itself, which must not be proxied or called";
  if (!addresses.some(isMetadata)) return null;
  // The written form, or all that it holds.
  const isPermitted = compileCidrs(permitted);
  return isPermitted(name) || addresses.filter(isMetadata).every(isPermitted)
    ? null
    : "is a link-local or metadata address, where clouds serve the machine's credentials: an admin can permit it in settings.permitted_destinations";
}

const PORTS: Readonly<Record<string, number>> = {
  "http:": 80,
  "https:": 443,
  "ldap:": 389,
  "ldaps:": 636,
};

/** Of a URL, or of a host with a port; null: none is in the text. */
export function destinationIn(text: string): Destination | null {
  const url = URL.parse(text.includes("://") ? text : `none://${text}`);
  if (url === null || url.hostname === "") return null;
  return { host: url.hostname, port: Number(url.port) || (PORTS[url.protocol] ?? null) };
}

/** As a resolver reads it: `0xa9fea9fe` and `2852039166` are 169.254.169.254, `[::1]` and `0:0:0:0:0:0:0:1` are `::1`. */
function canonical(host: string): string {
  const name = host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
  if (name.includes(":")) return normalizeAddress(name) ?? name;
  return URL.parse(`http://${name}`)?.hostname ?? name;
}

/** The address and the IPv4 addresses in it that a translator or a tunnel would connect to; empty for a name. */
function addressesIn(name: string): string[] {
  const address = normalizeAddress(name);
  const groups = new Uint16Array(8);
  if (address === null) return [];
  if (!address.includes(":") || !readIpv6(address, groups)) return [address];
  return [address, ...embedded([...groups])];
}

/** By the forms of RFC 4291, 6052, 8215, 3056, 2765, 5214 and 4380. A NAT64 prefix of a site's own cannot be known. */
function embedded(groups: readonly number[]): string[] {
  const [first = 0, second = 0, third = 0] = groups;
  const startsWith = (...wanted: readonly number[]) =>
    wanted.every((group, at) => groups[at] === group);
  const last = quad(groups[6], groups[7]);
  const found: string[] = [];
  // IPv4-compatible, but not :: and ::1; IPv4-translated.
  if (startsWith(0, 0, 0, 0, 0, 0) && (groups[6] !== 0 || (groups[7] ?? 0) > 1)) found.push(last);
  if (startsWith(0, 0, 0, 0, 0xffff, 0)) found.push(last);
  if (startsWith(0x64, 0xff9b, 0, 0, 0, 0)) found.push(last);
  // Prefixes of 48, 56, 64 and 96 bits; the byte after the 64th bit is skipped.
  if (first === 0x64 && second === 0xff9b && third === 1)
    found.push(last, ...[6, 7, 8].map((at) => quadAround(groups, at)));
  if (first === 0x2002) found.push(quad(second, third));
  // ISATAP; its hosts have any prefix.
  if (((groups[4] ?? 0) & 0xfdff) === 0 && groups[5] === 0x5efe) found.push(last);
  // Teredo: its server, and its client with all bits inverted.
  if (first === 0x2001 && second === 0)
    found.push(
      quad(groups[2], groups[3]),
      quad(~(groups[6] ?? 0) & 0xffff, ~(groups[7] ?? 0) & 0xffff),
    );
  return found;
}

const quad = (high = 0, low = 0) => [high >> 8, high & 255, low >> 8, low & 255].join(".");

/** RFC 6052 section 2.2: four bytes from this one on, without byte 8. */
function quadAround(groups: readonly number[], from: number): string {
  const bytes = groups.flatMap((group) => [group >> 8, group & 255]);
  bytes.splice(8, 1);
  return bytes.slice(from, from + 4).join(".");
}

const isAny = (address: string) => address === "0.0.0.0" || address === "::";

/** Whether a connection reaches a socket bound to `bound`, judged by the canonical name or address alone. */
function reaches(
  name: string,
  port: number | null,
  { address, port: bound }: ListenAddress,
): boolean {
  if (port !== bound) return false;
  const own = canonical(address);
  if (name === own) return true;
  const isLocal = /(^|\.)localhost$/.test(name) || isLoopbackAddress(name) || isAny(name);
  return isLocal && (isLoopbackAddress(own) || isAny(own) || own === "localhost");
}
