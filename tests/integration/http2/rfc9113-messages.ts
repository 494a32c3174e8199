// Rows of RFC 9113 on requests (section 8), and of RFC 7541 on field compression.
import { encode, type Field, type H2Client } from "../../support/h2-client.ts";
import {
  COMPRESSION,
  connectionError,
  DATA,
  END_STREAM,
  GET,
  getBlock,
  HEADERS,
  malformed,
  POST,
  type Row,
  served,
  streamError,
} from "./rfc9113-row.ts";

/** A request with these fields and nothing else. */
const request = (section: string, what: string, fields: readonly Field[], is = malformed): Row => ({
  section,
  what,
  is,
  send: (client) => client.headers(fields),
});
const replaced = (name: string, value: string): Field[] =>
  GET.map((field) => (field[0] === name ? [name, value] : field));
const without = (name: string) => GET.filter(([known]) => known !== name);
const field = (section: string, what: string, name: string, value: string, is?: RegExp): Row =>
  request(section, what, [...GET, [name, value]], is);
/** Bun drops such a field. */
const dropped = (what: string, value: string): Row => ({
  ...field("8.2.1 field validity", what, "x-a", value),
});

/** A request with a body in pieces, and trailers. */
const body = (
  section: string,
  what: string,
  more: {
    readonly fields?: readonly Field[];
    readonly pieces: readonly string[];
    readonly trailers?: readonly Field[];
    readonly is?: RegExp;
  },
): Row => ({
  section,
  what,
  is: more.is ?? malformed,
  send(client: H2Client) {
    const { fields = [], pieces, trailers } = more;
    const stream = client.headers([...POST, ...fields], { isLast: false });
    for (const [at, piece] of pieces.entries())
      client.data(stream, piece, { isLast: at === pieces.length - 1 && trailers === undefined });
    if (trailers !== undefined) client.trailers(stream, trailers);
    return stream;
  },
});

const length = (value: string): Field => ["content-length", value];

const framing: readonly Row[] = [
  body("8.1 message framing", "DATA in three frames", { pieces: ["a", "b", "c"], is: served }),
  body("8.1 message framing", "an empty last DATA", { pieces: ["a", ""], is: served }),
  body("8.1 message framing", "an empty body in a frame of its own", { pieces: [""], is: served }),
  body("8.1 message framing", "trailers", { pieces: ["a"], trailers: [["x-a", "b"]], is: served }),
  {
    section: "8.1 message framing",
    what: "a second HEADERS without END_STREAM",
    is: streamError(1, 5),
    send(client) {
      const stream = client.headers(POST, { isLast: false });
      client.data(stream, "a", { isLast: false });
      client.trailers(stream, [["x-a", "b"]], { isLast: false });
      return stream;
    },
  },
  body("8.1 message framing", "a pseudo field in trailers", {
    pieces: ["a"],
    trailers: [[":method", "GET"]],
  }),
  body("8.1.1 malformed messages", "a length equal to the body", {
    fields: [length("3")],
    pieces: ["a", "bc"],
    is: served,
  }),
  body("8.1.1 malformed messages", "a length below the body", {
    fields: [length("1")],
    pieces: ["abc"],
  }),
  body("8.1.1 malformed messages", "a length below the body of two frames", {
    fields: [length("3")],
    pieces: ["abc", "d"],
  }),
  body("8.1.1 malformed messages", "a length over the body", {
    fields: [length("4")],
    pieces: ["abc"],
  }),
  body("8.1.1 malformed messages", "a length over the body before trailers", {
    fields: [length("4")],
    pieces: ["abc"],
    trailers: [["x-a", "b"]],
  }),
  body("8.1.1 malformed messages", "a length of 0 and a body", {
    fields: [length("0")],
    pieces: ["abc"],
  }),
  request("8.1.1 malformed messages", "a length without a body", [...POST, length("3")]),
  body("8.1.1 malformed messages", "two lengths", {
    fields: [length("3"), length("4")],
    pieces: ["abc"],
  }),
];

