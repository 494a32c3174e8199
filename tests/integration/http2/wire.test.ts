// Frames of HTTP/2 as a client sees them: ends of responses, resets, trailers, malformed requests (RFC 9113).
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ClientStream } from "../../../src/dataplane/server/client-stream.ts";
import { type Field, H2Client } from "../../support/h2-client.ts";
import { eventually } from "../../support/poll.ts";
import { RawClient } from "./raw-client.ts";
import { type BareEngine, head, startEngine } from "./bare-engine.ts";

const NAMES = ["DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH", "PING", "GOAWAY"];
const hello = [Buffer.from("hello")];
const reader = { wanted() {}, cancelled() {} };

/** What the engine is told to do, by path. */
const handlers: Record<string, (stream: ClientStream) => void> = {
  "/whole": (stream) => stream.respond(head(200), hello, true),
  "/pieces": (stream) => stream.respond(head(200), [...hello, ...hello], true),
  "/empty": (stream) => stream.respond(head(200), [], true),
  "/204": (stream) => stream.respond(head(204), [], true),
  "/head": (stream) => stream.respond(head(200, { "content-length": "7" }), [], true),
  "/trailers"(stream) {
    stream.setTrailers([["grpc-status", "0"]]);
    stream.respond(head(200), hello, true);
  },
  "/trailers-only": (stream) => stream.respond(head(200, { "grpc-status": "12" }), [], true),
  "/streamed"(stream) {
    const writer = stream.start(head(200), reader, true);
    writer.write(hello[0] as Buffer);
    queueMicrotask(() => writer.end(() => {}));
  },
  "/streamed-trailers"(stream) {
    const writer = stream.start(head(200), reader, true);
    writer.write(hello[0] as Buffer);
    setTimeout(() => {
      stream.setTrailers([["grpc-status", "0"]]);
      writer.end(() => {});
    });
  },
  "/failed"(stream) {
    const writer = stream.start(head(200), reader, true);
    writer.write(hello[0] as Buffer);
    setTimeout(() => writer.fail(new Error("the target has gone")), 20);
  },
  "/failed-at-once"(stream) {
    const writer = stream.start(head(200), reader, true);
    writer.write(hello[0] as Buffer);
    writer.fail(new Error("the target has gone"));
  },
  "/aborted": (stream) => stream.abort(),
  "/interim"(stream) {
    stream.sendInterim(103, [["link", "</a.css>; rel=preload"]]);
    stream.respond(head(200), hello, true);
  },
  "/early": (stream) => stream.respond(head(413), hello, true),
  "/early-trailers"(stream) {
    stream.setTrailers([["grpc-status", "8"]]);
    stream.respond(head(200), hello, true);
  },
  "/early-streamed-trailers"(stream) {
    const writer = stream.start(head(200), reader, true);
    writer.write(hello[0] as Buffer);
    stream.setTrailers([["grpc-status", "14"]]);
    writer.end(() => {});
  },
  "/broken-field"(stream) {
    stream.setTrailers([["not a name", "x"]]);
    stream.respond(head(200), hello, true);
  },
};

let engine: BareEngine;
beforeAll(() => {
  engine = startEngine((stream) => {
    // What the request path responds to with a page.
    if (stream.problem !== null) return stream.abort();
    handlers[new URL(stream.url, "http://a.test").pathname]?.(stream);
  });
});
afterAll(() => engine.stop());

const get = (path: string, more: readonly Field[] = []): Field[] => [
  [":method", path === "/head" ? "HEAD" : "GET"],
  [":scheme", "http"],
  [":path", path],
  [":authority", "a.test"],
  ...more,
];

/** The frames of one stream, such as `HEADERS DATA+END`; an error code in brackets. */
async function framesOf(path: string, more: readonly Field[] = [], body?: string): Promise<string> {
  const client = await H2Client.connect({ port: engine.port });
  const stream = client.headers(get(path, more), { isLast: body === undefined });
  if (body !== undefined) client.data(stream, body, { isLast: false });
  const seen = () => client.frames.filter((frame) => frame.stream === stream);
  const isOver = () =>
    seen().some(({ type, flags }) => type === 3 || (body === undefined && (flags & 1) !== 0));
  await eventually(isOver, { intervalMs: 1 });
  // What would follow arrives before the answer to a PING that was sent afterwards.
  client.frame(6, 0, 0, Buffer.alloc(8));
  await eventually(() => client.frames.some(({ type, flags }) => type === 6 && flags === 1));
  client.close();
  return seen()
    .map(({ type, flags, payload }) => {
      const end = (flags & 1) !== 0 ? "+END" : "";
      return `${NAMES[type]}${type === 3 ? `(${payload.readUInt32BE(0)})` : end}`;
    })
    .join(" ");
}

