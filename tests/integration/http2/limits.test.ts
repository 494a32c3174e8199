// Limits of HTTP/2 on what a client may leave open, send and repeat, each at its border.
import { afterEach, describe, expect, test } from "bun:test";
import type { ServerCertificate } from "../../../src/dataplane/server/bun-tls.ts";
import type { ClientStream } from "../../../src/dataplane/server/client-stream.ts";
import { selfSigned } from "../../support/certificate.ts";
import { startDataPlane } from "../../support/data-plane.ts";
import { type Field, H2Client } from "../../support/h2-client.ts";
import { eventually } from "../../support/poll.ts";
import { type BareEngine, type Bounds, head, startEngine } from "./bare-engine.ts";
import { RawClient } from "./raw-client.ts";

const GET: readonly Field[] = [
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/"],
  [":authority", "a.test"],
];
const NOTHING = Buffer.alloc(0);
const [DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING] = [0, 1, 2, 3, 4, 6];
const [WINDOW_UPDATE, CONTINUATION] = [8, 9];
const REFUSED_STREAM = 7;
const ENHANCE_YOUR_CALM = 11;

/** `:method: GET`, `:path: /`, `:scheme: http`, `:authority: a.test` (RFC 7541 appendix A). */
const BLOCK = Buffer.concat([Buffer.from([0x82, 0x84, 0x86, 0x01, 6]), Buffer.from("a.test")]);

const certificate: ServerCertificate = await selfSigned();
let engine: BareEngine | null = null;
afterEach(async () => {
  await engine?.stop();
  engine = null;
});

const respond = (stream: ClientStream) => stream.respond(head(200), [Buffer.from("hello")], true);

function start(
  bounds: Partial<Bounds> = {},
  serve: (stream: ClientStream) => void = respond,
  tls: ServerCertificate | null = null,
): BareEngine {
  engine = startEngine(serve, bounds, tls);
  return engine;
}

/** Of a client that may still speak either protocol. */
const SILENCE = "the head of a request did not arrive in time";
const PREFACE = "no complete HTTP/2 preface arrived in time";

