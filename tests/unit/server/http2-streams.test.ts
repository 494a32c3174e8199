// Streams of HTTP/2 on our own engine in exact counts: writes of a turn, windows in both directions, what waits, and whose turn it is.
import { headOf } from "../../support/outgoing-head.ts";
import { describe, expect, test } from "bun:test";
import { ReceiveWindows } from "../../../src/dataplane/server/http2/receive-windows.ts";
import type { BodyWriter, ClientStream } from "../../../src/dataplane/server/client-stream.ts";
import type { Field } from "../../support/h2-client.ts";
import { frame, GET, H2Wire, POST, uint32 } from "../../support/h2-wire.ts";

const head = headOf();
const respondWith = (size: number) => (stream: ClientStream) =>
  stream.respond(head, [Buffer.alloc(size, "x")], true);
const [DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE] = [0, 1, 3, 4, 6, 7, 8];
const initialWindow = (bytes: number) =>
  frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, 4]), uint32(bytes)]));

async function start(
  serve: (stream: ClientStream) => void = () => {},
  listener: ConstructorParameters<typeof H2Wire>[1] = {},
): Promise<H2Wire> {
  const wire = new H2Wire(serve, listener);
  await wire.turn();
  wire.forget();
  return wire;
}

describe("one write a turn", () => {
  test("has the settings, their acknowledgement and the window of the connection", async () => {
    const wire = new H2Wire();
    await wire.turn();
    expect(wire.writes.map((frames) => frames.map(({ type }) => type))).toEqual([
      [SETTINGS, WINDOW_UPDATE, SETTINGS],
    ]);
  });

  test.each([64, 1000])("has ten responses of %d bytes", async (size) => {
    const wire = await start(respondWith(size));
    wire.send(...Array.from({ length: 10 }, () => wire.request()));
    await wire.turn();
    expect(wire.writes.length).toBe(1);
    expect(wire.frames.filter(({ type }) => type === HEADERS).length).toBe(10);
    expect(wire.frames.filter(({ type, flags }) => type === DATA && flags === 1).length).toBe(10);
  });

  test("has responses that were made in several callbacks", async () => {
    const wire = await start((stream) => queueMicrotask(() => respondWith(10)(stream)));
    for (let count = 0; count < 5; count++) wire.send(wire.request());
    await Promise.resolve();
    await wire.turn();
    expect(wire.writes.length).toBe(1);
  });

  /** A client whose windows are open. */
  const startOpen = async (size: number) => {
    const wire = await start(respondWith(size));
    wire.send(initialWindow(2 ** 31 - 1), frame(WINDOW_UPDATE, 0, 0, uint32(2 ** 30)));
    await wire.turn();
    wire.forget();
    return wire;
  };

  test("a body of 100 KB is one write, which does not wait for the end of the turn", async () => {
    const wire = await startOpen(102_400);
    wire.send(wire.request());
    expect([wire.writes.length, wire.sizeOf(1)]).toEqual([1, 102_400]);
    wire.send(wire.request());
    await wire.turn();
    expect([wire.writes.length, wire.sizeOf(3)]).toEqual([2, 102_400]);
  });

  test("a body of 300 KB takes a write for each 128 KB", async () => {
    const wire = await startOpen(300_000);
    wire.send(wire.request());
    await wire.turn();
    expect(wire.sizeOf(1)).toBe(300_000);
    expect(wire.writes.length).toBe(3);
  });

  test("a client that was behind once gets no more than 64 KB in a write", async () => {
    const wire = await startOpen(300_000);
    wire.room = 100_000;
    wire.send(wire.request());
    await wire.turn();
    wire.drain();
    await wire.turn();
    wire.forget();
    wire.send(wire.request());
    await wire.turn();
    expect([wire.writes.length, wire.sizeOf(3)]).toEqual([6, 300_000]);
  });
});

