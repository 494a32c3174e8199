// Clients that use up the descriptors of a gateway whose listener is our own engine's: it stops listening, and recovers.
import { expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { startGateway } from "../../support/gateway.ts";
import { reply, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { sendRaw } from "../../support/raw-http.ts";

/** Whether the port takes a connection. */
const isTaken = (port: number): Promise<boolean> => {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ port, host: "127.0.0.1" });
  socket.on("connect", () => resolve(true));
  socket.on("error", () => resolve(false));
  return promise.finally(() => socket.destroy());
};

const GET = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

test("out of descriptors the gateway stops listening, and serves again when the crowd has left", async () => {
  const origin = startOrigin({ answer: reply() });
  const gateway = await startGateway({
    workers: 1,
    wrap: ["sh", "-c", 'ulimit -n 160; exec "$0" "$@"'],
  });
  const crowd: Socket[] = [];
  const counted = (text: string) =>
    gateway.log.filter(({ message }) => message.startsWith(text)).length;
  try {
    await gateway.ok("PATCH", "/api/v1/listeners/http", { engine: "sluice" });
    await gateway.ok("POST", "/api/v1/services", {
      name: "origin",
      targets: [{ host: "127.0.0.1", port: origin.port }],
    });
    await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "origin" });
    for (let at = 0; at < 400; at++) {
      const socket = connect({ port: gateway.httpPort, host: "127.0.0.1" });
      socket.on("error", () => {});
      crowd.push(socket);
    }
    await eventually(() => counted("too many files and sockets are open") === 1);
    // No listener, no accept loop that fails and begins again.
    await eventually(async () => !(await isTaken(gateway.httpPort)));
    expect((await gateway.api("GET", "/healthz", undefined, { connection: "close" })).ok).toBe(
      true,
    );
    for (const socket of crowd.splice(0)) socket.destroy();
    await eventually(async () =>
      (await sendRaw(GET, { port: gateway.httpPort })).startsWith("HTTP/1.1 200 "),
    );
    expect(counted("worker stopped")).toBe(0);
  } finally {
    for (const socket of crowd) socket.destroy();
    await gateway.stop();
    origin.stop();
  }
});