describe.each([{ over: "cleartext" }, { over: "TLS" }])("over $over", ({ over }) => {
  const isTls = over === "TLS";
  const startOver: typeof start = (bounds, serve) =>
    start(bounds, serve, isTls ? certificate : null);

  describe("a client is disconnected that", () => {
    test.each<[why: string, send: (client: RawClient) => void, reason: string]>([
      ["sends nothing", () => {}, isTls ? PREFACE : SILENCE],
      [
        "sends half a preface",
        (client) => client.write(Buffer.from("PRI * HTTP/2.0\r\n")),
        PREFACE,
      ],
      [
        "sends no SETTINGS after the preface",
        (client) => client.preface({ hasSettings: false }),
        PREFACE,
      ],
    ])("%s until the preread timeout", async (_why, send, reason) => {
      const { port, refusals } = startOver({ handshakeTimeout: 300, headTimeout: 300 });
      const client = await RawClient.connect(port, isTls);
      send(client);
      await client.untilClosed();
      expect(refusals).toEqual([reason]);
    });

    test.each<[why: string, send: (client: RawClient) => void]>([
      ["half a frame head", (client) => client.write(Buffer.from([0, 0, 5, 1]))],
      ["half a HEADERS frame", (client) => client.part(HEADERS, 4, 1, BLOCK, 12)],
      ["HEADERS without END_HEADERS", (client) => client.frame(HEADERS, 1, 1, BLOCK)],
      [
        "CONTINUATION without END_HEADERS",
        (client) => {
          client.frame(HEADERS, 1, 1, BLOCK);
          client.frame(CONTINUATION, 0, 1, Buffer.from([0x82]));
        },
      ],
      ["half a SETTINGS frame", (client) => client.part(SETTINGS, 0, 0, Buffer.alloc(6), 12)],
    ])("leaves %s open until the head timeout", async (_why, send) => {
      const { port, refusals } = startOver({ headTimeout: 300 });
      const client = await RawClient.connect(port, isTls);
      client.preface();
      send(client);
      await client.untilClosed();
      expect(refusals).toEqual(["the head of a request did not arrive in time"]);
      expect(client.goAway).toBe(ENHANCE_YOUR_CALM);
    });

    test("opens no stream until the idle timeout, after a GOAWAY without error", async () => {
      const { port, refusals } = startOver({ idleTimeout: 300 });
      const client = await RawClient.connect(port, isTls);
      client.preface();
      await client.untilClosed();
      expect(client.goAway).toBe(0);
      expect(refusals).toEqual([]);
    });

    const opened = (client: RawClient) => client.frame(HEADERS, 4, 1, BLOCK);
    const inBlock = (client: RawClient) => client.frame(HEADERS, 0, 1, BLOCK);
    test.each<
      [
        why: string,
        type: number,
        stream: number,
        payload: Buffer,
        before: (client: RawClient) => void,
      ]
    >([
      ["PING", PING, 0, Buffer.alloc(8), () => {}],
      ["SETTINGS", SETTINGS, 0, NOTHING, () => {}],
      ["empty DATA", DATA, 1, NOTHING, opened],
      ["empty CONTINUATION", CONTINUATION, 1, NOTHING, inBlock],
      ["CONTINUATION", CONTINUATION, 1, Buffer.from([0x82]), inBlock],
      ["PRIORITY", PRIORITY, 3, Buffer.alloc(5), () => {}],
      ["unknown", 77, 0, NOTHING, () => {}],
    ])("sends a flood of %s frames", async (_why, type, stream, payload, before) => {
      const { port } = startOver({}, () => {});
      const client = await RawClient.connect(port, isTls);
      client.preface();
      before(client);
      await client.flood(type, stream, payload, 200_000);
      expect(client.isClosed).toBe(true);
    });

    test("resets more than a thousand streams (CVE-2023-44487)", async () => {
      const { port } = startOver({}, () => {});
      const client = await RawClient.connect(port, isTls);
      client.preface();
      for (let stream = 1; stream < 6000 && !client.isClosed; stream += 2) {
        client.frame(HEADERS, 5, stream, BLOCK);
        client.frame(RST_STREAM, 0, stream, Buffer.from([0, 0, 0, 8]));
        if (stream % 100 === 1) await client.breathe();
      }
      await client.untilClosed();
    });
  });

  describe("a client is served that", () => {
    test("stays longer than the time for the preface", async () => {
      const { port, refusals } = startOver({ handshakeTimeout: 200 });
      const client = await H2Client.connect({ port, tls: isTls });
      // The engine looks about once a second.
      for (let second = 0; second < 3; second++) {
        expect((await client.result(client.headers(GET))).body).toBe("hello");
        await Bun.sleep(700);
      }
      expect([client.isClosed, refusals]).toEqual([false, []]);
      client.close();
    });

    test("resets some hundred streams", async () => {
      const { port } = startOver({}, (stream) => queueMicrotask(() => respond(stream)));
      const client = await H2Client.connect({ port, tls: isTls });
      for (let count = 0; count < 500; count++) client.resetStream(client.headers(GET));
      expect((await client.result(client.headers(GET))).body).toBe("hello");
      client.close();
    });

    test("has a stream open for longer than the idle timeout", async () => {
      const { port } = startOver({ idleTimeout: 200 }, (stream) => {
        setTimeout(() => respond(stream), 1500);
      });
      const client = await H2Client.connect({ port, tls: isTls });
      expect((await client.result(client.headers(GET))).body).toBe("hello");
      client.close();
    });

    test("sends a body slower than the head timeout", async () => {
      let body = "";
      const receive = async (stream: ClientStream) => {
        const source = stream.openBody();
        for (;;) {
          const { done, value } = await source.read();
          if (done) break;
          body += Buffer.from(value).toString();
        }
        respond(stream);
      };
      const { port } = startOver({ headTimeout: 200 }, (stream) => void receive(stream));
      const client = await RawClient.connect(port, isTls);
      client.preface();
      client.frame(HEADERS, 4, 1, BLOCK);
      // A DATA frame of which half has arrived.
      client.part(DATA, 1, 1, Buffer.from("hello"), 11);
      await eventually(() => client.received > 0 && performance.now() > client.began + 1600);
      client.write(Buffer.from("llo"));
      await eventually(() => body === "hello");
      expect(client.isClosed).toBe(false);
      client.close();
    });

    test("sends many PRIORITY frames, as older browsers do", async () => {
      const { port } = startOver();
      const client = await H2Client.connect({ port, tls: isTls });
      for (let count = 0; count < 900; count++) client.frame(PRIORITY, 0, 3, Buffer.alloc(5));
      expect((await client.result(client.headers(GET))).body).toBe("hello");
      client.close();
    });
  });
});