const fields: readonly Row[] = [
  ...(
    [
      ["upper case in a name", "X-Upper", "a"],
      ["a space in a name", "x a", "a"],
      ["a colon in a name", "x:a", "a"],
      ["NUL in a name", "x\0a", "a"],
      ["DEL in a name", "x\x7f", "a"],
      ["a byte over 127 in a name", "x\xe9", "a"],
      ["an empty name", "", "a"],
      ["NUL in a value", "x-a", "a\0b"],
      ["LF in a value", "x-a", "a\nb"],
      ["CR in a value", "x-a", "a\rb"],
    ] as const
  ).map(([what, name, value]) => field("8.2.1 field validity", what, name, value)),
  dropped("a space before a value", " a"),
  dropped("a space behind a value", "a "),
  dropped("a tab before a value", "\ta"),
  field("8.2.1 field validity", "a tab within a value", "x-a", "a\tb", served),
  field("8.2.1 field validity", "bytes over 127 in a value", "x-a", "a\xe9", served),
  field("8.2.1 field validity", "an empty value", "x-a", "", served),
  ...(
    [
      ["connection", "close"],
      ["connection", "keep-alive"],
      ["keep-alive", "timeout=5"],
      ["proxy-connection", "keep-alive"],
      ["transfer-encoding", "chunked"],
      ["upgrade", "h2c"],
      ["te", "gzip"],
      ["te", "trailers, deflate"],
    ] as const
  ).map(([name, value]) =>
    field("8.2.2 connection-specific fields", `${name}: ${value}`, name, value),
  ),
  field("8.2.2 connection-specific fields", "te: trailers", "te", "trailers", served),
  field("8.2.3 cookie crumbs", "cookie", "cookie", "a=1", served),
];

const pseudo: readonly Row[] = [
  request("8.3 pseudo fields", "behind a regular field", [
    ...without(":path"),
    ["x-a", "b"],
    [":path", "/"],
  ]),
  request("8.3 pseudo fields", "an unknown one", [[":unknown", "a"], ...GET]),
  request("8.3 pseudo fields", "one of responses", [[":status", "200"], ...GET]),
  request("8.3 pseudo fields", "one without a name", [[":", "a"], ...GET]),
  ...[":method", ":scheme", ":path"].map((name) =>
    request("8.3.1 request pseudo fields", `no ${name}`, without(name)),
  ),
  ...[":method", ":scheme", ":authority", ":path"].map((name) =>
    request("8.3.1 request pseudo fields", `${name} twice`, [
      ...GET.filter(([known]) => known === name),
      ...GET,
    ]),
  ),
  request("8.3.1 request pseudo fields", "an empty :path", replaced(":path", "")),
  request("8.3.1 request pseudo fields", "a :path without slash", replaced(":path", "a")),
  request("8.3.1 request pseudo fields", "an empty :method", replaced(":method", "")),
  request("8.3.1 request pseudo fields", "a space in :method", replaced(":method", "GET /")),
  request("8.3.1 request pseudo fields", "CRLF in :path", replaced(":path", "/\r\nx: y")),
  request("8.3.1 request pseudo fields", "CRLF in :authority", replaced(":authority", "a\r\nb: c")),
  request("8.3.1 request pseudo fields", "user information", replaced(":authority", "a@rows.test")),
  request("8.3.1 request pseudo fields", "a host that differs", [...GET, ["host", "other.test"]]),
  request("8.3.1 request pseudo fields", "the same host", [...GET, ["host", "rows.test"]], served),
  request(
    "8.3.1 request pseudo fields",
    "host without :authority",
    [...without(":authority"), ["host", "rows.test"]],
    served,
  ),
  request("8.3.1 request pseudo fields", "neither :authority nor host", without(":authority")),
  request("8.5 CONNECT", "to a host", [
    [":method", "CONNECT"],
    [":authority", "rows.test:443"],
  ]),
  request("8.5 CONNECT", "with :scheme and :path", replaced(":method", "CONNECT")),
];

