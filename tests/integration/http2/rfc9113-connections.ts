// Rows of RFC 9113 on connections, frames in general and streams (sections 3 to 5).
import {
  ACK,
  connectionError,
  CONTINUATION,
  DATA,
  empty,
  END_HEADERS,
  END_STREAM,
  ENHANCE_YOUR_CALM,
  FRAME_SIZE,
  frames,
  GET,
  getBlock,
  HEADERS,
  ignored,
  onClosed,
  onHalfClosed,
  onOpen,
  onReset,
  open,
  PING,
  PREFACE,
  PRIORITY,
  priority,
  PROTOCOL,
  raw,
  rowsOf,
  RST_STREAM,
  served,
  SETTINGS,
  settings,
  STREAM_CLOSED,
  streamError,
  thenGet,
  WINDOW_UPDATE,
  setting,
  uint32,
  type Row,
} from "./rfc9113-row.ts";

const preface = rowsOf("3.4 preface");
const format = rowsOf("4.1 frame format");
const size = rowsOf("4.2 frame size");
const compression = rowsOf("4.3 field section compression");
const states = rowsOf("5.1 stream states");
const identifiers = rowsOf("5.1.1 stream identifiers");
const extending = rowsOf("5.5 extending HTTP/2");

export const connectionRows: readonly Row[] = [
  preface("a preface and SETTINGS", served, (client) => client.headers(GET)),
  preface(
    "no preface",
    connectionError(PROTOCOL),
    (client) => {
      client.write(Buffer.from("INVALID CONNECTION PREFACE\r\n\r\n"));
      return undefined;
    },
    raw,
  ),
  preface(
    "the first frame is no SETTINGS",
    connectionError(PROTOCOL, ENHANCE_YOUR_CALM),
    (client) => {
      client.write(PREFACE);
      client.frame(PING, 0, 0, Buffer.alloc(8));
      return undefined;
    },
    raw,
  ),
  preface(
    "the first frame is a request",
    connectionError(PROTOCOL, ENHANCE_YOUR_CALM),
    (client) => {
      client.write(PREFACE);
      client.frame(HEADERS, END_HEADERS | END_STREAM, 1, getBlock());
      return undefined;
    },
    raw,
  ),
  preface(
    "the first frame is an acknowledgement",
    connectionError(PROTOCOL),
    (client) => {
      client.write(PREFACE);
      client.frame(SETTINGS, ACK, 0, empty);
      return undefined;
    },
    raw,
  ),
  format("an unknown type of frame", served, thenGet([0xff, 0, 0, Buffer.from("any")])),
  format("an unknown type on an open stream", served, (client) => {
    const stream = open(client);
    client.frame(0xff, 0xff, stream, Buffer.from("any"));
    client.data(stream, "x");
    return stream;
  }),
  format("unknown flags", served, thenGet([PING, 0x16, 0, Buffer.alloc(8)])),
  format("the reserved bit of a stream", served, thenGet([PING, 0, 0x80000000, Buffer.alloc(8)])),
  size("DATA of 2^14 bytes", served, onOpen(DATA, END_STREAM, Buffer.alloc(16_384))),
  size("DATA over 2^14 bytes", streamError(FRAME_SIZE), onOpen(DATA, 1, Buffer.alloc(16_385))),
  size("HEADERS over 2^14 bytes", connectionError(FRAME_SIZE), (client) => {
    client.frame(HEADERS, 5, 1, Buffer.concat([getBlock(), Buffer.alloc(17_000)]));
    return undefined;
  }),
  size("a frame with the largest length there is", connectionError(FRAME_SIZE), (client) => {
    client.write(Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]));
    client.write(Buffer.alloc(20_000));
    return undefined;
  }),
  compression(
    "an index that no table has",
    connectionError(9),
    frames([HEADERS, 5, 1, Buffer.from([0xff, 0xff, 0x7f])]),
  ),
  compression(
    "a block that ends within a field",
    connectionError(9),
    frames([HEADERS, 5, 1, getBlock().subarray(0, -3)]),
  ),
  compression(
    "PRIORITY between HEADERS and CONTINUATION",
    connectionError(PROTOCOL),
    frames([HEADERS, 1, 1, getBlock()], [PRIORITY, 0, 3, priority(0)]),
  ),
  compression(
    "HEADERS of another stream in between",
    connectionError(PROTOCOL),
    frames([HEADERS, 1, 1, getBlock()], [HEADERS, 5, 3, getBlock()]),
  ),
  states(
    "idle: DATA",
    connectionError(PROTOCOL, STREAM_CLOSED),
    frames([DATA, 1, 1, Buffer.from("x")]),
  ),
  states("idle: RST_STREAM", connectionError(PROTOCOL), frames([RST_STREAM, 0, 1, uint32(8)])),
  states(
    "idle: WINDOW_UPDATE",
    connectionError(PROTOCOL),
    frames([WINDOW_UPDATE, 0, 1, uint32(100)]),
  ),
  states("idle: CONTINUATION", connectionError(PROTOCOL), frames([CONTINUATION, 4, 1, getBlock()])),
  states("half-closed: DATA", streamError(STREAM_CLOSED), onHalfClosed(DATA, 1, Buffer.from("x"))),
  states("half-closed: HEADERS", streamError(STREAM_CLOSED), onHalfClosed(HEADERS, 5, getBlock())),
  states(
    "half-closed: CONTINUATION",
    streamError(STREAM_CLOSED, PROTOCOL),
    onHalfClosed(CONTINUATION, 4, getBlock()),
  ),
  states("half-closed: WINDOW_UPDATE", served, (client) => {
    const stream = client.headers(GET);
    client.frame(WINDOW_UPDATE, 0, stream, uint32(100));
    return stream;
  }),
  states("half-closed: PRIORITY", served, (client) => {
    const stream = client.headers(GET);
    client.frame(PRIORITY, 0, stream, priority(0));
    return stream;
  }),
  states(
    "reset by the client: DATA",
    streamError(STREAM_CLOSED),
    onReset(DATA, 1, Buffer.from("x")),
  ),
  states(
    "reset by the client: HEADERS",
    streamError(STREAM_CLOSED),
    onReset(HEADERS, 5, getBlock()),
  ),
  states(
    "reset by the client: CONTINUATION",
    streamError(STREAM_CLOSED, PROTOCOL),
    onReset(CONTINUATION, 4, getBlock()),
  ),
  states("closed: DATA", connectionError(STREAM_CLOSED), onClosed(DATA, 1, Buffer.from("x"))),
  states("closed: HEADERS", connectionError(STREAM_CLOSED), onClosed(HEADERS, 5, getBlock())),
  states(
    "closed: CONTINUATION",
    connectionError(STREAM_CLOSED, PROTOCOL),
    onClosed(CONTINUATION, 4, getBlock()),
  ),
  states("closed: PRIORITY", ignored, onClosed(PRIORITY, 0, priority(0))),
  states("closed: WINDOW_UPDATE", ignored, onClosed(WINDOW_UPDATE, 0, uint32(100))),
  identifiers("an even stream", connectionError(PROTOCOL), frames([HEADERS, 5, 2, getBlock()])),
  identifiers(
    "a stream below an earlier one",
    connectionError(PROTOCOL),
    frames([HEADERS, 5, 5, getBlock()], [HEADERS, 5, 3, getBlock()]),
  ),
  identifiers("streams may be left out", served, (client) => {
    void frames([HEADERS, 5, 7, getBlock()])(client);
    return 7;
  }),
  extending("unknown settings", served, thenGet(settings(setting(0xff, 1)))),
  extending(
    "an unknown frame within a field section",
    connectionError(PROTOCOL),
    frames([HEADERS, 1, 1, getBlock()], [0x16, 0, 1, Buffer.alloc(8)]),
  ),
];
