// Long conversations and large heads between an HTTP/2 client and an HTTP/2 target, and targets that leave under load.
import { afterAll, expect, test } from "bun:test";
import http2, { type ClientHttp2Session } from "node:http2";
import { HpackDecoder } from "../../../src/dataplane/http2/hpack-decoder.ts";
import { cleanupsOf } from "../../support/cleanups.ts";
import { startDataPlane } from "../../support/data-plane.ts";
import { eventually } from "../../support/poll.ts";
import { encodeFields, END_HEADERS, type Field, startScriptedTarget } from "./scripted-target.ts";
import { startHttp2Target, type StreamHandler } from "./target.ts";

const stops = cleanupsOf(afterAll);
const HEADERS = 1;
const CONTINUATION = 9;
const LARGE = 1_048_576;

async function scene(handle: StreamHandler) {
  const target = await startHttp2Target(handle);
  stops.push(() => target.stop());
  const gateway = await startDataPlane({
    listener: { engine: "sluice" },
    services: [{ name: "app", protocol: "grpc", targets: [{ port: target.port }] }],
    routes: [{ name: "all", service_id: "app" }],
  });
  stops.push(() => gateway.stop());
  const client = http2.connect(gateway.url);
  client.on("error", () => {});
  stops.push(() => client.destroy());
  return { target, gateway, client };
}

const call = (client: ClientHttp2Session) => {
  const head = { ":method": "POST", ":path": "/s.S/M", "content-type": "application/grpc" };
  const stream = client.request({ ...head, te: "trailers" });
  stream.on("error", () => {});
  return stream;
};

/** Responds at once, and ends with trailers. */
function begin(stream: Parameters<StreamHandler>[0]) {
  const fields = { ":status": 200, "content-type": "application/grpc" };
  stream.respond(fields, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
}

test("10,000 messages each way on one stream, each after the response to the one before", async () => {
  const { client } = await scene((stream) => {
    begin(stream);
    stream.on("data", (piece: Buffer) => stream.write(piece));
    stream.on("end", () => stream.end());
  });
  const stream = call(client);
  const message = Buffer.from([0, 0, 0, 0, 4, 1, 2, 3, 4]);
  let bytes = 0;
  let sent = 1;
  const { promise, resolve } = Promise.withResolvers<unknown>();
  stream.on("trailers", (trailers) => resolve(trailers["grpc-status"]));
  stream.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (bytes < sent * message.length) return;
    if (sent === 10_000) return stream.end();
    sent++;
    stream.write(message);
  });
  stream.write(message);
  expect(await promise).toBe("0");
  expect(bytes).toBe(10_000 * message.length);
});

test("10,000 messages of the target, and as many of the client, without waiting", async () => {
  let received = 0;
  const { client } = await scene((stream) => {
    begin(stream);
    stream.on("data", (piece: Buffer) => {
      received += piece.length;
    });
    const message = Buffer.alloc(1005);
    message.writeUInt32BE(1000, 1);
    let left = 10_000;
    const more = () => {
      while (left > 0) {
        left--;
        if (!stream.write(message)) return stream.once("drain", more);
      }
      return undefined;
    };
    more();
    stream.on("end", () => stream.end());
  });
  const stream = call(client);
  const message = Buffer.alloc(1005);
  message.writeUInt32BE(1000, 1);
  let bytes = 0;
  stream.on("data", (piece: Buffer) => {
    bytes += piece.length;
  });
  const { promise, resolve } = Promise.withResolvers<unknown>();
  stream.on("trailers", (trailers) => resolve(trailers["grpc-status"]));
  for (let at = 0; at < 10_000; at++)
    if (!stream.write(message)) await new Promise((done) => stream.once("drain", () => done(0)));
  stream.end();
  expect(await promise).toBe("0");
  expect([bytes, received]).toEqual([10_050_000, 10_050_000]);
});