const block = (section: string, what: string, bytes: Uint8Array, is: RegExp): Row => ({
  section,
  what,
  is,
  send(client) {
    client.frame(HEADERS, 5, 1, bytes);
    return 1;
  },
});
const broken = (section: string, what: string, ...bytes: readonly number[]) =>
  block(
    section,
    what,
    Buffer.concat([getBlock(), Buffer.from(bytes)]),
    connectionError(COMPRESSION),
  );

const compression: readonly Row[] = [
  block(
    "RFC 7541 2.3.1 static table",
    "indexed fields",
    // :method GET, :path /, :scheme https, and :authority as a literal with an indexed name.
    Buffer.concat([Buffer.from([0x82, 0x84, 0x87, 0x41, 9]), Buffer.from("rows.test")]),
    served,
  ),
  broken("RFC 7541 2.3.3 index address space", "an index behind both tables", 0xff, 0x20),
  broken("RFC 7541 4.2 table size", "a change behind a field", 0x20),
  broken("RFC 7541 5.1 integers", "one that never ends", 0xff, ...Array<number>(12).fill(0xff)),
  broken("RFC 7541 5.2 strings", "a string longer than the block", 0x00, 1, 0x61, 9, 0x61),
  broken("RFC 7541 5.2 strings", "Huffman padding over 7 bits", 0x00, 1, 0x61, 0x82, 0x1f, 0xff),
  broken("RFC 7541 5.2 strings", "Huffman padding of zeros", 0x00, 1, 0x61, 0x81, 0x18),
  broken("RFC 7541 5.2 strings", "Huffman EOS", 0x00, 1, 0x61, 0x84, 0xff, 0xff, 0xff, 0xff),
  broken("RFC 7541 6.1 indexed field", "index 0", 0x80),
  {
    section: "RFC 7541 6.3 table size update",
    what: "over the announced size",
    is: connectionError(COMPRESSION),
    send(client) {
      client.frame(
        HEADERS,
        5,
        1,
        Buffer.concat([Buffer.from([0x3f, 0xff, 0xff, 0xff, 0x07]), getBlock()]),
      );
      return 1;
    },
  },
  {
    section: "RFC 7541 2.2 decoding context",
    what: "a name from an earlier request",
    is: served,
    async send(client) {
      // x-known: a, with incremental indexing; afterwards it is index 62.
      const known = Buffer.from([0x40, 7, ...Buffer.from("x-known"), 1, 0x61]);
      client.frame(HEADERS, 5, 1, Buffer.concat([getBlock(), known]));
      await client.result(1);
      client.frame(HEADERS, 5, 3, Buffer.concat([getBlock(), Buffer.from([0xbe])]));
      return 3;
    },
  },
  {
    section: "RFC 7541 7.1.2 memory",
    what: "a block that unpacks to 40 MB (HPACK bomb)",
    is: /^(?:4\d\d|(?:reset|goaway) \d+|closed)$/,
    send(client) {
      const value = Buffer.alloc(3900, "a");
      const entry = Buffer.concat([Buffer.from([0x40, 1, 0x78, 0x7f, 0xbd, 0x1d]), value]);
      const many = Buffer.alloc(10_000, 0xbe);
      client.frame(HEADERS, 5, 1, Buffer.concat([getBlock(), entry, many]));
      return 1;
    },
  },
];

const others: readonly Row[] = [
  {
    section: "8.1 message framing",
    what: "a request that ends with its last DATA, sent in two writes",
    is: served,
    send(client) {
      const stream = client.headers(POST, { isLast: false });
      client.frame(DATA, 0, stream, Buffer.from("a"));
      client.frame(DATA, END_STREAM, stream, Buffer.alloc(0));
      return stream;
    },
  },
  request(
    "8.2.1 field validity",
    "many small fields",
    [...GET, ...Array.from({ length: 90 }, (_, at): Field => [`x-${at}`, "v"])],
    served,
  ),
  block(
    "RFC 7541 6.2.2 literal without indexing",
    "a name and a value",
    Buffer.concat([encode(GET), Buffer.from([0x00, 1, 0x78, 1, 0x79])]),
    served,
  ),
];

export const messageRows: readonly Row[] = [
  ...framing,
  ...fields,
  ...pseudo,
  ...compression,
  ...others,
];