describe("max_concurrent_streams", () => {
  test("is advertised, and holds at its border", async () => {
    const held: ClientStream[] = [];
    const { port, engine: full } = start({ maxStreams: 3 }, (stream) => held.push(stream));
    const client = await H2Client.connect({ port });
    const streams = [1, 2, 3, 4].map(() => client.headers(GET));
    expect((await client.result(streams[3] as number)).reset).toBe(REFUSED_STREAM);
    await eventually(() => held.length === 3);
    expect(full.pending).toBe(3);
    const settings = client.frames.find(({ type, flags }) => type === SETTINGS && flags === 0);
    expect(settings?.payload.toString("hex")).toContain("000300000003");
    respond(held[0] as ClientStream);
    expect((await client.result(streams[0] as number)).body).toBe("hello");
    await eventually(() => full.pending === 2);
    client.headers(GET);
    await eventually(() => held.length === 4);
    client.close();
    await eventually(() => full.pending === 0);
  });

  test("refuses a hundred at once without ending the connection", async () => {
    const { port } = start({ maxStreams: 2 }, (stream) => setTimeout(() => respond(stream), 50));
    const client = await H2Client.connect({ port });
    const streams = Array.from({ length: 300 }, () => client.headers(GET));
    expect((await client.result(streams[0] as number)).body).toBe("hello");
    expect((await client.result(client.headers(GET))).body).toBe("hello");
    client.close();
  });
});

describe("the window of a stream", () => {
  test.each([
    [1, 65_535],
    [256, 65_535],
    [257, 65_280],
    [1000, 16_777],
  ])(
    "of %d at once is %d bytes, so that all of a connection have at most 16 MiB",
    async (maxStreams, bytes) => {
      const { port } = start({ maxStreams }, respond);
      const client = await H2Client.connect({ port });
      await client.result(client.headers(GET));
      const settings = client.frames.find(({ type, flags }) => type === SETTINGS && flags === 0);
      const entries = settings?.payload.toString("hex").match(/.{12}/g) ?? [];
      const window = entries.find((entry) => entry.startsWith("0004"));
      // A setting that has its initial value need not be sent (RFC 9113 section 6.5.2).
      expect(window === undefined ? 65_535 : Number.parseInt(window.slice(4), 16)).toBe(bytes);
      client.close();
    },
  );

  test("lets a client send 128 KB of a body that nobody reads, and no more", async () => {
    const { port } = start({}, () => {});
    const client = await RawClient.connect(port);
    client.preface();
    client.frame(HEADERS, 4, 1, BLOCK);
    const updates = () =>
      client.frames
        .filter(({ type, stream }) => type === WINDOW_UPDATE && stream === 1)
        .reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0);
    const send = async (bytes: number): Promise<void> => {
      for (let sent = 0; sent < bytes; sent += 13_107)
        client.frame(DATA, 0, 1, Buffer.alloc(Math.min(13_107, bytes - sent)));
      client.frame(PING, 0, 0, Buffer.alloc(8));
      const acks = client.acks;
      await eventually(() => client.acks > acks);
    };
    await send(65_535);
    expect(updates()).toBeLessThanOrEqual(65_535);
    await send(updates());
    expect(updates()).toBeLessThanOrEqual(65_535);
    // One more byte is an error of the client (RFC 9113 section 6.9.1).
    client.frame(DATA, 0, 1, Buffer.alloc(1));
    const isRefused = () =>
      client.isClosed || client.frames.some(({ type }) => type === RST_STREAM || type === 7);
    await eventually(isRefused);
    client.close();
  });

  test("holds the sender of a response back while the client does not read", async () => {
    let written = 0;
    let isFull = false;
    const { port } = start({}, (stream) => {
      const writer = stream.start(head(200), { wanted() {}, cancelled() {} }, true);
      while (!isFull && written < 50_000_000) {
        isFull = !writer.write(Buffer.alloc(16_384));
        written += 16_384;
      }
    });
    const client = await RawClient.connect(port);
    client.preface();
    client.frame(HEADERS, 5, 1, BLOCK);
    await eventually(() => isFull);
    expect(written).toBeLessThan(1_000_000);
    client.close();
  });

  test("however large, does not let a response grow in memory while the socket is full", async () => {
    let written = 0;
    let isEnded = false;
    const { port } = start({}, (stream) => {
      const piece = Buffer.alloc(65_536);
      const fill = () => {
        while (!isEnded && written < 200_000_000) {
          written += piece.length;
          if (!writer.write(piece)) return;
        }
      };
      const reader = {
        wanted: fill,
        cancelled() {
          isEnded = true;
        },
      };
      const writer = stream.start(head(200), reader, true);
      fill();
    });
    const client = await RawClient.connect(port);
    client.pause();
    // SETTINGS_INITIAL_WINDOW_SIZE, then the same window for the connection.
    client.preface({ settings: Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff]) });
    client.frame(8, 0, 0, Buffer.from([0x7f, 0, 0, 0]));
    client.frame(HEADERS, 5, 1, BLOCK);
    let last = -1;
    await eventually(
      () => {
        const isStill = written > 0 && written === last;
        last = written;
        return isStill;
      },
      { intervalMs: 300 },
    );
    // The kernel's buffers, and little more.
    expect(written).toBeLessThan(30_000_000);
    client.close();
    await eventually(() => isEnded);
  });
});

