// Which address a request really comes from; knows only text and a predicate, no headers object and no configuration.
import { normalizeAddress } from "./address.ts";

/**
 * The client's address. `peer` is the address of the connection (normalised), `forwardedFor` the value of
 * X-Forwarded-For or null. A peer that is not trusted is the client, whatever it claims. Otherwise the list is walked
 * from the right, each entry having been written by the hop to its right: the first untrusted address is the client.
 * An entry that is no address ends the walk, because nothing left of it was vouched for: the hop that passed it on is
 * the answer. When every hop is trusted, the leftmost is.
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
