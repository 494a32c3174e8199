// HPACK: all examples of RFC 7541 appendix C, what is no valid block, and what the gateway writes itself.
import { describe, expect, test } from "bun:test";
import { BlockWriter } from "../../../src/dataplane/server/http2/block-writer.ts";
import { ConnectionError } from "../../../src/dataplane/http2/frames.ts";
import { HpackDecoder } from "../../../src/dataplane/http2/hpack-decoder.ts";
import { type EncodedField, HpackEncoder, integer, string } from "../../support/hpack-encoder.ts";

const NO_LENGTH = { length: -1, isLast: true };

type Field = readonly [name: string, value: string];

function decoded(decoder: HpackDecoder, bytes: Buffer): Field[] {
  const fields: Field[] = [];
  decoder.decode(bytes, { start: 0, end: bytes.length }, (name, value) =>
    fields.push([name, value]),
  );
  return fields;
}

const hex = (text: string) => Buffer.from(text.replace(/\s/g, ""), "hex");

const request: readonly Field[] = [
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/"],
  [":authority", "www.example.com"],
];
const second: readonly Field[] = [...request, ["cache-control", "no-cache"]];
const third: readonly Field[] = [
  [":method", "GET"],
  [":scheme", "https"],
  [":path", "/index.html"],
  [":authority", "www.example.com"],
  ["custom-key", "custom-value"],
];
const redirect = (status: string): readonly Field[] => [
  [":status", status],
  ["cache-control", "private"],
  ["date", "Mon, 21 Oct 2013 20:13:21 GMT"],
  ["location", "https://www.example.com"],
];
const last: readonly Field[] = [
  [":status", "200"],
  ["cache-control", "private"],
  ["date", "Mon, 21 Oct 2013 20:13:22 GMT"],
  ["location", "https://www.example.com"],
  ["content-encoding", "gzip"],
  ["set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"],
];

const examples: readonly {
  readonly section: string;
  readonly tableBytes?: number;
  readonly blocks: readonly (readonly [bytes: string, fields: readonly Field[]])[];
}[] = [
  {
    section: "C.2.1 literal with indexing",
    blocks: [
      [
        "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
        [["custom-key", "custom-header"]],
      ],
      ["be", [["custom-key", "custom-header"]]],
    ],
  },
  {
    section: "C.2.2 literal without indexing",
    blocks: [["040c 2f73 616d 706c 652f 7061 7468", [[":path", "/sample/path"]]]],
  },
  {
    section: "C.2.3 literal never indexed",
    blocks: [["1008 7061 7373 776f 7264 0673 6563 7265 74", [["password", "secret"]]]],
  },
  { section: "C.2.4 indexed field", blocks: [["82", [[":method", "GET"]]]] },
  {
    section: "C.3 requests without Huffman code",
    blocks: [
      ["8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", request],
      ["8286 84be 5808 6e6f 2d63 6163 6865", second],
      ["8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", third],
    ],
  },
  {
    section: "C.4 requests with Huffman code",
    blocks: [
      ["8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", request],
      ["8286 84be 5886 a8eb 1064 9cbf", second],
      ["8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", third],
    ],
  },
  {
    section: "C.5 responses without Huffman code",
    tableBytes: 256,
    blocks: [
      [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        redirect("302"),
      ],
      ["4803 3330 37c1 c0bf", redirect("307")],
      [
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
        last,
      ],
    ],
  },
  {
    section: "C.6 responses with Huffman code",
    tableBytes: 256,
    blocks: [
      [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        redirect("302"),
      ],
      ["4883 640e ffc1 c0bf", redirect("307")],
      [
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        last,
      ],
    ],
  },
];

test.each(examples)("RFC 7541 $section", ({ blocks, tableBytes }) => {
  const decoder = new HpackDecoder(tableBytes);
  for (const [bytes, fields] of blocks) expect(decoded(decoder, hex(bytes))).toEqual([...fields]);
});

test("RFC 7541 C.1 integers: 10 and 1337 with a prefix of 5 bits, 42 with one of 8", () => {
  expect(integer(0, 5, 10)).toEqual(hex("0a"));
  expect(integer(0, 5, 1337)).toEqual(hex("1f9a0a"));
  expect(integer(0, 8, 42)).toEqual(hex("2a"));
  // As sizes of the table, which then holds as many entries: two of 34 bytes, and one.
  for (const [size, isThere] of [
    [1337, true],
    [10, false],
  ] as const) {
    const decoder = new HpackDecoder();
    decoded(decoder, Buffer.concat([hex("4001610162"), hex("4001630164")]));
    const next = Buffer.concat([integer(0x20, 5, size), hex("bf")]);
    if (isThere) expect(decoded(decoder, next)).toEqual([["a", "b"]]);
    else expect(() => decoded(decoder, next)).toThrow(ConnectionError);
  }
});

