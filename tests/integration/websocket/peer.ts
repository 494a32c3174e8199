// One end of a WebSocket that does exactly what a test says, right or wrong: a raw client, or a target that accepts by hand.
import { createHash } from "node:crypto";
import { connect, createServer, type Server, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { connectH2Socket } from "../../support/h2-socket.ts";
import { DEADLINE_MS, eventually } from "../../support/poll.ts";

export interface Frame {
  readonly opcode: number;
  readonly isFinal: boolean;
  readonly isMasked: boolean;
  /** Unmasked. */
  readonly payload: Buffer;
}

export const opcodes = {
  continuation: 0,
  text: 1,
  binary: 2,
  close: 8,
  ping: 9,
  pong: 10,
} as const;

export interface FrameOptions {
  readonly isFinal?: boolean;
  readonly mask?: boolean;
  /** Bits 0x70 of the first byte. */
  readonly reserved?: number;
}

export function frameBytes(
  opcode: number,
  payload: string | Uint8Array,
  { isFinal = true, mask = false, reserved = 0 }: FrameOptions = {},
): Buffer {
  const body = Buffer.from(payload as string);
  const first = (isFinal ? 0x80 : 0) | reserved | opcode;
  const bit = mask ? 0x80 : 0;
  let header: Buffer;
  if (body.length < 126) header = Buffer.from([first, bit | body.length]);
  else if (body.length < 65_536)
    header = Buffer.from([first, bit | 126, body.length >> 8, body.length & 255]);
  else {
    header = Buffer.from([first, bit | 127, 0, 0, 0, 0, 0, 0, 0, 0]);
    header.writeUInt32BE(body.length, 6);
  }
  if (!mask) return Buffer.concat([header, body]);
  const key = Buffer.from([0x12, 0x34, 0x56, 0x78]);
  for (let at = 0; at < body.length; at++) body[at] = body[at]! ^ key[at & 3]!;
  return Buffer.concat([header, key, body]);
}

export const closePayload = (code: number, reason = "") =>
  Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)]);

/** One connection. `masks`: it plays the client. */
export class Peer {
  readonly socket: Socket;
  readonly #masks: boolean;
  #bytes: Buffer[] = [];
  #buffered = 0;
  /** Everything that has arrived, in bytes. */
  receivedBytes = 0;
  hasEnded = false;
  isClosed = false;

