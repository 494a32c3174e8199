// Requests over HTTP/1.1 on our own engine: in any pieces the same ones are served or refused, with the same bodies, in order.
import fc from "fast-check";
import { headOf } from "../../support/outgoing-head.ts";
import { drainMicrotasks } from "bun:jsc";
import { Http1Connection } from "../../../src/dataplane/server/http1/connection.ts";
import type { ClientStream } from "../../../src/dataplane/server/client-stream.ts";
import { connectionInfo } from "../../../src/dataplane/listener/connection-info.ts";
import { decode } from "../../../src/model/decode.ts";
import { type Listener, listenerInput } from "../../../src/model/listener.ts";
import { cuts, edited, edits, type Edit, inPieces } from "../bytes.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

interface Input {
  readonly requests: readonly Sketch[];
  readonly changes: readonly Edit[];
  readonly cuts: readonly number[];
}

interface Sketch {
  readonly target: string;
  readonly fields: readonly string[];
  readonly body: string;
  readonly framing: "none" | "length" | "chunked" | "both" | "short";
}

const odd = fc.constantFrom(
  ...["\r", "\n", "\r\n", " ", "\t", ":", "0", ";", "\0", "Content-Length: 3\r\n"],
  ...["Transfer-Encoding: chunked\r\n", "0\r\n\r\n", "GET / HTTP/1.1\r\n", "\r\n\r\n", "HTTP/2.0"],
);

/** Requests over HTTP/1.1, right and wrong, and how their bytes are cut. */
const conversations: fc.Arbitrary<Input> = fc.record({
  requests: fc.array(
    fc.record({
      target: fc.constantFrom("/", "/a?b", "http://other/x", "*", "/%00", "//a"),
      fields: fc.array(
        fc.constantFrom("A: b", "Connection: close", "Expect: 100-continue", "Upgrade: h2c", "A:"),
        { maxLength: 3 },
      ),
      body: fc.constantFrom("", "x", "GET /evil HTTP/1.1\r\nHost: h\r\n\r\n", "ab".repeat(40)),
      framing: fc.constantFrom("none", "length", "chunked", "both", "short"),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  changes: edits(
    2,
    odd.map((text) => new Uint8Array(Buffer.from(text, "latin1"))),
  ),
  cuts,
});

export const target = defineTarget<Input>({
  name: "http1-connection",
  share: 60,
  inputs: conversations,
  check({ requests, changes, cuts: at }) {
    const bytes = edited(Buffer.concat(requests.map(written)), changes);
    const whole = served([bytes]);
    mustEqual(served(inPieces(bytes, at)), whole, "in pieces");
    mustEqual(served(Array.from(bytes, (byte) => Buffer.of(byte))), whole, "byte by byte");
    if (changes.length > 0) return;
    // The last byte of a body that is longer than declared is part of the next method, which may be any token.
    for (const one of whole.served) must(/^[bx]?POST /.test(one), "a body became a request");
  },
});

function written({ target: path, fields, body, framing }: Sketch): Buffer {
  const lines = fields.map((field) => `${field}\r\n`).join("");
  const length = `Content-Length: ${framing === "short" ? Math.max(0, body.length - 1) : body.length}\r\n`;
  const coding = "Transfer-Encoding: chunked\r\n";
  const framed = {
    none: ["", ""],
    length: [length, body],
    short: [length, body],
    chunked: [coding, `${chunkOf(body)}0\r\n\r\n`],
    both: [length + coding, `${chunkOf(body)}0\r\n\r\n`],
  }[framing];
  const head = `POST ${path} HTTP/1.1\r\nHost: h\r\n${lines}${framed[0] ?? ""}\r\n`;
  return Buffer.from(head + (framed[1] ?? ""), "latin1");
}

const chunkOf = (body: string): string =>
  body === "" ? "" : `${body.length.toString(16)}\r\n${body}\r\n`;

interface Outcome {
  /** Requests with the bodies that were read to their end. */
  readonly served: readonly string[];
  /** Status lines. */
  readonly sent: readonly string[];
}

const end = { address: "192.0.2.1", port: 1 };
const LISTENER: Listener = {
  ...decode(listenerInput, { name: "fuzz", port: 1, max_header_bytes: 4096 }),
  id: "fuzz",
  created_at: "",
  updated_at: "",
};
const INFO = connectionInfo({ ends: { source: end, destination: end }, hello: null });

function served(pieces: readonly Buffer[]): Outcome {
  const seen: string[] = [];
  let sent = "";
  const accepted = {
    data: null,
    write(bytes: Buffer, offset = 0, length = bytes.byteLength - offset) {
      sent += bytes.latin1Slice(offset, offset + length);
      return length;
    },
    pause() {},
    resume() {},
    shutdown() {},
    close() {},
    terminate() {},
  };
  const connection = new Http1Connection(
    accepted as unknown as ConstructorParameters<typeof Http1Connection>[0],
    {
      info: INFO,
      serve: (stream) => void respond(stream, seen),
      listener: () => LISTENER,
      bounds: () => ({ headTimeout: 0, idleTimeout: 1000, writeTimeout: 0 }),
      refused() {},
      onHttp2End() {},
      replaced() {},
      closed() {},
    },
  );
  for (const piece of pieces) {
    connection.socket.clientSent(piece);
    // What a request waits for is no event: all promises of this turn.
    drainMicrotasks();
  }
  connection.close();
  return { served: seen, sent: sent.match(/HTTP\/1\.1 \d{3}/g) ?? [] };
}

const head = (status: number) => headOf({}, status);

async function respond(stream: ClientStream, seen: string[]): Promise<void> {
  const { method, url, fields, problem } = stream;
  if (problem !== null) return stream.respond(head(problem.status), [], true);
  let body = "";
  if (stream.hasBody) {
    const source = stream.openBody();
    try {
      for (;;) {
        const piece = await source.read();
        if (piece.done) break;
        body += Buffer.from(piece.value).toString("latin1");
      }
    } catch {
      // The client has gone, or its framing is broken.
      return stream.respond(head(400), [], true);
    }
  }
  seen.push(`${method} ${url} ${JSON.stringify(fields.record)} ${body}`);
  stream.respond(head(200), [], true);
}
