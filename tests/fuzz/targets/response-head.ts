// Valid and invalid response heads of targets: parsed as a slow and strict parser does, or rejected as it does.
import fc from "fast-check";
import { HeadCache } from "../../../src/dataplane/upstream/response-head.ts";
import type { ResponseHead } from "../../../src/dataplane/upstream/response-head.ts";
import {
  parseResponseHead,
  ResponseSyntaxError,
} from "../../../src/dataplane/upstream/response-parser.ts";
import { HOP_BY_HOP } from "../../../src/http/hop-by-hop.ts";
import { defineTarget, must, mustEqual } from "../target.ts";

interface Input {
  readonly text: string;
  readonly isHead: boolean;
}

const status = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom(
      "HTTP/1.1 200 OK",
      "HTTP/1.0 200 OK",
      "HTTP/1.1 204 ",
      "HTTP/1.1 304",
      "HTTP/1.1 101 Up",
      "HTTP/1.1 103 Hints",
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "HTTP/1.1 2000 OK",
      "HTTP/1.2 200 OK",
      "HTTP/1.1  200 OK",
      "HTTP/1.1 099 X",
      "HTTP/1.1 200 O\nK",
      "HTTP/1.1 200\rX",
      "http/1.1 200 OK",
      "HTTP/1.1 200 \0",
      "HTTP/1.1 200 caf\xe9",
    ),
  },
);
const names = [
  ...[
    "Content-Length",
    "content-length",
    "Transfer-Encoding",
    "transfer-encoding",
    "Connection",
    "connection",
  ],
  ...[
    "Keep-Alive",
    "Upgrade",
    "Trailer",
    "TE",
    "Proxy-Connection",
    "Proxy-Authenticate",
    "Set-Cookie",
    "set-cookie",
  ],
  ...[
    "Content-Type",
    "X-One",
    "x-one",
    "Vary",
    "__proto__",
    "constructor",
    "toString",
    "1",
    "ETag",
  ],
] as const;
const name = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...names) },
  { weight: 1, arbitrary: fc.constantFrom("", " X", "X ", "X\tY", "X\nY", "\xe9", "a(b", "X\0") },
);
const value = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom(
      "5",
      "05",
      "0",
      "chunked",
      "close",
      "keep-alive",
      "x-one, close",
      "Upgrade",
      "text/event-stream",
      "websocket",
      "a=b",
      "",
    ),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      "+5",
      "5, 5",
      "-1",
      "5 5",
      "0x5",
      "9999999999999999",
      "Chunked",
      "gzip, chunked",
      "chunked, chunked",
      "not-keep-alive",
      "keep-alive, close",
      "enclosed",
      "set-cookie",
      "content-length",
      " x\t",
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom("a\nb", "a\rb", "a\0b", "caf\xe9", "\x7f", "\u{1}", "a: b"),
  },
  { weight: 1, arbitrary: fc.string({ maxLength: 5 }) },
);
const line = fc
  .tuple(name, fc.constantFrom(":", ": ", ":\t", ": "), value)
  .map((parts) => parts.join(""));
const odd = fc.constantFrom("no colon", ": no name", " folded", "\tfolded: x");
const lines = fc.array(fc.oneof({ weight: 30, arbitrary: line }, { weight: 1, arbitrary: odd }), {
  maxLength: 5,
});

export const target = defineTarget<Input>({
  name: "response-head",
  share: 180,
  inputs: fc.record({
    // A whole head as the connection passes it: the empty line is at its end and nowhere else.
    text: fc
      .tuple(status, lines)
      .map(
        ([first, rest]) =>
          `${[first, ...rest].join("\r\n").replaceAll("\r\n\r\n", "\r\n")}\r\n\r\n`,
      ),
    isHead: fc.boolean(),
  }),
  check({ text, isHead }) {
    const found = outcome(() => parseResponseHead(text, isHead));
    const wanted = outcome(() => plainly(text, isHead));
    must((found === null) === (wanted === null), found === null ? "it is refused" : "it is taken");
    if (found === null || wanted === null) return;
    mustEqual(comparable(found), wanted, "the head");
    for (const field of found.headers.keys()) must(!HOP_BY_HOP.has(field), `${field} passes on`);
    const heads = new HeadCache(parseResponseHead);
    heads.read(text, false);
    mustEqual(comparable(heads.read(text, isHead)), wanted, "the head when it comes again");
  },
});

const comparable = ({ status, headers, framing, length, keepAlive, upgrade }: ResponseHead) => ({
  status,
  fields: [...headers],
  framing,
  length,
  keepAlive,
  upgrade,
});

/** Null: rejected with one of the two expected errors. */
function outcome<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof ResponseSyntaxError || error instanceof TypeError) return null;
    throw error;
  }
}

const refuse = (): never => {
  throw new ResponseSyntaxError("no");
};

/** RFC 9112 by the letter, and stricter as the gateway: nothing that a lenient parser reads as a line end, no two lengths. */
function plainly(text: string, isHead: boolean) {
  const [first = "", ...rest] = text.slice(0, -4).split("\r\n");
  const line = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [^\r\n]*)?$/.exec(first) ?? refuse();
  const [isOld, status] = [line[1] === "0", Number(line[2])];
  const fields = rest.map((each) => {
    const match = /^([!#$%&'*+\-.^_`|~\w]+):[\t ]*([^\0\r\n]*?)[\t ]*$/.exec(each) ?? refuse();
    return [match[1]!.toLowerCase(), match[2]!] as const;
  });
  const all = (name: string) => fields.filter(([each]) => each === name).map(([, value]) => value);
  const list = (name: string) =>
    all(name).flatMap((value) =>
      value
        .toLowerCase()
        .split(",")
        .map((each) => each.trim()),
    );
  const lengths = all("content-length");
  if (lengths.some((each) => !/^\d{1,15}$/.test(each))) refuse();
  if (new Set(lengths.map(Number)).size > 1) refuse();
  const codings = all("transfer-encoding");
  if (
    codings.length > 0 &&
    (lengths.length > 0 || isOld || codings.join().toLowerCase() !== "chunked")
  )
    refuse();
  const length = lengths.length > 0 ? Number(lengths[0]) : null;
  const isEmpty = isHead || status < 200 || status === 204 || status === 304;
  const framing = isEmpty
    ? "none"
    : codings.length > 0
      ? "chunked"
      : length === null
        ? "close"
        : "length";
  const connection = list("connection");
  const passed = new Headers();
  for (const [name, value] of fields)
    if (!HOP_BY_HOP.has(name) && !connection.includes(name) && name !== "content-length")
      passed.append(name, value);
  if (length !== null && (framing === "length" || isHead || status === 304))
    passed.set("content-length", String(length));
  const isKept = isOld
    ? connection.includes("keep-alive") && !connection.includes("close")
    : !connection.includes("close");
  const isUpgrade = !isOld && connection.includes("upgrade") && all("upgrade").length > 0;
  return {
    status,
    fields: [...passed],
    framing,
    length: framing === "length" ? length : -1,
    keepAlive: framing !== "close" && isKept,
    upgrade: isUpgrade ? all("upgrade").at(-1) : null,
  };
}
