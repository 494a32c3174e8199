// The configuration as the tests believe it to be, and random changes of it; knows no gateway.
import type { Random } from "../../support/random.ts";

/** A target is known by its port, which no other target of its service has. */
export interface ServiceState {
  readonly enabled: boolean;
  readonly response_buffer_bytes: number;
  /** Port -> whether the target is enabled. */
  readonly targets: Readonly<Record<number, boolean>>;
}

export interface RouteState {
  readonly service: string;
  /** Prefixes. */
  readonly paths: readonly string[];
  readonly hosts: readonly string[];
  readonly enabled: boolean;
}

/** By name. */
export interface WorldState {
  readonly services: Readonly<Record<string, ServiceState>>;
  readonly routes: Readonly<Record<string, RouteState>>;
}

export const emptyWorld: WorldState = { services: {}, routes: {} };

/** Where a client can go, and who may answer there: a status, or the ports of targets. */
export interface Address {
  readonly host: string;
  readonly path: string;
}
export type Outcome = number | readonly number[];

export interface Mutation {
  readonly method: "POST" | "PUT" | "PATCH" | "DELETE";
  /** `:target` in it stands for the id of the target named. */
  readonly path: string;
  readonly target?: { readonly service: string; readonly port: number };
  readonly body?: unknown;
  /** What holds once it is carried out. */
  readonly after: WorldState;
}

const DEFAULT_RESPONSE_BUFFER_BYTES = 1_048_576;
const any = "any.test";

/** Every address of the world and what is to be had there. No two routes share one. */
export function outcomes(state: WorldState): Map<string, Outcome> {
  const found = new Map<string, Outcome>();
  for (const route of Object.values(state.routes)) {
    for (const address of addressesOf(route)) found.set(address, outcomeOf(state, route));
  }
  return found;
}

const addressesOf = ({ hosts, paths }: RouteState) =>
  hosts.length > 0 ? hosts.map((host) => `${host}/`) : paths.map((path) => `${any}${path}`);

export function addressOf(text: string): Address {
  const slash = text.indexOf("/");
  return { host: text.slice(0, slash), path: text.slice(slash) };
}

function outcomeOf(state: WorldState, route: RouteState): Outcome {
  const service = state.services[route.service];
  if (!route.enabled || service === undefined) return 404;
  const ports = Object.keys(service.targets).map(Number);
  const serving = service.enabled ? ports.filter((port) => service.targets[port]) : [];
  return serving.length === 0 ? 503 : serving;
}

/** Addresses at which something else is to be had than before. */
export function changedAddresses(before: WorldState, after: WorldState): Map<string, Outcome> {
  const [old, now] = [outcomes(before), outcomes(after)];
  const changed = new Map<string, Outcome>();
  for (const [address, outcome] of now)
    if (!Bun.deepEquals(old.get(address), outcome)) changed.set(address, outcome);
  for (const address of old.keys()) if (!now.has(address)) changed.set(address, 404);
  return changed;
}

/** Makes one random change after the other, each from the state that it is given. */
export class Mutations {
  readonly #random: Random;
  readonly #ports: readonly number[];
  readonly #size: number;
  /** Addresses that routes have had: to use one again is what stale caches stumble over. */
  readonly #freed: RouteState[] = [];
  #count = 0;

  /** `ports`: of the origins that targets may lead to. `size`: about how many routes there are in the long run. */
  constructor(random: Random, { ports, size }: { ports: readonly number[]; size: number }) {
    this.#random = random;
    this.#ports = ports;
    this.#size = size;
  }

