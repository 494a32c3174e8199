// Lines of a log over TCP, TLS and UDP, plain or as syslog messages; knows no format.
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { connect, isIP, type Socket } from "node:net";
import { hostname } from "node:os";
import { connect as connectTls } from "node:tls";
import { type Entry, type Sink, SinkError } from "./queue.ts";

/** How a line becomes what is sent. */
export type Framing = (entry: Entry) => string;

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Of a text that was checked before. */
export function addressOf(text: string): Address {
  const colon = text.lastIndexOf(":");
  return {
    host: text.slice(0, colon).replaceAll(/[[\]]/g, ""),
    port: Number(text.slice(colon + 1)),
  };
}

/** One line after the other. */
export const lineFraming: Framing = ({ line }) => `${line}\n`;

export interface SyslogOptions {
  readonly facility: number;
  readonly appName: string;
}

/** RFC 5424 section 6. Whatever is in a line, control characters are not: messages end where we say. */
export function syslogMessage({ facility, appName }: SyslogOptions): Framing {
  const host =
    hostname()
      .replaceAll(/[^!-~]/g, "")
      .slice(0, 255) || "-";
  return ({ line, at, status }) => {
    const severity = status >= 500 ? 3 : status >= 400 ? 4 : 6;
    const time = new Date(at).toISOString();
    return `<${facility * 8 + severity}>1 ${time} ${host} ${appName} ${process.pid} access-log - ${line}`;
  };
}

/** RFC 6587 section 3.4.1: the length, and then so many bytes. */
export const counted =
  (message: Framing): Framing =>
  (entry) => {
    const text = message(entry);
    return `${Buffer.byteLength(text)} ${text}`;
  };

/** For everything until the bytes are with the system. */
const SEND_MS = 10_000;

export interface TcpSinkOptions {
  readonly address: Address;
  readonly framing: Framing;
  /** Null: no TLS. `ca`: PEM of the authority to believe; null: the system's. */
  readonly tls: { readonly ca: string | null } | null;
}

/** One connection that is kept. What was sent when it breaks may be lost: the protocols have no receipts. */
export class TcpSink implements Sink {
  readonly isStream = true;
  readonly #options: TcpSinkOptions;
  #socket: Socket | null = null;

  constructor(options: TcpSinkOptions) {
    this.#options = options;
  }

  async send(entries: readonly Entry[]): Promise<void> {
    const { framing } = this.#options;
    let text = "";
    for (const entry of entries) text += framing(entry);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const give = (why: string) => {
      this.close();
      reject(new SinkError(why));
    };
    const timer = setTimeout(() => give("the log server takes nothing"), SEND_MS);
    const gone = () => give("the connection to the log server was closed");
    let socket: Socket | null = null;
    try {
      socket = this.#socket ?? this.#connect();
      socket.once("close", gone);
      socket.write(text, (error) => {
        if (error) give("the log server cannot be reached");
        else resolve();
      });
      await promise;
    } finally {
      clearTimeout(timer);
      socket?.off("close", gone);
    }
  }

  close(): void {
    const socket = this.#socket;
    this.#socket = null;
    socket?.end();
    // One that takes nothing would not end either.
    if (socket !== null && socket.writableLength > 0) socket.destroy();
  }

  #connect(): Socket {
    const { address, tls } = this.#options;
    const socket =
      tls === null
        ? connect(address)
        : connectTls({
            ...address,
            ...(isIP(address.host) === 0 ? { servername: address.host } : {}),
            ...(tls.ca === null ? {} : { ca: tls.ca }),
          });
    this.#socket = socket;
    const forget = () => {
      if (this.#socket === socket) this.#socket = null;
    };
    socket.on("error", forget);
    socket.on("close", forget);
    // Whoever ends its side wants no more.
    socket.on("end", () => socket.end());
    // What it says is of no interest, but must not fill its buffers.
    socket.resume();
    socket.unref();
    return socket;
  }
}

/** As much as a datagram can hold, and a little less. */
const MAX_DATAGRAM = 65_000;
const LOOKUP_MS = 30_000;

/** A datagram for each line. Whether any arrives, nobody knows. */
export class UdpSink implements Sink {
  readonly #address: Address;
  readonly #framing: Framing;
  #target: { readonly address: string; readonly family: number; readonly until: number } | null =
    null;
  readonly #sockets = new Map<number, UdpSocket>();

  constructor(address: Address, framing: Framing) {
    this.#address = address;
    this.#framing = framing;
  }

  async send(entries: readonly Entry[]): Promise<void> {
    const { address, family } = await this.#lookUp();
    const socket = this.#socketOf(family);
    const { port } = this.#address;
    await Promise.all(
      entries.map((entry) => {
        const bytes = Buffer.from(this.#framing(entry));
        return new Promise<void>((resolve, reject) => {
          socket.send(bytes.subarray(0, MAX_DATAGRAM), port, address, (error) => {
            if (error) reject(new SinkError("a datagram cannot be sent"));
            else resolve();
          });
        });
      }),
    );
  }

  close(): void {
    for (const socket of this.#sockets.values()) socket.close();
    this.#sockets.clear();
  }

  async #lookUp() {
    const now = performance.now();
    if (this.#target !== null && now < this.#target.until) return this.#target;
    try {
      const { address, family } = await lookup(this.#address.host);
      this.#target = { address, family, until: now + LOOKUP_MS };
      return this.#target;
    } catch {
      throw new SinkError("the log server's name could not be resolved");
    }
  }

  #socketOf(family: number): UdpSocket {
    let socket = this.#sockets.get(family);
    if (socket === undefined) {
      socket = createSocket(family === 6 ? "udp6" : "udp4");
      socket.on("error", () => {});
      socket.unref();
      this.#sockets.set(family, socket);
    }
    return socket;
  }
}
