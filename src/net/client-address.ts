// The client address of a request behind proxies; knows only text and a predicate, no headers object and no configuration.
import { normalizeAddress } from "./address.ts";

/**
 * The client's address. `peer` is the address of the connection (normalized), `forwardedFor` the value of
 * X-Forwarded-For or null. An untrusted peer is the client, whatever it claims. Otherwise walks the list from the
 * right, because each hop wrote the entry to its left: the first untrusted address is the client. An entry that is no
 * address ends the walk, because entries left of it are not trustworthy: the hop that forwarded it is the client. When
 * every hop is trusted, the leftmost one is.
 */
export function clientAddress(
  peer: string,
  forwardedFor: string | null,
  isTrusted: (address: string) => boolean,
): string {
  if (forwardedFor === null || !isTrusted(peer)) return peer;
  let client = peer;
  let end = forwardedFor.length;
  while (end >= 0) {
    const comma = end === 0 ? -1 : forwardedFor.lastIndexOf(",", end - 1);
    const address = normalizeAddress(forwardedFor.slice(comma + 1, end).trim());
    if (address === null) return client;
    client = address;
    if (!isTrusted(address)) return client;
    end = comma;
  }
  return client;
}
