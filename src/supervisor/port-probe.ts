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

/** A port of an object of the configuration. */
interface OwnedPort extends WantedPort {
  readonly object: "listener" | "stream_route";
  readonly id: string;
  readonly name: string;
}

export interface PortFailure {
  readonly port: OwnedPort;
  readonly issue: Issue;
  /** Without the address and the program that holds the port. */
  readonly reason: string;
}

/**
 * Binds once each port that `next` listens on and `previous` does not. Workers share ports (SO_REUSEPORT), and the system lets
 * two programs of one user share one as well: without this probe each would get half of the connections.
 */
export async function failingPorts(
  previous: Snapshot | null,
  next: Snapshot,
): Promise<readonly PortFailure[]> {
  const bound = previous === null ? [] : portsIn(previous);
  const failures: PortFailure[] = [];
  /** Of ports that listeners share. */
  const known = new Map<string, PortProblem | null>();
  for (const port of portsIn(next)) {
    // Our own workers hold the port: binding would fail, and no other program can have it.
    if (bound.some((own) => own.transport === port.transport && overlaps(own, port))) continue;
    const place = `${port.transport} ${port.address} ${port.port}`;
    if (!known.has(place)) known.set(place, await problemOf(port));
    const problem = known.get(place) ?? null;
    if (problem === null) continue;
    failures.push({ port, issue: issueOf(port, problem), reason: problem.reason });
  }
  return failures;
}

/** A port that workers listen on. */
export interface WantedPort extends ListenAddress {
  readonly transport: "tcp" | "udp";
  /** `listener "http"`. */
  readonly owner: string;
}

function portsIn({ listeners, streamRoutes }: Snapshot): OwnedPort[] {
  const ports: OwnedPort[] = [];
  for (const { id, listener, isUnbound = false } of listeners.values()) {
    if (isUnbound) continue;
    const { name, address, port, protocol, http3 } = listener;
    const own = { object: "listener", id, name, address, port } as const;
    ports.push({ ...own, transport: "tcp", owner: `listener "${name}"` });
    if (http3 && protocol === "https")
      ports.push({ ...own, transport: "udp", owner: `listener "${name}" (HTTP/3)` });
  }
  for (const { id, route, ports: numbers } of streamRoutes.values()) {
    const { name, listen_address: address, protocol: transport } = route;
    const own = { object: "stream_route", id, name, address, transport } as const;
    for (const port of numbers) ports.push({ ...own, port, owner: `stream route "${name}"` });
  }
  return ports;
}

interface PortProblem {
  readonly reason: string;
  readonly status: 400 | 409;
  /** ` by nginx (pid 12)`, or empty. */
  readonly holder: string;
}

/** Null: the port can be bound. */
export async function probePort(wanted: WantedPort): Promise<Issue | null> {
  const problem = await problemOf(wanted);
  return problem === null ? null : issueOf(wanted, problem);
}

function issueOf({ owner, address, port, transport }: WantedPort, problem: PortProblem): Issue {
  const { reason, status, holder } = problem;
  const what = transport === "udp" ? `UDP port ${port}` : `port ${port}`;
  return { path: "", message: `${owner}: ${what} on ${address}: ${reason}${holder}`, status };
}

async function problemOf({ address, port, transport }: WantedPort): Promise<PortProblem | null> {
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
    return { reason, status, holder: holder === null ? "" : ` by ${holder.name}` };
  }
}
