// Whether two listening addresses overlap; knows no socket and no name resolution.
import type { ListenAddress } from "../net/destinations.ts";

const isAny = (address: string) => address === "0.0.0.0" || address === "::";
const isIpv6 = (address: string) => address.includes(":");

/** Whether two sockets could not both be bound. `::` accepts IPv4 connections too. */
export function overlaps(a: ListenAddress, b: ListenAddress): boolean {
  if (a.port !== b.port) return false;
  if (a.address === b.address || a.address === "::" || b.address === "::") return true;
  if (isIpv6(a.address) !== isIpv6(b.address)) return false;
  return isAny(a.address) || isAny(b.address);
}
