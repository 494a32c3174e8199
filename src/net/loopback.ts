// Tests for loopback addresses and for URLs that only they may have without TLS; opens no socket and resolves no name.
import { normalizeAddress } from "./address.ts";

/** Whether a client with this socket address is on this machine. */
export function isLoopbackAddress(address: string): boolean {
  const normal = normalizeAddress(address);
  return normal !== null && (normal === "::1" || normal.startsWith("127."));
}

/** Whether only this machine reaches a listener at this address, or host of a URL. Names other than localhost may resolve to anything. */
export const isLoopbackHost = (hostname: string): boolean =>
  hostname === "localhost" || isLoopbackAddress(hostname.replace(/^\[(.*)\]$/, "$1"));

/** Whether secrets may be sent to the URL: with TLS, or to this machine. */
export function isSafeUrl(text: unknown): text is string {
  const url = typeof text === "string" ? URL.parse(text) : null;
  if (url === null || url.username !== "" || url.password !== "") return false;
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopbackHost(url.hostname));
}
