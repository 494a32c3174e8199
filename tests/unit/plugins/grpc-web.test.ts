// The codec of gRPC-Web: base64 and messages in chunks of any size, and the frame of trailers.
import { describe, expect, test } from "bun:test";
import { Base64Decoder, Base64Error } from "../../../src/plugins/grpc-web/base64.ts";
import { MessageCheck, trailerFrame } from "../../../src/plugins/grpc-web/messages.ts";
import { Random } from "../../support/random.ts";

const bytes = (text: string) => Buffer.from(text, "latin1");

function decoded(...chunks: readonly Uint8Array[]): Buffer {
  const decoder = new Base64Decoder();
  const all = chunks.map((chunk) => decoder.push(chunk));
  decoder.end();
  return Buffer.concat(all);
}

describe("base64", () => {
  const plain = Buffer.from(Array.from({ length: 300 }, (_, at) => (at * 7) % 256));
  const text = plain.toString("base64");

  test("is decoded whatever the place where it is split", () => {
    for (let at = 0; at <= text.length; at++)
      expect(decoded(bytes(text.slice(0, at)), bytes(text.slice(at)))).toEqual(plain);
    expect(decoded(...[...text].map(bytes))).toEqual(plain);
  });

  test("may have padding after each part", () => {
    const random = new Random(7);
    for (let round = 0; round < 200; round++) {
      const parts: string[] = [];
      for (let at = 0; at < plain.length;) {
        const next = at + 1 + Math.floor(random.next() * 20);
        parts.push(plain.subarray(at, next).toString("base64"));
        at = next;
      }
      const all = parts.join("");
      const chunks: Buffer[] = [];
      for (let at = 0; at < all.length;) {
        const next = at + 1 + Math.floor(random.next() * 11);
        chunks.push(bytes(all.slice(at, next)));
        at = next;
      }
      expect(decoded(...chunks)).toEqual(plain);
    }
  });

  test.each([
    ["AAA", "ends within four characters"],
    ["A", "ends within four characters"],
    ["AA=", "ends within its padding"],
    ["=AAA", "begins with padding"],
    ["A===", "has too much padding"],
    ["AA=A", "goes on within padding"],
    ["AA\r\nAA==", "has line ends"],
    ["AA-_", "has the alphabet of URLs"],
    ["AAA\u00ff", "has other bytes"],
  ])("%j is rejected: it %s", (malformed) => {
    expect(() => decoded(bytes(malformed))).toThrow(Base64Error);
    expect(() => decoded(...[...malformed].map(bytes))).toThrow(Base64Error);
  });
});

const message = (flag: number, length: number, sent = length) => {
  const all = Buffer.alloc(5 + sent, 1);
  all[0] = flag;
  all.writeUInt32BE(length, 1);
  return all;
};

function checked(maxBytes: number, ...chunks: readonly Uint8Array[]) {
  const check = new MessageCheck(maxBytes);
  for (const chunk of chunks) {
    const problem = check.push(chunk);
    if (problem !== null) return problem;
  }
  return check.end();
}

describe("messages", () => {
  test.each([
    ["no message", Buffer.alloc(0), null],
    ["a message at the limit", message(0, 10), null],
    ["an empty message", message(0, 0), null],
    ["a compressed message", message(1, 4), null],
    ["several messages", Buffer.concat([message(0, 3), message(1, 0), message(0, 10)]), null],
    ["a message over the limit", message(0, 11), "too_large"],
    ["a length that the body does not have", message(0, 0xffff_ffff, 0), "too_large"],
    [
      "a second message over the limit",
      Buffer.concat([message(0, 3), message(0, 11)]),
      "too_large",
    ],
    ["a frame of trailers", message(0x80, 4), "malformed"],
    ["another flag", message(2, 4), "malformed"],
    ["a body that ends within a message", message(0, 9, 8), "malformed"],
    ["a body that ends within a prefix", message(0, 0).subarray(0, 4), "malformed"],
    ["bytes after a message", Buffer.concat([message(0, 1), Buffer.from([0])]), "malformed"],
  ])("%s", (_, body, problem) => {
    for (let at = 0; at <= body.length; at++)
      expect(checked(10, body.subarray(0, at), body.subarray(at))).toBe(problem as null);
    expect(checked(10, ...[...body].map((byte) => Uint8Array.of(byte)))).toBe(problem as null);
  });

  test("have no limit when it is 0", () => {
    expect(checked(0, message(0, 100_000))).toBeNull();
  });
});

test("trailers are a frame of lines with lower-case names", () => {
  const frame = trailerFrame([
    ["Grpc-Status", "0"],
    ["grpc-message", "caf\u00e9"],
  ]);
  expect(frame).toEqual(
    Buffer.concat([
      Buffer.from([0x80, 0, 0, 0, 36]),
      bytes("grpc-status: 0\r\ngrpc-message: caf\u00e9\r\n"),
    ]),
  );
  expect(trailerFrame([])).toEqual(Buffer.from([0x80, 0, 0, 0, 0]));
});
