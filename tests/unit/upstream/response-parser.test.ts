// Response heads that lenient parsers would read differently, and whether the connection can be reused.
import { expect, test } from "bun:test";
import {
  parseResponseHead,
  ResponseSyntaxError,
} from "../../../src/dataplane/upstream/response-parser.ts";

test.each([
  ["HTTP/1.1 200 OK\nContent-Length: 5", "a line feed within the status line"],
  ["HTTP/1.1 200\rContent-Length: 5", "a carriage return alone in the status line"],
  ["HTTP/1.1 200 OK\r\nKeep-Alive: 5\nContent-Length: 5", "a line feed in a field that ends here"],
  ["HTTP/1.1 200 OK\r\nConnection: close\rX: y", "a carriage return alone in such a field"],
  ["HTTP/1.1 200 OK\r\nConnection: x, close\r\nX: a\nb", "one in a field that Connection names"],
  ["HTTP/1.1 200 OK\r\nTrailer: a\0b", "a NUL in such a field"],
])("%j is rejected: %s", (head) => {
  expect(() => parseResponseHead(`${head}\r\n\r\n`, false)).toThrow(ResponseSyntaxError);
});

test.each([
  ["1.1", "keep-alive, close", false],
  ["1.0", "keep-alive, close", false],
  ["1.0", "x, Keep-Alive", true],
  ["1.0", "not-keep-alive", false],
  ["1.1", "x-close", true],
])("HTTP/%s with Connection: %s keeps the connection: %p", (version, connection, isKept) => {
  const head = `HTTP/${version} 200 OK\r\nContent-Length: 0\r\nConnection: ${connection}\r\n\r\n`;
  expect(parseResponseHead(head, false).keepAlive).toBe(isKept);
});
