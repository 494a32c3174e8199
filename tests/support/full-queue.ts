// A port that neither accepts nor refuses connections: its queue is full and its process is stopped.
import { connect, type Socket } from "node:net";

export interface FullQueue {
  readonly port: number;
  stop(): void;
}

const PROGRAM = `
  const server = require("node:net").createServer();
  server.listen({ host: "127.0.0.1", port: 0, backlog: 1 }, () => console.log(server.address().port));
`;

/** Resolves when a further connection would hang. */
export async function startFullQueue(): Promise<FullQueue> {
  const child = Bun.spawn([process.execPath, "-e", PROGRAM], { stdout: "pipe" });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  const port = Number(new TextDecoder().decode(value).trim());
  child.kill("SIGSTOP");
  const sockets: Socket[] = [];
  // The kernel completes connections until the queue is full, whatever the process does.
  while (await connects(port, sockets));
  return {
    port,
    stop() {
      for (const socket of sockets) socket.destroy();
      child.kill("SIGKILL");
    },
  };
}

function connects(port: number, sockets: Socket[]): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: "127.0.0.1", port });
  sockets.push(socket);
  socket.on("error", () => undefined);
  socket.on("connect", () => resolve(true));
  setTimeout(() => resolve(false), 300);
  return promise;
}
