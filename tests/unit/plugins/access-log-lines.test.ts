// The bytes of log lines: numbers and texts as in JSON, lines that share parts with the previous one, and the queue.
import { describe, expect, test } from "bun:test";
import { formatOf, textOf } from "../../../src/plugins/access-log/format.ts";
import { LineBuffer } from "../../../src/plugins/access-log/line-buffer.ts";
import { Queue } from "../../../src/plugins/access-log/queue.ts";
import { Redaction } from "../../../src/plugins/access-log/redaction.ts";
import type { Subject } from "../../../src/plugins/access-log/subject.ts";
import { PendingLines } from "../../../src/plugins/access-log/pending-records.ts";
import { Random, seedOfRun } from "../../support/random.ts";

const written = (write: (out: LineBuffer) => void): string => {
  const out = new LineBuffer();
  write(out);
  return out.toString();
};

describe("milliseconds", () => {
  const asJson = (ms: number) => JSON.stringify(Math.round(ms * 1000) / 1000);

  test.each([
    ...[0, 0.0004, 0.0005, 0.001, 0.01, 0.1, 0.12, 0.999, 0.9994, 0.9995, 1, 9.9995, 10, 99.999],
    ...[100.05, 1234.5678, 86_400_000, 1e9 + 0.001, 2 ** 53 / 1000, 2 ** 53, 1e21],
    ...[-0.5, -12.25, Number.NaN, Number.POSITIVE_INFINITY],
  ])("%d is written as JSON would", (ms) => {
    expect(written((out) => out.milliseconds(ms))).toBe(asJson(ms));
  });

  test("all thousandths are written as JSON would", () => {
    for (const whole of [0, 9, 10])
      for (let at = 0; at < 1000; at++) {
        const ms = whole + at / 1000;
        expect(written((out) => out.milliseconds(ms))).toBe(asJson(ms));
      }
  });

  test("any number is written as JSON would", () => {
    for (let at = 0; at < 20_000; at++) {
      const ms = random.next() * 10 ** (at % 9);
      expect(written((out) => out.milliseconds(ms))).toBe(asJson(ms));
    }
  });

  test("a phase that did not happen is null", () => {
    expect(written((out) => out.milliseconds(null))).toBe("null");
  });
});

test("a text that needs escaping is not written as a plain one", () => {
  for (const text of ['a"b', "a\\b", "a\nb", "\x7f", "é", "\u2028"]) {
    const out = new LineBuffer();
    out.text("before ");
    expect(out.plain(text)).toBe(false);
    expect(out.toString()).toBe("before ");
    out.text(text);
    expect(out.toString()).toBe(`before ${text}`);
  }
  expect(written((out) => void out.plain(" !#[]~az"))).toBe(" !#[]~az");
});

test("earlier lines stay when the buffer grows, and lines longer than it are complete", () => {
  const out = new LineBuffer();
  const parts = ["a".repeat(65_535), "é".repeat(70_000), "x".repeat(3_000_000), "end"];
  for (const part of parts) out.text(part);
  expect(out.toString()).toBe(parts.join(""));
  out.clear();
  expect(out.length).toBe(0);
  out.copy(Buffer.from("again"));
  expect(out.toString()).toBe("again");
});

const redaction = new Redaction({ headers: ["cookie"], query: ["token"], ip: "full" }, () =>
  Buffer.from("key"),
);
const nothing = { request_headers: [], response_headers: [] };
const random = new Random(seedOfRun());
const anyOf = <T>(values: readonly T[]): T => random.pick(values);
const NONE: readonly string[] = [];

