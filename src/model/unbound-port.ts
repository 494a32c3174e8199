// A port of the configuration that the gateway does not listen on, and how it says so; knows no socket.

/** A port of the configuration that this machine cannot listen on at present. */
export interface UnboundPort {
  readonly object: "listener" | "stream_route";
  readonly id: string;
  readonly name: string;
  readonly transport: "tcp" | "udp";
  readonly port: number;
  /** `address already in use`. */
  readonly reason: string;
}

/** In one sentence, without addresses: for clients that have not signed in. */
export function unboundSentence({ object, name, transport, port, reason }: UnboundPort): string {
  const what = object === "listener" ? "listener" : "stream route";
  const number = transport === "udp" ? `UDP port ${port}` : `port ${port}`;
  return `${what} "${name}" does not listen on ${number}: ${reason}`;
}

/** One sentence for all of them: a range may have thousands. */
export function unboundText(ports: readonly UnboundPort[]): string {
  const more = ports.length > MAX_PORTS ? ` (and ${ports.length - MAX_PORTS} more ports)` : "";
  return `${ports.slice(0, MAX_PORTS).map(unboundSentence).join("; ")}${more}`;
}

const MAX_PORTS = 10;
