// Requests over TLS and in cleartext, as HTTP/2 clients send them.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import http2 from "node:http2";
import { selfSigned } from "../../support/certificate.ts";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { type Field, H2Client } from "../../support/h2-client.ts";
import { eventually } from "../../support/poll.ts";
import { startRawOrigin } from "./raw-origin.ts";

interface Mirrored {
  readonly method: string;
  readonly target: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

const planes = new Map<string, RunningDataPlane>();
const origin = startRawOrigin();
/** Sends 1 MB and counts what the client lets through. */
const bulk = Buffer.alloc(1_000_000, "b");
const download = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(bulk) });

beforeAll(async () => {
  const sketch = {
    services: [
      { name: "mirror", targets: [{ port: origin.port }] },
      { name: "bulk", targets: [{ port: download.port ?? 0 }], response_buffer_bytes: 1000 },
    ],
    routes: [
      { name: "mirror", service_id: "mirror" },
      { name: "bulk", service_id: "bulk", paths: ["/bulk"] },
    ],
  };
  const listener = { engine: "sluice" } as const;
  planes.set("https", await startDataPlane({ ...sketch, listener, tls: await selfSigned() }));
  planes.set("http", await startDataPlane({ ...sketch, listener }));
});
afterAll(async () => {
  for (const plane of planes.values()) await plane.stop();
  await download.stop(true);
  origin.stop();
});

const planeOf = (scheme: string): RunningDataPlane => {
  const plane = planes.get(scheme);
  if (plane === undefined) throw new Error(`no plane of ${scheme}`);
  return plane;
};

/** One request of Node's client. */
async function request(
  scheme: string,
  headers: http2.OutgoingHttpHeaders,
  body: Buffer | string | null = null,
): Promise<{ readonly headers: http2.IncomingHttpHeaders; readonly body: Buffer }> {
  const authority = `${scheme}://localhost:${planeOf(scheme).port}`;
  const session = http2.connect(authority, { rejectUnauthorized: false });
  const stream = session.request(headers, { endStream: body === null });
  if (body !== null) stream.end(body);
  const { promise, resolve, reject } = Promise.withResolvers<http2.IncomingHttpHeaders>();
  stream.on("response", resolve);
  stream.on("error", reject);
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  session.close();
  return { headers: await promise, body: Buffer.concat(pieces) };
}

async function mirrored(
  headers: http2.OutgoingHttpHeaders,
  body: string | null = null,
): Promise<Mirrored> {
  return JSON.parse((await request("https", headers, body)).body.toString()) as Mirrored;
}

const fields = (...more: Field[]): Field[] => [
  [":method", "GET"],
  [":scheme", "https"],
  [":path", "/"],
  ...more,
];

async function statusOf(list: readonly Field[]): Promise<number | null> {
  const client = await H2Client.connect({ port: planeOf("https").port, tls: true });
  const result = await client.result(client.headers(list));
  client.close();
  return result.status;
}

describe.each(["https", "http"])("over %s", (scheme) => {
  test("a request reaches the target and its response has its exact length", async () => {
    const { headers, body } = await request(scheme, { ":path": "/a", ":method": "POST" }, "hello");
    const seen = JSON.parse(body.toString()) as Mirrored;
    expect(headers[":status"]).toBe(200 as never);
    expect(headers["content-length"]).toBe(String(body.length));
    expect([seen.method, seen.target, seen.body]).toEqual(["POST", "/a", "hello"]);
    expect(seen.headers["x-forwarded-proto"]).toBe(scheme);
    expect(seen.headers["x-forwarded-for"]).toBe("127.0.0.1");
  });

  test("a streamed response has its exact length, byte for byte", async () => {
    const { headers, body } = await request(scheme, { ":path": "/bulk" });
    expect(headers["content-length"]).toBe(String(bulk.length));
    expect(body.equals(bulk)).toBe(true);
  });

  test("a body of 3 MB reaches the target", async () => {
    const sent = "x".repeat(3_000_000);
    const { body } = await request(scheme, { ":path": "/", ":method": "POST" }, sent);
    expect((JSON.parse(body.toString()) as Mirrored).body.length).toBe(sent.length);
  });
});

