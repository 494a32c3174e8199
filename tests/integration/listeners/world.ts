// What tests of listeners share: an origin that returns the request, listeners on free ports, clients that speak bytes or TLS.
import { afterAll, beforeAll } from "bun:test";
import { connect, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { freePort } from "../../support/data-plane.ts";
import { engineOf } from "../../support/engines.ts";
import { type Client, useGateway } from "../api/client.ts";

export interface ListenerWorld {
  readonly api: Client;
  /** Creates a listener on a free port of 127.0.0.1 and returns its port. */
  listener(name: string, fields?: object): Promise<number>;
}

/** A gateway whose every request goes to a server that responds with the received headers as JSON. */
export function useListeners(): ListenerWorld {
  const api = useGateway();
  const origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => Response.json(Object.fromEntries(request.headers)),
  });
  beforeAll(async () => {
    const targets = [{ host: "127.0.0.1", port: origin.port }];
    await api.create("/services", { name: "mirror", targets });
    await api.create("/routes", { name: "mirror", service_id: "mirror" });
  });
  afterAll(() => origin.stop(true));
  return {
    api,
    async listener(name, fields = {}) {
      const port = freePort();
      const own: Record<string, unknown> = { name, address: "127.0.0.1", port, ...fields };
      await api.create("/listeners", { ...own, ...engineOf(own) });
      return port;
    },
  };
}

export const GET = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";

/** The fields that the origin got, of an answer as it came. */
export function mirrored(answer: string): Record<string, string> {
  const start = answer.indexOf("\r\n\r\n{");
  if (start < 0) throw new Error(`no answer of the origin: ${JSON.stringify(answer)}`);
  return JSON.parse(answer.slice(start + 4, answer.lastIndexOf("}") + 1)) as Record<string, string>;
}

/** Writes the parts, each in a packet of its own, and collects until the connection is gone. */
export function talk(
  port: number,
  parts: readonly (string | Buffer)[] = [],
  from = "127.0.0.1",
): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", localAddress: from, noDelay: true });
    let text = "";
    socket.on("data", (data: Buffer) => {
      text += data.toString("latin1");
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(text));
    const [first, ...rest] = parts;
    const send = async () => {
      if (first !== undefined) socket.write(first);
      for (const part of rest) {
        // Long enough for the packet before to be read by itself.
        await Bun.sleep(5);
        socket.write(part);
      }
    };
    void send();
  });
}

/** A connection that stays open, once the other side has accepted it and kept it. */
export function hold(port: number, from = "127.0.0.1"): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", localAddress: from });
    socket.on("error", () => {});
    socket.once("close", () => resolve(null));
    socket.once("data", () => resolve(socket));
    socket.write("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  });
}

export interface TlsAnswer {
  /** Common name of the certificate that was presented; null when there was no handshake. */
  readonly certificate: string | null;
  readonly protocol: string | false | null;
  readonly text: string;
  readonly error: string | null;
}

/** Makes a handshake, sends a request and collects until the connection is gone. */
export function ask(
  port: number,
  options: ConnectionOptions = {},
  request: string | null = GET,
): Promise<TlsAnswer> {
  return new Promise((resolve) => {
    let [certificate, text]: [string | null, string] = [null, ""];
    let error: string | null = null;
    const socket: TLSSocket = connectTls(
      { host: "127.0.0.1", port, rejectUnauthorized: false, ...options },
      () => {
        certificate = String(socket.getPeerCertificate().subject.CN);
        if (request !== null) socket.write(request);
      },
    );
    socket.on("data", (data: Buffer) => {
      text += data.toString("latin1");
    });
    socket.on("error", (cause: Error & { code?: string }) => {
      error = cause.code ?? cause.message;
    });
    socket.on("close", () => {
      resolve({ certificate, protocol: socket.alpnProtocol, text, error });
    });
  });
}

/** What comes back for a message over a new WebSocket, which is closed then. */
export async function echoed(socket: WebSocket, message: string): Promise<unknown> {
  const heard = await new Promise((resolve, reject) => {
    socket.onopen = () => socket.send(message);
    socket.onmessage = ({ data }) => resolve(data);
    socket.onerror = reject;
  });
  socket.close();
  return heard;
}
