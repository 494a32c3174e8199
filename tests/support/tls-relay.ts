// A relay in front of a TLS server that can end a connection behind the back of TLS, without close_notify; understands no byte.
import { connect, createServer, type Socket } from "node:net";
import { eventually } from "./poll.ts";

export interface TlsRelay {
  readonly port: number;
  /** Sends FIN to all clients, behind what has passed. */
  cut(): void;
  stop(): void;
}

export async function startTlsRelay(targetPort: number): Promise<TlsRelay> {
  const clients = new Set<Socket>();
  const targets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ host: "127.0.0.1", port: targetPort, allowHalfOpen: true });
    clients.add(near);
    targets.add(far);
    for (const socket of [near, far]) socket.on("error", () => {});
    far.on("data", (chunk: Buffer) => near.write(chunk));
    near.on("data", (chunk: Buffer) => far.write(chunk));
    far.on("end", () => near.end());
    near.on("close", () => far.destroy());
  }).listen(0, "127.0.0.1");
  await eventually(() => server.listening);
  return {
    port: (server.address() as { port: number }).port,
    cut() {
      for (const socket of clients) socket.end();
    },
    stop() {
      for (const socket of [...clients, ...targets]) socket.destroy();
      server.close();
    },
  };
}
