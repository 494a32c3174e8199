// Frames, right and wrong, in the order of the sections of the Autobahn suite, with what RFC 6455 makes of each; data only.
import { closePayload, frameBytes, opcodes } from "./peer.ts";

/** Writes a frame the way its sender must: a client masks (RFC 6455 section 5.3), a server does not. */
export type FrameSketch = (mask: boolean) => Buffer;

export interface FrameRow {
  /** Section of the suite, and what the frames are. */
  readonly name: string;
  /** Frames without a mistake. */
  readonly good: readonly FrameSketch[];
  /** Messages that `good` holds, whole, as a receiver's application gets them. */
  readonly messages: readonly string[];
  /** Pings in `good`, whose answers carry the same data. */
  readonly pings: readonly string[];
  /** Frames that end the connection, as does the first of them that can; what follows it does not count. */
  readonly last: readonly FrameSketch[];
  /** Whether they break the protocol, and do not close as it says. */
  readonly isMistake: boolean;
  /** Close code of the receiver (section 7.4); 1005 for a Close without one. */
  readonly code: number;
  /** The receiver can know before the message ends (section 8.1), but Bun looks only then; what follows tells it. */
  readonly bunNeeds?: readonly FrameSketch[];
  /** Bun's code, where it is another one. */
  readonly bunCode?: number;
}

const { text: TEXT, binary: BINARY, continuation, close: CLOSE, ping: PING, pong: PONG } = opcodes;

const frame =
  (opcode: number, payload: string | Uint8Array = "", reserved = 0): FrameSketch =>
  (mask) =>
    frameBytes(opcode, payload, { mask, reserved });
const begin =
  (opcode: number, payload: string | Uint8Array = ""): FrameSketch =>
  (mask) =>
    frameBytes(opcode, payload, { mask, isFinal: false });
const text = (payload: string | Uint8Array) => frame(TEXT, payload);
const ping = (payload = "") => frame(PING, payload);
const more = (payload: string | Uint8Array = "") => begin(continuation, payload);
const end = (payload: string | Uint8Array = "") => frame(continuation, payload);
const close = (code: number, reason = "") => frame(CLOSE, closePayload(code, reason));
/** A header written by hand, with a mask of zeros where one is due, and one byte of content. */
const header =
  (first: number, form: number, length: readonly number[]): FrameSketch =>
  (mask) =>
    Buffer.from([first, (mask ? 0x80 : 0) | form, ...length, ...(mask ? [0, 0, 0, 0] : []), 0x61]);
const hex = (digits: string) => Buffer.from(digits.replaceAll(" ", ""), "hex");

const NORMAL = [close(1000)];

function holds(
  name: string,
  good: readonly FrameSketch[],
  messages: readonly string[],
  pings: readonly string[] = [],
): FrameRow {
  return { name, good, messages, pings, last: NORMAL, isMistake: false, code: 1000 };
}

/** `before`: a message ahead of the mistake, which must not be lost. */
function breaks(
  name: string,
  last: readonly FrameSketch[],
  { code = 1002, before = true, ...bun }: Partial<FrameRow> & { readonly before?: boolean } = {},
): FrameRow {
  const [good, messages] = before ? [[text("before")], ["before"]] : [[], []];
  return { name, good, messages, pings: [], last, isMistake: true, code, ...bun };
}

const sizes = [0, 125, 126, 127, 128, 65_535, 65_536];

const framing: readonly FrameRow[] = sizes.flatMap((size) => [
  holds(`1.1 a text of ${size} bytes`, [text("*".repeat(size))], ["*".repeat(size)]),
  holds(
    `1.2 a binary message of ${size} bytes`,
    [frame(BINARY, "*".repeat(size))],
    ["*".repeat(size)],
  ),
]);

const pings: readonly FrameRow[] = [
  holds("2.1 an empty ping", [ping()], [], [""]),
  holds("2.2 a ping with text", [ping("Hello, world!")], [], ["Hello, world!"]),
  holds("2.4 a ping of 125 bytes", [ping("p".repeat(125))], [], ["p".repeat(125)]),
  breaks("2.5 a ping of 126 bytes", [ping("p".repeat(126))]),
  holds("2.7 an unsolicited pong", [frame(PONG), text("after")], ["after"]),
  holds(
    "2.9 such a pong, then a ping",
    [frame(PONG, "pong"), ping("ping"), text("after")],
    ["after"],
    ["ping"],
  ),
  holds(
    "2.10 ten pings",
    Array.from({ length: 10 }, (_, index) => ping(`${index}`)),
    [],
    Array.from({ length: 10 }, (_, index) => `${index}`),
  ),
  breaks("2 a pong of 126 bytes", [frame(PONG, "p".repeat(126))]),
];

