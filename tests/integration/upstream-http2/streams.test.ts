// Streams to a target: windows of both sides, pauses, trailers of requests, limits that change, what is in one write.
import { describe, expect, test } from "bun:test";
import type { BodySource } from "../../../src/dataplane/client-body.ts";
import type { FieldPairs } from "../../../src/http/fields.ts";
import { HpackDecoder } from "../../../src/dataplane/http2/hpack-decoder.ts";
import { encode, type Field, type Frame } from "../../support/h2-client.ts";
import { frame, uint32 } from "../../support/h2-wire.ts";
import { data, headers, TargetWire } from "./target-wire.ts";

const OK: Field = [":status", "200"];
const END_STREAM = 1;
const LAST = 5;
const setting = (id: number, value: number) => Buffer.concat([Buffer.from([0, id]), uint32(value)]);
const maxStreams = (count: number) => setting(3, count);
const window = (bytes: number) => setting(4, bytes);

/** A body in pieces; counts what was read. */
class Pieces implements BodySource {
  bytesRead = 0;
  readonly #pieces: Uint8Array[];

  constructor(pieces: readonly Uint8Array[]) {
    this.#pieces = [...pieces];
  }

  async read() {
    const value = this.#pieces.shift();
    if (value === undefined) return { done: true } as const;
    this.bytesRead += value.byteLength;
    return { done: false, value } as const;
  }

  async cancel() {}
}

const post = (wire: TargetWire, source: BodySource, trailers?: FieldPairs) =>
  wire.request({ method: "POST", source, ...(trailers === undefined ? {} : { trailers }) });

const sizes = (frames: readonly Frame[]) => frames.map(({ payload }) => payload.length);
const total = (frames: readonly Frame[]) => sizes(frames).reduce((sum, size) => sum + size, 0);

function fieldsOf({ payload }: Frame): Field[] {
  const fields: Field[] = [];
  const place = { start: 0, end: payload.length };
  new HpackDecoder().decode(payload, place, (name, value) => fields.push([name, value]));
  return fields;
}

describe("a request", () => {
  test("is in one write with its body, which ends the stream without an empty frame", async () => {
    const wire = new TargetWire();
    wire.request();
    wire.connect();
    await wire.turn();
    wire.writes.length = 0;
    post(wire, new Pieces([Buffer.from("small")]));
    await wire.turn();
    expect(wire.writes.map((one) => one.map(({ type, flags }) => [type, flags]))).toEqual([
      [
        [1, 4],
        [0, END_STREAM],
      ],
    ]);
  });

  test("ends with its trailers: 1,000 of them on one session", async () => {
    const wire = new TargetWire();
    for (let at = 0; at < 1000; at++) {
      const source = new Pieces([Buffer.from("body")]);
      const one = post(wire, source, [["X-Sum", String(at)]]);
      if (at === 0) wire.connect();
      await wire.turn();
      const id = 1 + 2 * at;
      expect(wire.frames.map(({ type, flags, stream }) => [type, flags, stream]).slice(-3)).toEqual(
        [
          [1, 4, id],
          [0, 0, id],
          [1, LAST, id],
        ],
      );
      expect(fieldsOf(wire.frames.at(-1)!)).toEqual([["x-sum", String(at)]]);
      wire.send(headers(id, [OK], LAST));
      await one.ended();
      wire.writes.length = 0;
    }
    expect(wire.sessions).toHaveLength(1);
  });

  test("with a long head has CONTINUATION", async () => {
    const wire = new TargetWire();
    const long = "v".repeat(100_000);
    wire.request({ fields: `x-long: ${long}\r\n` });
    wire.connect();
    await wire.turn();
    const parts = wire.frames.filter(({ type }) => type === 1 || type === 9);
    expect(parts.map(({ flags }) => flags)).toEqual([1, 0, 0, 0, 0, 0, 4]);
    const whole = { ...parts[0]!, payload: Buffer.concat(parts.map(({ payload }) => payload)) };
    expect(fieldsOf(whole)).toContainEqual(["x-long", long]);
  });
});