describe("the client's windows", () => {
  test("bound what is sent of a stream, and an update goes on from there", async () => {
    const wire = await start(respondWith(200_000));
    wire.send(frame(WINDOW_UPDATE, 0, 0, uint32(2 ** 30)), wire.request());
    await wire.turn();
    expect(wire.sizeOf(1)).toBe(65_535);
    wire.send(frame(WINDOW_UPDATE, 0, 1, uint32(1000)));
    await wire.turn();
    expect(wire.sizeOf(1)).toBe(66_535);
    wire.send(frame(WINDOW_UPDATE, 0, 1, uint32(2 ** 30)));
    await wire.turn();
    expect(wire.sizeOf(1)).toBe(200_000);
    expect(wire.frames.at(-1)?.flags).toBe(1);
  });

  test("bound what is sent of all streams together", async () => {
    const wire = await start(respondWith(40_000));
    wire.send(wire.request(), wire.request());
    await wire.turn();
    expect(wire.sizeOf(1) + wire.sizeOf(3)).toBe(65_535);
    wire.send(frame(WINDOW_UPDATE, 0, 0, uint32(100_000)));
    await wire.turn();
    expect([wire.sizeOf(1), wire.sizeOf(3)]).toEqual([40_000, 40_000]);
  });

  test("may become negative, and then nothing is sent until they are positive again", async () => {
    const wire = await start(respondWith(200_000));
    wire.send(frame(WINDOW_UPDATE, 0, 0, uint32(2 ** 30)), initialWindow(50_000), wire.request());
    await wire.turn();
    wire.send(initialWindow(10_000), frame(WINDOW_UPDATE, 0, 1, uint32(39_000)));
    await wire.turn();
    expect(wire.sizeOf(1)).toBe(50_000);
    wire.send(frame(WINDOW_UPDATE, 0, 1, uint32(1001)));
    await wire.turn();
    expect(wire.sizeOf(1)).toBe(50_001);
    wire.send(initialWindow(10_100));
    await wire.turn();
    expect(wire.sizeOf(1)).toBe(50_101);
  });

  test("of 0 hold no end back that has no bytes", async () => {
    const wire = await start((stream) => {
      const writer = stream.start(head, { wanted() {}, cancelled() {} }, true);
      setImmediate(() => writer.end(() => {}));
    });
    wire.send(initialWindow(0), wire.request());
    await wire.turn();
    await wire.turn();
    expect(wire.frames.at(-1)).toMatchObject({ type: DATA, flags: 1, stream: 1 });
  });
});

describe("a source of a response", () => {
  interface Source {
    writer: BodyWriter;
    wanted: number;
    cancelled: number;
  }
  const sources: Source[] = [];
  const serve = (stream: ClientStream): void => {
    const source: Source = { writer: {} as BodyWriter, wanted: 0, cancelled: 0 };
    source.writer = stream.start(
      head,
      { wanted: () => void source.wanted++, cancelled: () => void source.cancelled++ },
      true,
    );
    sources.push(source);
  };
  const last = (): Source => sources.at(-1) as Source;

  test("pauses once the window is full, and goes on once all was sent", async () => {
    const wire = await start(serve);
    wire.send(wire.request());
    expect(last().writer.write(Buffer.alloc(65_535))).toBe(true);
    await wire.turn();
    expect(last().writer.write(Buffer.alloc(1))).toBe(false);
    await wire.turn();
    expect([wire.sizeOf(1), last().wanted]).toEqual([65_535, 0]);
    wire.send(frame(WINDOW_UPDATE, 0, 0, uint32(9)), frame(WINDOW_UPDATE, 0, 1, uint32(9)));
    await wire.turn();
    expect([wire.sizeOf(1), last().wanted]).toEqual([65_536, 1]);
  });

  test("pauses at 64 KB whatever the window is, while the client does not read", async () => {
    const wire = await start(serve);
    wire.send(initialWindow(2 ** 31 - 1), frame(WINDOW_UPDATE, 0, 0, uint32(2 ** 30)));
    await wire.turn();
    wire.room = 0;
    wire.send(wire.request());
    let taken = 0;
    while (last().writer.write(Buffer.alloc(16_384))) taken += 16_384;
    // In the socket and in the stream: 64 KB each, and the read that was one too many.
    expect(taken).toBeLessThanOrEqual(131_072);
    await wire.turn();
    expect(last().wanted).toBe(0);
    wire.drain();
    await wire.turn();
    expect(last().wanted).toBe(1);
  });

  test("ends when the client resets the stream, and when it goes", async () => {
    const wire = await start(serve);
    wire.send(wire.request(), frame(RST_STREAM, 0, 1, uint32(8)));
    expect(last().cancelled).toBe(1);
    wire.send(wire.request());
    wire.connection.closed();
    expect(last().cancelled).toBe(1);
    expect(wire.streams.map(({ signal }) => signal.aborted)).toEqual([true, true]);
  });

  test("that sends less or more than it has declared is broken off", async () => {
    for (const size of [4, 6]) {
      const wire = await start((stream) => {
        const declared = headOf({ "content-length": "5" });
        const writer = stream.start(declared, { wanted() {}, cancelled() {} }, true);
        writer.write(Buffer.alloc(size));
        writer.end(() => {});
      });
      wire.send(wire.request());
      await wire.turn();
      expect(wire.resetsOf(1)).toEqual([2]);
      expect(wire.frames.some(({ type, flags }) => type === DATA && flags === 1)).toBe(false);
    }
  });
});

