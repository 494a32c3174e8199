// The whole desired state as plain data, keyed by id; knows nothing of how it is stored or served.
import type { Listener } from "./listener.ts";
import type { Route } from "./route.ts";
import type { Service } from "./service.ts";
import type { Settings } from "./settings.ts";
import type { Target } from "./target.ts";

/**
 * Everything that was asked for, in the order it was created. Objects are never changed in place: a change makes a new
 * object, so equal references mean "unchanged".
 */
export interface GatewayConfig {
  readonly services: ReadonlyMap<string, Service>;
  readonly targets: ReadonlyMap<string, Target>;
  readonly routes: ReadonlyMap<string, Route>;
  readonly listeners: ReadonlyMap<string, Listener>;
  readonly settings: Settings;
}

/** The collections of a GatewayConfig. */
export type CollectionName = "services" | "targets" | "routes" | "listeners";

/** What one element of a collection is. */
export interface ResourceOf {
  readonly services: Service;
  readonly targets: Target;
  readonly routes: Route;
  readonly listeners: Listener;
}

/** What differs between two versions of one collection of the GatewayConfig. */
export interface ResourceChange<T> {
  readonly upserts: readonly T[];
  readonly removals: readonly string[];
}

/** What turns one GatewayConfig into the next: the rows that a change writes. */
export interface ConfigChange {
  readonly services: ResourceChange<Service>;
  readonly targets: ResourceChange<Target>;
  readonly routes: ResourceChange<Route>;
  readonly listeners: ResourceChange<Listener>;
  /** Null when unchanged. */
  readonly settings: Settings | null;
}
