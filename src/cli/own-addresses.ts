// Under which addresses a listener of this machine is reached; resolves no names.
import { hostname, networkInterfaces } from "node:os";
import type { ListenAddress } from "../snapshot/address-overlap.ts";
import type { Address } from "./flags.ts";

/** The address itself; for one that stands for all, those of every network interface and the name of the machine too. */
export function reachableAt({ hostname: address, port }: Address): readonly ListenAddress[] {
  if (address !== "0.0.0.0" && address !== "::") return [{ address, port }];
  const interfaces = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  const own = interfaces.map((entry) => entry.address.replace(/%.*$/, ""));
  return [...new Set([address, ...own, hostname().toLowerCase()])].map((each) => ({
    address: each,
    port,
  }));
}
