// The addresses at which clients reach a listener of this machine; resolves no names.
import { hostname, networkInterfaces } from "node:os";
import type { ListenAddress } from "../net/destinations.ts";
import type { Address } from "./flags.ts";

/** The address itself; for a wildcard, the addresses of all network interfaces and the name of the machine. */
export function reachableAt({ hostname: address, port }: Address): readonly ListenAddress[] {
  if (address !== "0.0.0.0" && address !== "::") return [{ address, port }];
  const interfaces = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  const own = interfaces.map((entry) => entry.address.replace(/%.*$/, ""));
  return [...new Set([address, ...own, hostname().toLowerCase()])].map((each) => ({
    address: each,
    port,
  }));
}
