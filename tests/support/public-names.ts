// How clients reach a gateway by public names on the usual ports, which all lead to this machine; knows no application.
import { connect, createServer, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { curl } from "./curl.ts";

interface Ports {
  readonly httpPort: number;
  readonly httpsPort: number;
}

/** curl to a URL whose name, with the port 443 or 80, is the gateway. */
export const visit = (gateway: Ports, url: string, args: readonly string[] = []) =>
  curl(url, [
    ...[
      "--connect-to",
      `::127.0.0.1:${url.startsWith("https:") ? gateway.httpsPort : gateway.httpPort}`,
    ],
    ...args,
  ]);

export interface SocketOptions {
  /** Default: that of the URL. */
  readonly origin?: string;
  readonly protocols?: readonly string[];
}

/** A WebSocket to `wss://name/path`; rejects when the handshake is refused. */
export function webSocket(
  { httpsPort }: Ports,
  url: string,
  { origin, protocols = [] }: SocketOptions = {},
): Promise<WebSocket> {
  const { host, pathname, search } = new URL(url);
  const socket = new WebSocket(`wss://127.0.0.1:${httpsPort}${pathname}${search}`, {
    headers: { host, origin: origin ?? `https://${host}` },
    protocols: [...protocols],
    tls: { rejectUnauthorized: false },
  } as never);
  socket.binaryType = "arraybuffer";
  return new Promise((done, failed) => {
    socket.onopen = () => done(socket);
    socket.onerror = () => failed(new Error(`no WebSocket at ${url}`));
  });
}

/** The next message, as text or bytes. */
export const messageOf = (socket: WebSocket) =>
  new Promise<string | Uint8Array>((done, failed) => {
    socket.onmessage = ({ data }) =>
      done(typeof data === "string" ? data : new Uint8Array(data as ArrayBuffer));
    socket.onclose = ({ code }) => failed(new Error(`closed with ${code}`));
  });

/** A proxy for programs that cannot be given an address for a name: CONNECT to port 443 of any name reaches the gateway. */
export async function startNameProxy({ httpsPort }: Ports) {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    sockets.add(client);
    client.on("error", () => {});
    client.on("close", () => sockets.delete(client));
    client.once("data", (head) => {
      if (!/^CONNECT [\w.-]+:443 /.test(head.toString("latin1"))) return client.destroy();
      const gateway = connect(httpsPort, "127.0.0.1", () => {
        client.write("HTTP/1.1 200 OK\r\n\r\n");
        client.pipe(gateway).pipe(client);
      });
      gateway.on("error", () => client.destroy());
      client.on("close", () => gateway.destroy());
      return undefined;
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
