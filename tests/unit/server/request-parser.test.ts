// Heads of HTTP/1.1 requests: what RFC 9112 forbids is refused, and the result does not depend on how the bytes arrive.
import { describe, expect, test } from "bun:test";
import type { ProxyError } from "../../../src/dataplane/error.ts";
import {
  HeadReader,
  parseRequestHead,
  type RequestHead,
} from "../../../src/dataplane/server/http1/request-parser.ts";

const head = (line: string, ...fields: string[]) =>
  `${[line, ...fields].map((each) => `${each}\r\n`).join("")}\r\n`;
const get = (...fields: string[]) => head("GET /a HTTP/1.1", "Host: h", ...fields);

function parsed(text: string): RequestHead {
  const result = parseRequestHead(text);
  if ("status" in result) throw new Error(`refused: ${result.detail}`);
  return result;
}

function refusal(text: string): ProxyError {
  const result = parseRequestHead(text);
  if (!("status" in result)) throw new Error("not refused");
  return result;
}

/** The last result of a reader that gets the bytes in pieces of so many. */
function inPieces(text: string, size: number, maxBytes = 16_384): RequestHead | ProxyError | null {
  const bytes = Buffer.from(text, "latin1");
  const reader = new HeadReader();
  for (let end = size; ; end += size) {
    const result = reader.read(bytes.subarray(0, end), maxBytes);
    if (result !== null || end >= bytes.length) return result;
  }
}

const valuesOf = ({ fields }: Pick<RequestHead, "fields">) =>
  fields.names.map((_, at) => fields.valueAt(at));

const shape = (result: RequestHead | ProxyError | null) =>
  result === null || "status" in result
    ? result?.detail
    : {
        ...result,
        fields: result.fields.names.map(({ sent }, at) => [sent, result.fields.valueAt(at)]),
      };

describe("a head that RFC 9112 allows", () => {
  test("keeps names, order and values as sent", () => {
    const { fields } = parsed(get("X-Mixed-CASE:  a b\t", "x-empty:", "X-MIXED-case: c"));
    expect(fields.names.map(({ sent }) => sent)).toEqual([
      "Host",
      "X-Mixed-CASE",
      "x-empty",
      "X-MIXED-case",
    ]);
    expect(valuesOf({ fields })).toEqual(["h", "a b", "", "c"]);
    expect(fields.get("x-mixed-case")).toBe("a b, c");
    expect(fields.get("x-empty")).toBe("");
    expect(fields.get("x-none")).toBeNull();
    expect(Object.keys(fields.record)).toEqual(["host", "x-mixed-case", "x-empty"]);
  });

  test.each([
    [["Connection: close"], false],
    [["Connection: x, Close"], false],
    [["Connection: x", "Connection: close"], false],
    [["Connection: keep-alive"], true],
    [["Connection: not-close"], true],
    [[], true],
  ])("with %j keeps the connection: %p", (fields, isKept) => {
    expect(parsed(get(...fields)).keepsAlive).toBe(isKept);
  });

  test.each([
    [[], false],
    [["Connection: Keep-Alive"], true],
    [["Connection: keep-alive, close"], false],
  ])("of HTTP/1.0 with %j keeps the connection: %p", (fields, isKept) => {
    expect(parsed(head("GET / HTTP/1.0", "Host: h", ...fields)).keepsAlive).toBe(isKept);
  });

  test.each([
    ["Content-Length: 0", 0],
    ["Content-Length: 12", 12],
    ["Transfer-Encoding: chunked", -1],
    ["Transfer-Encoding: Chunked", -1],
  ])("with %s has a body of %d", (field, length) => {
    expect(parsed(get(field)).bodyLength).toBe(length);
  });

  test.each([
    ["/a?b=c", "/a?b=c"],
    ["http://h", "/"],
    ["http://h?q", "/?q"],
    ["HTTPS://H:1/x", "/x"],
    ["/é", "/%EF%BF%BD"],
    ["/a/../b", "/b"],
  ])("target %s is %s", (sent, target) => {
    expect(parsed(head(`GET ${sent} HTTP/1.1`, "Host: h")).target).toBe(target);
  });

  test("an absolute target replaces Host (section 3.2.2)", () => {
    expect(parsed(head("GET http://other/x HTTP/1.1", "Host: h")).fields.get("host")).toBe("other");
  });

  test("an upgrade counts on HTTP/1.1 where Connection names it", () => {
    const fields = ["Upgrade: tailscale-control-protocol"];
    expect(parsed(get(...fields)).upgrade).toBeNull();
    expect(parsed(get(...fields, "Connection: Upgrade")).upgrade).toBe(
      "tailscale-control-protocol",
    );
    expect(
      parsed(head("GET / HTTP/1.0", "Host: h", ...fields, "Connection: upgrade")).upgrade,
    ).toBeNull();
  });

  test("several cookie fields become one, where the first one was", () => {
    const { fields } = parsed(get("Cookie: a=1", "X: y", "cookie: b=2"));
    expect(fields.names.map(({ sent }) => sent)).toEqual(["Host", "Cookie", "X"]);
    expect(valuesOf({ fields })).toEqual(["h", "a=1; b=2", "y"]);
  });
});

