// One exchange with a target: trailers, interim responses, streams in both directions, pauses; HTTP/2 and HTTP/1.1 alike.
import { afterAll, expect, test } from "bun:test";
import type { BodySource } from "../../../src/dataplane/client-body.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import { eventually } from "../../support/poll.ts";
import { http1Transport, http2Transport, RecordedExchange } from "./recorded-exchange.ts";
import { type Field, startScriptedTarget } from "./scripted-target.ts";
import { startHttp2Target, type StreamHandler } from "./target.ts";

const stops = cleanupsOf(afterAll);

async function http2(handle: StreamHandler) {
  const target = await startHttp2Target(handle);
  stops.push(() => target.stop());
  return { target, transport: http2Transport(target.port) };
}

/** A body whose pieces come when the test wants. */
class Source implements BodySource {
  readonly #pieces: (Uint8Array | null)[] = [];
  #wakeUp: (() => void) | null = null;
  isCancelled = false;

  /** Null: the end. */
  send(text: string | null): void {
    this.#pieces.push(text === null ? null : Buffer.from(text));
    this.#wakeUp?.();
  }

  async read() {
    while (this.#pieces.length === 0)
      await new Promise<void>((resolve) => {
        this.#wakeUp = resolve;
      });
    const value = this.#pieces.shift() ?? null;
    return value === null ? ({ done: true } as const) : ({ done: false, value } as const);
  }

  async cancel() {
    this.isCancelled = true;
  }
}

test("trailers of HTTP/2 arrive before the end, without those that are forbidden", async () => {
  const { transport } = await http2((stream) => {
    stream.respond({ ":status": 200 }, { waitForTrailers: true });
    stream.on("wantTrailers", () =>
      stream.sendTrailers({
        "grpc-status": "0",
        "grpc-message": "fine",
        "set-cookie": "a=b",
        authorization: "x",
        "content-type": "text/html",
        "if-match": "x",
        trailer: "x",
      }),
    );
    stream.end("message");
  });
  const seen = await new RecordedExchange({ transport }).ended();
  expect(seen.events).toEqual(["head 200", "content", "trailers", "finished"]);
  expect(seen.trailers).toEqual([
    ["grpc-status", "0"],
    ["grpc-message", "fine"],
  ]);
});

test("a response of trailers only is a head", async () => {
  const { transport } = await http2((stream) =>
    stream.respond({ ":status": 200, "grpc-status": "5" }, { endStream: true }),
  );
  const seen = await new RecordedExchange({ transport }).ended();
  expect(seen.events).toEqual(["head 200", "finished"]);
  expect(seen.head!.headers.get("grpc-status")).toBe("5");
});

const hint: Field[] = [
  [":status", "103"],
  ["link", "</a.css>"],
];

test("interim responses of HTTP/2 are passed on, 100 is not", async () => {
  const target = startScriptedTarget({
    onRequest(connection, stream) {
      connection.headers(stream, [[":status", "100"]]);
      connection.headers(stream, hint);
      connection.headers(stream, [[":status", "102"]]);
      connection.respond(stream, "x");
    },
  });
  stops.push(() => target.stop());
  const seen = await new RecordedExchange({ transport: http2Transport(target.port) }).ended();
  expect(seen.events).toEqual([
    '103 [["link","</a.css>"]]',
    "102 []",
    "head 200",
    "content",
    "finished",
  ]);
});

test.each([
  { count: 8, error: null },
  { count: 9, error: "the target sent too many interim responses" },
])("$count interim responses: $error", async ({ count, error }) => {
  const target = startScriptedTarget({
    onRequest(connection, stream) {
      for (let index = 0; index < count; index++) connection.headers(stream, hint);
      connection.respond(stream, "x");
    },
  });
  stops.push(() => target.stop());
  const seen = await new RecordedExchange({ transport: http2Transport(target.port) }).ended();
  expect(seen.error?.detail ?? null).toBe(error);
});

test("messages pass in both directions before either side ends", async () => {
  const { transport } = await http2((stream) => {
    stream.respond({ ":status": 200 });
    stream.on("data", (piece: Buffer) => stream.write(`echo ${String(piece)};`));
    stream.on("end", () => stream.end("bye"));
  });
  const source = new Source();
  const seen = new RecordedExchange({ transport, method: "POST", source });
  source.send("1");
  await eventually(() => seen.text === "echo 1;");
  source.send("2");
  await eventually(() => seen.text === "echo 1;echo 2;");
  source.send(null);
  await seen.ended();
  expect(seen.text).toBe("echo 1;echo 2;bye");
  expect(seen.events.at(-1)).toBe("finished");
});

test("a response before the end of the request ends both, and the session goes on", async () => {
  const { target, transport } = await http2((stream) => {
    stream.respond({ ":status": 413 });
    stream.end("too large");
  });
  const source = new Source();
  source.send("1");
  const seen = await new RecordedExchange({ transport, method: "POST", source }).ended();
  expect([seen.text, seen.events.at(-1)]).toEqual(["too large", "finished"]);
  await eventually(() => source.isCancelled);
  await new RecordedExchange({ transport }).ended();
  expect(target.sessions).toHaveLength(1);
});

test("a paused exchange stops the target, and its read timeout", async () => {
  const piece = Buffer.alloc(16_384, 97);
  let sent = 0;
  const { transport } = await http2((stream) => {
    stream.respond({ ":status": 200 });
    const more = () => {
      while (sent < 20_000_000) {
        sent += piece.length;
        if (!stream.write(piece)) return stream.once("drain", more);
      }
      return stream.end();
    };
    more();
  });
  const seen = new RecordedExchange({ transport, readTimeout: 50 });
  await eventually(() => seen.content.length > 0);
  seen.exchange.pause();
  let before = -1;
  await eventually(() => {
    const isSteady = sent === before;
    before = sent;
    return isSteady;
  });
  expect(sent).toBeLessThan(5_000_000);
  seen.exchange.tick(performance.now() + 1000);
  expect(seen.error).toBeNull();
  seen.exchange.resume(performance.now());
  await seen.ended();
  expect(seen.content.reduce((sum, one) => sum + one.length, 0)).toBe(sent);
});

test.each([
  { target: "/a b", why: "a space" },
  { target: "/a\tb", why: "a tab" },
  { target: "/\0", why: "NUL" },
])("a target with $why is never sent", async ({ target }) => {
  const { target: peer, transport } = await http2((stream) => stream.respond());
  const seen = await new RecordedExchange({ transport, target }).ended();
  expect(seen.error).toMatchObject({ source: "client", status: 400 });
  expect(peer.requests).toEqual([]);
});

test("fields reach an HTTP/2 target as bytes, repeated ones as often as they are there", async () => {
  const { target, transport } = await http2((stream) => stream.respond({}, { endStream: true }));
  const fields =
    "x-twice: 1\r\nx-twice: 2\r\nX-Upper: \u00e9\u00ff\r\nte: gzip\r\ncookie: a=b; c=d\r\n";
  await new RecordedExchange({ transport, fields }).ended();
  expect(target.requests[0]).toMatchObject({
    "x-twice": "1, 2",
    "x-upper": "\u00e9\u00ff",
    cookie: "a=b; c=d",
    ":authority": "own.test",
  });
  expect(target.requests[0]).not.toContainKeys(["te", "host", "connection"]);
});

/** Responds to every request with these bytes. */
function http1(bytes: string) {
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data(socket) {
        socket.write(Buffer.from(bytes, "latin1"));
        socket.flush();
      },
    },
  });
  stops.push(() => server.stop(true));
  return http1Transport(server.port);
}