const reserved: readonly FrameRow[] = [
  breaks("3.1 a text with RSV 1, first of all", [frame(TEXT, "x", 0x10)], { before: false }),
  breaks("3.2 a text with RSV 2 behind a text", [frame(TEXT, "x", 0x20)]),
  breaks("3.3 a text with RSV 3, and a ping", [frame(TEXT, "x", 0x30), ping()]),
  breaks("3.4 a text with RSV 4 (compressed), and a ping", [frame(TEXT, "x", 0x40), ping()]),
  breaks("3.5 a binary message with RSV 5", [frame(BINARY, "x", 0x50)]),
  breaks("3.6 a ping with RSV 6", [frame(PING, "x", 0x60)]),
  breaks("3.7 a Close with RSV 7", [frame(CLOSE, closePayload(1000), 0x70)]),
];

const unknownOpcodes: readonly FrameRow[] = [3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode) =>
  breaks(`4 opcode ${opcode}, and a ping`, [frame(opcode, "x"), ping()]),
);

const fragments: readonly FrameRow[] = [
  breaks("5.1 a ping in two fragments", [begin(PING, "a"), end("b")]),
  breaks("5.2 a pong in two fragments", [begin(PONG, "a"), end("b")]),
  holds("5.3 a text in two fragments", [begin(TEXT, "one"), end("two")], ["onetwo"]),
  holds(
    "5.6 a text in two fragments with a ping between them",
    [begin(TEXT, "one"), ping("now"), end("two")],
    ["onetwo"],
    ["now"],
  ),
  breaks("5.9 the end of a message that has not begun", [end("x"), text("after")]),
  breaks("5.12 the middle of a message that has not begun", [more("x"), text("after")]),
  breaks("5.15 a message, and then more of it", [more("x"), text("after")]),
  breaks("5.18 a text inside a text", [begin(TEXT, "one"), text("two")]),
  breaks("5.18 a binary message that begins inside a text", [
    begin(TEXT, "one"),
    begin(BINARY, "two"),
  ]),
  holds(
    "5.19 a text in five fragments with two pings between them",
    [begin(TEXT, "1"), more("2"), ping("a"), more("3"), more("4"), ping("b"), end("5")],
    ["12345"],
    ["a", "b"],
  ),
];

/** "kosme" with an accent of three bytes. */
const KOSME = "cebae1bdb9cf83cebcceb5";

const SPOILED = text(hex(`${KOSME} f4908080 656469746564`));

const utf8: readonly FrameRow[] = [
  holds("6.1.1 an empty text", [text("")], [""]),
  holds("6.1.2 an empty text in three fragments", [begin(TEXT), more(), end()], [""]),
  holds(
    "6.1.3 a text between two empty fragments",
    [begin(TEXT), more("middle"), end()],
    ["middle"],
  ),
  holds("6.2.1 UTF-8 in one frame", [text("Hello-µ@ßöäüàá-UTF-8!!")], ["Hello-µ@ßöäüàá-UTF-8!!"]),
  holds("6.2.2 cut between two characters", [begin(TEXT, "κόσ"), end("με")], ["κόσμε"]),
  holds(
    "6.2.3 cut inside a character",
    [begin(TEXT, hex("ceba e1")), end(hex("bdb9"))],
    [hex("cebae1bdb9").toString()],
  ),
  holds(
    "6.2.4 a fragment for each byte",
    [begin(TEXT), ...[...hex(KOSME)].map((byte) => more(Buffer.of(byte))), end()],
    [hex(KOSME).toString()],
  ),
  holds("6.6 the highest code point", [text(hex("f48fbfbf"))], ["\u{10ffff}"]),
  holds(
    "6.7 the lowest of two, three and four bytes",
    [text(hex("c280 e0a080 f0908080"))],
    ["\u{80}\u{800}\u{10000}"],
  ),
  holds("6.22 code points that are no characters", [text(hex("efbfbe efbfbf"))], ["\ufffe\uffff"]),
  breaks("6.3.1 a surrogate in one frame", [text(hex(`${KOSME} eda080 656469746564`))], {
    code: 1007,
  }),
  breaks(
    "6.3.2 a surrogate in two fragments",
    [begin(TEXT, hex(`${KOSME} ed`)), end(hex("a080 6564"))],
    {
      code: 1007,
    },
  ),
  breaks(
    "6.4.1 a code point past the last, in the second of three fragments",
    [begin(TEXT, hex(KOSME)), more(hex("f4908080"))],
    {
      code: 1007,
      bunNeeds: [end(hex("656469746564"))],
    },
  ),
  breaks(
    "6.4.2 cut behind the byte that spoils it",
    [begin(TEXT, hex(`${KOSME} f4`)), more(hex("90"))],
    {
      code: 1007,
      bunNeeds: [end(hex("8080656469746564"))],
    },
  ),
  breaks("6.4.3 in the first piece of a frame", [(mask) => SPOILED(mask).subarray(0, -6)], {
    code: 1007,
    bunNeeds: [(mask) => SPOILED(mask).subarray(-6)],
  }),
  ...[
    ["6.8 a text that ends inside a character", "ceba e1bd"],
    ["6.9 a first byte of five", "f888808080"],
    ["6.11 a continuation byte alone", "80"],
    ["6.12 a first byte alone", "c320"],
    ["6.14 bytes that never occur", "fe ff"],
    ["6.15 an overlong slash", "c0af"],
    ["6.16 the longest overlong form", "e09fbf"],
    ["6.18 a low surrogate", "edb080"],
    ["6.19 a pair of surrogates", "eda080edb080"],
  ].map(([name = "", digits = ""]) => breaks(name, [text(hex(digits))], { code: 1007 })),
];

