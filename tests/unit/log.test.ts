// One event is one line, whatever it contains, and never contains secrets.
import { describe, expect, test } from "bun:test";
import { createLog, type LogOptions } from "../../src/log.ts";

function linesOf(
  write: (log: ReturnType<typeof createLog>) => void,
  options: Partial<LogOptions> = {},
) {
  const lines: string[] = [];
  const sink = (line: string) => lines.push(line);
  write(createLog({ level: "info", format: "json", now: () => 0, sink, ...options }));
  return lines;
}

test("json is one object a line, with time, level and message first", () => {
  expect(linesOf((log) => log.info("serving", { workers: 2 }))).toEqual([
    '{"time":"1970-01-01T00:00:00.000Z","level":"info","message":"serving","workers":2}\n',
  ]);
});

test("text is readable", () => {
  const lines = linesOf((log) => log.warn("it is late", { at: "noon", why: "no idea" }), {
    format: "text",
  });
  expect(lines).toEqual(['00:00:00.000 WARN  it is late at=noon why="no idea"\n']);
});

test("events below the level are dropped", () => {
  const lines = linesOf(
    (log) => {
      log.debug("a");
      log.info("b");
      log.warn("c");
      log.error("d");
    },
    { level: "warn" },
  );
  expect(lines.map((line) => JSON.parse(line).message)).toEqual(["c", "d"]);
});

describe("a secret is not written", () => {
  test.each([
    { key: "authorization" },
    { key: "Proxy-Authorization" },
    { key: "cookie" },
    { key: "set-cookie" },
    { key: "password" },
    { key: "new_password" },
    { key: "token" },
    { key: "access_token" },
    { key: "adminToken" },
    { key: "x-admin-token" },
    { key: "client_secret" },
    { key: "private_key" },
    { key: "api_key" },
    { key: "session_id" },
  ])("under the key $key, at any depth", ({ key }) => {
    const fields = { [key]: "hunter2", inside: [{ headers: { [key]: ["hunter2"] } }] };
    const [line = ""] = linesOf((log) => log.info("x", fields));
    expect(line).not.toContain("hunter2");
    expect(line.match(/\[redacted\]/g)).toHaveLength(2);
  });

  test.each([
    { text: "GET /api/v1/events?access_token=hunter2&x=1" },
    { text: "https://a.test/?x=1&password=hunter2#end" },
    { text: "postgres://user:hunter2@db.test/x" },
  ])("inside $text", ({ text }) => {
    const [line = ""] = linesOf((log) => {
      log.info(text, { url: text, error: new Error(text, { cause: new Error(text) }) });
    });
    expect(line).not.toContain("hunter2");
    expect(line).toContain("[redacted]");
  });

  test("while ordinary fields are", () => {
    const [line = ""] = linesOf((log) => log.info("x", { tokens_left: 3, url: "/?page=2&a=b" }));
    expect(JSON.parse(line)).toMatchObject({ tokens_left: 3, url: "/?page=2&a=b" });
  });
});

describe("a line cannot be forged", () => {
  const evil = "a\r\nb\x1b[31mc\u2028d\u0085e\0f\x7f";
  test.each([{ format: "json" }, { format: "text" }] as const)("in $format", ({ format }) => {
    for (const color of [false, true]) {
      const [line = ""] = linesOf((log) => log.info(evil, { [evil]: evil }), { format, color });
      const inside = line.slice(0, -1).replaceAll(/\x1b\[(?:0|2|36)m/g, "");
      expect(inside).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
    }
  });
});

test("a value that JSON cannot represent does not stop the log", () => {
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;
  const [line = ""] = linesOf((log) =>
    log.info("x", { circle, big: 10n, map: new Map([["a", 1]]), nothing: undefined }),
  );
  expect(JSON.parse(line)).toMatchObject({ big: "10", map: { a: 1 } });
});