describe("the target's windows", () => {
  test("hold the body back, and its source", async () => {
    const wire = new TargetWire();
    // Each has memory of its own, which is released once it is sent.
    const source = new Pieces(Array.from({ length: 10 }, () => Buffer.alloc(40_000, 97)));
    post(wire, source);
    wire.connect();
    await wire.turn();
    expect([total(wire.of(0, 1)), source.bytesRead]).toEqual([65_535, 80_000]);
    wire.send(frame(8, 0, 1, uint32(100)));
    await wire.turn();
    expect(total(wire.of(0, 1))).toBe(65_535);
    wire.send(frame(8, 0, 0, uint32(1_000_000)));
    await wire.turn();
    expect([total(wire.of(0, 1)), source.bytesRead]).toEqual([65_635, 80_000]);
    wire.send(frame(4, 0, 0, window(400_000)));
    for (let piece = 0; piece < 10; piece++) await wire.turn();
    expect([total(wire.of(0, 1)), source.bytesRead]).toEqual([400_000, 400_000]);
    expect(sizes(wire.of(0, 1)).every((size) => size <= 16_384)).toBe(true);
  });

  test("may become negative by SETTINGS, and nothing is sent until they are open", async () => {
    const wire = new TargetWire();
    post(wire, new Pieces([Buffer.alloc(50_000), Buffer.alloc(50_000)]));
    wire.connect(window(60_000));
    await wire.turn();
    expect(total(wire.of(0, 1))).toBe(60_000);
    wire.send(frame(8, 0, 0, uint32(1_000_000)), frame(4, 0, 0, window(10_000)));
    wire.send(frame(8, 0, 1, uint32(50_000)));
    await wire.turn();
    expect(total(wire.of(0, 1))).toBe(60_000);
    wire.send(frame(8, 0, 1, uint32(1)));
    await wire.turn();
    expect(total(wire.of(0, 1))).toBe(60_001);
  });

  test("are shared by turns", async () => {
    const wire = new TargetWire();
    for (let at = 0; at < 3; at++) post(wire, new Pieces([Buffer.alloc(200_000)]));
    wire.connect(window(1_000_000));
    await wire.turn();
    expect([1, 3, 5].map((id) => total(wire.of(0, id)))).toEqual([32_767, 16_384, 16_384]);
  });

  test("of the kernel count as well", async () => {
    const wire = new TargetWire();
    const source = new Pieces(Array.from({ length: 50 }, () => Buffer.alloc(100_000)));
    post(wire, source);
    wire.connect(Buffer.concat([window(10_000_000)]));
    wire.send(frame(8, 0, 0, uint32(10_000_000)));
    wire.room = 30_000;
    await wire.turn();
    expect(source.bytesRead).toBe(100_000);
    for (let round = 0; round < 200 && source.bytesRead < 5_000_000; round++) {
      wire.drain(100_000);
      await wire.turn();
    }
    wire.drain();
    await wire.turn();
    expect(total(wire.of(0, 1))).toBe(5_000_000);
  });
});

describe("the gateway's windows", () => {
  const full = (id: number) => data(id, "x".repeat(16_384));
  const granted = (wire: TargetWire, id: number) =>
    wire.of(8, id).reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0);

  test("are twice as large for a client that keeps up, to a near target", async () => {
    const wire = new TargetWire();
    const one = wire.request();
    wire.connect();
    await wire.turn();
    wire.send(headers(1, [OK]));
    let sent = 0;
    for (let round = 0; round < 100; round++) {
      wire.send(full(1));
      await wire.turn();
      sent += 16_384;
      const room = 65_535 + granted(wire, 1) - sent;
      expect(room).toBeGreaterThan(0);
      expect(room).toBeLessThanOrEqual(131_072);
    }
    expect(65_535 + granted(wire, 1) - sent).toBeGreaterThan(65_535);
    wire.send(data(1, "", END_STREAM));
    await one.ended();
    expect(one.text.length).toBe(sent);
  });

  test("of a paused exchange close, those of its neighbour and the connection stay open", async () => {
    const wire = new TargetWire();
    const held = wire.request();
    const other = wire.request();
    wire.connect();
    await wire.turn();
    wire.send(headers(1, [OK]), headers(3, [OK]));
    held.exchange.pause();
    wire.send(full(1), full(1), full(1));
    await wire.turn();
    expect([granted(wire, 1), held.text.length]).toEqual([0, 0]);
    for (let round = 0; round < 2000; round++) wire.send(full(3));
    await wire.turn();
    expect(granted(wire, 0)).toBeGreaterThan(16_000_000);
    expect(other.text.length).toBe(2000 * 16_384);
    held.exchange.resume(0);
    await wire.turn();
    expect(held.text.length).toBe(3 * 16_384);
    expect(granted(wire, 1)).toBeGreaterThanOrEqual(3 * 16_384);
  });

  test("a paused exchange gets what came meanwhile piece by piece, trailers last", async () => {
    const wire = new TargetWire();
    const held = wire.request();
    wire.connect();
    await wire.turn();
    wire.send(headers(1, [OK]));
    held.exchange.pause();
    wire.send(data(1, "one "), data(1, "two"), headers(1, [["x-sum", "1"]], LAST));
    expect(held.events).toEqual(["head 200", "waiting"]);
    held.exchange.resume(0);
    expect([held.text, held.trailers, held.events.at(-1)]).toEqual([
      "one two",
      [["x-sum", "1"]],
      "finished",
    ]);
  });

  test("a complete response that the client reads late outlives its session", async () => {
    const wire = new TargetWire();
    const held = wire.request();
    const open = wire.request();
    wire.connect();
    await wire.turn();
    wire.send(headers(1, [OK]), headers(3, [OK]));
    held.exchange.pause();
    open.exchange.pause();
    wire.send(data(1, "all", END_STREAM), data(3, "part"));
    wire.end();
    expect([held.error, open.error?.token]).toEqual([null, "http_response_incomplete"]);
    held.exchange.resume(0);
    expect([held.text, held.events.at(-1)]).toEqual(["all", "finished"]);
  });
});