test("metadata of 100 KB in both heads, in frames of 16 KB", async () => {
  const there = Array.from({ length: 50 }, (_, at): Field => [`x-there-${at}`, "t".repeat(2000)]);
  const back = Array.from({ length: 50 }, (_, at): Field => [`x-back-${at}`, "b".repeat(2000)]);
  const target = startScriptedTarget({
    onFrame(connection, type, stream) {
      // The end of the header block.
      const block = connection.frames.filter(
        (one) => one.type === HEADERS || one.type === CONTINUATION,
      );
      if (block.reduce((sum, { payload }) => sum + payload.length, 0) < 100_000) return;
      if (type !== CONTINUATION) return;
      connection.frame(HEADERS, 1, stream, encodeFields([[":status", "200"]]));
      for (const field of back) {
        const flags = field === back.at(-1) ? END_HEADERS : 0;
        connection.frame(CONTINUATION, flags, stream, encodeFields([field]));
      }
    },
  });
  stops.push(() => target.stop());
  const gateway = await startDataPlane({
    listener: { engine: "sluice", max_header_bytes: 262_144 },
    settings: { limits: { max_response_head_bytes: LARGE } },
    services: [{ name: "app", protocol: "h2c", targets: [{ port: target.port }] }],
    routes: [{ name: "all", service_id: "app" }],
  });
  stops.push(() => gateway.stop());
  const response = await fetch(gateway.url, { headers: Object.fromEntries(there) });
  expect(response.status).toBe(200);
  for (const [name, value] of back) expect(response.headers.get(name)).toBe(value);
  const sent = target.connections[0]?.frames ?? [];
  const parts = sent.filter(({ type }) => type === HEADERS || type === CONTINUATION);
  expect(parts.every(({ payload }) => payload.length <= 16_384)).toBe(true);
  const block = Buffer.concat(parts.map(({ payload }) => payload));
  const received: Field[] = [];
  new HpackDecoder().decode(block, { start: 0, end: block.length }, (name, value) => {
    if (name.startsWith("x-there")) received.push([name, value]);
  });
  expect(Object.fromEntries(received)).toEqual(Object.fromEntries(there));
});

test("a target that does not read pauses the client, and a client that does not read pauses the target", async () => {
  let written = 0;
  const piece = Buffer.alloc(65_536);
  const { client } = await scene((stream) => {
    stream.pause();
    begin(stream);
    const more = () => {
      while (written < 100_000_000) {
        written += piece.length;
        if (!stream.write(piece)) return stream.once("drain", more);
      }
      return undefined;
    };
    more();
  });
  const stream = call(client);
  stream.pause();
  let sent = 0;
  const send = () => {
    while (sent < 100_000_000) {
      sent += piece.length;
      if (!stream.write(piece)) return stream.once("drain", send);
    }
    return undefined;
  };
  send();
  const steady = async (count: () => number) => {
    let before = -1;
    let same = 0;
    await eventually(() => {
      same = count() === before ? same + 1 : 0;
      before = count();
      return same > 10;
    });
  };
  await steady(() => sent + written);
  // Windows of both sides, and what the kernel and both programs of Node hold.
  expect(sent).toBeLessThan(3_000_000);
  expect(written).toBeLessThan(3_000_000);
});

test("targets that say goodbye under load lose no request", async () => {
  const sessions = new Map<unknown, number>();
  const { client, target, gateway } = await scene((stream) => {
    const { session } = stream;
    const count = (sessions.get(session) ?? 0) + 1;
    sessions.set(session, count);
    // Graceful: GOAWAY, and the streams that have begun go on.
    if (count === 40) session?.close();
    stream.on("data", () => {});
    stream.on("end", () => {
      begin(stream);
      stream.end(Buffer.from([0, 0, 0, 0, 1, 7]));
    });
  });
  const statuses = new Map<unknown, number>();
  const worker = async () => {
    for (let at = 0; at < 125; at++) {
      const stream = call(client);
      const { promise, resolve } = Promise.withResolvers<unknown>();
      stream.on("trailers", (fields) => resolve(fields["grpc-status"]));
      stream.on("close", () => resolve("closed"));
      stream.resume();
      stream.end(Buffer.from([0, 0, 0, 0, 1, 7]));
      const status = await promise;
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  expect([...statuses]).toEqual([["0", 2000]]);
  expect(target.sessions.length).toBeGreaterThan(20);
  const failed = gateway.log.filter(({ message }) => message === "request failed");
  expect(failed).toEqual([]);
});
