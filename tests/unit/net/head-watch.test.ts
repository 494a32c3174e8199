// How much of the first request head is held back, and how long heads may take; on a simulated clock.
import { expect, test } from "bun:test";
import { HeadWatch } from "../../../src/dataplane/listener/head-watch.ts";

const TIME = 15_000;
const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const bytes = (text: string) => Buffer.from(text, "latin1");

/** What is forwarded for each piece, in order of arrival. */
function passed(pieces: readonly string[]): (string | null)[] {
  const watch = new HeadWatch(0, TIME);
  return pieces.map((piece) => watch.pass(bytes(piece), 0)?.toString("latin1") ?? null);
}

test.each([
  ["a whole head", [GET], [GET]],
  ["a head with a body behind it", [`${GET}body`], [`${GET}body`]],
  ["a head in two pieces", [GET.slice(0, 9), GET.slice(9)], [null, GET]],
  ["an end in two pieces", [GET.slice(0, -2), "\r\n"], [null, GET]],
  ["an end byte by byte", [GET.slice(0, -3), "\n", "\r", "\n"], [null, null, null, GET]],
  ["what comes after the first head", [GET, "x", "y"], [GET, "x", "y"]],
  ["the greeting of TLS", ["\x16\x03\x01\x02"], ["\x16\x03\x01\x02"]],
  ["a control character later on", ["GET /", "\x00"], [null, "GET /\x00"]],
  ["a line that ends in LF alone", ["GET / HTTP/1.1", "\nHost"], [null, "GET / HTTP/1.1\nHost"]],
  ["a CR in a line", ["GET / HTTP/1.1\r", "Host"], [null, "GET / HTTP/1.1\rHost"]],
  ["a line that is no request", ["SSH-2.0-OpenSSH", "\r\n"], [null, "SSH-2.0-OpenSSH\r\n"]],
  ["an empty line first", ["\r\n"], ["\r\n"]],
  ["bytes beyond ASCII", ["GET /\xe4 HTTP/1.1\r\n"], [null]],
  [
    "more than the longest head",
    [`GET /${"x".repeat(16_379)}`, "y"],
    [null, `GET /${"x".repeat(16_379)}y`],
  ],
])("holds back no more than it must: %s", (_, pieces, expected) => {
  expect(passed(pieces)).toEqual(expected);
});

test("a head may take its timeout, and not a millisecond more", () => {
  const watch = new HeadWatch(1000, TIME);
  expect(watch.overdue(1000 + TIME - 1)).toBeNull();
  expect(watch.overdue(1000 + TIME)).toBe("silent");
  watch.pass(bytes("GET"), 1000 + TIME - 1);
  expect(watch.overdue(1000 + TIME)).toBe("partial");
});

test("a later head has as long from its first byte, and no timeout runs before it", () => {
  const watch = new HeadWatch(0, TIME);
  watch.pass(bytes(GET), 10);
  watch.began();
  expect(watch.overdue(10 * TIME)).toBeNull();
  watch.pass(bytes("a body"), 10 * TIME);
  expect(watch.overdue(20 * TIME)).toBeNull();
  watch.ended(true);
  expect(watch.overdue(30 * TIME)).toBeNull();
  for (let second = 0; second < 15; second++) watch.pass(bytes("G"), 30 * TIME + second * 1000);
  expect(watch.overdue(31 * TIME - 1)).toBeNull();
  expect(watch.overdue(31 * TIME)).toBe("partial");
  watch.began();
  expect(watch.overdue(40 * TIME)).toBeNull();
});

test("bytes after a response that did not wait for the body are not taken for a head", () => {
  const watch = new HeadWatch(0, TIME);
  watch.pass(bytes(GET), 0);
  watch.began();
  watch.ended(false);
  watch.pass(bytes("the rest of the body"), TIME);
  expect(watch.overdue(10 * TIME)).toBeNull();
});

test("HTTP/2 is not watched, because frames may come at any time", () => {
  const watch = new HeadWatch(0, TIME);
  expect(watch.pass(bytes("PRI * HTTP/2.0\r\n\r"), 0)).toBeNull();
  expect(watch.pass(bytes("\nSM\r\n\r\n"), 0)?.length).toBe(24);
  watch.began();
  watch.ended(true);
  watch.pass(bytes("\x00\x00\x08\x06"), 0);
  expect(watch.overdue(10 * TIME)).toBeNull();
});