const KNOWN_CODES = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014];
const FREE_CODES = [3000, 3999, 4000, 4999];
const NO_CODES = [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535];

const ends = (name: string, last: readonly FrameSketch[], code: number) =>
  breaks(name, last, { code, isMistake: false });

const closing: readonly FrameRow[] = [
  ends("7.1.1 a message, then a Close", NORMAL, 1000),
  ends("7.1.2 two Closes", [close(1000), close(1001)], 1000),
  ends("7.1.3 a ping behind the Close", [close(1000), ping("late")], 1000),
  ends("7.1.4 a text behind the Close", [close(1000), text("late")], 1000),
  ends(
    "7.1.5 a message that has begun, the Close, and its end",
    [begin(TEXT, "a"), close(1000), end("b")],
    1000,
  ),
  ends("7.3.1 a Close without a payload", [frame(CLOSE)], 1005),
  breaks("7.3.2 a Close of one byte", [frame(CLOSE, "a")]),
  ends("7.3.4 a Close with a reason", [close(1000, "Hello World!")], 1000),
  ends("7.3.5 a Close with the longest reason", [close(1000, "r".repeat(123))], 1000),
  breaks("7.3.6 a Close that is too long", [close(1000, "r".repeat(124))]),
  breaks("7.3 a Close in two fragments", [begin(CLOSE, closePayload(1000)), end("x")]),
  breaks(
    "7.5.1 a reason that is not UTF-8",
    [frame(CLOSE, Buffer.concat([closePayload(1000), hex(`${KOSME} eda080`)]))],
    { code: 1007 },
  ),
  breaks(
    "7.5 a reason that ends inside a character",
    [frame(CLOSE, Buffer.concat([closePayload(1000), hex("c3")]))],
    { code: 1007 },
  ),
  ...[...KNOWN_CODES, ...FREE_CODES].map((code) => ends(`7.7 code ${code}`, [close(code)], code)),
  ...NO_CODES.map((code) => breaks(`7.9 and 7.13 code ${code}`, [close(code)])),
];

const large = "*".repeat(65_536);

const limits: readonly FrameRow[] = [
  holds(
    "9.3 a text of 64 KB in fragments of 64 bytes",
    [begin(TEXT), ...Array.from({ length: 1024 }, () => more(large.slice(0, 64))), end()],
    [large],
  ),
  holds(
    "9.7 a thousand small texts",
    Array.from({ length: 1000 }, (_, at) => text(`${at}`)),
    Array.from({ length: 1000 }, (_, at) => `${at}`),
  ),
  breaks("9 a length with its highest bit set", [header(0x82, 127, [0x80, 0, 0, 0, 0, 0, 0, 1])], {
    code: 1002,
    bunCode: 1009,
  }),
];

export const frameRows: readonly FrameRow[] = [
  ...framing,
  ...pings,
  ...reserved,
  ...unknownOpcodes,
  ...fragments,
  ...utf8,
  ...closing,
  ...limits,
];

/** Forms of a length that RFC 6455 section 5.2 forbids, and Bun takes: each is a binary message "a". */
export const longForms: readonly (readonly [why: string, frame: FrameSketch])[] = [
  ["1 in 16 bits", header(0x82, 126, [0, 1])],
  ["1 in 64 bits", header(0x82, 127, [0, 0, 0, 0, 0, 0, 0, 1])],
];
