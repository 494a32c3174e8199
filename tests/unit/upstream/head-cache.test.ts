// Cached response heads: the same result as parsing them again, and no data of a single client.
import { expect, test } from "bun:test";

import { HeadCache } from "../../../src/dataplane/upstream/response-head.ts";
import { parseResponseHead } from "../../../src/dataplane/upstream/response-parser.ts";
import { ResponseSyntaxError } from "../../../src/dataplane/upstream/response-parser.ts";

const head = (field: string, status = 200) =>
  `HTTP/1.1 ${status} OK\r\nContent-Length: 5\r\n${field}\r\n\r\n`;

test("a repeated head is parsed once", () => {
  const heads = new HeadCache(parseResponseHead);
  const first = heads.read(head("ETag: a"), false);
  expect(heads.read(head("ETag: a"), false)).toBe(first);
  expect(heads.read(head("ETag: b"), false)).not.toBe(first);
});

test.each([
  { text: head("Set-Cookie: id=1"), isHead: false, why: "a cookie belongs to one client" },
  { text: head("ETag: a"), isHead: true, why: "an answer to HEAD has no body, whatever it says" },
  { text: head("X: y", 103), isHead: false, why: "an early hint is not the answer" },
])("a head is not cached: $why", ({ text, isHead }) => {
  const heads = new HeadCache(parseResponseHead);
  expect(heads.read(text, isHead)).not.toBe(heads.read(text, isHead));
});

test("the same text is framed by the method, not by the previous request", () => {
  const heads = new HeadCache(parseResponseHead);
  expect(heads.read(head("ETag: a"), false).framing).toBe("length");
  expect(heads.read(head("ETag: a"), true).framing).toBe("none");
});

test("a malformed head is rejected each time", () => {
  const heads = new HeadCache(parseResponseHead);
  for (let times = 0; times < 2; times++)
    expect(() => heads.read(head("bad name: x"), false)).toThrow(ResponseSyntaxError);
});

test("when every head differs, caching pauses for a while", () => {
  const heads = new HeadCache(parseResponseHead);
  for (let at = 0; at < 128; at++) heads.read(head(`X-Id: ${at}`), false);
  const aside = heads.read(head("ETag: a"), false);
  expect(heads.read(head("ETag: a"), false)).not.toBe(aside);
  for (let at = 0; at < 8192; at++) heads.read(head(`X-Id: ${at}`), false);
  const again = heads.read(head("ETag: a"), false);
  expect(heads.read(head("ETag: a"), false)).toBe(again);
});