  next(state: WorldState): Mutation {
    const services = Object.keys(state.services).length;
    const routes = Object.keys(state.routes).length;
    if (services < 3) return this.#createService(state);
    if (routes < 3) return this.#createRoute(state);
    const kinds: readonly [weight: number, make: (state: WorldState) => Mutation][] = [
      [routes < this.#size ? 30 : 10, this.#createRoute],
      [15, this.#replaceRoute],
      [15, this.#patchRoute],
      [routes < this.#size ? 10 : 30, this.#deleteRoute],
      [services < this.#size / 3 ? 8 : 2, this.#createService],
      [8, this.#replaceService],
      [6, this.#patchService],
      [services > 4 ? 5 : 0, this.#deleteService],
      [6, this.#createTarget],
      [10, this.#changeTarget],
      [6, this.#deleteTarget],
    ];
    let at = this.#random.next() * kinds.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, make] of kinds) {
      at -= weight;
      if (at < 0) return make.call(this, state);
    }
    return this.#createRoute(state);
  }

  #createRoute(state: WorldState): Mutation {
    const name = `route-${++this.#count}`;
    const route = this.#route(state);
    return {
      method: "POST",
      path: "/api/v1/routes",
      body: { name, ...routeDocument(route) },
      after: withRoute(state, name, route),
    };
  }

  #replaceRoute(state: WorldState): Mutation {
    const name = this.#routeOf(state);
    const route = this.#route(state);
    this.#freed.push(state.routes[name]!);
    return {
      method: "PUT",
      path: `/api/v1/routes/${name}`,
      body: { name, ...routeDocument(route) },
      after: withRoute(state, name, route),
    };
  }

  #patchRoute(state: WorldState): Mutation {
    const name = this.#routeOf(state);
    const old = state.routes[name]!;
    const [change, body] = this.#random.pick([
      () => {
        const service = this.#serviceOf(state);
        return [{ service }, { service_id: service }] as const;
      },
      () => [{ enabled: !old.enabled }, { enabled: !old.enabled }] as const,
      () => {
        this.#freed.push(old);
        const place = this.#place(state);
        return [place, place] as const;
      },
    ])();
    return {
      method: "PATCH",
      path: `/api/v1/routes/${name}`,
      body,
      after: withRoute(state, name, { ...old, ...change }),
    };
  }

  #deleteRoute(state: WorldState): Mutation {
    const name = this.#routeOf(state);
    this.#freed.push(state.routes[name]!);
    return {
      method: "DELETE",
      path: `/api/v1/routes/${name}`,
      after: { ...state, routes: without(state.routes, name) },
    };
  }

  #createService(state: WorldState): Mutation {
    const name = `service-${++this.#count}`;
    const service = this.#service();
    return {
      method: "POST",
      path: "/api/v1/services",
      body: { name, ...serviceDocument(service) },
      after: withService(state, name, service),
    };
  }

  #replaceService(state: WorldState): Mutation {
    const name = this.#serviceOf(state);
    const service = this.#service();
    return {
      method: "PUT",
      path: `/api/v1/services/${name}`,
      body: { name, ...serviceDocument(service) },
      after: withService(state, name, service),
    };
  }

  #patchService(state: WorldState): Mutation {
    const name = this.#serviceOf(state);
    const old = state.services[name]!;
    const change = this.#random.chance(0.5)
      ? { enabled: !old.enabled }
      : { response_buffer_bytes: this.#random.between(0, 100_000) };
    return {
      method: "PATCH",
      path: `/api/v1/services/${name}`,
      body: change,
      after: withService(state, name, { ...old, ...change }),
    };
  }

  /** With everything that hangs on it: many rows in one change. */
  #deleteService(state: WorldState): Mutation {
    const name = this.#serviceOf(state);
    const routes = Object.entries(state.routes).filter(([, route]) => route.service !== name);
    return {
      method: "DELETE",
      path: `/api/v1/services/${name}?cascade=1`,
      after: { services: without(state.services, name), routes: Object.fromEntries(routes) },
    };
  }

  #createTarget(state: WorldState): Mutation {
    const name = this.#serviceOf(state);
    const { targets } = state.services[name]!;
    const port = this.#ports.find((known) => !(known in targets));
    if (port === undefined) return this.#deleteTarget(state);
    return {
      method: "POST",
      path: `/api/v1/services/${name}/targets`,
      body: { host: "127.0.0.1", port },
      after: withTargets(state, name, { ...targets, [port]: true }),
    };
  }

