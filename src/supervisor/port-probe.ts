// Asks the system whether the ports of new listeners are free, before workers bind them; knows nothing of HTTP.
import type { Issue } from "../model/error.ts";
import { overlaps } from "../snapshot/address-overlap.ts";
import type { ListenerPlan, Snapshot } from "../snapshot/snapshot.ts";
import { ownerOfPort } from "./port-owner.ts";

const REASONS: Readonly<Record<string, readonly [reason: string, status: 400 | 409]>> = {
  EADDRINUSE: ["address already in use", 409],
  EADDRNOTAVAIL: ["no such address on this machine", 400],
  EACCES: ["permission denied", 400],
};

/**
 * Binds each port once that `next` listens on and `previous` does not. Workers share ports, and the system lets two
 * programs of one user share one as well: without this probe each would get half of the connections.
 */
export function probeNewPorts(previous: Snapshot | null, next: Snapshot): readonly Issue[] {
  const bound = [...(previous?.listeners.values() ?? [])].map((plan) => plan.listener);
  const issues: Issue[] = [];
  for (const plan of next.listeners.values()) {
    // Our own workers hold the port: it could not be bound, and nobody else can have it.
    if (bound.some((listener) => overlaps(listener, plan.listener))) continue;
    const issue = probe(plan);
    if (issue !== null) issues.push(issue);
  }
  return issues;
}

function probe({ listener: { name, address, port } }: ListenerPlan): Issue | null {
  try {
    Bun.listen({ hostname: address, port, socket: { data() {} } }).stop(true);
    return null;
  } catch (error) {
    const { code, message } = error as { readonly code?: string; readonly message: string };
    const [reason, status] = REASONS[code ?? ""] ?? [message, 400 as const];
    const owner = code === "EADDRINUSE" ? ownerOfPort(port) : null;
    return {
      path: "",
      message: `listener "${name}": port ${port} on ${address}: ${reason}${owner === null ? "" : ` by ${owner}`}`,
      status,
    };
  }
}