/** Each fact is one of a few, so that some of them are those of the line before. */
function anySubject(): { subject: Subject; expected: Record<string, unknown> } {
  const kind = anyOf(["http", "http", "stream"] as const);
  const isHttp = kind === "http";
  const startedAt = 1_800_000_000_000 + anyOf([0, 1, 999, 1000]);
  const id = anyOf(["one", 'o"ne', "zwei\u202e"]);
  const client = anyOf(["192.0.2.1", "2001:db8::1"]);
  const scheme = isHttp ? anyOf(["http", "https"]) : anyOf(["tcp", "tls"]);
  const method = isHttp ? anyOf(["GET", "POST"]) : "";
  const host = anyOf(["a.example", "b.example", ""]);
  const target = anyOf(["/", "/x?token=1&b=2", '/"ü"']);
  const route = anyOf([null, { id: "r", name: "all" }, { id: "s", name: 'al"l' }]);
  const service = anyOf([null, { id: "t", name: "web" }]);
  const consumer = anyOf([null, null, { username: "al ice" }]);
  const reasons = anyOf([NONE, NONE, ["blocked"], ["a", "b"]]);
  const tls = anyOf([null, { version: "TLSv1.3" }]);
  const agent = anyOf([null, "curl/8", "\x9b31m"]);
  const referer = anyOf([null, "http://r.example/?token=2"]);
  const upstream = anyOf([null, { startMs: 0.5, endMs: anyOf([1, 1.25]), address: "127.0.0.1:1" }]);
  const result = {
    status: isHttp ? anyOf([0, 200, 502]) : 0,
    upstreamStatus: anyOf([null, 200]),
    bytesIn: anyOf([0, 5]),
    bytesOut: anyOf([0, 64]),
    durationMs: random.next() * 100,
    firstByteMs: anyOf([null, 0.25]),
    targetId: anyOf([null, "t-0"]),
    attempts: anyOf([0, 1, 2]),
    upstream,
  };
  const context = {
    startedAt,
    id,
    scheme,
    method,
    host,
    target,
    route,
    service,
    consumer,
    reasons,
    tls,
    clientAddress: () => client,
    header: (name: string) => (name === "user-agent" ? agent : name === "referer" ? referer : null),
    headers: {},
  };
  const expected = {
    time: new Date(startedAt).toISOString(),
    kind,
    id,
    client,
    scheme,
    ...(isHttp
      ? {
          method,
          host,
          target: target.replace("token=1", "token=[redacted]"),
          status: result.status,
        }
      : { server_name: host }),
    bytes_in: result.bytesIn,
    bytes_out: result.bytesOut,
    duration_ms: Math.round(result.durationMs * 1000) / 1000,
    first_byte_ms: result.firstByteMs,
    route: route?.name ?? null,
    service: service?.name ?? null,
    target_id: result.targetId,
    ...(upstream === null ? {} : { upstream: upstream.address }),
    upstream_status: result.upstreamStatus,
    upstream_ms: upstream === null ? null : upstream.endMs - upstream.startMs,
    attempts: result.attempts,
    consumer: consumer?.username ?? null,
    reasons,
    ...(tls === null ? {} : { tls_version: tls.version }),
    ...(agent === null ? {} : { user_agent: agent }),
    ...(referer === null ? {} : { referer: referer.replace("token=2", "token=[redacted]") }),
  };
  const subject = { kind, context, result, answer: null } as unknown as Subject;
  return { subject, expected };
}

test("a line of JSON holds the facts of its own request, whatever it shares with the one before", () => {
  const format = formatOf({ format: "json", template: null }, redaction, nothing);
  for (let at = 0; at < 5000; at++) {
    const { subject, expected } = anySubject();
    const line = textOf(subject, format);
    expect(JSON.parse(line)).toEqual(expected);
    expect(Object.keys(JSON.parse(line))).toEqual(Object.keys(expected));
    expect(line).not.toMatch(/[\x00-\x1f\x7f-\x9f\u202e]/);
  }
});

describe("lines that wait", () => {
  const format = formatOf({ format: "template", template: "${kind}" }, redaction, nothing);
  const { subject } = anySubject();
  const http = { ...subject, kind: "http" } as Subject;
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

  test("are complete: a line that fails leaves no bytes", () => {
    const waiting = new PendingLines();
    waiting.add(http, format);
    const failing = () =>
      waiting.add(http, (_, out) => {
        out.text("half a li");
        throw new Error("no");
      });
    expect(failing).toThrow("no");
    expect(waiting.records).toBe(1);
    waiting.add(http, format);
    expect(text(waiting.take())).toBe("http\nhttp\n");
    expect(waiting).toMatchObject({ records: 0, size: 0 });
  });

  test("do not change a batch in flight", () => {
    const waiting = new PendingLines();
    waiting.add(http, format);
    const batch = waiting.take();
    for (let at = 0; at < 3; at++) waiting.add({ ...http, kind: "stream" } as Subject, format);
    expect(text(batch)).toBe("http\n");
    expect(text(waiting.take())).toBe("stream\nstream\nstream\n");
  });

  test("are bounded by the queue, beside the batch in flight, and lost lines are counted", async () => {
    const held = Promise.withResolvers<void>();
    const sent: string[] = [];
    let lost = 0;
    const dropped = (count: number) => {
      lost += count;
    };
    const waiting = new PendingLines();
    const queue = new Queue({
      name: "file",
      waiting,
      sink: {
        isStream: true,
        send(batch: Uint8Array) {
          sent.push(text(batch));
          return held.promise;
        },
        close() {},
      },
      maxBatch: 1,
      maxDelayMs: 0,
      maxEntries: 3,
      retry: { firstMs: 1, longestMs: 1, totalMs: 1 },
      kit: { log() {}, dropped },
    });
    const add = () => {
      if (!queue.hasRoom()) return;
      waiting.add(http, format);
      queue.added();
    };
    add();
    // Closing sends at once, and then waits for the sink.
    const closed = queue.close();
    for (let at = 0; at < 4; at++) add();
    expect(lost).toBe(1);
    expect(sent).toEqual(["http\n"]);
    held.resolve();
    await closed;
    expect(sent).toEqual(["http\n", "http\n".repeat(3)]);
    expect(lost).toBe(1);
  });
});