describe("the gateway's window", () => {
  const post = async (sent: number) => {
    const wire = await start();
    wire.send(wire.request(POST, false));
    for (let left = sent; left > 0; left -= 16_384)
      wire.send(frame(DATA, 0, 1, Buffer.alloc(Math.min(left, 16_384))));
    await wire.turn();
    return wire;
  };
  const updates = (wire: H2Wire, id: number) =>
    wire.frames
      .filter(({ type, stream }) => type === WINDOW_UPDATE && stream === id)
      .reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0);

  test("of a stream is given back as its body is read, and not before", async () => {
    const wire = await post(65_535);
    expect([updates(wire, 1), updates(wire, 0)]).toEqual([0, 0]);
    const body = wire.streams[0]?.openBody();
    for (let piece = 0; piece < 4; piece++) await body?.read();
    await wire.turn();
    expect(updates(wire, 1)).toBe(32_768);
  });

  test("of a stream that is exceeded ends the stream, and after that the connection", async () => {
    const wire = await post(65_536);
    expect(wire.resetsOf(1)).toEqual([3]);
    wire.send(...Array.from({ length: 5 }, () => frame(DATA, 0, 1, Buffer.alloc(16_384))));
    await wire.turn();
    expect(wire.goAway).toBe(3);
  });

  describe.each([
    ["near", 200, 65_535],
    ["8 ms away", 8000, 80_000],
    ["100 ms away", 100_000, 1_000_000],
    ["500 ms away", 500_000, 1_048_576],
  ] as const)("of a stream whose client is %s", (_where, roundTrip, most) => {
    /** The window once so many bytes were sent, as fast as it allows; a target that does not keep up reads a piece each turn. */
    async function windowAfter(bytes: number, keepsUp: boolean): Promise<number> {
      const wire = await start();
      wire.roundTrip = roundTrip;
      wire.send(wire.request(POST, false));
      const [stream] = wire.connection.streams.values();
      const body = wire.streams[0]?.openBody();
      const readOn = async () => {
        while ((await body?.read())?.done === false) if (!keepsUp) return;
      };
      if (keepsUp) void readOn().catch(() => "the stream was reset");
      for (let sent = 0; sent < bytes;) {
        for (let open = 65_535 + updates(wire, 1) - sent; open > 0; open -= 16_384) {
          wire.send(frame(DATA, 0, 1, Buffer.alloc(Math.min(16_384, open))));
          sent += Math.min(16_384, open);
        }
        if (!keepsUp) await readOn();
        await wire.turn();
      }
      const window = wire.connection.receiveWindow + (stream?.grown ?? 0);
      // More is an error.
      wire.send(...Array.from({ length: 130 }, () => frame(DATA, 0, 1, Buffer.alloc(8192))));
      await wire.turn();
      expect(wire.resetsOf(1).length + (wire.goAway === null ? 0 : 1)).toBeGreaterThan(0);
      wire.connection.close();
      return window;
    }

    test("grows with what a round trip carries while the target keeps up", async () => {
      expect(await windowAfter(8_000_000, true)).toBe(most);
    });

    test("does not where the target is the slower one", async () => {
      expect(await windowAfter(2_000_000, false)).toBe(65_535);
    });
  });

  test("grows by 16 MiB for all streams of a worker together, and again once they have ended", () => {
    const windows = new ReceiveWindows();
    const grown: number[] = [];
    for (let stream = 0; stream < 40; stream++) {
      const state = { grown: 0, hasKeptUp: true };
      while (windows.grow(state, 65_535 + state.grown, 1_000_000) > 0) state.hasKeptUp = true;
      grown.push(state.grown);
    }
    expect(grown.reduce((sum, bytes) => sum + bytes, 0)).toBe(16_777_216);
    expect([grown[0], grown.at(-1)]).toEqual([1_048_576 - 65_535, 0]);
    windows.release(grown[0] ?? 0);
    expect(windows.grow({ grown: 0, hasKeptUp: true }, 65_535, 1_000_000)).toBe(65_535);
  });

  test("of the connection is given back whatever is read, so that no stream stops another", async () => {
    const wire = await start(() => {}, { max_concurrent_streams: 1000 });
    // Windows of 16,777 bytes.
    for (let count = 0; count < 520; count++)
      wire.send(wire.request(POST, false), frame(DATA, 0, 1 + 2 * count, Buffer.alloc(16_384)));
    await wire.turn();
    expect([updates(wire, 0) >= 8_388_608, wire.goAway]).toEqual([true, null]);
  });
});