  constructor(socket: Socket, masks: boolean) {
    this.socket = socket;
    this.#masks = masks;
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => {
      this.#bytes.push(chunk);
      this.#buffered += chunk.length;
      this.receivedBytes += chunk.length;
    });
    socket.on("end", () => {
      this.hasEnded = true;
    });
    socket.on("close", () => {
      this.isClosed = true;
    });
    socket.on("error", () => {});
  }

  static async client(port: number, allowHalfOpen = false): Promise<Peer> {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen });
    const peer = new Peer(socket, true);
    await new Promise((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return peer;
  }

  /** Over HTTP/2 in cleartext. */
  static async h2Client(port: number, allowHalfOpen = false): Promise<Peer> {
    return new Peer(await connectH2Socket(port, allowHalfOpen), true);
  }

  /** Over TLS; any certificate will do. */
  static async tlsClient(port: number): Promise<Peer> {
    const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false });
    const peer = new Peer(socket, true);
    await new Promise((resolve, reject) => {
      socket.once("secureConnect", resolve);
      socket.once("error", reject);
    });
    return peer;
  }

  /** What has arrived and was not read. */
  get pending(): Buffer {
    const all = Buffer.concat(this.#bytes);
    this.#bytes = all.length === 0 ? [] : [all];
    return all;
  }

  #consume(count: number): void {
    this.#bytes = [this.pending.subarray(count)];
    this.#buffered -= count;
  }

  write(bytes: string | Uint8Array): void {
    this.socket.write(bytes);
  }

  send(opcode: number, payload: string | Uint8Array = "", options: FrameOptions = {}): void {
    this.write(frameBytes(opcode, payload, { mask: this.#masks, ...options }));
  }

  /** The next head, with its empty line. */
  head(): Promise<string> {
    return eventually(() => {
      const end = this.pending.indexOf("\r\n\r\n");
      if (end < 0) return null;
      const head = this.pending.toString("latin1", 0, end + 4);
      this.#consume(end + 4);
      return head;
    });
  }

  /** Everything until the peer closes. */
  async rest(): Promise<string> {
    await eventually(() => this.hasEnded || this.isClosed);
    return this.pending.toString("latin1");
  }

  /** The next frame. */
  frame(deadlineMs = DEADLINE_MS): Promise<Frame> {
    return eventually(() => this.#takeFrame(), { deadlineMs, intervalMs: 1 });
  }

  /** The next frame; null when the connection has ended and there is none. */
  async frameOrEnd(deadlineMs = DEADLINE_MS): Promise<Frame | null> {
    const frame = await eventually(
      () => this.#takeFrame() ?? (this.hasEnded || this.isClosed ? "end" : null),
      { deadlineMs, intervalMs: 1 },
    );
    return frame === "end" ? null : frame;
  }

  #takeFrame(): Frame | null {
    if (this.#buffered < 2) return null;
    const bytes = this.pending;
    const second = bytes[1]!;
    const short = second & 0x7f;
    const size = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (bytes.length < size) return null;
    const length =
      size === 2 ? short : size === 4 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    const isMasked = (second & 0x80) !== 0;
    const start = size + (isMasked ? 4 : 0);
    if (bytes.length < start + length) return null;
    const payload = Buffer.from(bytes.subarray(start, start + length));
    if (isMasked)
      for (let at = 0; at < length; at++) payload[at] = payload[at]! ^ bytes[size + (at & 3)]!;
    const frame = {
      opcode: bytes[0]! & 15,
      isFinal: (bytes[0]! & 0x80) !== 0,
      isMasked,
      payload,
    };
    this.#consume(start + length);
    return frame;
  }

  /** Code and reason of the next frame, which must be a Close. */
  async closeFrame(): Promise<readonly [code: number, reason: string]> {
    const frame = await this.frame();
    if (frame.opcode !== opcodes.close) throw new Error(`no Close but opcode ${frame.opcode}`);
    if (frame.payload.length === 0) return [1005, ""];
    return [frame.payload.readUInt16BE(), frame.payload.toString("utf8", 2)];
  }

  /** Resolves when the peer has ended the connection. */
  async ended(deadlineMs = DEADLINE_MS): Promise<void> {
    await eventually(() => this.hasEnded || this.isClosed, { deadlineMs });
  }

  /** Vanishes. */
  destroy(): void {
    this.socket.destroy();
  }
}

export const KEY = "dGhlIHNhbXBsZSBub25jZQ==";

export const handshake = (lines = "", target = "/") =>
  `GET ${target} HTTP/1.1\r\nHost: app.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ${KEY}\r\nSec-WebSocket-Version: 13\r\n${lines}\r\n`;

export const acceptOf = (key: string) =>
  createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");

/** The 101 that answers the head of a handshake. */
export function switching(requestHead: string, lines = ""): string {
  const key = /^sec-websocket-key: (.*)\r$/im.exec(requestHead)?.[1] ?? "";
  return `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n${lines}\r\n`;
}

/** A target that does nothing by itself. */
export class ManualTarget {
  readonly #server: Server;
  readonly #peers: Peer[] = [];
  #taken = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(allowHalfOpen = false): Promise<ManualTarget> {
    const server = createServer({ noDelay: true, allowHalfOpen });
    const target = new ManualTarget(server);
    server.on("connection", (socket) => target.#peers.push(new Peer(socket, false)));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return target;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  /** How many connections there have been. */
  get connections(): number {
    return this.#peers.length;
  }

  /** The next connection. */
  connection(): Promise<Peer> {
    return eventually(() => {
      const peer = this.#peers[this.#taken];
      if (peer !== undefined) this.#taken++;
      return peer;
    });
  }

  async stop(): Promise<void> {
    for (const peer of this.#peers) peer.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
