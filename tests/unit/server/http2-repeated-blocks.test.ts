// Header blocks of HTTP/2 that repeat: the same bytes mean another request as soon as the table has changed.
import { expect, test } from "bun:test";
import type { ClientStream } from "../../../src/dataplane/server/client-stream.ts";
import { RepeatedBlock } from "../../../src/dataplane/server/http2/repeated-block.ts";
import { HeaderList } from "../../../src/dataplane/server/http2/request-head.ts";
import { frame, H2Wire } from "../../support/h2-wire.ts";
import { headOf } from "../../support/outgoing-head.ts";
import { type EncodedField, HpackEncoder, integer } from "../../support/hpack-encoder.ts";

const HEADERS = 1;
/** END_STREAM and END_HEADERS. */
const WHOLE = 5;

const indexed = (name: string, value: string): EncodedField => ({
  ...{ name, value, as: "index", isHuffman: false },
});
const REQUEST = [indexed(":method", "GET"), indexed(":scheme", "http"), indexed(":path", "/")];
const added = (name: string, value: string): EncodedField => ({
  ...indexed(name, value),
  as: "add",
});

/** The newest entry of the dynamic table. */
const NEWEST = integer(0x80, 7, 62);

class Client {
  readonly encoder = new HpackEncoder();
  readonly wire = new H2Wire();
  #next = 1;

  send(block: Buffer, flags = WHOLE): ClientStream | undefined {
    this.wire.send(frame(HEADERS, flags, this.#next, block));
    this.#next += 2;
    return this.wire.streams.at(-1);
  }

  /** A request whose last field is the newest entry. */
  repeat(): ClientStream | undefined {
    return this.send(Buffer.concat([this.encoder.encode(REQUEST), NEWEST]));
  }
}

test("a block that repeats gives the same fields without decoding", () => {
  const client = new Client();
  client.send(client.encoder.encode([...REQUEST, added("x-who", "first")]));
  const streams = Array.from({ length: 4 }, () => client.repeat());
  expect(streams.map((stream) => stream?.fields.get("x-who"))).toEqual(Array(4).fill("first"));
  expect(streams[3]?.fields).toBe(streams[2]?.fields as never);
  expect(new Set(streams).size).toBe(4);
});

test("the same bytes mean another field once the table has changed", () => {
  const client = new Client();
  client.send(client.encoder.encode([...REQUEST, added("x-who", "first")]));
  for (let times = 0; times < 4; times++) client.repeat();
  client.send(client.encoder.encode([...REQUEST, added("x-who", "second")]));
  const streams = Array.from({ length: 4 }, () => client.repeat());
  expect(streams.map((stream) => stream?.fields.get("x-who"))).toEqual(Array(4).fill("second"));
});

test("they are a wrong block once the table is empty", async () => {
  const client = new Client();
  client.send(client.encoder.encode([...REQUEST, added("x-who", "first")]));
  for (let times = 0; times < 4; times++) client.repeat();
  const before = client.wire.streams.length;
  client.encoder.resize(0);
  client.send(client.encoder.encode(REQUEST));
  client.repeat();
  await client.wire.turn();
  expect(client.wire.streams.length).toBe(before + 1);
  // COMPRESSION_ERROR
  expect(client.wire.goAway).toBe(9);
});

test("a block with a change of the table's size is decoded each time", () => {
  const client = new Client();
  for (let times = 0; times < 4; times++) {
    client.encoder.resize(times);
    expect(client.send(client.encoder.encode(REQUEST))?.url).toBe("/");
  }
  expect(client.wire.goAway).toBeNull();
});

test("one connection's block is nothing to another connection", () => {
  const [one, other] = [new Client(), new Client()];
  one.send(one.encoder.encode([...REQUEST, added("x-who", "one")]));
  other.send(other.encoder.encode([...REQUEST, added("x-who", "other")]));
  for (let times = 0; times < 3; times++) {
    expect(one.repeat()?.fields.get("x-who")).toBe("one");
    expect(other.repeat()?.fields.get("x-who")).toBe("other");
  }
});

test("the same block with a body begins a request with a body", () => {
  const client = new Client();
  client.send(client.encoder.encode([...REQUEST, added("x-who", "first")]));
  for (let times = 0; times < 4; times++) client.repeat();
  const block = Buffer.concat([client.encoder.encode(REQUEST), NEWEST]);
  for (let times = 0; times < 4; times++) expect(client.send(block, 4)?.hasBody).toBe(true);
  for (let times = 0; times < 4; times++) expect(client.repeat()?.hasBody).toBe(false);
});

test("an idle connection keeps none", () => {
  const client = new Client();
  client.send(client.encoder.encode([...REQUEST, added("x-who", "first")]));
  const kept = Array.from({ length: 3 }, () => client.repeat()).at(-1)?.fields;
  expect(client.repeat()?.fields).toBe(kept as never);
  for (const stream of client.wire.streams) stream.respond(headOf(), [], true);
  client.wire.connection.tick(performance.now());
  const next = client.repeat()?.fields;
  expect(next).not.toBe(kept as never);
  expect(next?.get("x-who")).toBe("first");
});

test("a block is another one under another limit of the listener, table or end", () => {
  const repeated = new RepeatedBlock();
  const bytes = Buffer.from("a block");
  const block = { bytes, start: 0, end: bytes.length };
  const context = { version: 1, isLast: true, maxBytes: 1024 };
  const list = new HeaderList();
  list.begin(context.maxBytes);
  const head = list.request(true);
  for (let times = 0; times < 2; times++) repeated.keep(block, context, head);
  expect(repeated.find(block, context)).toBe(head);
  for (const other of [{ maxBytes: 512 }, { version: 2 }, { isLast: false }])
    expect(repeated.find(block, { ...context, ...other })).toBeNull();
});
