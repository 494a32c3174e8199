import { describe, expect, test } from "bun:test";
import {
  encodeGrpcMessage,
  formatGrpcTimeout,
  GrpcMessages,
  grpcStatusOfHttp,
  httpStatusOfGrpc,
  isGrpcContentType,
  readGrpcStatus,
  readGrpcTimeout,
} from "../../../src/http/grpc.ts";

test.each([
  ["application/grpc", true, "the plain type"],
  ["application/grpc+proto", true, "with a message format"],
  ["Application/gRPC;charset=utf-8", true, "media types ignore case"],
  ["application/grpc-web+proto", false, "gRPC-Web has no trailers"],
  ["application/grpcx", false, "another type"],
  ["text/plain; application/grpc", false, "not at the beginning"],
  [null, false, "no body"],
] as const)("content type %p: %p, %s", (type, isGrpc) => {
  expect(isGrpcContentType(type)).toBe(isGrpc);
});

test.each([
  ["0", 0, "OK"],
  ["16", 16, "the last one"],
  ["17", 2, "beyond the last one"],
  ["-1", 2, "no number"],
  ["", 2, "empty"],
  ["014", 2, "too many digits"],
  [null, null, "absent"],
] as const)("grpc-status %p is read as %p: %s", (value, status) => {
  expect(readGrpcStatus(value)).toBe(status);
});

test.each([
  [400, 13],
  [401, 16],
  [403, 7],
  [404, 12],
  [413, 8],
  [418, 2],
  [429, 8],
  [502, 14],
  [503, 14],
  [504, 4],
  [200, 2],
])("HTTP status %p becomes gRPC status %p", (http, grpc) => {
  expect(grpcStatusOfHttp(http)).toBe(grpc);
});

test("statuses that concern the target count as HTTP 5xx", () => {
  const failed = Array.from({ length: 17 }, (_, status) => status).filter(
    (status) => httpStatusOfGrpc(status) >= 500,
  );
  expect(failed).toEqual([2, 4, 12, 13, 14, 15]);
});

test.each([
  ["the target refused the connection", "the target refused the connection"],
  ["100% größer\n", "100%25 gr%C3%B6%C3%9Fer%0A"],
])("the message %p is encoded as %p", (text, encoded) => {
  expect(encodeGrpcMessage(text)).toBe(encoded);
  expect(decodeURIComponent(encoded)).toBe(text);
});

describe("grpc-timeout", () => {
  test.each([
    ["1H", 3_600_000],
    ["2M", 120_000],
    ["30S", 30_000],
    ["99999999m", 99_999_999],
    ["500u", 0.5],
    ["1000000n", 1],
    ["0m", 0],
  ])("%p has %p ms", (value, ms) => {
    expect(readGrpcTimeout(value)).toBeCloseTo(ms, 9);
  });

  test.each(["", "10", "m", "123456789m", "1h", "1.5S", "-1S", " 1S", "1S ", "1SS"])(
    "%p is not valid",
    (value) => {
      expect(readGrpcTimeout(value)).toBeNull();
    },
  );

  test.each([
    [-5, "0u"],
    [0.25, "250u"],
    [1500, "1500m"],
    [99_999_999, "99999999m"],
    [1e8, "100000S"],
    [1e11, "27778H"],
  ])("%p ms are sent as %p", (ms, value) => {
    expect(formatGrpcTimeout(ms)).toBe(value);
  });
});

describe("messages", () => {
  const message = (bytes: number) => {
    const framed = Buffer.alloc(5 + bytes, 7);
    framed[0] = 0;
    framed.writeUInt32BE(bytes, 1);
    return framed;
  };
  const stream = (...sizes: number[]) => Buffer.concat(sizes.map(message));
  const pushed = (bytes: Buffer, { limit, pieces }: { limit: number; pieces: number }) => {
    const messages = new GrpcMessages(limit);
    for (let at = 0; at < bytes.length; at += pieces)
      if (!messages.push(bytes.subarray(at, at + pieces))) return false;
    return true;
  };

  test.each([1, 2, 4, 5, 6, 7, 1000])("are counted in pieces of %p bytes", (pieces) => {
    const limit = 10;
    expect(pushed(stream(10, 0, 9, 10), { limit, pieces })).toBeTrue();
    expect(pushed(stream(10, 0, 11), { limit, pieces })).toBeFalse();
  });

  test("are refused by their prefix, before their bytes", () => {
    expect(new GrpcMessages(10).push(message(11).subarray(0, 5))).toBeFalse();
    expect(new GrpcMessages(10).push(Buffer.from([1, 255, 255, 255, 255]))).toBeFalse();
  });

  test("have no limit without one", () => {
    expect(pushed(stream(5000), { limit: 0, pieces: 5 })).toBeTrue();
  });
});
