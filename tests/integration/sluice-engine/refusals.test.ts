// What our own engine refuses, and clients that are too slow: each gets a page with an id, and is logged with it and counted.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { cleanupsOf } from "../../support/cleanups.ts";
import { freePort } from "../../support/data-plane.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { readMetrics } from "../../support/metrics-text.ts";
import { type Origin, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { connectRaw, parseResponse } from "../../support/raw-http.ts";

let gateway: Gateway;
let origin: Origin;
const ports = { http: 0, https: 0 };
const cleanups = cleanupsOf(afterEach);

beforeAll(async () => {
  origin = startOrigin({ answer: null });
  gateway = await startGateway({ workers: 1, args: ["--log-level", "debug"] });
  await gateway.ok("PATCH", "/api/v1/settings", {
    limits: {
      head_read_timeout: 500,
      body_read_timeout: 1000,
      body_min_rate_grace: 300,
      max_header_fields: 20,
    },
  });
  for (const protocol of ["http", "https"] as const) {
    ports[protocol] = freePort();
    await gateway.ok("POST", "/api/v1/listeners", {
      name: `own-${protocol}`,
      address: "127.0.0.1",
      port: ports[protocol],
      protocol,
      engine: "sluice",
      max_body_bytes: 100_000,
      max_header_bytes: 16_384,
      body_min_rate: 1000,
    });
  }
  await gateway.ok("POST", "/api/v1/services", {
    name: "app",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "app" });
  const calmly = { paths: ["/calm"], body_min_rate: 0 };
  await gateway.ok("POST", "/api/v1/routes", { name: "calm", service_id: "app", ...calmly });
});
afterAll(async () => {
  await gateway.stop();
  origin.stop();
});

const lines = (first: string, ...fields: string[]) =>
  `${[first, ...fields].map((line) => `${line}\r\n`).join("")}\r\n`;
const get = (...fields: string[]) => lines("GET /a HTTP/1.1", "Host: h", ...fields);
const post = (...fields: string[]) => lines("POST /a HTTP/1.1", "Host: h", ...fields);
/** To a route without a minimum rate. */
const calm = (...fields: string[]) => lines("POST /calm HTTP/1.1", "Host: h", ...fields);
const many = Array.from({ length: 21 }, (_, index) => `X-${index}: v`);
const half = "GET /a HTTP/1.1\r\nHost: h\r\nX: ";
const counted = async (status: number) => {
  const text = await (await fetch(`${gateway.admin}/metrics`)).text();
  // Rare ones count by class.
  const code = status === 505 ? "5xx" : String(status);
  return readMetrics(text, "prometheus").sum("sluice_requests_total", { code });
};

interface Row {
  readonly why: string;
  readonly bytes: string;
  /** Sent again and again afterwards. */
  readonly drip?: string;
  readonly status: number;
  readonly says: string;
  /** Whether a target has the request already. */
  readonly isProxied?: boolean;
}

const rows: readonly Row[] = [
  { why: "half a head", bytes: half, status: 408, says: "head did not arrive in time" },
  {
    why: "a head byte by byte",
    bytes: half,
    drip: "v",
    status: 408,
    says: "head did not arrive in time",
  },
  {
    why: "half a request line",
    bytes: "GET /",
    status: 408,
    says: "head did not arrive in time",
  },
  {
    why: "a body that stops",
    bytes: calm("Content-Length: 10"),
    status: 408,
    says: "body stopped arriving",
    isProxied: true,
  },
  {
    why: "chunks that stop",
    bytes: `${calm("Transfer-Encoding: chunked")}3\r\nab`,
    status: 408,
    says: "body stopped arriving",
    isProxied: true,
  },
  {
    why: "a body below the rate",
    bytes: post("Content-Length: 90000"),
    drip: "x",
    status: 408,
    says: "body arrived too slowly",
    isProxied: true,
  },
  {
    why: "a head above the limit",
    bytes: get(`X: ${"v".repeat(20_000)}`),
    status: 431,
    says: "head is too large",
  },
  {
    why: "a head that has no end above the limit",
    bytes: `${half}${"v".repeat(20_000)}`,
    status: 431,
    says: "head is too large",
  },
  { why: "too many fields", bytes: get(...many), status: 431, says: "too many header fields" },
  {
    why: "a target above the limit",
    bytes: lines(`GET /${"a".repeat(9000)} HTTP/1.1`, "Host: h"),
    status: 414,
    says: "target is too long",
  },
  {
    why: "a request line that has no end",
    bytes: `GET /${"a".repeat(20_000)}`,
    status: 414,
    says: "target is too long",
  },
  {
    why: "a body above the limit, declared",
    bytes: post("Content-Length: 100001"),
    status: 413,
    says: "body is too large",
  },
  {
    why: "a body above the limit, in chunks",
    bytes: `${post("Transfer-Encoding: chunked")}186a1\r\n${"b".repeat(100_001)}\r\n`,
    status: 413,
    says: "body is too large",
    isProxied: true,
  },
  {
    why: "two lengths",
    bytes: post("Content-Length: 3", "Content-Length: 4"),
    status: 400,
    says: "two Content-Length fields",
  },
  {
    why: "a length and chunks",
    bytes: post("Content-Length: 3", "Transfer-Encoding: chunked"),
    status: 400,
    says: "Transfer-Encoding and Content-Length",
  },
  {
    why: "a length that is no number",
    bytes: post("Content-Length: +3"),
    status: 400,
    says: "Content-Length is not a number",
  },
  {
    why: "another transfer coding",
    bytes: post("Transfer-Encoding: gzip, chunked"),
    status: 400,
    says: "transfer coding is not supported",
  },
  {
    why: "chunks over HTTP/1.0",
    bytes: lines("POST /a HTTP/1.0", "Host: h", "Transfer-Encoding: chunked"),
    status: 400,
    says: "HTTP/1.0 has no Transfer-Encoding",
  },
  {
    why: "a chunk without a size",
    bytes: `${post("Transfer-Encoding: chunked")}x\r\n`,
    status: 400,
    says: "chunk of the request body is malformed",
    isProxied: true,
  },
  { why: "no Host", bytes: lines("GET /a HTTP/1.1"), status: 400, says: "no Host field" },
  { why: "two Hosts", bytes: get("Host: i"), status: 400, says: "two Host fields" },
  {
    why: "no request line",
    bytes: "hello\r\n\r\n",
    status: 400,
    says: "request line is not valid",
  },
  {
    why: "white space before a colon",
    bytes: get("X : v"),
    status: 400,
    says: "header field of the request is not valid",
  },
  {
    why: "a folded line",
    bytes: get("X: v", " w"),
    status: 400,
    says: "header field of the request is not valid",
  },
  {
    why: "another version",
    bytes: lines("GET /a HTTP/1.2", "Host: h"),
    status: 505,
    says: "version",
  },
  { why: "TRACE", bytes: lines("TRACE /a HTTP/1.1", "Host: h"), status: 405, says: "TRACE" },
  {
    why: "CONNECT",
    bytes: lines("CONNECT h:443 HTTP/1.1", "Host: h"),
    status: 400,
    says: "CONNECT",
  },
];

describe.each(["http", "https"] as const)("over %s", (protocol) => {
  test.each(rows.map((row) => [row.why, row] as const))("%s", async (_, row) => {
    const before = await counted(row.status);
    const reached = origin.requests.length;
    const client = await connectRaw({ port: ports[protocol], tls: protocol === "https" });
    cleanups.push(() => client.close());
    client.write(row.bytes);
    if (row.drip !== undefined) {
      const timer = setInterval(() => client.write(row.drip ?? ""), 20);
      cleanups.push(() => clearInterval(timer));
    }
    const { status, body, header } = parseResponse(await client.untilClosed());
    expect([row.why, status]).toEqual([row.why, row.status]);
    expect(header("connection")).toBe("close");
    const id = /request id: ([\da-f-]{36})/.exec(body)?.[1];
    expect(header("x-request-id")).toBe(id ?? "none");
    expect(body).toContain(row.says);
    const logged = await eventually(() => {
      const found = gateway.log.filter(({ request_id }) => request_id === id);
      return found.length > 0 ? found : null;
    });
    expect(logged).toEqual([
      expect.objectContaining({
        message: "request failed",
        client: "127.0.0.1",
        status: row.status,
        reason: expect.stringContaining(row.says),
      }),
    ]);
    await eventually(async () => (await counted(row.status)) === before + 1);
    if (row.isProxied !== true) expect(origin.requests.length).toBe(reached);
  });

  describe("a client that goes away", () => {
    const piece = "HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\nbegin";
    test.each([
      ["while its body is on the way", post("Content-Length: 10") + "half", null],
      ["while the target is awaited", get(), null],
      ["within the response", get(), piece],
    ] as const)("%s: 499 in the log, and the target's connection ends", async (_, bytes, begin) => {
      const before = await counted(499);
      const reached = origin.requests.length + origin.connections.length;
      const failed = () => gateway.log.filter(({ status }) => status === 499).length;
      const logged = failed();
      origin.answer = (__, connection) => {
        if (begin !== null) connection.write(begin);
        return null;
      };
      const client = await connectRaw({ port: ports[protocol], tls: protocol === "https" });
      client.write(bytes);
      await eventually(() => origin.requests.length + origin.connections.length > reached);
      if (begin !== null) await client.until("begin");
      // A FIN alone may be a client that reads on.
      client.reset();
      await eventually(() => failed() === logged + 1);
      await eventually(() => origin.connections.every(({ isClosed }) => isClosed));
      // Of a response that had begun counts the status that was sent.
      if (begin === null) await eventually(async () => (await counted(499)) === before + 1);
      else expect(await counted(499)).toBe(before);
    });
  });

  test("a connection that sends nothing is closed without a response, and logged", async () => {
    const isRefused = () =>
      gateway.log.filter(({ message }) => message === "connections refused").length;
    const before = isRefused();
    const client = await connectRaw({ port: ports[protocol], tls: protocol === "https" });
    expect(await client.untilClosed()).toBe("");
    await eventually(() => isRefused() > before);
  });
});
