// Reads an HTTP/1.1 response in chunked coding from a socket piece by piece, keeping nothing of it; knows no socket.

export interface ChunkedReader {
  content(chunk: Uint8Array): void;
  end(): void;
}

/** RFC 9112 section 7.1, without trailers. */
export class ChunkedBody {
  readonly #reader: ChunkedReader;
  /** A line that is not complete. */
  #text = "";
  #state: "head" | "size" | "content" | "after content" = "head";
  #left = 0;

  constructor(reader: ChunkedReader) {
    this.#reader = reader;
  }

  take(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0)
      rest = this.#state === "content" ? this.#content(rest) : this.#line(rest);
  }

  #content(bytes: Buffer): Buffer {
    const content = bytes.subarray(0, this.#left);
    this.#left -= content.length;
    this.#reader.content(content);
    if (this.#left === 0) this.#state = "after content";
    return bytes.subarray(content.length);
  }

  #line(bytes: Buffer): Buffer {
    const end = bytes.indexOf(10);
    this.#text += bytes.toString("latin1", 0, end < 0 ? bytes.length : end + 1);
    if (end < 0) return Buffer.alloc(0);
    const line = this.#text.trimEnd();
    this.#text = "";
    this.#takeLine(line);
    return bytes.subarray(end + 1);
  }

  #takeLine(line: string): void {
    if (this.#state === "head") {
      if (line === "") this.#state = "size";
    } else if (this.#state === "after content") {
      if (line !== "") throw new Error(`chunk does not end where it should: ${line}`);
      this.#state = "size";
    } else {
      if (!/^[0-9a-f]+$/i.test(line)) throw new Error(`not the size of a chunk: ${line}`);
      this.#left = Number.parseInt(line, 16);
      if (this.#left === 0) this.#reader.end();
      this.#state = this.#left === 0 ? "after content" : "content";
    }
  }
}