  #changeTarget(state: WorldState): Mutation {
    const found = this.#targetOf(state);
    if (found === null) return this.#createTarget(state);
    const { service, port } = found;
    const { targets } = state.services[service]!;
    const other = this.#ports.find((known) => !(known in targets)) ?? port;
    const isPatch = this.#random.chance(0.5);
    const enabled = isPatch ? this.#random.chance(0.7) : true;
    const fields = { host: "127.0.0.1", port: other, enabled };
    return {
      method: isPatch ? "PATCH" : "PUT",
      path: "/api/v1/targets/:target",
      target: found,
      body: isPatch ? fields : { service_id: service, ...fields },
      after: withTargets(state, service, { ...without(targets, String(port)), [other]: enabled }),
    };
  }

  #deleteTarget(state: WorldState): Mutation {
    const found = this.#targetOf(state);
    if (found === null) return this.#createRoute(state);
    const { targets } = state.services[found.service]!;
    return {
      method: "DELETE",
      path: "/api/v1/targets/:target",
      target: found,
      after: withTargets(state, found.service, without(targets, String(found.port))),
    };
  }

  #route(state: WorldState): RouteState {
    return { service: this.#serviceOf(state), ...this.#place(state), enabled: true };
  }

  /** New addresses or, as often, those of a route that is gone. */
  #place(state: WorldState): Pick<RouteState, "paths" | "hosts"> {
    const freed = this.#random.chance(0.5) ? this.#freed.shift() : undefined;
    // The change that was to free them may not have come about.
    const taken = outcomes(state);
    if (freed !== undefined && !addressesOf(freed).some((address) => taken.has(address)))
      return { paths: freed.paths, hosts: freed.hosts };
    const count = ++this.#count;
    return this.#random.chance(0.5)
      ? { paths: [`/at-${count}`, `/also-at-${count}`], hosts: [] }
      : { paths: [], hosts: [`host-${count}.test`] };
  }

  #service(): ServiceState {
    const targets: Record<number, boolean> = {};
    for (let left = this.#random.between(1, 4); left > 0; left--)
      targets[this.#random.pick(this.#ports)] = true;
    return { enabled: true, response_buffer_bytes: DEFAULT_RESPONSE_BUFFER_BYTES, targets };
  }

  #routeOf(state: WorldState): string {
    return this.#random.pick(Object.keys(state.routes));
  }

  #serviceOf(state: WorldState): string {
    return this.#random.pick(Object.keys(state.services));
  }

  #targetOf(state: WorldState): { service: string; port: number } | null {
    const all = Object.entries(state.services).flatMap(([service, { targets }]) =>
      Object.keys(targets).map((port) => ({ service, port: Number(port) })),
    );
    return all.length === 0 ? null : this.#random.pick(all);
  }
}

const routeDocument = ({ service, paths, hosts, enabled }: RouteState) => ({
  service_id: service,
  paths,
  hosts,
  enabled,
});

const serviceDocument = ({ enabled, response_buffer_bytes, targets }: ServiceState) => ({
  enabled,
  response_buffer_bytes,
  targets: Object.entries(targets).map(([port, isOn]) => ({
    host: "127.0.0.1",
    port: Number(port),
    enabled: isOn,
  })),
});

const withRoute = (state: WorldState, name: string, route: RouteState): WorldState => ({
  ...state,
  routes: { ...state.routes, [name]: route },
});

const withService = (state: WorldState, name: string, service: ServiceState): WorldState => ({
  ...state,
  services: { ...state.services, [name]: service },
});

const withTargets = (
  state: WorldState,
  name: string,
  targets: ServiceState["targets"],
): WorldState => withService(state, name, { ...state.services[name]!, targets });

function without<T>(record: Readonly<Record<string, T>>, key: string): Record<string, T> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => name !== key));
}
