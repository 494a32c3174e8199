// Which requests can arrive at a listener, and whether it serves gRPC; knows no engine and no request.
import type { Listener } from "../model/listener.ts";
import { socketField } from "../model/listener-rules.ts";
import type { Route } from "../model/route.ts";
import { normalHost, patternsFor } from "./covering.ts";

/** Whether gRPC clients can use the listener: they need HTTP/2 and trailers. */
export const servesGrpc = ({ http2, engine }: Listener): boolean => http2 && engine === "sluice";

/** The setting of a listener that Bun.serve cannot do; null: none. */
export const beyondBun = (listener: Listener): string | null => socketField(listener);

/** Whether a request for one of the route's hosts can arrive at the listener. */
export function isReachable(
  { listener_ids: ids, protocols, hosts }: Route,
  listener: Listener,
): boolean {
  if (ids.length > 0 && !ids.includes(listener.id)) return false;
  if (!protocols.includes(listener.protocol)) return false;
  if (hosts.length === 0 || listener.hosts.length === 0) return true;
  return hosts.some((host) => listener.hosts.some((other) => overlap(host, other)));
}

/** Whether some host matches both. */
export function overlap(one: string, other: string): boolean {
  const [a, b] = [normalHost(one), normalHost(other)];
  return patternsFor(a).includes(b) || patternsFor(b).includes(a);
}
