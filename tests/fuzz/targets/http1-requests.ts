// Requests over HTTP/1.1 on the full engine: in any pieces the same ones are served or refused, with the same bodies, in order.
import { Duplex } from "node:stream";
import fc from "fast-check";
import type { ClientStream } from "../../../src/dataplane/server/client-stream.ts";
import { Http1Parser } from "../../../src/dataplane/server/full-http1.ts";
import { cuts, edited, edits, type Edit, inPieces } from "../bytes.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

export interface Input {
  readonly requests: readonly Sketch[];
  readonly changes: readonly Edit[];
  readonly cuts: readonly number[];
}

export interface Sketch {
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
export const conversations: fc.Arbitrary<Input> = fc.record({
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
  name: "http1-requests",
  share: 15,
  inputs: conversations,
  async check({ requests, changes, cuts: at }) {
    const bytes = edited(Buffer.concat(requests.map(written)), changes);
    const whole = await served([bytes]);
    mustEqual(await served(inPieces(bytes, at)), whole, "in pieces");
    mustEqual(await served(Array.from(bytes, (byte) => Buffer.of(byte))), whole, "byte by byte");
    if (changes.length > 0) return;
    for (const one of whole.served) must(one.startsWith("POST "), "a body became a request");
  },
});

export function written({ target: path, fields, body, framing }: Sketch): Buffer {
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

/** More turns of the event loop than a request needs. */
const TURNS = 6;

async function served(pieces: readonly Buffer[]): Promise<Outcome> {
  const seen: string[] = [];
  let sent = "";
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      sent += chunk.toString("latin1");
      done();
    },
  });
  const connection = new Http1Parser().open(socket, {
    info: INFO,
    serve: (stream) => void respond(stream, seen),
    websocket: { message() {} },
    headTimeout: 0,
    idleTimeout: 1000,
    refused() {},
    counted() {},
  });
  must(connection !== null, "no connection");
  for (const piece of pieces) {
    if (!socket.readableEnded && !socket.destroyed) socket.push(piece);
    await turns(pieces.length > 20 ? 1 : TURNS);
  }
  await turns(TURNS);
  socket.destroy();
  return { served: seen, sent: sent.match(/HTTP\/1\.1 \d{3}/g) ?? [] };
}

async function respond(stream: ClientStream, seen: string[]): Promise<void> {
  const { method, url, fields } = stream;
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
      return;
    }
  }
  seen.push(`${method} ${url} ${JSON.stringify(fields.record)} ${body}`);
  stream.respond(
    { status: 200, headers: new Headers(), hasContentType: false, hasLength: false },
    [],
    true,
  );
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

const INFO = {
  address: "192.0.2.1",
  port: 1,
  localAddress: "192.0.2.2",
  localPort: 80,
  serverName: null,
  protocols: [],
  tlsVersion: null,
  clientCertificateField: "",
  clientCertificate: null,
  clientAuthKey: null,
  heads: null,
};
