// A service ready to be used by one worker: its targets with their connections, its limits; knows no route.
import type { Service } from "../model/service.ts";
import type { Target } from "../model/target.ts";
import type { ServicePlan } from "../snapshot/snapshot.ts";
import type { Balancer } from "./balancer/balancer.ts";
import { RoundRobin } from "./balancer/round-robin.ts";
import type { Endpoint } from "./upstream/connection.ts";
import type { ExchangeTimeouts } from "./upstream/exchange.ts";
import { HeadCache } from "./upstream/head-cache.ts";
import { ConnectionPool } from "./upstream/pool.ts";

export interface TargetRuntime {
  readonly id: string;
  readonly weight: number;
  readonly endpoint: Endpoint;
  /** Host of requests that name the target: `host` or `host:port`. */
  readonly authority: string;
  readonly pool: ConnectionPool;
  readonly heads: HeadCache;
}

export interface ServiceRuntime {
  readonly id: string;
  readonly service: Service;
  readonly isHttp: boolean;
  readonly balancer: Balancer<TargetRuntime>;
  readonly targets: readonly TargetRuntime[];
  readonly timeouts: ExchangeTimeouts;
}

/** Pools by target and address: they outlive versions of the configuration, so that a change drops no connection. */
export class PoolRegistry {
  readonly #pools = new Map<string, ConnectionPool>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The pool of a target as this version of its service wants it; an existing one goes on. */
  poolOf(targetId: string, endpoint: Endpoint, service: Service): ConnectionPool {
    const key = poolKey(targetId, endpoint);
    const options = {
      size: service.keepalive.size,
      idleTimeout: service.keepalive.idle_timeout,
      maxRequests: service.keepalive.max_requests,
    };
    let pool = this.#pools.get(key);
    if (pool === undefined) {
      pool = new ConnectionPool(endpoint, options, this.#now);
      this.#pools.set(key, pool);
    } else {
      pool.configure(options);
    }
    return pool;
  }

  /** Closes the pools that a service had and its next version has not. */
  retire(before: ServiceRuntime, after: ServiceRuntime | null): void {
    const kept = new Set(after?.targets.map((target) => target.pool));
    for (const target of before.targets) {
      if (kept.has(target.pool)) continue;
      this.#pools.delete(poolKey(target.id, target.endpoint));
      target.pool.close();
    }
  }

  /** `now`: the real time in the worker's milliseconds. */
  sweep(now: number): void {
    for (const pool of this.#pools.values()) pool.sweep(now);
  }
}

const poolKey = (targetId: string, endpoint: Endpoint) => `${targetId} ${JSON.stringify(endpoint)}`;

/** Prepares one version of a service; runs once when it is stored or changed. */
export function serviceRuntime(plan: ServicePlan, pools: PoolRegistry): ServiceRuntime {
  const { service } = plan;
  const targets = plan.targets.map((target) => targetRuntime(target, service, pools));
  return {
    id: plan.id,
    service,
    isHttp: service.protocol === "http" || service.protocol === "https",
    balancer: new RoundRobin(targets.filter((target) => target.weight > 0)),
    targets,
    timeouts: {
      connect: service.connect_timeout,
      response: service.response_timeout,
      read: service.read_timeout,
      write: service.write_timeout,
    },
  };
}

function targetRuntime(target: Target, service: Service, pools: PoolRegistry): TargetRuntime {
  const isTls = service.protocol === "https" || service.protocol === "tls";
  const port = target.port ?? (isTls ? 443 : 80);
  const hostname = target.host.replace(/^\[|\]$/g, "");
  const shown = hostname.includes(":") ? `[${hostname}]` : hostname;
  const endpoint: Endpoint = { hostname, port, tls: isTls ? tlsOptions(service) : null };
  return {
    id: target.id,
    weight: target.weight,
    endpoint,
    authority: port === (isTls ? 443 : 80) ? shown : `${shown}:${port}`,
    pool: pools.poolOf(target.id, endpoint, service),
    heads: new HeadCache(),
  };
}

function tlsOptions(service: Service): Endpoint["tls"] {
  const {
    verify,
    ca_certificates: ca,
    server_name: serverName,
    min_version: version,
  } = service.tls;
  return {
    rejectUnauthorized: verify,
    ...(ca === "" ? {} : { ca }),
    ...(serverName === "" ? {} : { serverName }),
    minVersion: version === "1.3" ? 0x0304 : 0x0303,
  };
}
