// Listeners that share an address and port: which one binds it, and which one serves a host; knows no socket.
import { normalizeHost } from "../../http/authority.ts";
import type { ListenerPlan } from "../../snapshot/snapshot.ts";

/** An address and port as one text. */
export const portKey = (address: string, port: number): string => `${address} ${port}`;

/** By address and port, in a fixed order: the first of each list binds the socket for all of them. */
export function listenersByPort(
  plans: Iterable<ListenerPlan>,
): ReadonlyMap<string, readonly ListenerPlan[]> {
  const groups = new Map<string, ListenerPlan[]>();
  for (const plan of plans) {
    const key = portKey(plan.listener.address, plan.listener.port);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [plan]);
    else group.push(plan);
  }
  for (const group of groups.values()) if (group.length > 1) group.sort(olderFirst);
  return groups;
}

/** All workers must choose the same one, because connections are counted by listener. */
function olderFirst({ id: x, listener: a }: ListenerPlan, { id: y, listener: b }: ListenerPlan) {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? -1 : 1;
  return x < y ? -1 : 1;
}

/** Finds the listener that serves a host: an exact name, then the longest wildcard, then the one for any host. */
export class ListenerChoice<T> {
  readonly #exact = new Map<string, T>();
  readonly #below = new Map<string, T>();
  readonly #any: T;

  /** `fallback` stands for hosts that no listener serves. */
  constructor(
    members: readonly { readonly listener: T; readonly hosts: readonly string[] }[],
    fallback: T,
  ) {
    let any: T | null = null;
    for (const { listener, hosts } of members) {
      if (hosts.length === 0) any = listener;
      for (const host of hosts) {
        const isWildcard = host.startsWith("*.");
        const name = isWildcard ? host.slice(2) : host;
        const map = isWildcard ? this.#below : this.#exact;
        map.set(normalizeHost(name) ?? name.toLowerCase(), listener);
      }
    }
    this.#any = any ?? fallback;
  }

  /** `host` in the form of `normalizeHost`. */
  find(host: string): T {
    const exact = this.#exact.get(host);
    if (exact !== undefined) return exact;
    if (this.#below.size > 0)
      for (let dot = host.indexOf("."); dot >= 0; dot = host.indexOf(".", dot + 1)) {
        const below = this.#below.get(host.slice(dot + 1));
        if (below !== undefined) return below;
      }
    return this.#any;
  }
}
