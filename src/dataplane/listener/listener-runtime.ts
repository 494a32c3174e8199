// A listener as requests need it, prepared once per version; knows no socket.
import type { Listener } from "../../model/listener.ts";
import type { Settings } from "../../model/settings.ts";
import { IN_FLIGHT_KEY, inFlightKey } from "../../shared-memory/series-key.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import { HostCache } from "../../http/authority.ts";
import { withProxyNetworks } from "../../net/known-proxies.ts";
import { compileCidrs } from "../../net/cidr.ts";
import type { InFlightLimit } from "../overload.ts";
import { NO_ROW } from "../health/target-group.ts";
import type { Intents } from "../intents.ts";
import { clientAuthKey } from "./client-auth.ts";
import type { ListenerChoice } from "./shared-port.ts";

export interface ListenerRuntime {
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
  /** Average bytes per second that a request body must reach, unless the route sets its own; 0: no limit. */
  readonly bodyMinRate: number;
  /** Limits of requests in flight, of the listener and in total; empty: none. */
  readonly inFlightLimits: readonly InFlightLimit[];
  /** Seconds. */
  readonly idleTimeout: number;
  /** Client certificate settings that a connection must have been verified with; null: any connection will do. */
  readonly clientAuthKey: string | null;
  readonly hosts: HostCache;
  /** Whether the gateway sends X-Request-Id to targets and clients. */
  readonly namesRequests: boolean;
  /** Whether clients may speak HTTP/2 or HTTP/3; on a plain listener HTTP/2 with prior knowledge. */
  readonly isMultiplexed: boolean;
  /** Whether all connections use TLS 1.3. */
  readonly isTls13: boolean;
  /** Header lines that the gateway adds upstream to every request of this listener. */
  readonly upstreamFields: string;
  /** Selects the listener by host; null: this one serves every host at its port. */
  readonly choice: ListenerChoice<ListenerRuntime> | null;
  /** A placeholder for hosts that no listener at the port serves. */
  readonly servesNoHost: boolean;
}

/** Bun checks idle connections every 4 s: with a timeout below 5 s it would close one that was active a moment ago. */
const SHORTEST_IDLE_S = 5;

/** The idle timeout for Bun.serve, in seconds. */
export const idleTimeoutOf = (listener: Listener): number =>
  Math.max(listener.idle_timeout, SHORTEST_IDLE_S);

/** Limits of requests in flight. A limit gets its row on the board when its version becomes active. */
export function inFlightLimits(
  listener: Listener,
  settings: Settings,
  { board, intents }: { readonly board: TargetBoard; readonly intents: Intents },
): readonly InFlightLimit[] {
  const limits = [
    { key: inFlightKey(listener.id), most: listener.max_in_flight_requests },
    { key: IN_FLIGHT_KEY, most: settings.limits.max_in_flight_total },
  ];
  return limits
    .filter(({ most }) => most > 0)
    .map(({ key, most }) => {
      const limit = { row: NO_ROW, most };
      intents.onActivate(() => {
        limit.row = board.rowOf(key);
      });
      return limit;
    });
}

/** Runs once for each version of the listener or the settings. */
export function listenerRuntime(
  listener: Listener,
  settings: Settings,
  inFlightLimits: readonly InFlightLimit[] = [],
): ListenerRuntime {
  const named = [...settings.trusted_proxies, ...listener.trusted_proxies];
  const trusted = withProxyNetworks(named, settings);
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
    clientAuthKey: clientAuthKey(listener),
    hosts: new HostCache(),
    namesRequests: settings.requests.ids,
    isMultiplexed: listener.http2 || listener.http3,
    isTls13: listener.protocol === "https" && listener.tls_min_version === "1.3",
    upstreamFields: `X-Forwarded-Proto: ${listener.protocol}\r\nX-Forwarded-Port: ${listener.port}\r\n`,
    choice: null,
    servesNoHost: false,
  };
}