describe("priorities (RFC 9218)", () => {
  const withPriority = (value: string): Field[] => [...GET, ["priority", value]];
  /** The streams of DATA frames in their order, with the windows of the connection opened late. */
  const orderOf = async (values: readonly string[], more: readonly Uint8Array[] = []) => {
    const wire = await start(respondWith(32_768));
    wire.send(initialWindow(2 ** 31 - 1));
    // The first one uses up the window of the connection.
    wire.send(wire.request(), wire.request());
    await wire.turn();
    for (const value of values) wire.send(wire.request(value === "" ? GET : withPriority(value)));
    wire.send(...more);
    await wire.turn();
    wire.forget();
    wire.send(frame(WINDOW_UPDATE, 0, 0, uint32(2 ** 30)));
    await wire.turn();
    return wire.frames
      .filter(({ type, payload }) => type === DATA && payload.length > 1)
      .map(({ stream }) => stream);
  };

  test("the more urgent one first", async () => {
    expect(await orderOf(["u=5", "u=0", "u=2"])).toEqual([7, 7, 9, 9, 5, 5]);
  });

  test("equals one after the other, in the order of their ids", async () => {
    expect(await orderOf(["u=2", "u=2"])).toEqual([5, 5, 7, 7]);
  });

  test("incremental ones in turns", async () => {
    expect(await orderOf(["u=2, i", "u=2, i"])).toEqual([5, 7, 5, 7]);
  });

  test("neither kind waits for the end of the other", async () => {
    expect(new Set((await orderOf(["u=2", "u=2, i"])).slice(0, 2))).toEqual(new Set([5, 7]));
  });

  test("requests without a priority share the connection", async () => {
    expect(await orderOf(["", ""])).toEqual([5, 7, 5, 7]);
  });

  test("PRIORITY_UPDATE changes one that waits", async () => {
    const update = (stream: number, value: string) =>
      frame(16, 0, 0, Buffer.concat([uint32(stream), Buffer.from(value)]));
    expect(await orderOf(["u=2", "u=3"], [update(7, "u=0")])).toEqual([7, 7, 5, 5]);
  });

  test("PRIORITY_UPDATE may precede its request", async () => {
    const wire = await start();
    wire.send(frame(16, 0, 0, Buffer.concat([uint32(1), Buffer.from("u=1")])), wire.request());
    expect(wire.streams[0]).toMatchObject({ priority: { urgency: 1, isIncremental: false } });
  });

  test.each([
    ["u=1, i", 1, true],
    ["i=?0, u=7", 7, false],
    ["u=8", 3, false],
    ["u=-1", 3, false],
    ["nonsense", 3, false],
    ["u=2;x=1, other", 2, false],
  ])("the value %s", async (value, urgency, isIncremental) => {
    const wire = await start();
    wire.send(wire.request(withPriority(value)));
    expect(wire.streams[0]).toMatchObject({ priority: { urgency, isIncremental } });
  });
});