const CHUNKED = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n";

test("trailers of HTTP/1.1 arrive before the end, without those that are forbidden", async () => {
  const transport = http1(
    `${CHUNKED}X-Sum: \t1 2 \r\nContent-Length: 3\r\nSet-Cookie: a=b\r\nHost: x\r\nx-empty:\r\n\r\n`,
  );
  const seen = await new RecordedExchange({ transport }).ended();
  expect(seen.events).toEqual(["head 200", "content", "trailers", "finished"]);
  expect(seen.trailers).toEqual([
    ["X-Sum", "1 2"],
    ["x-empty", ""],
  ]);
});

test.each([
  { trailer: "x y: 1", why: "a space in its name" },
  { trailer: "x", why: "no colon" },
  { trailer: ": 1", why: "no name" },
  { trailer: " x: 1", why: "folding" },
  { trailer: "x: a\0b", why: "NUL" },
  { trailer: "x: a\rb", why: "CR" },
])("a trailer of HTTP/1.1 with $why is refused", async ({ trailer }) => {
  const seen = await new RecordedExchange({
    transport: http1(`${CHUNKED}${trailer}\r\n\r\n`),
  }).ended();
  expect(seen.error?.token).toBe("http_protocol_error");
});

test("interim responses of HTTP/1.1 are passed on, 100 is not", async () => {
  const transport = http1(
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nConnection: x-own\r\nX-Own: 1\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx",
  );
  const seen = await new RecordedExchange({ transport }).ended();
  expect(seen.events).toEqual(['103 [["Link","</a.css>"]]', "head 200", "content", "finished"]);
});