describe("a complete response that the client does not read", () => {
  const bulk = Buffer.alloc(500_000);
  const serveBulk = (stream: ClientStream) => stream.respond(head(200), [bulk], true);
  const resets = (client: RawClient) =>
    client.frames.filter(({ type }) => type === RST_STREAM).map(({ stream }) => stream);

  test("is dropped after the write timeout (CVE-2019-9517)", async () => {
    const { port, engine: full } = start({ writeTimeout: 500 }, serveBulk);
    const client = await RawClient.connect(port);
    client.preface({ settings: Buffer.from([0, 4, 0, 0, 0, 0]) });
    for (const stream of [1, 3, 5]) client.frame(HEADERS, 5, stream, BLOCK);
    await eventually(() => full.pending === 3);
    await eventually(() => full.pending === 0);
    await eventually(() => resets(client).length === 3);
    expect(client.isClosed).toBe(false);
    client.close();
  });

  test("stays while the client reads some of it", async () => {
    const { port } = start({ writeTimeout: 1500 }, serveBulk);
    const client = await RawClient.connect(port);
    client.preface();
    client.frame(HEADERS, 5, 1, BLOCK);
    const began = performance.now();
    // Some frames a second, for longer than the timeout.
    let last = began;
    await eventually(() => {
      const now = performance.now();
      if (now - last > 300) {
        last = now;
        const increment = Buffer.alloc(4);
        increment.writeUInt32BE(20_000, 0);
        client.frame(WINDOW_UPDATE, 0, 0, increment);
        client.frame(WINDOW_UPDATE, 0, 1, increment);
      }
      return now - began > 3500;
    });
    expect(resets(client)).toEqual([]);
    client.close();
  });
});

describe("the limits on heads", () => {
  const listFields = (count: number, size = 1): Field[] =>
    Array.from({ length: count }, (_, index): Field => [`x-${index}`, "v".repeat(size)]);

  test.each([
    ["as many fields as max_header_fields", 20 - 1, 1, 200],
    ["one field more", 20, 1, 431],
    ["far more fields", 900, 1, 431],
    ["more bytes than max_header_bytes", 4, 1100, 431],
  ])("answer a request with %s with its status", async (_why, count, size, status) => {
    const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") });
    const plane = await startDataPlane({
      tls: await selfSigned(),
      listener: { engine: "sluice", max_header_bytes: 4096 },
      settings: { limits: { max_header_fields: 20 } },
      services: [{ name: "s", targets: [{ port: origin.port ?? 0 }] }],
      routes: [{ name: "r", service_id: "s" }],
    });
    const client = await H2Client.connect({ port: plane.port, tls: true });
    const result = await client.result(client.headers([...GET, ...listFields(count, size)]));
    expect(result.status).toBe(status);
    client.close();
    await plane.stop();
    await origin.stop(true);
  });

  test("end with a stream or connection error beyond 64 KB", async () => {
    const { port } = start();
    const client = await H2Client.connect({ port });
    const stream = client.headers(GET, { isLast: true });
    expect((await client.result(stream)).body).toBe("hello");
    const raw = await RawClient.connect(port);
    raw.preface();
    raw.frame(HEADERS, 1, 1, BLOCK);
    const field = Buffer.concat([
      Buffer.from([0x10, 1, 0x78, 127, 0x81, 0x7c]),
      Buffer.alloc(16_000, 118),
    ]);
    for (let count = 0; count < 6; count++) raw.frame(CONTINUATION, count === 5 ? 4 : 0, 1, field);
    await eventually(
      () => raw.isClosed || raw.frames.some(({ type }) => type === RST_STREAM || type === 7),
    );
    raw.close();
    client.close();
  });
});
