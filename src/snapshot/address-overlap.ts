// Whether two listening addresses, or a target and a listening address, overlap; knows no socket and no name resolution.

/** An address and port that the gateway itself listens on. */
export interface ListenAddress {
  readonly address: string;
  readonly port: number;
}

const isAny = (address: string) => address === "0.0.0.0" || address === "::";
const isIpv6 = (address: string) => address.includes(":");
const isLoopback = (address: string) => address.startsWith("127.") || address === "::1";

/** Whether two sockets could not both be bound. `::` accepts IPv4 connections too. */
export function overlaps(a: ListenAddress, b: ListenAddress): boolean {
  if (a.port !== b.port) return false;
  if (a.address === b.address || a.address === "::" || b.address === "::") return true;
  if (isIpv6(a.address) !== isIpv6(b.address)) return false;
  return isAny(a.address) || isAny(b.address);
}

/** One form for each address: `0:0:0:0:0:0:0:1` is `::1`, and `::ffff:10.0.0.1` is `10.0.0.1`. */
function canonical(host: string): string {
  const name = host.toLowerCase().replace(/\.$/, "");
  if (!isIpv6(name) || !URL.canParse(`http://[${name}]`)) return name;
  const address = new URL(`http://[${name}]`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(address) ?? [];
  if (high === undefined || low === undefined) return address;
  const [first, second] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [first >> 8, first & 255, second >> 8, second & 255].join(".");
}

/**
 * Whether a connection to `host` would reach a socket bound to `bound`, judged by the name alone: proxied traffic must not
 * bypass the restrictions of the management listener.
 */
export function reaches(host: string, port: number | null, bound: ListenAddress): boolean {
  if (port !== bound.port) return false;
  const [name, own] = [canonical(host), canonical(bound.address)];
  if (name === own) return true;
  const local =
    name === "localhost" || name.endsWith(".localhost") || isLoopback(name) || isAny(name);
  return local && (isLoopback(own) || isAny(own) || own === "localhost");
}