describe("a response", () => {
  test.each([
    ["/whole", "HEADERS DATA+END", "a short body needs no frame for its end"],
    ["/pieces", "HEADERS DATA+END", "what a turn has is one frame"],
    ["/empty", "HEADERS+END", "there is no body"],
    ["/204", "HEADERS+END", "there is no body"],
    ["/head", "HEADERS+END", "HEAD has none"],
    ["/trailers", "HEADERS DATA HEADERS+END", "trailers end it"],
    ["/trailers-only", "HEADERS+END", "gRPC calls this trailers-only"],
    ["/streamed-trailers", "HEADERS DATA HEADERS+END", "trailers may come late"],
    ["/interim", "HEADERS HEADERS DATA+END", "103 precedes the response"],
    ["/failed", "HEADERS DATA RST_STREAM(2)", "a client must see that the body is not complete"],
    ["/failed-at-once", "HEADERS DATA RST_STREAM(2)", "the same without a turn of the loop"],
    ["/aborted", "RST_STREAM(2)", "there is no response"],
  ])("of %s is %s, because %s", async (path, frames) => {
    expect(await framesOf(path)).toBe(frames);
  });

  test("that is streamed ends with END_STREAM", async () => {
    expect(await framesOf("/streamed")).toMatch(/^HEADERS DATA( DATA)?\+END$/);
  });

  test.each([
    ["/early", "HEADERS DATA+END RST_STREAM(0)"],
    ["/early-trailers", "HEADERS DATA HEADERS+END RST_STREAM(0)"],
    ["/early-streamed-trailers", "HEADERS DATA HEADERS+END RST_STREAM(0)"],
  ])(
    "before the end of the request stops the rest of it without an error: %s",
    async (path, frames) => {
      expect(await framesOf(path, [], "x".repeat(100))).toBe(frames);
    },
  );

  test("with fields that cannot be sent has none of them, and the engine goes on", async () => {
    expect(await framesOf("/broken-field")).toContain("HEADERS+END");
    expect(await framesOf("/whole")).toBe("HEADERS DATA+END");
  });
});

test.each([1, 2, 3, 10])("the preface may begin with a packet of %d bytes", async (bytes) => {
  const client = await RawClient.connect(engine.port);
  const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  for (const part of [preface.slice(0, bytes), preface.slice(bytes)]) {
    client.write(Buffer.from(part));
    await Bun.sleep(5);
  }
  client.frame(4, 0, 0, Buffer.alloc(0));
  await eventually(() => client.frames.some(({ type, flags }) => type === 4 && flags === 1));
  client.close();
});

describe("a request is a stream error (RFC 9113 section 8.1.1) with", () => {
  const fields: [why: string, ...Field[]][] = [
    ["a name in upper case", ["X-A", "b"]],
    ["a name with a space", ["x y", "a"]],
    ["a name with a colon", ["x:y", "a"]],
    ["a field of the connection", ["connection", "close"]],
    ["a transfer coding", ["transfer-encoding", "chunked"]],
    ["an upgrade", ["upgrade", "h2c"]],
    ["another TE than trailers", ["te", "gzip"]],
    ["a line break", ["x", "a\r\nb: c"]],
    ["a lone line feed", ["x", "a\nb"]],
    ["NUL", ["x", "a\0b"]],
    ["a space before a value", ["authorization", " a"]],
    ["a tab after a value", ["authorization", "a\t"]],
    ["an unknown pseudo field", [":foo", "a"]],
    ["a second path", [":path", "/b"]],
    ["a late pseudo field", ["x", "a"], [":path", "/b"]],
    ["a length that is not the body's", ["content-length", "5"]],
    ["two lengths", ["content-length", "0"], ["content-length", "5"]],
  ];
  test.each(fields)("%s", async (_why, ...more) => {
    expect(await framesOf("/whole", more)).toBe("RST_STREAM(1)");
  });

  test("and the other streams of the connection go on", async () => {
    const client = await H2Client.connect({ port: engine.port });
    const bad = client.headers(get("/whole", [["connection", "close"]]));
    const good = client.headers(get("/whole"));
    expect((await client.result(bad)).reset).toBe(1);
    expect((await client.result(good)).body).toBe("hello");
    client.close();
  });
});