describe("a head that servers read differently is refused", () => {
  test.each([
    [["Content-Length: 1", "Content-Length: 1"], "two equal lengths"],
    [["Content-Length: 1, 1"], "a list of lengths"],
    [["Content-Length: +1"], "a sign"],
    [["Content-Length: 0x1"], "a prefix"],
    [["Content-Length: 1e3"], "an exponent"],
    [["Content-Length:"], "nothing"],
    [["Content-Length: 9999999999999999"], "over 2^53"],
    [["Content-Length: 1", "Transfer-Encoding: chunked"], "two framings"],
    [["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], "two codings"],
    [["Transfer-Encoding: gzip, chunked"], "another coding"],
    [["Transfer-Encoding: identity"], "an old coding"],
    [["Transfer-Encoding: \x0bchunked"], "a vertical tab"],
    [["Transfer-Encoding : chunked"], "a space before the colon"],
    [["Host: h"], "two Host fields"],
    [[" folded"], "obsolete folding"],
    [["X\x00: y"], "NUL in a name"],
    [["X: a\x00b"], "NUL in a value"],
    [["X: a\rb"], "CR in a value"],
    [["X: a\nb"], "LF in a value"],
    [[": y"], "no name"],
    [["no colon"], "no colon"],
  ])("%j: %s", (fields) => {
    expect(refusal(get(...fields)).status).toBe(400);
  });

  test("HTTP/1.0 with a transfer coding, HTTP/1.1 without Host, and other versions", () => {
    expect(refusal(head("POST / HTTP/1.0", "Host: h", "Transfer-Encoding: chunked")).status).toBe(
      400,
    );
    expect(refusal(head("GET / HTTP/1.1")).status).toBe(400);
    for (const line of ["GET / HTTP/1.2", "GET / HTTP/2.0", "PRI * HTTP/2.0", "GET / HTTP/2"])
      expect(refusal(head(line, "Host: h")).status).toBe(505);
  });

  test.each(["foo", "aaaaaaaaaa/b", "", "*", "http:", "ftp://h/", "//", "http://u@h/"])(
    "target %j",
    (target) => {
      const result = parseRequestHead(head(`GET ${target} HTTP/1.1`, "Host: h"));
      // Two slashes are a path.
      if (target === "//") expect(result).toMatchObject({ target: "//" });
      else expect(result).toMatchObject({ status: 400 });
    },
  );
});

describe("bytes in any pieces", () => {
  test.each([
    ["a valid head", get("X: y", "Content-Length: 3")],
    ["LF in a value", get("X: y\nZ: z")],
    ["CR before the end of a line", get("X: y\r")],
    ["two spaces in the request line", head("GET /a b HTTP/1.1", "Host: h")],
    ["another version", head("GET / HTTP/3.0", "Host: h")],
    ["LF as the empty line", `${get("A: b").slice(0, -2)}\n`],
    ["a long field", get(`Long: ${"v".repeat(5000)}`)],
    ["a long target", head(`GET /${"a".repeat(5000)} HTTP/1.1`, "Host: h")],
  ])("%s gives the same result", (_, text) => {
    const whole = shape(inPieces(text, text.length));
    for (const size of [1, 2, 3, 7, 100]) expect(shape(inPieces(text, size))).toEqual(whole);
  });

  test("what can no longer become a head is refused before its end", () => {
    for (const start of ["\x16\x03\x01", "GET / HTTP/1.1\nHost", "GET /\0", "\n"])
      expect(inPieces(start, 1)).toMatchObject({ status: 400 });
    expect(inPieces("GET / HTTP/1.1\r\nX: a\x01", 1)).toMatchObject({ status: 400 });
    expect(inPieces("GET / HTTP/1.1\r\nX: a", 1)).toBeNull();
  });

  test("more than the limit is 414 within the request line, else 431", () => {
    for (const size of [1, 300, 10_000]) {
      expect(inPieces(`GET /${"a".repeat(2000)}`, size, 1024)).toMatchObject({ status: 414 });
      expect(inPieces(get(`X: ${"a".repeat(2000)}`), size, 1024)).toMatchObject({ status: 431 });
    }
    const exact = get(`X: ${"a".repeat(1024 - get("X: ").length)}`);
    expect(exact.length).toBe(1024);
    expect(inPieces(exact, 10_000, 1024)).toMatchObject({ method: "GET" });
  });
});

test("what is beyond the limit decides nothing, whether it has arrived or not", () => {
  const text = `${get(`X-Long: ${"v".repeat(600)}`).slice(0, -2)}not a field\r\n\r\n`;
  const wanted = { status: 431, detail: "the request head is too large" };
  for (const size of [1, 7, text.length]) expect(inPieces(text, size, 500)).toMatchObject(wanted);
});

describe("a head that many requests have", () => {
  const text = get("User-Agent: program/1.0", "Cookie: a=1", "Connection: keep-alive", "X: y");
  const readWhole = (bytes: Buffer) => new HeadReader().read(bytes, 16_384);

  test("is read once", () => {
    const bytes = Buffer.from(text, "latin1");
    const heads = Array.from({ length: 4 }, () => readWhole(bytes));
    expect(shape(heads[3] ?? null)).toEqual(shape(parseRequestHead(text)));
    expect(heads[3]).toBe(heads[2] as RequestHead);
  });

  test("is another one when a single byte is another one", () => {
    for (let at = 0; at < text.length; at++)
      for (const byte of [0, 10, 13, 32, 58, 97, 122]) {
        const bytes = Buffer.from(text, "latin1");
        for (let times = 0; times < 3; times++) readWhole(bytes);
        bytes[at] = byte;
        const other = bytes.latin1Slice(0, bytes.length);
        const wanted = shape(parseRequestHead(other));
        for (let times = 0; times < 3; times++)
          expect(shape(new HeadReader().read(bytes, 16_384))).toEqual(
            other.includes("\r\n\r\n") ? wanted : shape(inPieces(other, other.length)),
          );
      }
  });

  test("is none of its own where more than it has arrived, or more than is allowed", () => {
    const bytes = Buffer.from(text, "latin1");
    for (let times = 0; times < 3; times++) readWhole(bytes);
    const reader = new HeadReader();
    const two = reader.read(Buffer.from(text + text, "latin1"), 16_384);
    expect([shape(two), reader.size]).toEqual([shape(parseRequestHead(text)), text.length]);
    expect(reader.read(bytes, text.length - 1)).toMatchObject({ status: 431 });
    expect(new HeadReader().read(bytes, text.length)).toMatchObject({ method: "GET" });
  });

  test("keeps its body", () => {
    const post = head("POST /a HTTP/1.1", "Host: h", "Content-Length: 3");
    for (let times = 0; times < 4; times++)
      expect(readWhole(Buffer.from(post, "latin1"))).toMatchObject({ bodyLength: 3 });
  });
});
