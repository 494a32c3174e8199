// Rows of RFC 9113 on each type of frame, and error codes (sections 6 and 7).
import { encode } from "../../support/h2-client.ts";
import {
  ACK,
  connectionError,
  CONTINUATION,
  DATA,
  empty,
  END_HEADERS,
  END_STREAM,
  FLOW_CONTROL,
  FRAME_SIZE,
  frames,
  GET,
  getBlock,
  GOAWAY,
  HEADERS,
  ignored,
  onOpen,
  open,
  PADDED,
  PING,
  postBlock,
  PRIORITY,
  priority,
  PROTOCOL,
  PUSH_PROMISE,
  rowsOf,
  RST_STREAM,
  served,
  settings,
  STREAM_CLOSED,
  streamError,
  thenGet,
  WINDOW_UPDATE,
  WITH_PRIORITY,
  setting,
  uint32,
  type Row,
} from "./rfc9113-row.ts";

const data = rowsOf("6.1 DATA");
const headers = rowsOf("6.2 HEADERS");
const prio = rowsOf("6.3 PRIORITY");
const rst = rowsOf("6.4 RST_STREAM");
const set = rowsOf("6.5 SETTINGS");
const push = rowsOf("6.6 PUSH_PROMISE");
const ping = rowsOf("6.7 PING");
const away = rowsOf("6.8 GOAWAY");
const windows = rowsOf("6.9 WINDOW_UPDATE");
const continuation = rowsOf("6.10 CONTINUATION");
const codes = rowsOf("7 error codes");

const padded = (pad: number, payload: Buffer) =>
  Buffer.concat([Buffer.from([pad]), payload, Buffer.alloc(pad)]);

