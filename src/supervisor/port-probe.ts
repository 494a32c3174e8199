// Checks that the ports of new listeners are free before workers bind them; knows nothing of HTTP.
import type { Issue } from "../model/error.ts";
import type { ListenAddress } from "../net/destinations.ts";
import { overlaps } from "../snapshot/address-overlap.ts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import { ownerOfPort } from "./port-owner.ts";

const REASONS: Readonly<Record<string, readonly [reason: string, status: 400 | 409]>> = {
  EADDRINUSE: ["address already in use", 409],
  EADDRNOTAVAIL: ["no such address on this machine", 400],
  EACCES: ["permission denied", 400],
};

/**
 * Binds once each port that `next` listens on and `previous` does not. Workers share ports (SO_REUSEPORT), and the system lets
 * two programs of one user share one as well: without this probe each would get half of the connections.
 */
export async function probeNewPorts(
  previous: Snapshot | null,
  next: Snapshot,
): Promise<readonly Issue[]> {
  const bound = previous === null ? [] : portsIn(previous);
  const issues: Issue[] = [];
  for (const wanted of portsIn(next)) {
    // Our own workers hold the port: binding would fail, and no other program can have it.
    if (bound.some((own) => own.transport === wanted.transport && overlaps(own, wanted))) continue;
    const issue = await probePort(wanted);
    if (issue !== null) issues.push(issue);
  }
  return issues;
}

/** A port that workers listen on. */
export interface WantedPort extends ListenAddress {
  readonly transport: "tcp" | "udp";
  /** `listener "http"`. */
  readonly owner: string;
}

function portsIn({ listeners, streamRoutes }: Snapshot): WantedPort[] {
  const ports: WantedPort[] = [];
  for (const { listener } of listeners.values()) {
    const { name, address, port, protocol, http3 } = listener;
    ports.push({ address, port, transport: "tcp", owner: `listener "${name}"` });
    if (http3 && protocol === "https")
      ports.push({ address, port, transport: "udp", owner: `listener "${name}" (HTTP/3)` });
  }
  for (const { route, ports: numbers } of streamRoutes.values())
    for (const port of numbers)
      ports.push({
        address: route.listen_address,
        port,
        transport: route.protocol,
        owner: `stream route "${route.name}"`,
      });
  return ports;
}

/** Null: the port can be bound. */
export async function probePort({
  owner,
  address,
  port,
  transport,
}: WantedPort): Promise<Issue | null> {
  try {
    if (transport === "udp")
      (await Bun.udpSocket({ hostname: address, port, socket: { data() {} } })).close();
    else Bun.listen({ hostname: address, port, socket: { data() {} } }).stop(true);
    return null;
  } catch (error) {
    const { code, message } = error as { readonly code?: string; readonly message: string };
    const [reason, status] = REASONS[code ?? ""] ?? [message, 400 as const];
    const holder = code === "EADDRINUSE" ? ownerOfPort(port, transport) : null;
    // The last sessions of a deleted route hold its port for some seconds: the workers take it over.
    if (transport === "udp" && holder?.pid === process.pid) return null;
    const by = holder === null ? "" : ` by ${holder.name}`;
    const what = transport === "udp" ? `UDP port ${port}` : `port ${port}`;
    return { path: "", message: `${owner}: ${what} on ${address}: ${reason}${by}`, status };
  }
}
