// Times the request heads on a connection whose bytes the acceptor can read; knows no socket.
import { errorResponse } from "../error-page.ts";
import { failures } from "../error.ts";

/** The longest head that Bun accepts; it responds to longer ones itself. */
const MAX_HELD_BYTES = 16_384;

const END = "\r\n\r\n";
/** RFC 9113 section 3.4. */
const HTTP2_PREFACE = "PRI * HTTP/2";
/** Characters that make Bun refuse a head without waiting for more: control characters, line breaks other than CRLF. */
const MALFORMED = /[^\t\r\n\x20-\x7e\x80-\xff]|[^\r]\n|\r[^\n]/;
const REQUEST_LINE = /^[!-~]+ [!-~\x80-\xff]+ HTTP\/\d\.\d\r\n/;

type State =
  /** The first head is held back until it is complete, because Bun closes a connection without a head after 12 s and sends no 408. */
  | "held"
  /** Request and response are complete: the next byte begins a head. */
  | "idle"
  | "head"
  /** A request is being served, or it is unknown what the next byte is. */
  | "served"
  /** HTTP/2, whose frames may arrive at any time. */
  | "unwatched";

export class HeadWatch {
  #state: State = "held";
  readonly #timeoutMs: number;
  #since: number;
  /** latin1: one character is one byte. */
  #held = "";

  /** `timeoutMs` for each head: for the first one from now on, for later ones from their first byte. */
  constructor(now: number, timeoutMs: number) {
    this.#since = now;
    this.#timeoutMs = timeoutMs;
  }

  get isHolding(): boolean {
    return this.#state === "held";
  }

  /** The client has sent bytes. Returns those to forward; null: they are held back. */
  pass(chunk: Buffer, now: number): Buffer | null {
    if (this.#state === "held") return this.#hold(chunk);
    if (this.#state === "idle") {
      this.#state = "head";
      this.#since = now;
    }
    return chunk;
  }

  /** Holds bytes back until a head is complete, or until Bun is certain to refuse it. */
  #hold(chunk: Buffer): Buffer | null {
    // The empty line may span two chunks.
    const from = Math.max(0, this.#held.length - END.length + 1);
    this.#held += chunk.toString("latin1");
    const recent = this.#held.slice(from);
    const isOver =
      recent.includes(END) ||
      this.#held.length > MAX_HELD_BYTES ||
      MALFORMED.test(recent) ||
      (this.#held.includes("\r\n") && !REQUEST_LINE.test(this.#held));
    if (!isOver) return null;
    this.#state = this.#held.startsWith(HTTP2_PREFACE) ? "unwatched" : "served";
    const all = this.#held.length === chunk.length ? chunk : Buffer.from(this.#held, "latin1");
    this.#held = "";
    return all;
  }

  /** The head of a request is complete. */
  began(): void {
    if (this.#state !== "unwatched") this.#state = "served";
  }

  /** The gateway has responded. `isWhole`: the request body has arrived. */
  ended(isWhole: boolean): void {
    if (isWhole && this.#state === "served") this.#state = "idle";
  }

  /** Whether a head is overdue. `silent`: the client has not sent a byte. */
  overdue(now: number): "silent" | "partial" | null {
    const isHead = this.#state === "held" || this.#state === "head";
    if (!isHead || now - this.#since < this.#timeoutMs) return null;
    return this.#state === "held" && this.#held === "" ? "silent" : "partial";
  }
}

/** The 408 response for an overdue head. */
export function headTimeout(): Buffer {
  const id = Bun.randomUUIDv7();
  const subject = { id, method: "GET", header: () => null };
  const { status, headers, body } = errorResponse(subject, failures.headTimeout);
  const text = Buffer.from(body ?? []);
  headers.set("Content-Length", String(text.length));
  headers.set("Date", new Date().toUTCString());
  const fields = [...headers].map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return Buffer.concat([
    Buffer.from(`HTTP/1.1 ${status} Request Timeout\r\n${fields}\r\n`, "latin1"),
    text,
  ]);
}
