// Targets that break HTTP/2 (RFC 9113): each gets a failure that names it, and no byte passes as something else.
import { afterAll, expect, test } from "bun:test";
import { cleanupsOf } from "../../support/cleanups.ts";
import { startDataPlane } from "../../support/data-plane.ts";
import {
  encodeFields,
  END_HEADERS,
  type Field,
  frames,
  type Script,
  type ScriptedConnection,
  startScriptedTarget,
} from "./scripted-target.ts";

const stops = cleanupsOf(afterAll);

async function scene(script: Script, service: object = {}) {
  const target = startScriptedTarget(script);
  stops.push(() => target.stop());
  const gateway = await startDataPlane({
    services: [
      {
        name: "app",
        protocol: "h2c",
        retries: { count: 0 },
        response_timeout: 2000,
        read_timeout: 2000,
        ...service,
        targets: [{ port: target.port }],
      },
    ],
    routes: [{ name: "all", service_id: "app" }],
  });
  const reason = () =>
    gateway.log.findLast(({ message }) => message === "request failed")?.fields["reason"];
  stops.push(() => gateway.drain(0));
  return { target, gateway, url: `http://127.0.0.1:${gateway.port}`, reason };
}

const OK: Field = [":status", "200"];
type Response = (connection: ScriptedConnection, stream: number) => void;
const head =
  (fields: readonly Field[], body: string | null = null): Response =>
  (connection, stream) => {
    connection.headers(stream, fields, body === null);
    if (body !== null) connection.data(stream, body, true);
  };

test.each<{ why: string; response: Response }>([
  { why: "a name in upper case", response: head([OK, ["X-Upper", "1"]]) },
  { why: "a name with a space", response: head([OK, ["x y", "1"]]) },
  { why: "an empty name", response: head([OK, ["", "1"]]) },
  { why: "CR LF in a value", response: head([OK, ["x", "1\r\nset-cookie: a=b"]]) },
  { why: "LF in a value", response: head([OK, ["x", "1\nset-cookie: a=b"]]) },
  { why: "NUL in a value", response: head([OK, ["x", "a\0b"]]) },
  { why: "CR LF in a name", response: head([OK, ["x\r\ny", "1"]]) },
  { why: "Connection", response: head([OK, ["connection", "close"]]) },
  { why: "Transfer-Encoding", response: head([OK, ["transfer-encoding", "chunked"]], "x") },
  { why: "Upgrade", response: head([OK, ["upgrade", "websocket"]]) },
  { why: "no status", response: head([["x", "1"]]) },
  { why: "two statuses", response: head([OK, OK]) },
  { why: "a status after a field", response: head([["x", "1"], OK]) },
  { why: "a status that is no number", response: head([[":status", "2oo"]]) },
  { why: "a status of four digits", response: head([[":status", "2000"]]) },
  { why: "a pseudo field of requests", response: head([OK, [":path", "/"]]) },
  { why: "status 101", response: head([[":status", "101"]]) },
  { why: "less than Content-Length", response: head([OK, ["content-length", "5"]], "abc") },
  { why: "more than Content-Length", response: head([OK, ["content-length", "2"]], "abc") },
  { why: "Content-Length without a body", response: head([OK, ["content-length", "2"]]) },
  {
    why: "two Content-Lengths",
    response: head([OK, ["content-length", "3"], ["content-length", "4"]], "abc"),
  },
  { why: "a negative Content-Length", response: head([OK, ["content-length", "-3"]], "abc") },
  { why: "content of a 204", response: head([[":status", "204"]], "abc") },
  {
    why: "content before the head",
    response: (connection, stream) => connection.data(stream, "abc", true),
  },
  {
    why: "a field block that is not HPACK",
    response: (connection, stream) =>
      connection.frame(frames.headers, END_HEADERS | 1, stream, Buffer.from([0xff, 0xff, 0xff])),
  },
  { why: "a stream that was never opened", response: (connection) => connection.respond(99, "x") },
  {
    why: "a frame longer than the limit",
    response: (connection, stream) => {
      connection.headers(stream, [OK, ["content-length", "20000"]]);
      connection.frame(frames.data, 1, stream, Buffer.alloc(20_000));
    },
  },
])("a response with $why is refused", async ({ response }) => {
  const { url, reason } = await scene({ onRequest: response });
  const seen = await fetch(url).then(
    async (one) => [one.status, one.headers.get("set-cookie"), await one.text()] as const,
    () => ["broken", null, ""] as const,
  );
  expect([502, "broken"]).toContain(seen[0]);
  expect(seen[1]).toBeNull();
  expect(reason()).toBeString();
});

