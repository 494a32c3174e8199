// A service ready to be used by one worker: its targets with their connections, its limits; knows no route.
import { isIP } from "node:net";
import type { ManagementCookies } from "../http/management-cookies.ts";
import type { Service } from "../model/service.ts";
import type { Target } from "../model/target.ts";
import type { TargetBoard } from "../shared-memory/target-board.ts";
import type { ServicePlan } from "../snapshot/snapshot.ts";
import { type Addresses, FixedAddress } from "./names/addresses.ts";
import { ResolvedName, type ResolvedNameContext } from "./names/resolved-name.ts";
import { TargetGroup } from "./health/target-group.ts";
import type { Endpoint } from "./upstream/endpoint.ts";
import type { ExchangeTimeouts } from "./upstream/exchange.ts";
import { StickyTargets } from "./sticky.ts";
import { HeadCache } from "./upstream/response-parser.ts";
import { ConnectionPool } from "./upstream/pool.ts";

export interface TargetRuntime {
  readonly id: string;
  readonly weight: number;
  /** Tier: those with a higher number are used when all lower ones are down. */
  readonly priority: number;
  /** Its place in the memory that all workers share. */
  readonly row: number;
  /** Of the row when the target was given it. */
  readonly epoch: number;
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
  readonly group: TargetGroup<TargetRuntime>;
  readonly targets: readonly TargetRuntime[];
  /** Null when clients are not kept on a target. */
  readonly sticky: StickyTargets<TargetRuntime> | null;
  readonly timeouts: ExchangeTimeouts;
}

/** Where a target is and how it is spoken to, as plain data. */
interface EndpointSpec extends Omit<Endpoint, "addresses"> {
  /** As it is configured, in lower case unless it is a unix socket. */
  readonly host: string;
  readonly resolve: Service["resolve"];
}

/** Pools by target and address: they outlive versions of the configuration, so that a change drops no connection. */
export class PoolRegistry {
  readonly #pools = new Map<string, ConnectionPool>();
  readonly #keys = new WeakMap<ConnectionPool, string>();
  readonly #now: () => number;
  readonly #names: ResolvedNameContext;

  constructor(now: () => number, names: ResolvedNameContext) {
    this.#now = now;
    this.#names = names;
  }

  /** The pool of a target as this version of its service wants it; an existing one goes on. */
  poolOf(targetId: string, spec: EndpointSpec, service: Service): ConnectionPool {
    const key = `${targetId} ${JSON.stringify(spec)}`;
    const options = {
      size: service.keepalive.size,
      idleTimeout: service.keepalive.idle_timeout,
      maxRequests: service.keepalive.max_requests,
    };
    let pool = this.#pools.get(key);
    if (pool === undefined) {
      const { host, resolve, ...endpoint } = spec;
      const addresses = addressesOf(host, resolve, this.#names);
      pool = new ConnectionPool({ ...endpoint, addresses }, options, this.#now);
      this.#pools.set(key, pool);
      this.#keys.set(pool, key);
    } else {
      pool.endpoint.addresses.renew();
      pool.configure(options);
    }
    return pool;
  }

  /** Closes the pools that a service had and its next version has not. */
  retire(before: ServiceRuntime, after: ServiceRuntime | null): void {
    const kept = new Set(after?.targets.map((target) => target.pool));
    for (const target of before.targets) {
      if (kept.has(target.pool)) continue;
      this.#pools.delete(this.#keys.get(target.pool) ?? "");
      target.pool.close();
    }
  }

  /** `now`: the real time in the worker's milliseconds. */
  sweep(now: number): void {
    for (const pool of this.#pools.values()) pool.sweep(now);
  }
}

function addressesOf(
  host: string,
  resolve: Service["resolve"],
  names: ResolvedNameContext,
): Addresses {
  if (host.startsWith(UNIX)) return new FixedAddress({ unix: host.slice(UNIX.length) });
  if (isIP(host) !== 0) return new FixedAddress({ host });
  const question = { kind: resolve === "srv" ? "srv" : "dns", name: host } as const;
  return new ResolvedName(question, resolve === "static", names);
}

const UNIX = "unix:";

/** What the services of one worker share. */
export interface ServiceContext {
  readonly board: TargetBoard;
  readonly worker: number;
  /** Signs the cookies that keep clients on a target. */
  readonly stickyKey: string;
  readonly managementCookies: ManagementCookies;
}

/** Prepares one version of a service; runs once when it is stored or changed. */
export function serviceRuntime(
  plan: ServicePlan,
  pools: PoolRegistry,
  context: ServiceContext,
): ServiceRuntime {
  const { service } = plan;
  const { board } = context;
  const targets = plan.targets.map((target) => {
    const row = board.rowOf(target.id);
    return {
      ...targetRuntime(target, plan, pools),
      ...{ row, epoch: board.get(row, "epoch"), heads: new HeadCache(context.managementCookies) },
    };
  });
  return {
    id: plan.id,
    service,
    isHttp: service.protocol === "http" || service.protocol === "https",
    group: new TargetGroup(service, targets, context),
    targets,
    sticky: service.sticky.enabled ? new StickyTargets(service, targets, context.stickyKey) : null,
    timeouts: {
      connect: service.connect_timeout,
      response: service.response_timeout,
      read: service.read_timeout,
      write: service.write_timeout,
    },
  };
}

function targetRuntime(
  target: Target,
  { service, clientCertificate }: ServicePlan,
  pools: PoolRegistry,
): Omit<TargetRuntime, "row" | "epoch" | "heads"> {
  const isTls = service.protocol === "https" || service.protocol === "tls";
  const pool = pools.poolOf(
    target.id,
    {
      ...placeOf(target, service),
      tls: isTls ? { ...tlsOptions(service), ...clientCertificate } : null,
    },
    service,
  );
  return {
    id: target.id,
    weight: target.weight,
    priority: target.priority,
    endpoint: pool.endpoint,
    authority: authorityOf(pool.endpoint),
    pool,
  };
}

/** A trailing dot says that a name is complete, which all of them are. */
function placeOf(target: Target, { resolve, protocol }: Service): Omit<EndpointSpec, "tls"> {
  if (target.host.startsWith(UNIX))
    return { host: target.host, hostname: "localhost", port: 0, resolve: "static" };
  const host = target.host
    .replace(/^\[|\]$/g, "")
    .toLowerCase()
    .replace(/\.$/, "");
  if (resolve === "srv" && isIP(host) === 0)
    // RFC 6125 section 6.5.1: the name before the records were asked is the one that was meant.
    return { host, hostname: host.replace(/^(_[^.]*\.)+/, ""), port: 0, resolve };
  const usual = protocol === "https" || protocol === "tls" ? 443 : 80;
  return { host, hostname: host, port: target.port ?? usual, resolve };
}

/** Host of requests that name the endpoint: without its port when that is the usual one, or only found with the address. */
export function authorityOf({ hostname, port, tls }: Endpoint): string {
  const shown = hostname.includes(":") ? `[${hostname}]` : hostname;
  return port === 0 || port === (tls === null ? 80 : 443) ? shown : `${shown}:${port}`;
}

/** How TLS is spoken to targets of the service. */
export function tlsOptions(service: Service): NonNullable<Endpoint["tls"]> {
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
