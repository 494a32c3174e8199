// The ports of a listener or stream route that the gateway does not listen on; renders nothing when there are none.
import { useStatus } from "../api/queries.ts";
import { StatusDot } from "./status.tsx";

export function UnboundPorts({ id }: { readonly id: string }) {
  const { data } = useStatus();
  const ports = data?.unbound_ports.filter((port) => port.id === id) ?? [];
  const [first] = ports;
  if (first === undefined) return null;
  const { transport, port, reason } = first;
  const more = ports.length > 1 ? `, and ${ports.length - 1} more` : "";
  const detail = `${transport === "udp" ? "UDP port" : "Port"} ${port}: ${reason}${more}. The gateway tries again.`;
  return <StatusDot state="does not listen" tone="bad" detail={detail} />;
}
