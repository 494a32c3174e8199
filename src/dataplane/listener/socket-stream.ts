// A client's socket of the acceptor as a stream of Node, which TLS and HTTP/2 of Node read and write; knows no protocol.
import { Duplex } from "node:stream";
import type { ClientSocket, SocketOwner } from "./loopback-tunnel.ts";

/** Bytes that Node may queue before it waits for the kernel: fewer and larger system calls. */
const WRITE_BUFFER_BYTES = 131_072;

/** Bytes of one system call: joining more costs more than it saves. */
const BATCH_BYTES = 65_536;

type Done = (error?: Error | null) => void;

export class SocketStream extends Duplex implements SocketOwner {
  readonly #socket: ClientSocket;
  #unsent: Uint8Array | null = null;
  #sent: Done | null = null;
  #isClosed = false;

  constructor(socket: ClientSocket) {
    super({
      // After a client's FIN its connection ends with the last response.
      allowHalfOpen: false,
      decodeStrings: true,
      readableHighWaterMark: 65_536,
      writableHighWaterMark: WRITE_BUFFER_BYTES,
    });
    this.#socket = socket;
  }

  clientSent(chunk: Buffer): void {
    if (!this.#isClosed && !this.push(chunk)) this.#socket.pause();
  }

  /** Reads the first bytes until `judge` is no longer null, and puts them back before `decided`. */
  peek(judge: (start: Buffer) => boolean | null, decided: (verdict: boolean) => void): void {
    let start: Buffer = Buffer.alloc(0);
    const ended = () => this.destroy();
    const read = () => {
      for (let chunk = this.read(); chunk !== null; chunk = this.read())
        start = Buffer.concat([start, chunk]);
      const verdict = judge(start);
      if (verdict === null) return;
      this.removeListener("readable", read);
      this.removeListener("end", ended);
      this.unshift(start);
      decided(verdict);
    };
    this.on("readable", read);
    this.on("end", ended);
  }

  clientDrained(): void {
    const [unsent, sent] = [this.#unsent, this.#sent];
    if (unsent === null || sent === null) return;
    this.#unsent = null;
    this.#sent = null;
    this.#send(unsent, sent);
  }

  clientEnded(): void {
    if (!this.#isClosed) this.push(null);
  }

  clientClosed(): void {
    this.#isClosed = true;
    this.destroy();
  }

  override _read(): void {
    if (!this.#isClosed) this.#socket.resume();
  }

  /** Collects the writes of one turn of the event loop: TLS makes one of each record of 16 KB. */
  override write(...write: [chunk: unknown, ...rest: unknown[]]): boolean {
    if (this.writableCorked === 0) {
      this.cork();
      process.nextTick(uncork, this);
    }
    return super.write(...(write as [Uint8Array]));
  }

  override _write(chunk: Uint8Array, _encoding: string, done: Done): void {
    this.#send(chunk, done);
  }

  override _writev(chunks: readonly { readonly chunk: Uint8Array }[], done: Done): void {
    const pieces = chunks.map(({ chunk }) => chunk);
    for (let at = 0; at < pieces.length;) {
      const end = batchEnd(pieces, at);
      const batch = join(pieces.slice(at, end));
      const written = this.#isClosed ? batch.byteLength : this.#write(batch);
      at = end;
      if (written === batch.byteLength) continue;
      // The kernel takes no more.
      this.#unsent = join([batch.subarray(written), ...pieces.slice(at)]);
      this.#sent = done;
      return;
    }
    done();
  }

  #write(bytes: Uint8Array): number {
    return Math.max(0, this.#socket.write(bytes as Buffer));
  }

  #send(bytes: Uint8Array, done: Done): void {
    if (this.#isClosed) return done();
    const written = this.#write(bytes);
    if (written >= bytes.byteLength) return done();
    this.#unsent = bytes.subarray(written);
    this.#sent = done;
  }

  override _final(done: Done): void {
    // Reads on: a socket that is closed while the client still sends is reset, and the response with it.
    if (!this.#isClosed) this.#socket.shutdown();
    done();
  }

  override _destroy(error: Error | null, done: Done): void {
    // A write that waits for the kernel will never end.
    const sent = this.#sent;
    this.#sent = null;
    this.#unsent = null;
    if (!this.#isClosed) {
      this.#isClosed = true;
      if (error === null && this.writableLength === 0) this.#socket.end();
      else this.#socket.terminate();
    }
    sent?.();
    done(error);
  }
}

/** The end of the pieces from `from` on that fill one system call. */
function batchEnd(pieces: readonly Uint8Array[], from: number): number {
  let bytes = 0;
  let end = from;
  while (end < pieces.length && (end === from || bytes < BATCH_BYTES))
    bytes += pieces[end++]?.byteLength ?? 0;
  return end;
}

const join = (pieces: readonly Uint8Array[]): Uint8Array =>
  pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces);

const uncork = (stream: SocketStream): void => stream.uncork();
