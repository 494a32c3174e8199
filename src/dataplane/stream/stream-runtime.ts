// A stream route as one worker uses it: allowed addresses, server names, its row on the board; knows no socket.
import type { StreamRoute } from "../../model/stream-route.ts";
import { compileCidrs } from "../../net/cidr.ts";
import { streamBoardKey } from "../../shared-memory/series-key.ts";
import type { TargetBoard } from "../../shared-memory/target-board.ts";
import type { StreamRoutePlan } from "../../snapshot/snapshot.ts";
import { hashText } from "../balancer/consistent-hash.ts";
import { NO_ROW } from "../health/target-group.ts";
import type { Intents } from "../intents.ts";
import type { ServiceRuntime } from "../service-runtime.ts";

export interface StreamRouteRuntime {
  readonly id: string;
  readonly plan: StreamRoutePlan;
  readonly route: StreamRoute;
  /** Row on the board, which counts connections of all workers; assigned when its version becomes active. */
  row: number;
  /** Whether a client at this address may connect. */
  admits(address: string): boolean;
  /** Whether to trust the PROXY header of a peer at this address. */
  trusts(address: string): boolean;
}

/** Prepares one version of a stream route. */
export function streamRouteRuntime(
  plan: StreamRoutePlan,
  { board, intents }: { readonly board: TargetBoard; readonly intents: Intents },
): StreamRouteRuntime {
  const { route } = plan;
  const allowed = compileCidrs(route.allow);
  const denied = compileCidrs(route.deny);
  const runtime: StreamRouteRuntime = {
    id: plan.id,
    plan,
    route,
    row: NO_ROW,
    admits: (address) => !denied(address) && (route.allow.length === 0 || allowed(address)),
    trusts: compileCidrs(route.proxy_protocol_trusted),
  };
  intents.onActivate(() => {
    runtime.row = board.rowOf(streamBoardKey(plan.id));
  });
  return runtime;
}

/** The key for consistent_hash: a stream has only its client's address; null for other algorithms. */
export const clientKey = ({ service }: ServiceRuntime, address: string): number | null =>
  service.algorithm === "consistent_hash" ? hashText(address) : null;

/** The stream route that matches a TLS server name: exact, then wildcard (one label), then one without names; null: none. */
export function routeOfName(
  routes: readonly StreamRouteRuntime[],
  name: string | null,
): StreamRouteRuntime | null {
  const wildcard = name === null ? null : name.replace(/^[^.]+/, "*");
  let byWildcard: StreamRouteRuntime | null = null;
  let byAny: StreamRouteRuntime | null = null;
  for (const runtime of routes) {
    const { sni } = runtime.route;
    if (sni.length === 0) byAny ??= runtime;
    else if (name !== null && sni.includes(name)) return runtime;
    else if (wildcard !== null && sni.includes(wildcard)) byWildcard ??= runtime;
  }
  return byWildcard ?? byAny;
}
