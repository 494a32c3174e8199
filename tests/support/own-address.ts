// An address of this machine that is not loopback, for tests of client addresses.
import { networkInterfaces } from "node:os";

/** The first address of the family that is neither loopback nor link-local; null where the machine has none. */
export function ownAddress(family: "IPv4" | "IPv6"): string | null {
  const all = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  const found = all.find(
    (entry) =>
      entry.family === family && !entry.internal && !/^(fe80|169\.254)/.test(entry.address),
  );
  return found?.address ?? null;
}