describe("a client that waits for 100", () => {
  const waiting: Field[] = [...POST, ["expect", "100-continue"]];
  const statuses = (wire: H2Wire) =>
    wire.frames
      .filter(({ type }) => type === HEADERS)
      .map(({ payload }) => payload.toString("latin1"));

  test("gets it once its body is wanted, and then its response", async () => {
    const wire = await start();
    wire.send(wire.request(waiting, false));
    const [stream] = wire.streams;
    expect(stream?.awaitsContinue).toBe(true);
    stream?.openBody();
    respondWith(0)(stream as ClientStream);
    await wire.turn();
    expect(statuses(wire)).toEqual([
      expect.stringContaining("100"),
      expect.stringContaining("\x88"),
    ]);
  });

  test("gets none with a response that came before", async () => {
    const wire = await start(respondWith(0));
    wire.send(wire.request(waiting, false));
    await wire.turn();
    expect(statuses(wire).length).toBe(1);
  });
});

describe("the end of a connection", () => {
  test("a client that has sent GOAWAY gets its responses, and FIN", async () => {
    const held: ClientStream[] = [];
    const wire = await start((stream) => void held.push(stream));
    wire.send(wire.request(), frame(GOAWAY, 0, 0, Buffer.alloc(8)));
    await wire.turn();
    expect(wire.hasEnded).toBe(false);
    respondWith(5)(held[0] as ClientStream);
    await wire.turn();
    expect([wire.sizeOf(1), wire.hasEnded]).toEqual([5, true]);
  });

  test("GOAWAY comes in two steps, and streams in between are served", async () => {
    const wire = await start(respondWith(5));
    wire.connection.goAway();
    await wire.turn();
    expect(wire.frames.map(({ type }) => type)).toEqual([GOAWAY, PING]);
    expect(wire.frames[0]?.payload.readUInt32BE(0)).toBe(2 ** 31 - 1);
    wire.send(wire.request(), frame(PING, 1, 0, wire.frames[1]?.payload ?? Buffer.alloc(8)));
    await wire.turn();
    const last = wire.frames.findLast(({ type }) => type === GOAWAY);
    expect([wire.sizeOf(1), last?.payload.readUInt32BE(0), wire.hasEnded]).toEqual([5, 1, true]);
  });

  test("a response that is complete before its request is followed by a reset a second later", async () => {
    const wire = await start(respondWith(5));
    wire.send(wire.request(POST, false));
    await wire.turn();
    expect([wire.sizeOf(1), wire.resetsOf(1)]).toEqual([5, []]);
    // What the client has sent meanwhile is dropped.
    wire.send(frame(DATA, 0, 1, Buffer.alloc(10_000)));
    wire.connection.tick(performance.now() + 1100);
    await wire.turn();
    expect([wire.resetsOf(1), wire.goAway]).toEqual([[0], null]);
  });
});
