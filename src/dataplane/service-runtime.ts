// A service as one worker uses it: its targets with their connection pools, its limits; knows no route.
import { isIP } from "node:net";
import type { ManagementCookies } from "../http/management-cookies.ts";
import type { Service } from "../model/service.ts";
import {
  isGrpcProtocol,
  isHttp2Protocol,
  isHttpProtocol,
  isTlsProtocol,
} from "../snapshot/upstream-protocol.ts";
import type { Target } from "../model/target.ts";
import type { TargetBoard } from "../shared-memory/target-board.ts";
import type { ServicePlan } from "../snapshot/snapshot.ts";
import { type Addresses, FixedAddress } from "./names/addresses.ts";
import { ResolvedName, type ResolvedNameContext } from "./names/resolved-name.ts";
import { type GroupTarget, NO_ROW, TargetGroup } from "./health/target-group.ts";
import type { Intents } from "./intents.ts";
import type { Endpoint } from "./upstream/endpoint.ts";
import { Http1Transport } from "./upstream/exchange.ts";
import { StickyTargets } from "./sticky.ts";
import { Http2Transport } from "./upstream/http2-exchange.ts";
import { SessionPool } from "./upstream/http2-pool.ts";
import { HeadCache } from "./upstream/response-head.ts";
import { parseLenientHead, parseResponseHead } from "./upstream/response-parser.ts";
import { ConnectionPool } from "./upstream/pool.ts";
import type { ExchangeTimeouts, UpstreamTransport } from "./upstream/transport.ts";

export interface TargetRuntime extends GroupTarget {
  readonly endpoint: Endpoint;
  /** Host header for the target: `host` or `host:port`. */
  readonly authority: string;
  readonly pool: TargetPool;
  readonly heads: HeadCache;
  readonly transport: UpstreamTransport;
}

export interface ServiceRuntime {
  readonly id: string;
  readonly service: Service;
  readonly isHttp: boolean;
  readonly isGrpc: boolean;
  /** Whether its targets speak HTTP/2, and so may speak gRPC. */
  readonly isHttp2: boolean;
  readonly group: TargetGroup<TargetRuntime>;
  readonly targets: readonly TargetRuntime[];
  /** Null without sticky sessions. */
  readonly sticky: StickyTargets<TargetRuntime> | null;
  readonly timeouts: ExchangeTimeouts;
}

type TargetPool = ConnectionPool | SessionPool;

/** How to connect to a target, as plain data. */
interface EndpointSpec extends Omit<Endpoint, "addresses"> {
  /** As configured, in lower case unless it is a unix socket. */
  readonly host: string;
  readonly resolve: Service["resolve"];
  readonly isHttp2: boolean;
}

/** Connection pools by target and endpoint: they outlive configuration versions, so that a change drops no connection. */
export class PoolRegistry {
  readonly #pools = new Map<string, TargetPool>();
  readonly #keys = new WeakMap<TargetPool, string>();
  readonly #now: () => number;
  readonly #names: ResolvedNameContext;

  constructor(now: () => number, names: ResolvedNameContext) {
    this.#now = now;
    this.#names = names;
  }

