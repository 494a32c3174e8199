// What requests need to know of the listener they came through, prepared once; knows no socket.
import type { Listener } from "../../model/listener.ts";
import type { Settings } from "../../model/settings.ts";
import { IN_FLIGHT_KEY, inFlightKey } from "../../shared-memory/series-key.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import { HostCache } from "../../http/authority.ts";
import { compileCidrs } from "../../net/cidr.ts";
import type { InFlightLimit } from "../overload.ts";
import { NO_ROW } from "../health/target-group.ts";
import type { Intents } from "../intents.ts";
import { clientAuthority } from "./client-auth.ts";
import type { ListenerChoice } from "./shared-port.ts";

export interface ListenerFacts {
  readonly id: string;
  readonly protocol: "http" | "https";
  readonly port: number;
  readonly trustsAnyone: boolean;
  isTrusted(address: string): boolean;
  readonly maxTargetBytes: number;
  readonly maxHeaderFields: number;
  readonly maxHeaderBytes: number;
  /** 0: no limit. */
  readonly maxBodyBytes: number;
  /** Bytes per second that a body must bring on average, unless the route says otherwise; 0: any number. */
  readonly bodyMinRate: number;
  /** How many requests may be in flight, here and in all; empty: any number. */
  readonly inFlightLimits: readonly InFlightLimit[];
  /** Seconds. */
  readonly idleTimeout: number;
  /** What connections must have been held against to be served; null: anything. */
  readonly clientAuthority: string | null;
  readonly hosts: HostCache;
  /** Whether targets and clients learn the ids of requests. */
  readonly namesRequests: boolean;
  /** Whether clients may speak HTTP/2 or HTTP/3; on a plain listener too, to those that know it beforehand. */
  readonly isMultiplexed: boolean;
  /** Whether all connections are TLS 1.3. */
  readonly isTls13: boolean;
  /** The fields that every request through this listener carries upstream. */
  readonly upstreamFields: string;
  /** Which listener serves a host; null: this one serves every host that comes to its port. */
  readonly choice: ListenerChoice<ListenerFacts> | null;
  /** Stands for no listener: none at the port serves the host. */
  readonly isElsewhere: boolean;
}

/** Bun looks at its connections every four seconds: with less than five, one that was used a moment ago would be closed. */
const SHORTEST_IDLE_S = 5;

/** Seconds that Bun is told. */
export const idleTimeoutOf = (listener: Listener): number =>
  Math.max(listener.idle_timeout, SHORTEST_IDLE_S);

/** Limits of requests in flight; their rows are claimed when they come into force, and only where there is a limit. */
export function inFlightLimits(
  listener: Listener,
  settings: Settings,
  { board, intents }: { readonly board: TargetBoard; readonly intents: Intents },
): readonly InFlightLimit[] {
  const wanted = [
    { key: inFlightKey(listener.id), most: listener.max_in_flight_requests },
    { key: IN_FLIGHT_KEY, most: settings.limits.max_in_flight_total },
  ];
  return wanted
    .filter(({ most }) => most > 0)
    .map(({ key, most }) => {
      const limit = { row: NO_ROW, most };
      intents.onActivate(() => {
        limit.row = board.rowOf(key);
      });
      return limit;
    });
}

/** Prepares them; runs once for each version of the listener or the settings. */
export function listenerFacts(
  listener: Listener,
  settings: Settings,
  inFlightLimits: readonly InFlightLimit[] = [],
): ListenerFacts {
  const trusted = [...settings.trusted_proxies, ...listener.trusted_proxies];
  return {
    id: listener.id,
    protocol: listener.protocol,
    port: listener.port,
    trustsAnyone: trusted.length > 0,
    isTrusted: compileCidrs(trusted),
    maxTargetBytes: settings.limits.max_target_bytes,
    maxHeaderFields: settings.limits.max_header_fields,
    maxHeaderBytes: listener.max_header_bytes,
    maxBodyBytes: listener.max_body_bytes,
    bodyMinRate: listener.body_min_rate,
    inFlightLimits,
    idleTimeout: idleTimeoutOf(listener),
    clientAuthority: clientAuthority(listener),
    hosts: new HostCache(),
    namesRequests: settings.requests.ids,
    isMultiplexed: listener.http2 || listener.http3,
    isTls13: listener.protocol === "https" && listener.tls_min_version === "1.3",
    upstreamFields: `x-forwarded-proto: ${listener.protocol}\r\nx-forwarded-port: ${listener.port}\r\n`,
    choice: null,
    isElsewhere: false,
  };
}