describe("the target's limit of streams", () => {
  const heads = (wire: TargetWire) => wire.frames.filter(({ type }) => type === 1).length;

  test("of 0 holds a request back until it is raised", async () => {
    const wire = new TargetWire();
    const one = wire.request();
    wire.connect(maxStreams(0));
    await wire.turn();
    expect(heads(wire)).toBe(0);
    wire.send(frame(4, 0, 0, maxStreams(1)));
    await wire.turn();
    expect(heads(wire)).toBe(1);
    wire.send(headers(1, [OK], LAST));
    await one.ended();
    expect(one.events).toEqual(["head 200", "finished"]);
  });

  test("that is lowered sends new requests to another session, and ends none", async () => {
    const wire = new TargetWire();
    const first = [wire.request(), wire.request(), wire.request()];
    wire.connect();
    await wire.turn();
    wire.send(frame(4, 0, 0, maxStreams(1)));
    wire.request();
    expect(wire.sessions).toHaveLength(2);
    expect(first.map(({ error }) => error)).toEqual([null, null, null]);
  });
});

test("trailers of a response may have 100 KB", async () => {
  const wire = new TargetWire();
  const one = wire.request();
  wire.connect();
  await wire.turn();
  const fields = Array.from({ length: 10 }, (_, at): Field => [`x-${at}`, "v".repeat(10_000)]);
  const block = encode(fields);
  const parts: Buffer[] = [];
  for (let at = 0; at < block.length; at += 16_384) {
    const isLast = at + 16_384 >= block.length;
    const flags = isLast ? 4 : at === 0 ? END_STREAM : 0;
    parts.push(frame(at === 0 ? 1 : 9, flags, 1, block.subarray(at, at + 16_384)));
  }
  wire.send(headers(1, [OK]), data(1, "x"), ...parts);
  await one.ended();
  expect([one.error, one.trailers]).toEqual([null, fields]);
});

describe("GOAWAY", () => {
  const goAway = (last: number, code = 0) =>
    frame(7, 0, 0, Buffer.concat([uint32(last), uint32(code)]));

  test("in two steps loses nothing: what began between them goes to a new session", async () => {
    const wire = new TargetWire();
    const first = wire.request();
    const second = post(wire, new Pieces([Buffer.from("body")]));
    wire.connect();
    await wire.turn();
    wire.send(goAway(2 ** 31 - 1));
    expect(wire.sessions[0]?.hasCapacity).toBe(false);
    const old = wire.sessions[0]!;
    wire.send(headers(1, [OK]), goAway(1));
    // The body of unknown length was read, and cannot be sent again.
    expect(second.error?.token).toBe("connection_limit_reached");
    wire.send(data(1, "x", END_STREAM));
    expect([first.text, first.events.at(-1), old.isOver]).toEqual(["x", "finished", true]);
  });

  test("with an error ends the streams that it names", async () => {
    const wire = new TargetWire();
    const one = wire.request();
    wire.connect();
    await wire.turn();
    wire.send(headers(1, [OK]), goAway(1, 2));
    expect(one.error?.token).toBe("http_response_incomplete");
  });
});
