// A slow change, or one that waits behind it: its connection stays open, however long it is silent.
import { expect, test } from "bun:test";
import { createManagementApi, serveManagementApi } from "../../../src/api/server.ts";
import { createLog } from "../../../src/log.ts";
import { configOf, controlPlane, service } from "../../unit/control/fixture.ts";

/** Bun checks for idle connections every four seconds. */
const LONG_MS = 9_000;

test("changes get a response however long they wait; idle connections are closed", async () => {
  const services = ["held", "behind"];
  const { control, steps } = controlPlane(
    configOf({ services: services.map((name) => service(name)) }),
  );
  const gate = Promise.withResolvers<void>();
  steps.gate = gate.promise;
  const api = createManagementApi({
    control,
    clock: { now: () => 0 },
    version: "0",
    startedAt: 0,
    boundHost: "127.0.0.1",
    log: createLog({ level: "error", format: "json", sink() {} }),
  });
  const server = serveManagementApi(api, { hostname: "127.0.0.1", port: 0, idleTimeout: 1 });
  const timer = setTimeout(gate.resolve, LONG_MS);
  try {
    // Without bodies: the runtime does not time out a request whose body has arrived.
    const requests = services.map((name) => `DELETE /api/v1/services/${name} HTTP/1.1`);
    // The last one is idle.
    const answers = [...requests, null].map((line) => firstLine(server.port, line));
    expect(await Promise.all(answers)).toEqual(["HTTP/1.1 200 OK", "HTTP/1.1 200 OK", ""]);
  } finally {
    clearTimeout(timer);
    gate.resolve();
    await server.stop();
  }
});

/** What comes back on a connection of its own until the first line has ended, or all of it when it is closed before. */
async function firstLine(port: number, request: string | null): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let received = "";
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(_, bytes) {
        received += bytes.toString("latin1");
        if (received.includes("\r\n")) resolve(received.split("\r\n")[0] ?? "");
      },
      close: () => resolve(received),
    },
  });
  if (request !== null) socket.write(`${request}\r\nHost: localhost\r\n\r\n`);
  return await promise.finally(() => socket.end());
}
