// Sends log lines over TCP, TLS and UDP, plain or as syslog messages; knows no format.
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { isIP, type Socket } from "node:net";
import { hostname } from "node:os";
import type { KitDialer } from "../../pdk/kit.ts";
import { type Entry, type Sink, SinkError } from "./queue.ts";

/** Frames a line for sending. */
export type Framing = (entry: Entry) => string;

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Parses a validated text. */
export function addressOf(text: string): Address {
  const colon = text.lastIndexOf(":");
  return {
    host: text.slice(0, colon).replaceAll(/[[\]]/g, ""),
    port: Number(text.slice(colon + 1)),
  };
}

/** Lines separated by line ends. */
export const lineFraming: Framing = ({ line }) => `${line}\n`;

export interface SyslogOptions {
  readonly facility: number;
  readonly appName: string;
}

/** RFC 5424 section 6. Lines have no control characters that could end a message. */
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

/** RFC 6587 section 3.4.1: octet counting. */
export const counted =
  (message: Framing): Framing =>
  (entry) => {
    const text = message(entry);
    return `${Buffer.byteLength(text)} ${text}`;
  };

/** Null: another error. */
const refusalIn = (error: unknown): string | null =>
  (error as NodeJS.ErrnoException).code === "REFUSED_DESTINATION"
    ? `the log server ${(error as Error).message}`
    : null;

/** Timeout until the system has accepted the bytes. */
const SEND_MS = 10_000;

export interface TcpSinkOptions {
  readonly address: Address;
  readonly framing: Framing;
  readonly dialer: KitDialer;
  /** Null: no TLS. `ca`: PEM of the trusted CA; null: the system's CAs. */
  readonly tls: { readonly ca: string | null } | null;
}

/** A persistent connection. Records in flight when it breaks may be lost: the protocols have no acknowledgments. */
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
    const timer = setTimeout(() => give("the log server does not accept data"), SEND_MS);
    const gone = () => give(refusal ?? "the connection to the log server was closed");
    let socket: Socket | null = null;
    let refusal: string | null = null;
    try {
      socket = this.#open();
      socket.once("close", gone);
      socket.once("error", (error) => {
        refusal = refusalIn(error);
      });
      socket.write(text, (error) => {
        if (error) give(refusal ?? "cannot connect to the log server");
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
    // A stalled connection would not end gracefully either.
    if (socket !== null && socket.writableLength > 0) socket.destroy();
  }

  #open(): Socket {
    try {
      return this.#socket ?? this.#connect();
    } catch (error) {
      throw new SinkError(refusalIn(error) ?? "cannot connect to the log server");
    }
  }

  #connect(): Socket {
    const { address, dialer, tls } = this.#options;
    const socket =
      tls === null
        ? dialer.connect(address)
        : dialer.connectTls({
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
    // The server has closed its side.
    socket.on("end", () => socket.end());
    // Reads and ignores data, so that buffers do not fill.
    socket.resume();
    socket.unref();
    return socket;
  }
}

/** Slightly less than the maximum size of a datagram. */
const MAX_DATAGRAM = 65_000;
const LOOKUP_MS = 30_000;

/** A datagram for each line, without acknowledgment. */
export class UdpSink implements Sink {
  readonly #address: Address;
  readonly #framing: Framing;
  readonly #dialer: KitDialer;
  #target: { readonly address: string; readonly family: number; readonly until: number } | null =
    null;
  readonly #sockets = new Map<number, UdpSocket>();

  constructor({ address, framing, dialer }: Omit<TcpSinkOptions, "tls">) {
    this.#address = address;
    this.#framing = framing;
    this.#dialer = dialer;
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
            if (error) reject(new SinkError("cannot send a datagram"));
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
      const [address = ""] = await this.#dialer.addressesOf(this.#address);
      this.#target = { address, family: isIP(address), until: now + LOOKUP_MS };
      return this.#target;
    } catch (error) {
      throw new SinkError(refusalIn(error) ?? "cannot resolve the log server's name");
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
