// Tests for loopback addresses; opens no socket and resolves no name.
import { normalizeAddress } from "./address.ts";

/** Whether a client with this socket address is on this machine. */
export function isLoopbackAddress(address: string): boolean {
  const normal = normalizeAddress(address);
  return normal !== null && (normal === "::1" || normal.startsWith("127."));
}

/** Whether only this machine reaches a listener at this address. Names other than localhost may resolve to anything. */
export const isLoopbackHost = (hostname: string): boolean =>
  hostname === "localhost" || isLoopbackAddress(hostname);
