// A socket whose owner throws: Bun leaves it open, so it is ended, and what was counted for it is so no more.
import { describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import {
  type AcceptedSocket,
  acceptedHandlers,
  type SocketOwner,
} from "../../../src/dataplane/listener/client-socket.ts";
import { createTlsContext, startTls } from "../../../src/dataplane/server/bun-tls.ts";
import { selfSigned } from "../../support/certificate.ts";
import { eventually } from "../../support/poll.ts";

/** Throws at the event; keeps what `clientClosed` got. */
function throwing(event: "clientSent" | "clientEnded", closed: boolean[]): SocketOwner {
  const fail = () => {
    throw new Error("a fault of ours");
  };
  return {
    clientSent() {},
    clientDrained() {},
    clientEnded() {},
    clientClosed: (isReset) => void closed.push(isReset),
    [event]: fail,
  };
}

function listen(accept: (socket: AcceptedSocket) => void) {
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    allowHalfOpen: true,
    socket: acceptedHandlers(accept),
  } as unknown as Parameters<typeof Bun.listen>[0]);
  return server as unknown as { readonly port: number; stop(force: boolean): void };
}

/** Waits until the server has closed the connection. */
async function closedBy(port: number, act: (socket: Socket) => void, isTls = false) {
  const to = { host: "127.0.0.1", port, allowHalfOpen: true };
  const client = isTls ? connectTls({ ...to, rejectUnauthorized: false }) : connect(to);
  client.on("error", () => {});
  client.once(isTls ? "secureConnect" : "connect", () => act(client));
  client.resume();
  await eventually(() => client.closed);
}

describe("the connection of an owner that throws ends", () => {
  test.each([
    ["at bytes", "clientSent", (socket: Socket): void => void socket.write("x")],
    ["at FIN", "clientEnded", (socket: Socket): void => void socket.end()],
  ] as const)("%s", async (_when, event, act) => {
    const closed: boolean[] = [];
    const server = listen((socket) => {
      socket.data = throwing(event, closed);
    });
    await closedBy(server.port, act);
    server.stop(true);
    expect(closed).toEqual([true]);
  });

  test("at bytes over TLS", async () => {
    const closed: boolean[] = [];
    const context = createTlsContext(await selfSigned("localhost"));
    const owner = throwing("clientSent", closed);
    const server = listen((socket) => {
      const begin = { clientDrained() {}, clientEnded() {}, clientClosed() {} };
      const clientSent = (received: Buffer) => {
        const start = {
          context,
          protocols: null,
          clientCertificate: "none",
          received,
          owner,
        } as const;
        socket.data = startTls(socket, start).plain;
      };
      socket.data = { ...begin, clientSent };
    });
    await closedBy(server.port, (socket) => void socket.write("x"), true);
    server.stop(true);
    expect(closed).toEqual([true]);
  });
});
