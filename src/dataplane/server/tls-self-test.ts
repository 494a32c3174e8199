// Whether this Bun does TLS on accepted sockets as the gateway needs it: handshakes with itself before it serves; knows no listener.
import type { TCPSocketListenOptions } from "bun";
import type { ClientSocket, SocketOwner } from "../listener/client-socket.ts";
import {
  createTlsContext,
  type ServerCertificate,
  startTls,
  type TlsOwner,
  type TlsSocket,
  type TlsStart,
} from "./bun-tls.ts";

const NAME = "self-test.invalid";
const PROTOCOL = "self-test";
/** A machine that needs longer has other problems. */
const TIMEOUT_MS = 10_000;

/** Null: it does. Else what is wrong. */
export async function tlsProblem(certificate: ServerCertificate): Promise<string | null> {
  try {
    const requested = await handshake(certificate, "request");
    const wanted = {
      isDone: true,
      name: NAME,
      protocol: PROTOCOL,
      isAuthorized: false,
      echo: "hello",
    };
    if (!Bun.deepEquals(requested, wanted)) return `unexpected: ${JSON.stringify(requested)}`;
    const required = await handshake(certificate, "require");
    // Clients without a certificate would be served.
    return required.isDone ? "a handshake without the required certificate is done" : null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

interface Outcome {
  isDone: boolean;
  name?: unknown;
  protocol?: unknown;
  isAuthorized?: boolean;
  /** What the client got back. */
  echo?: string;
}

/** One handshake of a client without a certificate. */
async function handshake(
  { cert, key }: ServerCertificate,
  clientCertificate: TlsStart["clientCertificate"],
): Promise<Outcome> {
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
  const outcome: Outcome = { isDone: false };
  const context = createTlsContext({ cert, key, ca: cert });
  const owner: TlsOwner = {
    handshake(socket, isDone) {
      outcome.isDone = isDone;
      if (!isDone) return resolve(outcome);
      outcome.name = socket.getServername();
      outcome.protocol = socket.alpnProtocol;
      outcome.isAuthorized = socket.authorized;
      socket.data = { ...owner, clientSent: (chunk) => void socket.write(chunk) };
    },
    clientSent() {},
    clientDrained() {},
    clientEnded() {},
    clientClosed() {},
  };
  const server = listen((socket, received) => {
    try {
      startTls(socket, { context, protocols: [PROTOCOL], clientCertificate, received, owner });
    } catch (error) {
      reject(error);
    }
  });
  const client = connect(server.port, (echo) => resolve(Object.assign(outcome, { echo })));
  // After all that may throw: its rejection would be handled by none.
  const timer = setTimeout(() => reject(new Error("no handshake")), TIMEOUT_MS);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    server.stop(true);
    void client.then(
      (socket) => socket.terminate(),
      () => undefined,
    );
  }
}

interface Plain extends ClientSocket {
  data: SocketOwner;
}

/** `begins`: a client has sent its first bytes. */
function listen(begins: (socket: Plain, received: Buffer) => void) {
  const open = (socket: Plain) => {
    const ignore = () => {};
    const clientSent = (received: Buffer) => begins(socket, received);
    socket.data = { clientSent, clientDrained: ignore, clientEnded: ignore, clientClosed: ignore };
  };
  const socket = { open, data: (one: Plain, chunk: Buffer) => one.data.clientSent(chunk) };
  return Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket,
  } as unknown as TCPSocketListenOptions<undefined>);
}

function connect(port: number, received: (text: string) => void) {
  return Bun.connect({
    hostname: "127.0.0.1",
    port,
    tls: {
      rejectUnauthorized: false,
      serverName: NAME,
      ALPNProtocols: `${String.fromCharCode(PROTOCOL.length)}${PROTOCOL}`,
    },
    socket: {
      handshake: (socket: TlsSocket) => void socket.write(Buffer.from("hello")),
      data: (_: unknown, chunk: Buffer) => received(String(chunk)),
      error() {},
      connectError() {},
    },
  } as unknown as Parameters<typeof Bun.connect<undefined>>[0]);
}
