// Whether an address is reached from, or belongs to, this machine only; opens no socket and resolves no name.
import { normalizeAddress } from "./address.ts";

/** Whether a client with this socket address is on this machine. */
export function isLoopbackAddress(address: string): boolean {
  const normal = normalizeAddress(address);
  return normal !== null && (normal === "::1" || normal.startsWith("127."));
}

/** Whether a listener at this address is reached from this machine only. Names other than localhost may lead anywhere. */
export const isLoopbackHost = (hostname: string): boolean =>
  hostname === "localhost" || isLoopbackAddress(hostname);
