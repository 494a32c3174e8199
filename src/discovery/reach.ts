// Where the gateway reaches a container: its address in a network that they share, else its published ports; sends no request.
import type { Discovery } from "../model/discovery.ts";
import type { ListedContainer } from "./docker-client.ts";

export interface Reach {
  readonly host: string;
  /** The port there of one of the container; null: it is not published. */
  readonly portOf: (port: number) => number | null;
}

interface ReachContext {
  readonly rules: Discovery["docker"];
  /** The container that the gateway itself runs in; undefined: none. */
  readonly own: ListedContainer | undefined;
}

/** `network`: of a label; null: that of the settings. A sentence when it cannot be reached. */
export function reachOf(
  container: ListedContainer,
  network: string | null,
  { rules, own }: ReachContext,
): Reach | string {
  const addresses = container.NetworkSettings?.Networks ?? {};
  const chosen = network ?? rules.network;
  if (chosen !== null) {
    const address = ipOf(addresses[chosen]);
    return address === null
      ? `it has no address in the network ${chosen}; its networks: ${Object.keys(addresses).join(", ") || "none"}`
      : { host: address, portOf: itself };
  }
  const isRemote = !rules.endpoint?.startsWith("unix:");
  const shared = own === undefined ? null : Object.keys(own.NetworkSettings?.Networks ?? {});
  // On the machine itself, a process reaches the addresses of all bridges.
  if (!isRemote || shared !== null)
    for (const [name, entry] of Object.entries(addresses)) {
      const address = ipOf(entry);
      if (address !== null && (shared === null || shared.includes(name)))
        return { host: address, portOf: itself };
    }
  const remote = isRemote
    ? URL.parse((rules.endpoint ?? "").replace(/^tcp:/, "http:"))?.hostname
    : undefined;
  const host = rules.published_address ?? remote ?? "127.0.0.1";
  const { NetworkMode: mode } = container.HostConfig ?? {};
  // Podman does not say which network a container has when it is the machine's own.
  const isHost = mode === "host" || (mode === undefined && Object.keys(addresses).length === 0);
  if (isHost && tcpPorts(container).length === 0)
    return rules.host_ports.length === 0
      ? "it has the network of the machine, where labels may use no port: an admin lists those of containers in host_ports of the settings"
      : { host, portOf: (port) => (rules.host_ports.includes(port) ? port : null) };
  const published = new Map(
    tcpPorts(container).flatMap(({ PrivatePort, PublicPort }) =>
      PublicPort === undefined ? [] : [[PrivatePort, PublicPort] as const],
    ),
  );
  if (published.size === 0)
    return "the gateway shares no network with it, and no port is published";
  return { host, portOf: (port) => published.get(port) ?? null };
}

const itself = (port: number) => port;

const ipOf = (
  entry: { readonly IPAddress?: string; readonly GlobalIPv6Address?: string } | undefined,
): string | null => entry?.IPAddress || entry?.GlobalIPv6Address || null;

const tcpPorts = ({ Ports }: ListedContainer) => Ports.filter(({ Type }) => Type === "tcp");

/** TCP ports that the container exposes, ascending. */
export const exposedPorts = (container: ListedContainer): readonly number[] =>
  [...new Set(tcpPorts(container).map(({ PrivatePort }) => PrivatePort))].toSorted((a, b) => a - b);
