// Bodies far larger than memory may grow, sent and read with pauses; knows no gateway.
import { readFileSync } from "node:fs";
import type { Socket } from "bun";
import { ResponseContent } from "./response-content.ts";

const MB = 1_000_000;

/** What every body consists of, over and over. */
const block = Buffer.from(
  Uint32Array.from({ length: MB / 4 }, (_, index) => Math.imul(index + 1, 2_654_435_761)).buffer,
);

/** Bytes and their SHA-256 in hexadecimal. */
export interface Digest {
  readonly bytes: number;
  readonly sha256: string;
}

/** Of a body of so many megabytes. */
export function digestOf(megabytes: number): Digest {
  const hash = new Bun.CryptoHasher("sha256");
  for (let i = 0; i < megabytes; i++) hash.update(block);
  return { bytes: megabytes * MB, sha256: hash.digest("hex") };
}

class Counter {
  bytes = 0;
  readonly #hash = new Bun.CryptoHasher("sha256");

  take(chunk: Uint8Array): void {
    this.bytes += chunk.length;
    this.#hash.update(chunk);
  }

  digest(): Digest {
    return { bytes: this.bytes, sha256: this.#hash.digest("hex") };
  }
}

/** Writes a body into a socket as fast as that takes it. */
class Sender {
  readonly #socket: Socket<unknown>;
  #left: number;
  #offset = 0;

  constructor(socket: Socket<unknown>, bytes: number) {
    this.#socket = socket;
    this.#left = bytes;
  }

  /** Call it again when the socket drains. */
  send(): void {
    while (this.#left > 0) {
      const piece = block.subarray(this.#offset, this.#offset + this.#left);
      const written = this.#socket.write(piece);
      if (written <= 0) return;
      this.#left -= written;
      this.#offset = (this.#offset + written) % MB;
      if (written < piece.length) return;
    }
  }
}

export interface BigOrigin {
  readonly port: number;
  /** Connections at the moment. */
  readonly open: number;
  stop(): void;
}

/** Responds to GET /<megabytes> with such a body, to a POST with its digest after it has stopped reading for a while. */
export function startBigOrigin({ pauseMs = 0 } = {}): BigOrigin {
  const peers = new Set<OriginPeer>();
  const server = Bun.listen<OriginPeer>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = new OriginPeer(socket, pauseMs);
        peers.add(socket.data);
      },
      data: (socket, chunk) => socket.data.take(chunk),
      drain: (socket) => socket.data.drained(),
      close: (socket) => void peers.delete(socket.data),
      error: () => undefined,
    },
  });
  return {
    port: server.port,
    get open() {
      return peers.size;
    },
    stop: () => server.stop(true),
  };
}

class OriginPeer {
  readonly #socket: Socket<OriginPeer>;
  readonly #pauseMs: number;
  #upload = new Counter();
  #head = "";
  #expected: number | null = null;
  #sender: Sender | null = null;

  constructor(socket: Socket<OriginPeer>, pauseMs: number) {
    this.#socket = socket;
    this.#pauseMs = pauseMs;
  }

  drained(): void {
    this.#sender?.send();
  }

  take(chunk: Buffer): void {
    if (this.#expected !== null) {
      this.#body(chunk);
      return;
    }
    const text = this.#head + chunk.toString("latin1");
    const end = text.indexOf("\r\n\r\n");
    if (end < 0) {
      this.#head = text;
      return;
    }
    const [, method, megabytes] = /^(GET|POST) \/(\d+)/.exec(text) ?? [];
    if (method === "GET") this.#answer(Number(megabytes) * MB);
    else this.#receive(text.slice(0, end), chunk.subarray(end + 4 - this.#head.length));
  }

  #answer(bytes: number): void {
    this.#socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`);
    this.#sender = new Sender(this.#socket, bytes);
    this.#sender.send();
  }

  #receive(head: string, rest: Buffer): void {
    this.#expected = Number(/content-length: *(\d+)/i.exec(head)?.[1]);
    this.#body(rest);
    this.#socket.pause();
    setTimeout(() => this.#socket.resume(), this.#pauseMs);
  }

  #body(chunk: Uint8Array): void {
    this.#upload.take(chunk);
    if (this.#upload.bytes !== this.#expected) return;
    const body = JSON.stringify(this.#upload.digest());
    this.#upload = new Counter();
    this.#expected = null;
    this.#head = "";
    this.#socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  }
}

/** Downloads so many megabytes, without reading for a while after the first of them. */
export function downloadSlowly(
  port: number,
  { megabytes, pauseMs }: { readonly megabytes: number; readonly pauseMs: number },
): Promise<Digest> {
  const { promise, resolve, reject } = Promise.withResolvers<Digest>();
  const counter = new Counter();
  const body = new ResponseContent({
    content: (chunk) => counter.take(chunk),
    end: () => resolve(counter.digest()),
  });
  let isRested = false;
  const failed = () => reject(new Error(`closed after ${counter.bytes} bytes`));
  void Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open: (socket) => void socket.write(`GET /${megabytes} HTTP/1.1\r\nHost: big.test\r\n\r\n`),
      data(socket, chunk) {
        body.take(chunk);
        if (isRested || counter.bytes < MB) return;
        isRested = true;
        socket.pause();
        setTimeout(() => socket.resume(), pauseMs);
      },
      close: failed,
      error: failed,
    },
  });
  return promise;
}

/** Uploads so many megabytes as fast as they are taken; the origin's digest of them comes back. */
export function upload(port: number, megabytes: number): Promise<Digest> {
  const { promise, resolve, reject } = Promise.withResolvers<Digest>();
  let received = "";
  const failed = () => reject(new Error(`closed; received: ${received}`));
  void Bun.connect<Sender | null>({
    hostname: "127.0.0.1",
    port,
    data: null,
    socket: {
      open(socket) {
        const length = megabytes * MB;
        socket.write(`POST /0 HTTP/1.1\r\nHost: big.test\r\nContent-Length: ${length}\r\n\r\n`);
        socket.data = new Sender(socket, length);
        socket.data.send();
      },
      drain: (socket) => socket.data?.send(),
      data(socket, chunk) {
        received += chunk.toString("latin1");
        const body = /\r\n\r\n(\{.*\})$/.exec(received)?.[1];
        if (body === undefined) return;
        resolve(JSON.parse(body) as Digest);
        socket.end();
      },
      close: failed,
      error: failed,
    },
  });
  return promise;
}

/** Asks for a body and drops the connection after about so many megabytes; resolves when it has. */
export function abandonDownload(
  port: number,
  { megabytes, after }: { readonly megabytes: number; readonly after: number },
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let received = 0;
  void Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open: (socket) => void socket.write(`GET /${megabytes} HTTP/1.1\r\nHost: big.test\r\n\r\n`),
      data(socket, chunk) {
        received += chunk.length;
        if (received >= after * MB) socket.end();
      },
      close: () => resolve(),
    },
  });
  return promise;
}

/** Most memory that a process has held, in megabytes (Linux). */
export function peakMemory(pid: number): number {
  const kilobytes = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1];
  return (Number(kilobytes) * 1024) / MB;
}