  /**
   * The pool of a target for a candidate version. A live pool is reconfigured when that version becomes active;
   * a new one belongs to the candidate until then.
   */
  poolOf(
    { id, spec }: { readonly id: string; readonly spec: EndpointSpec },
    service: Service,
    intents: Intents,
  ): TargetPool {
    const key = `${id} ${JSON.stringify(spec)}`;
    const options = {
      size: service.keepalive.size,
      idleTimeout: service.keepalive.idle_timeout,
      maxRequests: service.keepalive.max_requests,
    };
    const live = this.#pools.get(key);
    if (live !== undefined) {
      intents.onActivate(() => {
        live.endpoint.addresses.renew();
        live.configure(options);
      });
      return live;
    }
    const { host: _, resolve: __, isHttp2, ...plain } = spec;
    const endpoint = { ...plain, addresses: addressesOf(spec, this.#names) };
    const made = isHttp2
      ? new SessionPool(endpoint, options, this.#now)
      : new ConnectionPool(endpoint, options);
    intents.onActivate(() => {
      this.#pools.set(key, made);
      this.#keys.set(made, key);
    });
    intents.onDiscard(() => made.close());
    return made;
  }

  /** Closes the pools that the next versions of the services no longer use. */
  retire(before: Iterable<ServiceRuntime>, after: Iterable<ServiceRuntime>): void {
    const gone = new Set<TargetPool>();
    for (const { targets } of before) for (const { pool } of targets) gone.add(pool);
    // A target may have moved from one service to another.
    for (const { targets } of after) for (const { pool } of targets) gone.delete(pool);
    for (const pool of gone) {
      this.#pools.delete(this.#keys.get(pool) ?? "");
      pool.close();
    }
  }

  /** `now` in the worker's milliseconds. */
  sweep(now: number): void {
    for (const pool of this.#pools.values()) pool.sweep(now);
  }
}

function addressesOf({ host, resolve, port }: EndpointSpec, names: ResolvedNameContext): Addresses {
  if (host.startsWith(UNIX)) return new FixedAddress({ unix: host.slice(UNIX.length) });
  if (isIP(host) !== 0) return new FixedAddress({ host });
  const question = { kind: resolve === "srv" ? "srv" : "dns", name: host, port } as const;
  return new ResolvedName(question, resolve === "static", names);
}

const UNIX = "unix:";

/** What the services of one worker share, and the intents of the candidate version. */
export interface ServiceContext {
  readonly board: TargetBoard;
  readonly worker: number;
  /** Signs sticky cookies. */
  readonly stickyKey: string;
  readonly managementCookies: ManagementCookies;
  readonly pools: PoolRegistry;
  readonly intents: Intents;
}

/** Runs once for each version of a service. */
export function serviceRuntime(plan: ServicePlan, context: ServiceContext): ServiceRuntime {
  const { service } = plan;
  const targets = plan.targets.map((target) => targetRuntime(target, plan, context));
  const group = new TargetGroup(service, targets, context);
  context.intents.onActivate(() => group.claim());
  return {
    id: plan.id,
    service,
    isHttp: isHttpProtocol(service.protocol),
    isGrpc: isGrpcProtocol(service.protocol),
    isHttp2: isHttp2Protocol(service.protocol),
    group,
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
  { pools, intents, managementCookies }: ServiceContext,
): TargetRuntime {
  const isTls = isTlsProtocol(service.protocol);
  const tls = isTls ? { ...tlsOptions(service), ...clientCertificate } : null;
  const isHttp2 = isHttp2Protocol(service.protocol);
  const spec = { ...endpointSpecOf(target, service), tls, isHttp2 };
  const pool = pools.poolOf({ id: target.id, spec }, service, intents);
  const lenient = service.response_parsing === "lenient" ? parseLenientHead : null;
  const heads = new HeadCache(parseResponseHead, managementCookies, lenient);
  return {
    id: target.id,
    weight: target.weight,
    priority: target.priority,
    row: NO_ROW,
    epoch: 0,
    endpoint: pool.endpoint,
    authority: authorityOf(pool.endpoint),
    pool,
    heads,
    transport:
      pool instanceof SessionPool
        ? new Http2Transport(pool, heads)
        : new Http1Transport(pool, heads),
  };
}

/** Without a trailing dot: all names are fully qualified. */
function endpointSpecOf(
  target: Target,
  { resolve, protocol }: Service,
): Omit<EndpointSpec, "tls" | "isHttp2"> {
  if (target.host.startsWith(UNIX))
    return { host: target.host, hostname: "localhost", port: 0, resolve: "static" };
  const host = target.host
    .replace(/^\[|\]$/g, "")
    .toLowerCase()
    .replace(/\.$/, "");
  if (resolve === "srv" && isIP(host) === 0)
    // RFC 6125 section 6.5.1: TLS verifies the name before the SRV lookup.
    return { host, hostname: host.replace(/^(_[^.]*\.)+/, ""), port: 0, resolve };
  const defaultPort = isTlsProtocol(protocol) ? 443 : 80;
  return { host, hostname: host, port: target.port ?? defaultPort, resolve };
}

/** Host header for an endpoint: without its port when it is the default one or comes from an SRV record. */
export function authorityOf({ hostname, port, tls }: Endpoint): string {
  const shown = hostname.includes(":") ? `[${hostname}]` : hostname;
  return port === 0 || port === (tls === null ? 80 : 443) ? shown : `${shown}:${port}`;
}

/** TLS options for connections to the service's targets. */
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
    ...(isHttp2Protocol(service.protocol) ? { alpn: "h2" as const } : {}),
    // RFC 9113 section 9.2: HTTP/2 needs 1.2.
    minVersion: Math.max(
      VERSIONS[version],
      isHttp2Protocol(service.protocol) ? VERSIONS["1.2"] : 0,
    ),
  };
}

/** As on the wire. */
const VERSIONS = { "1.0": 0x0301, "1.1": 0x0302, "1.2": 0x0303, "1.3": 0x0304 } as const;
