// The host names that the full engine serves where a listener has both engines; knows no connection.
import { patternsFor } from "../../snapshot/covering.ts";
import type { EngineRoutePlan } from "../../snapshot/snapshot.ts";

export class EngineHosts {
  readonly #byHost = new Map<string, EngineRoutePlan[]>();

  constructor(routes: Iterable<EngineRoutePlan>) {
    for (const route of routes)
      for (const host of route.hosts.length === 0 ? [ANY] : route.hosts) {
        const routes = this.#byHost.get(host);
        if (routes === undefined) this.#byHost.set(host, [route]);
        else routes.push(route);
      }
  }

  /** `name`: lower case, without trailing dot; null: the client sent none. */
  has(name: string | null, listenerId: string): boolean {
    if (this.#byHost.size === 0) return false;
    const patterns = name === null ? [ANY] : [...patternsFor(name), ANY];
    return patterns.some((pattern) =>
      this.#byHost
        .get(pattern)
        ?.some(({ listenerIds: ids }) => ids.length === 0 || ids.includes(listenerId)),
    );
  }
}

/** Of routes without hosts. */
const ANY = "";
