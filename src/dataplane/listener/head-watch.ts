// How long the heads of requests take to arrive on one connection whose bytes the front can read; knows no socket.
import { errorResponse } from "../error-page.ts";
import { failures } from "../error.ts";

/** The longest head that Bun takes; it answers longer ones itself. */
const MAX_HELD_BYTES = 16_384;

const END = "\r\n\r\n";
/** RFC 9113 section 3.4. */
const HTTP2_PREFACE = "PRI * HTTP/2";
/** What no head holds, so that Bun refuses it without waiting for more: control characters, line breaks other than CRLF. */
const MALFORMED = /[^\t\r\n\x20-\x7e\x80-\xff]|[^\r]\n|\r[^\n]/;
const REQUEST_LINE = /^[!-~]+ [!-~\x80-\xff]+ HTTP\/\d\.\d\r\n/;

type State =
  /** Bytes of the first head are held back, because Bun would close the connection after 12 seconds without a word. */
  | "held"
  /** A request has ended and its body with it: what comes next is a head. */
  | "idle"
  | "head"
  /** A request is served, or what comes next is not known. */
  | "served"
  /** HTTP/2, where frames may come at any time. */
  | "unwatched";

export class HeadWatch {
  #state: State = "held";
  readonly #timeoutMs: number;
  #since: number;
  /** What is held, one character a byte. */
  #held = "";

  /** `timeoutMs` for each head: the first one from now on, later ones from their first byte. */
  constructor(now: number, timeoutMs: number) {
    this.#since = now;
    this.#timeoutMs = timeoutMs;
  }

  /** Whether what the client sends is held back. */
  get isHolding(): boolean {
    return this.#state === "held";
  }

  /** The client has sent something. Returns what is to go on; null: it is held back. */
  pass(chunk: Buffer, now: number): Buffer | null {
    if (this.#state === "held") return this.#hold(chunk);
    if (this.#state === "idle") {
      this.#state = "head";
      this.#since = now;
    }
    return chunk;
  }

  /** Until a whole head is there, or what will never be one that Bun takes. */
  #hold(chunk: Buffer): Buffer | null {
    // The end may be in two pieces.
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

  /** A request has arrived: its head is over. */
  began(): void {
    if (this.#state !== "unwatched") this.#state = "served";
  }

  /** It was answered. `isWhole`: nothing of its body is still to come. */
  ended(isWhole: boolean): void {
    if (isWhole && this.#state === "served") this.#state = "idle";
  }

  /** Whether the client has had its time. `silent`: it has not sent a byte, so it has not asked for anything. */
  overdue(now: number): "silent" | "partial" | null {
    const isHead = this.#state === "held" || this.#state === "head";
    if (!isHead || now - this.#since < this.#timeoutMs) return null;
    return this.#state === "held" && this.#held === "" ? "silent" : "partial";
  }
}

/** The 408 for a client whose head has not arrived in time. */
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