describe("a request over HTTP/2", () => {
  test("of GET may have a body", async () => {
    const { method, body } = await mirrored({ ":path": "/", ":method": "GET" }, "asked");
    expect([method, body]).toEqual(["GET", "asked"]);
  });

  test("of POST may have none", async () => {
    const { method, body } = await mirrored({ ":path": "/", ":method": "POST" });
    expect([method, body]).toEqual(["POST", ""]);
  });

  test("of HEAD gets the length and no body", async () => {
    const { headers, body } = await request("https", { ":path": "/bulk", ":method": "HEAD" });
    expect([headers["content-length"], body.length]).toEqual([String(bulk.length), 0]);
  });

  test("has its cookie crumbs joined by a semicolon (RFC 9113 section 8.2.3)", async () => {
    const { headers } = await mirrored({ ":path": "/", cookie: ["a=1", "b=2"] });
    expect(headers["cookie"]).toBe("a=1; b=2");
  });

  test("has repeated fields joined by a comma (RFC 9110 section 5.3)", async () => {
    const { headers } = await mirrored({ ":path": "/", "x-list": ["a", "b"] });
    expect(headers["x-list"]).toBe("a, b");
  });

  test.each([
    ["/a/../b", "/b", "dot segments are resolved"],
    ["/a/%2e%2e/b", "/b", "escaped ones too"],
    ["/a\\b", "/a/b", "a backslash is a slash to browsers"],
    ["/a%2Fb", "/a%2Fb", "an escaped slash is none"],
    ["//a", "//a", "an empty segment is one"],
    ["//a/./b", "//a/b", "an empty segment is no authority"],
    ["/a?", "/a?", "an empty query is one"],
    ["/./a?", "/a?", "an empty query is one"],
    ["/a?b=/../c", "/a?b=/../c", "a query has no segments"],
  ])("for %s asks the target for %s, because %s, as from other clients", async (path, seen) => {
    expect((await mirrored({ ":path": path })).target).toBe(seen);
  });

  test("with two hosts is a stream error, or gets 400", async () => {
    expect([null, 400]).toContain(await statusOf(fields(["host", "a.test"], ["host", "b.test"])));
  });

  test("with user information is a stream error, or gets 400", async () => {
    expect([null, 400]).toContain(await statusOf(fields([":authority", "a@b.test"])));
  });

  test.each<[why: string, ...Field[]]>([
    ["a host that is not the authority", [":authority", "a.test"], ["host", "b.test"]],
    ["no valid host", [":authority", "a.test:x"]],
    ["a fragment", [":authority", "a.test"], [":path", "/a#b"]],
  ])("with %s gets 400", async (_why, ...more) => {
    const own = more.filter(([name]) => name !== ":path");
    const path = more.find(([name]) => name === ":path");
    const list = fields().filter(([name]) => name !== ":path");
    expect(await statusOf([...list, path ?? [":path", "/"], ...own])).toBe(400);
  });

  test("with the same host twice, once as authority, is served", async () => {
    expect(await statusOf(fields([":authority", "a.test"], ["host", "A.test"]))).toBe(200);
  });

  test("with only a host is served", async () => {
    expect(await statusOf(fields(["host", "a.test"]))).toBe(200);
  });

  test.each<[string, (client: H2Client, stream: number) => unknown]>([
    ["that the client resets", (client, stream) => client.resetStream(stream)],
    ["whose connection breaks", (client) => client.close()],
  ])("%s within its body never looks complete to the target", async (_, breakOff) => {
    const before = origin.broken;
    const client = await H2Client.connect({ port: planeOf("https").port, tls: true });
    const list = fields([":authority", "a.test"]).map(([name, value]): Field => [
      name,
      name === ":method" ? "POST" : value,
    ]);
    const stream = client.headers(list, { isLast: false });
    client.data(stream, "half", { isLast: false });
    await eventually(() => origin.open > 0);
    breakOff(client, stream);
    await eventually(() => origin.broken > before);
    expect(origin.bodies.includes("half")).toBe(false);
    client.close();
  });
});

describe("flow control", () => {
  test("holds the target back while the client does not read", async () => {
    const authority = `https://localhost:${planeOf("https").port}`;
    const session = http2.connect(authority, { rejectUnauthorized: false });
    const stream = session.request({ ":path": "/bulk" });
    const { promise, resolve } = Promise.withResolvers<void>();
    stream.once("response", () => resolve());
    stream.pause();
    await promise;
    const pieces: Buffer[] = [];
    for await (const piece of stream) pieces.push(piece as Buffer);
    expect(Buffer.concat(pieces).equals(bulk)).toBe(true);
    session.close();
  });
});