export const frameRows: readonly Row[] = [
  data("on stream 0", connectionError(PROTOCOL), frames([DATA, 1, 0, Buffer.from("x")])),
  data("with padding", served, onOpen(DATA, END_STREAM | PADDED, padded(6, Buffer.from("body")))),
  data(
    "that is nothing but padding",
    served,
    onOpen(DATA, END_STREAM | PADDED, padded(255, empty)),
  ),
  data(
    "with more padding than payload",
    connectionError(PROTOCOL),
    onOpen(DATA, PADDED | 1, Buffer.from([6, 1, 2])),
  ),
  data(
    "padded, and without payload",
    streamError(PROTOCOL, FRAME_SIZE),
    onOpen(DATA, PADDED | 1, empty),
  ),
  headers("on stream 0", connectionError(PROTOCOL), frames([HEADERS, 5, 0, getBlock()])),
  headers("with padding", served, (client) => {
    client.frame(HEADERS, 5 | PADDED, 1, padded(9, getBlock()));
    return 1;
  }),
  headers(
    "with more padding than payload",
    connectionError(PROTOCOL),
    frames([HEADERS, 5 | PADDED, 1, Buffer.concat([Buffer.from([250]), getBlock()])]),
  ),
  headers("with a priority", served, (client) => {
    client.frame(HEADERS, 5 | WITH_PRIORITY, 1, Buffer.concat([priority(0), getBlock()]));
    return 1;
  }),
  headers("with a priority on itself", streamError(PROTOCOL), (client) => {
    client.frame(HEADERS, 5 | WITH_PRIORITY, 1, Buffer.concat([priority(1), getBlock()]));
    return 1;
  }),
  headers(
    "with half a priority",
    connectionError(FRAME_SIZE, PROTOCOL),
    frames([HEADERS, 5 | WITH_PRIORITY, 1, Buffer.from([0, 0])]),
  ),
  prio("on stream 0", connectionError(PROTOCOL), frames([PRIORITY, 0, 0, priority(1)])),
  prio("of four bytes", streamError(FRAME_SIZE), onOpen(PRIORITY, 0, uint32(0))),
  prio("on itself, idle", streamError(PROTOCOL), frames([PRIORITY, 0, 9, priority(9)])),
  prio("on itself, open", streamError(PROTOCOL), onOpen(PRIORITY, 0, priority(1))),
  prio("on an idle stream", served, thenGet([PRIORITY, 0, 9, priority(0)])),
  rst("on stream 0", connectionError(PROTOCOL), frames([RST_STREAM, 0, 0, uint32(8)])),
  rst("of three bytes", connectionError(FRAME_SIZE), onOpen(RST_STREAM, 0, Buffer.alloc(3))),
  rst("of five bytes", connectionError(FRAME_SIZE), onOpen(RST_STREAM, 0, Buffer.alloc(5))),
  set(
    "an acknowledgement with a payload",
    connectionError(FRAME_SIZE),
    frames(settings(setting(1, 0), ACK)),
  ),
  set("on a stream", connectionError(PROTOCOL), frames(settings(setting(1, 0), 0, 1))),
  set("of five bytes", connectionError(FRAME_SIZE), frames(settings(Buffer.alloc(5)))),
  set("ENABLE_PUSH of 2", connectionError(PROTOCOL), frames(settings(setting(2, 2)))),
  set(
    "INITIAL_WINDOW_SIZE of 2^31",
    connectionError(FLOW_CONTROL),
    frames(settings(setting(4, 2 ** 31))),
  ),
  set("INITIAL_WINDOW_SIZE of 2^31 - 1", served, thenGet(settings(setting(4, 2 ** 31 - 1)))),
  set("MAX_FRAME_SIZE below 2^14", connectionError(PROTOCOL), frames(settings(setting(5, 16_383)))),
  set("MAX_FRAME_SIZE of 2^14", served, thenGet(settings(setting(5, 16_384)))),
  set("MAX_FRAME_SIZE of 2^24 - 1", served, thenGet(settings(setting(5, 2 ** 24 - 1)))),
  set("MAX_FRAME_SIZE of 2^24", connectionError(PROTOCOL), frames(settings(setting(5, 2 ** 24)))),
  set("HEADER_TABLE_SIZE of 2^32 - 1", served, thenGet(settings(setting(1, 2 ** 32 - 1)))),
  push(
    "from a client",
    connectionError(PROTOCOL),
    frames([PUSH_PROMISE, 4, 1, Buffer.concat([uint32(2), getBlock()])]),
  ),
  ping("on a stream", connectionError(PROTOCOL), frames([PING, 0, 1, Buffer.alloc(8)])),
  ping("of six bytes", connectionError(FRAME_SIZE), frames([PING, 0, 0, Buffer.alloc(6)])),
  ping(
    "that acknowledges one never sent",
    ignored,
    frames([PING, ACK, 0, Buffer.from("unasked!")]),
  ),
  away("on a stream", connectionError(PROTOCOL), frames([GOAWAY, 0, 1, Buffer.alloc(8)])),
  away("of seven bytes", connectionError(FRAME_SIZE), frames([GOAWAY, 0, 0, Buffer.alloc(7)])),
  windows("of 0 on a stream", streamError(PROTOCOL), onOpen(WINDOW_UPDATE, 0, uint32(0))),
  windows(
    "of 0 on the connection",
    connectionError(PROTOCOL),
    frames([WINDOW_UPDATE, 0, 0, uint32(0)]),
  ),
  windows(
    "of three bytes",
    connectionError(FRAME_SIZE),
    frames([WINDOW_UPDATE, 0, 0, Buffer.alloc(3)]),
  ),
  windows(
    "over 2^31 - 1 on a stream",
    streamError(FLOW_CONTROL),
    onOpen(WINDOW_UPDATE, 0, uint32(2 ** 31 - 1)),
  ),
  windows(
    "over 2^31 - 1 on the connection",
    connectionError(FLOW_CONTROL),
    frames([WINDOW_UPDATE, 0, 0, uint32(2 ** 31 - 1)]),
  ),
  windows("with the reserved bit", served, thenGet([WINDOW_UPDATE, 0, 0, uint32(0x80000001)])),
  continuation("twice", served, (client) => {
    const block = getBlock();
    client.frame(HEADERS, END_STREAM, 1, block.subarray(0, 10));
    client.frame(CONTINUATION, 0, 1, block.subarray(10, 20));
    client.frame(CONTINUATION, END_HEADERS, 1, block.subarray(20));
    return 1;
  }),
  continuation(
    "then DATA",
    connectionError(PROTOCOL),
    frames(
      [HEADERS, 0, 1, postBlock().subarray(0, 9)],
      [CONTINUATION, 0, 1, postBlock().subarray(9)],
      [DATA, 1, 1, empty],
    ),
  ),
  continuation(
    "on stream 0",
    connectionError(PROTOCOL),
    frames(
      [HEADERS, 1, 1, getBlock().subarray(0, 9)],
      [CONTINUATION, 4, 0, getBlock().subarray(9)],
    ),
  ),
  continuation(
    "on another stream",
    connectionError(PROTOCOL),
    frames(
      [HEADERS, 1, 1, getBlock().subarray(0, 9)],
      [CONTINUATION, 4, 3, getBlock().subarray(9)],
    ),
  ),
  continuation(
    "behind END_HEADERS",
    connectionError(PROTOCOL, STREAM_CLOSED),
    frames([HEADERS, 4, 1, postBlock()], [CONTINUATION, 4, 1, encode([["x", "y"]])]),
  ),
  codes("an unknown one in RST_STREAM", served, (client) => {
    client.frame(RST_STREAM, 0, open(client), uint32(0xff));
    return client.headers(GET);
  }),
];