test.each<{ why: string; end: Response }>([
  { why: "is reset with NO_ERROR", end: (connection, stream) => connection.reset(stream, 0) },
  { why: "is reset with CANCEL", end: (connection, stream) => connection.reset(stream, 8) },
  { why: "loses its connection", end: (connection) => connection.close() },
  {
    why: "loses its connection within a frame",
    end(connection) {
      connection.write(Buffer.from([0, 0, 9, 0, 1, 0, 0, 0, 1, 97]));
      connection.close();
    },
  },
  { why: "sees GOAWAY with an error", end: (connection, stream) => connection.goaway(stream, 11) },
  {
    why: "has trailers that do not end it",
    end: (connection, stream) => connection.headers(stream, [["x", "1"]]),
  },
  {
    why: "has a status in its trailers",
    end: (connection, stream) => connection.headers(stream, [OK], true),
  },
])("a streamed response that $why never looks complete", async ({ end }) => {
  const { promise, resolve } = Promise.withResolvers<() => void>();
  const { url, reason } = await scene({
    onRequest(connection, stream) {
      connection.headers(stream, [OK]);
      connection.data(stream, "part");
      resolve(() => end(connection, stream));
    },
  });
  const response = await fetch(url);
  const reader = response.body!.getReader();
  expect(Buffer.from((await reader.read()).value!).toString()).toBe("part");
  (await promise)();
  const rest = async (): Promise<void> => {
    while (!(await reader.read()).done);
  };
  expect(
    await rest().then(
      () => "complete",
      () => "broken",
    ),
  ).toBe("broken");
  expect(reason()).toBeString();
});

test("a response in single bytes is read as a whole", async () => {
  const { url } = await scene({
    onRequest(connection, stream) {
      const response = [
        ...[0, 0, 9, 1, 4, 0, 0, 0, stream],
        ...[0x88, 0, 1, 120, 4, ...Buffer.from("long")],
        ...[0, 0, 2, 0, 0, 0, 0, 0, stream, 104, 101],
        ...[0, 0, 3, 0, 1, 0, 0, 0, stream, 108, 108, 111],
      ];
      const next = (index: number) => {
        if (index === response.length) return;
        connection.write(Buffer.from([response[index]!]));
        setImmediate(() => next(index + 1));
      };
      next(0);
    },
  });
  const response = await fetch(url);
  expect([response.status, response.headers.get("x"), await response.text()]).toEqual([
    200,
    "long",
    "hello",
  ]);
});

test.each<{ why: string; response: Response }>([
  {
    why: "half a field block",
    response: (connection, stream) =>
      connection.frame(frames.headers, 0, stream, Buffer.from([0x88])),
  },
  { why: "half a frame", response: (connection) => connection.write(Buffer.from([0, 0, 9, 1])) },
  { why: "nothing", response: () => {} },
])("a target that sends $why runs into the response timeout", async ({ response }) => {
  const { url, target } = await scene({ onRequest: response }, { response_timeout: 200 });
  expect((await fetch(url)).status).toBe(504);
  // Nothing has arrived since: the session may be dead.
  expect((await fetch(url)).status).toBe(504);
  expect(target.connections).toHaveLength(2);
});

test.each([
  { bytes: 60_000, status: 200 },
  { bytes: 70_000, status: 502 },
])("a head of $bytes bytes: $status", async ({ bytes, status }) => {
  const fields = Array.from({ length: 10 }, (_, index): Field => [
    `x-${index}`,
    "a".repeat(bytes / 10),
  ]);
  const { url } = await scene({
    onRequest(connection, stream) {
      // Each frame has at most 16 KB.
      const [first, ...rest] = fields;
      connection.frame(frames.headers, 1, stream, encodeFields([OK, first!]));
      for (const field of rest) {
        const flags = field === rest.at(-1) ? END_HEADERS : 0;
        connection.frame(CONTINUATION, flags, stream, encodeFields([field]));
      }
    },
  });
  expect((await fetch(url)).status).toBe(status);
});

const CONTINUATION = 9;
