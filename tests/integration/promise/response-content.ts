// Reads an HTTP/1.1 response with a length or in chunked coding from a socket piece by piece, keeping nothing of it; knows no socket.

export interface ContentReader {
  content(chunk: Uint8Array): void;
  end(): void;
}

/** RFC 9112 sections 6 and 7.1, without trailers. */
export class ResponseContent {
  readonly #reader: ContentReader;
  /** A line that is not complete. */
  #text = "";
  #state: "head" | "size" | "content" | "after content" = "head";
  #isChunked = true;
  #left = 0;

  constructor(reader: ContentReader) {
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
    if (this.#left > 0) return bytes.subarray(content.length);
    if (this.#isChunked) this.#state = "after content";
    else {
      this.#state = "head";
      this.#reader.end();
    }
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
      const [, length] = /^content-length: *(\d+)$/i.exec(line) ?? [];
      if (length !== undefined) {
        this.#isChunked = false;
        this.#left = Number(length);
      }
      if (line === "") this.#state = this.#isChunked ? "size" : "content";
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