test.each([
  ["index 0", "80"],
  ["an index behind both tables", "be"],
  ["an index of a name behind both tables", "7f00"],
  ["a field without a value", "0001 61"],
  ["a field that ends within its name", "0005 61"],
  ["an integer that ends within", "ff"],
  ["an integer that never ends", "ffffffffffffffffffff"],
  ["an integer over 2^28", "ff ff ff ff ff 0f"],
  ["a change of the table behind a field", "82 20"],
  ["a table over the announced size", "3f e2 1f"],
  ["Huffman padding of eight ones", "0001 61 82 1fff"],
  ["Huffman padding of zeros", "0001 61 81 18"],
  ["Huffman EOS", "0001 61 84 ffffffff"],
])("%s is an error of the connection", (_what, bytes) => {
  expect(() => decoded(new HpackDecoder(), hex(bytes))).toThrow(ConnectionError);
});

test("an entry that is larger than the table empties it", () => {
  const decoder = new HpackDecoder(100);
  const encoder = new HpackEncoder(100);
  const field = (value: string): EncodedField => ({ name: "x", value, as: "add", isHuffman: true });
  decoded(decoder, encoder.encode([field("a"), field("b".repeat(100))]));
  expect(() => decoded(decoder, hex("be"))).toThrow(ConnectionError);
});

test("every byte has its Huffman code", () => {
  const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)).toString("latin1");
  const block = Buffer.concat([hex("00"), string("x", true), string(all, true)]);
  expect(decoded(new HpackDecoder(), block)).toEqual([["x", all]]);
});

test("a value of 64 KB in Huffman code", () => {
  const value = "~".repeat(65_536);
  const block = Buffer.concat([hex("00"), string("x", true), string(value, true)]);
  expect(decoded(new HpackDecoder(), block)).toEqual([["x", value]]);
});

describe("the gateway's own blocks", () => {
  const writer = new BlockWriter();
  const written = (write: (writer: BlockWriter) => void, isFirst = false) => {
    writer.begin(isFirst);
    write(writer);
    return Buffer.from(writer.block);
  };
  const head = (status: number, lines: string) => ({
    status,
    lines,
    headers: new Headers(),
    hasDate: true,
    hasContentType: true,
    hasLength: false,
    length: -1,
    closes: false,
  });

  test("the first one gives the table up, so that none refers to an earlier one", () => {
    const block = written((into) => into.status(200), true);
    expect(block).toEqual(hex("2088"));
    expect(decoded(new HpackDecoder(), block)).toEqual([[":status", "200"]]);
  });

  test("lines of a target are fields with names in lower case, without those of the connection", () => {
    const lines =
      "Date: Mon, 21 Oct 2013 20:13:21 GMT\r\nX-Long: " +
      `${"v".repeat(300)}\r\nConnection: close\r\nSet-Cookie: a=\xe9\r\nX-Empty:\r\nTransfer-Encoding: chunked\r\n`;
    const block = written((into) =>
      into.head(head(418, lines), { length: 1234, isLast: true }, ""),
    );
    expect(decoded(new HpackDecoder(), block)).toEqual([
      [":status", "418"],
      ["date", "Mon, 21 Oct 2013 20:13:21 GMT"],
      ["x-long", "v".repeat(300)],
      ["set-cookie", "a=\xe9"],
      ["x-empty", ""],
      ["content-length", "1234"],
    ]);
  });

  test("a missing Date is added, also after thousands of other names", () => {
    for (let name = 0; name < 1500; name++)
      written((into) => into.head(head(200, `x-${name}: 1\r\nDate: a\r\n`), NO_LENGTH, ""));
    const dates = (lines: string) =>
      decoded(
        new HpackDecoder(),
        written((into) => into.head(head(200, lines), NO_LENGTH, "")),
      ).filter(([name]) => name === "date").length;
    expect([dates("Date: a\r\n"), dates("date: a\r\n"), dates("x: a\r\n")]).toEqual([1, 1, 1]);
  });

  test("what announces HTTP/3 takes the place of what a target announces", () => {
    const own = 'alt-svc: h3=":443"\r\n';
    const block = written((into) =>
      into.head(head(200, "Alt-Svc: other\r\nDate: a\r\n"), NO_LENGTH, own),
    );
    expect(decoded(new HpackDecoder(), block)).toEqual([
      [":status", "200"],
      ["date", "a"],
      ["alt-svc", 'h3=":443"'],
    ]);
  });

  test("trailers keep blanks at their ends, and none that is not valid is sent", () => {
    const block = written((into) =>
      into.pairs([
        ["grpc-message", "  a b  "],
        ["x\r\ny", "a"],
        ["x-a", "a\r\nb"],
        ["x-b", "\u0161"],
      ]),
    );
    expect(decoded(new HpackDecoder(), block)).toEqual([["grpc-message", "  a b  "]]);
  });
});
