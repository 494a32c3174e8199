// Writes log lines to standard output, shared by several threads and possibly without a reader; knows no format.
import { closeSync, constants, openSync, write, writeSync } from "node:fs";
import { type Entry, type Sink, SinkError } from "./queue.ts";

/** Size of an atomic write to a pipe (POSIX: PIPE_BUF is at least 512; Linux: 4096). */
const ATOMIC_BYTES = 4096;
const STDOUT = 1;

export class StdoutSink implements Sink {
  readonly isStream = true;
  /** Reopened in non-blocking mode; null: a socket, which cannot be reopened. */
  readonly #own: number | null;

  constructor() {
    this.#own = openAnew();
  }

  async send(entries: readonly Entry[]): Promise<void> {
    const piecesLeft = pieces(entries.map(({ line }) => line));
    for (const piece of piecesLeft) await this.#write(piece);
  }

  close(): void {
    if (this.#own !== null) closeSync(this.#own);
  }

  async #write(piece: Uint8Array): Promise<void> {
    let written = 0;
    const deadline = performance.now() + STALL_MS;
    while (written < piece.byteLength) {
      if (this.#own === null) {
        written += await writeToSocket(piece.subarray(written));
        continue;
      }
      try {
        written += writeSync(this.#own, piece, written);
      } catch (error) {
        if ((error as { readonly code?: string }).code !== "EAGAIN")
          throw new SinkError("cannot write to standard output");
        // Completes a partial write, or the next line would continue this one.
        if (performance.now() > deadline) throw new SinkError("standard output has no reader");
        await Bun.sleep(AGAIN_MS);
      }
    }
  }
}

/** How long to retry a full pipe; then the queue decides. */
const STALL_MS = 10_000;
const AGAIN_MS = 10;

function openAnew(): number | null {
  try {
    const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK;
    return openSync(`/proc/self/fd/${STDOUT}`, flags);
  } catch {
    return null;
  }
}

/** Asynchronous: it may block. */
const writeToSocket = (bytes: Uint8Array): Promise<number> =>
  new Promise((resolve, reject) => {
    write(STDOUT, bytes, (error, count) => {
      if (error === null) resolve(count);
      else reject(new SinkError("cannot write to standard output"));
    });
  });

/** Splits into atomic writes of whole lines. */
function pieces(lines: readonly string[]): Uint8Array[] {
  const found: Uint8Array[] = [];
  let waiting: Uint8Array[] = [];
  let size = 0;
  for (const line of lines) {
    const bytes = Buffer.from(`${line}\n`);
    if (size > 0 && size + bytes.length > ATOMIC_BYTES) {
      found.push(Buffer.concat(waiting));
      waiting = [];
      size = 0;
    }
    waiting.push(bytes);
    size += bytes.length;
  }
  if (size > 0) found.push(Buffer.concat(waiting));
  return found;
}
