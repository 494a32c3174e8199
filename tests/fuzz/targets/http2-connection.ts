// Frames of HTTP/2 on our own engine: in any pieces the same requests are served with the same bodies, and the same is refused.
import fc from "fast-check";
import { Http2Connection } from "../../../src/dataplane/server/http2/connection.ts";
import type { ClientStream } from "../../../src/dataplane/server/client-stream.ts";
import { connectionInfo } from "../../../src/dataplane/listener/connection-info.ts";
import { PeerSocket, type RawSocket } from "../../../src/dataplane/server/peer-socket.ts";
import { decode } from "../../../src/model/decode.ts";
import { type Listener, listenerInput } from "../../../src/model/listener.ts";
import { encode, type Field } from "../../support/h2-client.ts";
import { cuts, edited, edits, type Edit, inPieces } from "../bytes.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

interface SentFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Uint8Array;
}

interface Input {
  readonly frames: readonly SentFrame[];
  readonly changes: readonly Edit[];
  readonly cuts: readonly number[];
}

const base: readonly Field[] = [
  [":method", "POST"],
  [":scheme", "http"],
  [":authority", "a.test"],
  [":path", "/"],
];
const block = fc
  .subarray<Field>([
    ["x-a", "1"],
    ["content-length", "3"],
    ["cookie", "a=1"],
    ["cookie", "b=2"],
    ["priority", "u=1, i"],
    ["te", "trailers"],
    ["connection", "close"],
    [":path", "/twice"],
  ])
  .map((more) => encode([...base, ...more]));
const stream = fc.constantFrom(1, 1, 3, 3, 5, 7, 0, 2);
const bytes = fc.uint8Array({ maxLength: 12 });
const frame = (
  type: number,
  flags: readonly number[],
  payload: fc.Arbitrary<Uint8Array>,
  on: fc.Arbitrary<number> = stream,
) =>
  fc.record<SentFrame>({
    type: fc.constant(type),
    flags: fc.constantFrom(...flags),
    stream: on,
    payload,
  });
const uint32 = fc
  .constantFrom(0, 1, 100, 65_535, 2 ** 31 - 1, 2 ** 32 - 1)
  .map((value) => Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value));
const connection = fc.constantFrom(0, 0, 0, 1);

const frames = fc.array(
  fc.oneof(
    { arbitrary: frame(1, [4, 5, 5, 0, 1, 12, 36], block), weight: 6 },
    {
      arbitrary: frame(
        9,
        [4, 0],
        block.map((whole) => whole.subarray(0, 9)),
      ),
      weight: 1,
    },
    { arbitrary: frame(0, [0, 1, 8, 9], bytes), weight: 4 },
    { arbitrary: frame(3, [0], uint32), weight: 1 },
    { arbitrary: frame(8, [0], uint32, fc.constantFrom(0, 1, 3)), weight: 1 },
    {
      arbitrary: frame(6, [0, 1], fc.uint8Array({ minLength: 8, maxLength: 8 }), connection),
      weight: 1,
    },
    {
      arbitrary: frame(
        4,
        [0, 1],
        fc.constantFrom(Uint8Array.of(), Uint8Array.of(0, 4, 0, 0, 0, 9)),
        connection,
      ),
      weight: 1,
    },
    { arbitrary: frame(16, [0], fc.constant(Buffer.from("\0\0\0\x01u=2")), connection), weight: 1 },
    { arbitrary: frame(2, [0], fc.uint8Array({ minLength: 4, maxLength: 5 })), weight: 1 },
    { arbitrary: frame(77, [0, 255], bytes), weight: 1 },
  ),
  { maxLength: 8 },
);

export const target = defineTarget<Input>({
  name: "http2-connection",
  share: 60,
  inputs: fc.record({ frames, changes: edits(2), cuts }),
  async check({ frames: sent, changes, cuts: at }) {
    const settings = { type: 4, flags: 0, stream: 0, payload: Uint8Array.of() };
    const opening = Buffer.concat([PREFACE, written(settings)]);
    const all = edited(Buffer.concat([opening, ...sent.map(written)]), changes);
    const whole = await served([all]);
    mustEqual(await served(inPieces(all, at)), whole, "in pieces");
    const single = Array.from(all, (_, index) => all.subarray(index, index + 1));
    mustEqual(await served(single), whole, "byte by byte");
    must(whole.requests.length <= sent.length + 1, "more requests than frames");
    // What the connections have scheduled holds them until it has run.
    await new Promise((resolve) => setImmediate(resolve));
  },
});

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

function written({ type, flags, stream: id, payload }: SentFrame): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, payload]);
}

interface Outcome {
  /** Requests with what was read of their bodies. */
  readonly requests: readonly string[];
  /** RST_STREAM and GOAWAY with their codes. */
  readonly errors: readonly string[];
}

const end = { address: "192.0.2.1", port: 1 };
const LISTENER: Listener = {
  ...decode(listenerInput, { name: "fuzz", port: 1, max_header_bytes: 4096 }),
  id: "fuzz",
  created_at: "",
  updated_at: "",
};
const INFO = connectionInfo({ ends: { source: end, destination: end }, hello: null });
/** More steps of promises than a body needs. */
const STEPS = 30;

/** Nothing is responded to before all has arrived: what a frame on a stream means depends on whether it is still open. */
async function served(pieces: readonly Buffer[]): Promise<Outcome> {
  const sent: Buffer[] = [];
  const requests: { readonly stream: ClientStream; body: string }[] = [];
  const socket: RawSocket = {
    write(from, offset = 0, length = from.byteLength) {
      sent.push(Buffer.from(from.subarray(offset, offset + length)));
      return length;
    },
    pause() {},
    resume() {},
    shutdown() {},
    close() {},
    terminate() {},
  };
  const peer = new PeerSocket(socket);
  const http2 = new Http2Connection(peer, {
    info: INFO,
    serve(stream) {
      const request = { stream, body: "" };
      requests.push(request);
      if (stream.hasBody) void read(stream, request);
    },
    listener: () => LISTENER,
    bounds: () => ({ headTimeout: 0, idleTimeout: 1000, writeTimeout: 0 }),
    refused() {},
    onHttp2End() {},
    replaced() {},
    closed() {},
  });
  for (const piece of pieces) peer.clientSent(Buffer.from(piece));
  for (let step = 0; step < STEPS; step++) await Promise.resolve();
  http2.output.flush();
  http2.close();
  return {
    requests: requests.map(
      ({ stream, body }) =>
        `${stream.method} ${stream.url} ${JSON.stringify(stream.fields.record)} ${stream.problem?.status} ${body}`,
    ),
    errors: errorsOf(Buffer.concat(sent)),
  };
}

async function read(stream: ClientStream, into: { body: string }): Promise<void> {
  const source = stream.openBody();
  try {
    for (;;) {
      const piece = await source.read();
      if (piece.done) break;
      into.body += Buffer.from(piece.value).toString("latin1");
    }
    into.body += " complete";
  } catch {
    into.body += " broken";
  }
}

function errorsOf(all: Buffer): string[] {
  const errors: string[] = [];
  for (let at = 0; at + 9 <= all.length; at += 9 + all.readUIntBE(at, 3)) {
    const [type, id] = [all[at + 3], all.readUInt32BE(at + 5)];
    if (type === 3) errors.push(`reset ${id} ${all.readUInt32BE(at + 9)}`);
    if (type === 7) errors.push(`goaway ${all.readUInt32BE(at + 9)} ${all.readUInt32BE(at + 13)}`);
  }
  return errors;
}
