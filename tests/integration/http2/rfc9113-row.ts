// The form of a row of RFC 9113: what a client sends, and what must come back; knows no gateway.
import { encode, type Field, type H2Client } from "../../support/h2-client.ts";

/** Error codes (RFC 9113 section 7). */
export const NO_ERROR = 0;
export const PROTOCOL = 1;
export const FLOW_CONTROL = 3;
export const STREAM_CLOSED = 5;
export const FRAME_SIZE = 6;
export const COMPRESSION = 9;
export const ENHANCE_YOUR_CALM = 11;

export const [
  DATA,
  HEADERS,
  PRIORITY,
  RST_STREAM,
  SETTINGS,
  PUSH_PROMISE,
  PING,
  GOAWAY,
  WINDOW_UPDATE,
  CONTINUATION,
] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] as const;

export const [END_STREAM, ACK, END_HEADERS, PADDED, WITH_PRIORITY] = [1, 1, 4, 8, 32] as const;

export interface Row {
  readonly section: string;
  readonly what: string;
  /** Regular expression over `200`, `reset 1`, `goaway 1`, `closed`, or `silence` where nothing but a PING is answered. */
  readonly is: RegExp;
  /** Sends it and returns the stream that is judged; none: the connection. */
  readonly send: (client: H2Client) => number | undefined | Promise<number | undefined>;
  /** Without preface and SETTINGS. */
  readonly isRaw?: boolean;
}

const any = (codes: readonly number[]) => codes.join("|");

/** Section 5.4.1: GOAWAY with one of the codes, or the end of the connection. */
export const connectionError = (...codes: readonly number[]) =>
  new RegExp(`^(?:goaway (?:${any(codes)})|closed)$`);

/** Section 5.4.2: RST_STREAM with one of the codes; an endpoint may treat it as a connection error. */
export const streamError = (...codes: readonly number[]) =>
  new RegExp(`^(?:(?:reset|goaway) (?:${any(codes)})|closed)$`);

/** Section 8.1.1: a malformed request is a stream error, or gets a response with a status of errors. */
export const malformed = /^(?:reset 1|goaway [19]|closed|4\d\d|501)$/;

export const served = /^200$/;

/** Nothing is said about it, beside the response to the request before it. */
export const ignored = /^(?:silence|200)$/;

export const GET: readonly Field[] = [
  [":method", "GET"],
  [":scheme", "https"],
  [":authority", "rows.test"],
  [":path", "/"],
];
export const POST: readonly Field[] = [[":method", "POST"], ...GET.slice(1)];

export const getBlock = () => encode(GET);
export const postBlock = () => encode(POST);

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function setting(id: number, value: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUInt16BE(id);
  bytes.writeUInt32BE(value, 2);
  return bytes;
}

/** The five bytes of a priority: the stream that it depends on, and a weight. */
export const priority = (on: number) => Buffer.concat([uint32(on), Buffer.from([15])]);

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
export const empty = Buffer.alloc(0);

type Send = Row["send"];
type More = Pick<Row, "isRaw">;

export const rowsOf =
  (section: string) =>
  (what: string, is: RegExp, send: Send, more: More = {}): Row => ({
    section,
    what,
    is,
    send,
    ...more,
  });

/** Sends frames about no stream. */
export const frames =
  (
    ...list: readonly (readonly [type: number, flags: number, stream: number, payload: Buffer])[]
  ): Send =>
  (client) => {
    for (const [type, flags, stream, payload] of list) client.frame(type, flags, stream, payload);
    return undefined;
  };

/** Sends frames, then a plain request, which is judged. */
export const thenGet =
  (
    ...list: readonly (readonly [type: number, flags: number, stream: number, payload: Buffer])[]
  ): Send =>
  (client) => {
    void frames(...list)(client);
    return client.headers(GET);
  };

/** A request whose body is still to come. */
export const open = (client: H2Client) => client.headers(POST, { isLast: false });

/** A request on an open stream, then a frame about it. */
export const onOpen =
  (type: number, flags: number, payload: Buffer): Send =>
  (client) => {
    const stream = open(client);
    client.frame(type, flags, stream, payload);
    return stream;
  };

/** A complete request whose response is on its way, then a frame about its stream. */
export const onHalfClosed =
  (type: number, flags: number, payload: Buffer): Send =>
  (client) => {
    const stream = client.headers(GET);
    client.frame(type, flags, stream, payload);
    return stream;
  };

/** A stream that the client has reset. */
export const onReset =
  (type: number, flags: number, payload: Buffer): Send =>
  (client) => {
    const stream = open(client);
    client.resetStream(stream);
    client.frame(type, flags, stream, payload);
    return stream;
  };

/** A stream that both sides have ended. */
export const onClosed =
  (type: number, flags: number, payload: Buffer): Send =>
  async (client) => {
    const stream = client.headers(GET);
    await client.result(stream);
    client.frame(type, flags, stream, payload);
    return stream;
  };

export const raw = { isRaw: true } as const;
export const settings = (payload: Buffer, flags = 0, stream = 0) =>
  [SETTINGS, flags, stream, payload] as const;
