// compress on a real data plane: which coding, what is left alone, and that every body comes through as it was.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import zlib from "node:zlib";
import { type Origin, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";
import { startDataPlane } from "../../support/data-plane.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { parseResponse, sendRaw } from "../../support/raw-http.ts";

const PAGE = "<p>What is said again and again gets shorter.</p>".repeat(200);
let scene: PluginScene;
const origin = { answer: (_: Request): Response | Promise<Response> => new Response("") };

beforeAll(async () => {
  scene = await pluginScene({
    plugins: [{ name: "compress" }],
    answer: (request) => origin.answer(request),
  });
});
afterAll(() => scene.stop());
beforeEach(async () => {
  origin.answer = () => html(PAGE);
  await scene.apply({ plugins: [{ name: "compress" }], removedPlugins: ["response-cache"] });
});

const html = (body: string, headers: Record<string, string> = {}) =>
  new Response(body, { headers: { "Content-Type": "text/html; charset=utf-8", ...headers } });

interface Received {
  readonly status: number;
  readonly headers: Headers;
  /** As it came. */
  readonly bytes: Buffer;
  readonly text: string;
}

async function ask(
  path: string,
  accept: string | null,
  options: { readonly method?: string; readonly headers?: Record<string, string> } = {},
): Promise<Received> {
  const response = await fetch(scene.plane.url + path, {
    method: options.method ?? "GET",
    headers: {
      ...options.headers,
      ...(accept === null ? { "Accept-Encoding": "" } : { "Accept-Encoding": accept }),
    },
    decompress: false,
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  const { status, headers } = response;
  return { status, headers, bytes, text: plain(bytes, headers.get("content-encoding")) };
}

function plain(bytes: Buffer, coding: string | null): string {
  if (bytes.length === 0) return "";
  if (coding === "gzip") return zlib.gunzipSync(bytes).toString();
  if (coding === "br") return zlib.brotliDecompressSync(bytes).toString();
  return (coding === "zstd" ? zlib.zstdDecompressSync(bytes) : bytes).toString();
}

const codingOf = ({ headers }: Received) => headers.get("content-encoding");

describe("the client's preferred coding is used", () => {
  test.each([
    ["gzip", "gzip"],
    ["x-gzip", "gzip"],
    ["GZip", "gzip"],
    ["br", "br"],
    ["zstd", "zstd"],
    ["gzip, deflate, br, zstd", "zstd"],
    ["gzip;q=1, br;q=0.5, zstd;q=0.1", "gzip"],
    ["gzip;q=0.5, br;q=0.5", "br"],
    ["*", "zstd"],
    ["*;q=0.5, gzip", "gzip"],
    ["zstd;q=0, *", "br"],
    ["gzip;q=0", null],
    ["*;q=0", null],
    ["identity", null],
    ["identity;q=1, gzip;q=0.5", null],
    ["identity;q=0.5, gzip;q=0.5", "gzip"],
    ["deflate", null],
    ["gzip;q=2", null],
    ["gzip;q=abc, br", "br"],
    [";;,,gzip ; q = 0.3", "gzip"],
    [null, null],
  ])("%p: %p", async (accept, coding) => {
    const answer = await ask("/", accept);
    expect(codingOf(answer)).toBe(coding);
    expect(answer.text).toBe(PAGE);
    expect(answer.headers.get("vary")).toBe("Accept-Encoding");
    if (coding !== null) expect(answer.bytes.length).toBeLessThan(PAGE.length / 4);
    expect(answer.headers.get("content-length")).toBe(String(answer.bytes.length));
  });

  test("among the configured ones", async () => {
    await scene.apply({ plugins: [{ name: "compress", config: { encodings: ["gzip", "br"] } }] });
    expect(codingOf(await ask("/", "gzip, br, zstd"))).toBe("gzip");
    expect(codingOf(await ask("/", "zstd"))).toBeNull();
  });

  test("with the configured level", async () => {
    const noise = Array.from({ length: 3000 }, (_, at) => `${(at * 7919) % 1009} `).join("");
    origin.answer = () => html(noise);
    const sizes = async (config: object) => {
      await scene.apply({ plugins: [{ name: "compress", config: { ...config } }] });
      const all = await Promise.all(["gzip", "br"].map((accept) => ask("/", accept)));
      expect(all.map(({ text }) => text)).toEqual([noise, noise]);
      return all.map(({ bytes }) => bytes.length);
    };
    const [gzip = 0, br = 0] = await sizes({ gzip_level: 1, br_level: 0, zstd_level: 1 });
    const [shortGzip = 0, shortBr = 0] = await sizes({ gzip_level: 9, br_level: 9, zstd_level: 9 });
    expect(shortGzip).toBeLessThan(gzip);
    expect(shortBr).toBeLessThan(br);
  });
});

describe("not compressed is", () => {
  test.each([
    ["an image", () => html(PAGE, { "Content-Type": "image/png" })],
    ["what has no type", () => html(PAGE, { "Content-Type": "" })],
    ["what is short", () => html("x".repeat(1023))],
    ["what is coded already", () => html(PAGE, { "Content-Encoding": "deflate" })],
    ["no-transform", () => html(PAGE, { "Cache-Control": "public, no-transform" })],
    ["what has a digest", () => html(PAGE, { "Content-Digest": "sha-256=:x:" })],
    // RFC 9530 section 3: of the representation, and another coding makes another one of it.
    ["what has a digest of all", () => html(PAGE, { "Repr-Digest": "sha-256=:x:" })],
    [
      "a part",
      () =>
        new Response(PAGE, {
          status: 206,
          headers: { "Content-Type": "text/html", "Content-Range": "bytes 0-9/10" },
        }),
    ],
    ["an event stream", () => html(PAGE, { "Content-Type": "text/event-stream" })],
  ])("%s", async (_, answer) => {
    origin.answer = answer;
    const received = await ask("/", "gzip");
    expect(codingOf(received) ?? "deflate").toBe("deflate");
    expect(received.bytes.toString()).toBe(await answer().text());
    expect(received.headers.has("vary")).toBe(false);
  });

  test("the response to a request for a part", async () => {
    const received = await ask("/", "gzip", { headers: { Range: "bytes=0-1" } });
    expect([codingOf(received), received.text, received.headers.get("vary")]).toEqual([
      null,
      PAGE,
      "Accept-Encoding",
    ]);
  });

  test("a response to a cross-site request with cookies", async () => {
    const headers = { "Sec-Fetch-Site": "cross-site" };
    expect(codingOf(await ask("/", "gzip", { headers }))).toBe("gzip");
    expect(codingOf(await ask("/", "gzip", { headers: { ...headers, Cookie: "s=1" } }))).toBeNull();
    expect(codingOf(await ask("/", "gzip", { headers: { Cookie: "s=1" } }))).toBe("gzip");
  });

  test("responses without a body", async () => {
    for (const status of [204, 304]) {
      origin.answer = () =>
        new Response(null, { status, headers: { "Content-Type": "text/html" } });
      const received = await ask("/", "gzip");
      expect([received.status, codingOf(received), received.bytes.length]).toEqual([
        status,
        null,
        0,
      ]);
    }
  });

  test("types and lengths that are not configured", async () => {
    const config = { types: ["text/html"], min_bytes: 10 };
    await scene.apply({ plugins: [{ name: "compress", config }] });
    origin.answer = () => html("x".repeat(10));
    expect(codingOf(await ask("/", "gzip"))).toBe("gzip");
    origin.answer = () => html("x".repeat(9));
    expect(codingOf(await ask("/", "gzip"))).toBeNull();
    origin.answer = () => html(PAGE, { "Content-Type": "text/plain" });
    expect(codingOf(await ask("/", "gzip"))).toBeNull();
    origin.answer = () => html(PAGE, { "Content-Type": "Text/HTML;charset=x" });
    expect(codingOf(await ask("/", "gzip"))).toBe("gzip");
  });
});

describe("the head", () => {
  test("has a weak tag, and neither ranges nor the former length", async () => {
    origin.answer = () => html(PAGE, { ETag: '"v1"', "Accept-Ranges": "bytes", Vary: "Cookie" });
    const { headers } = await ask("/", "br");
    expect(headers.get("etag")).toBe('W/"v1"');
    expect(headers.has("accept-ranges")).toBe(false);
    expect(headers.get("vary")).toBe("Cookie, Accept-Encoding");
    expect((await ask("/", null)).headers.get("etag")).toBe('"v1"');
    origin.answer = () => html(PAGE, { ETag: 'W/"v1"' });
    expect((await ask("/", "br")).headers.get("etag")).toBe('W/"v1"');
  });

  test("of HEAD is that of GET, without a length that GET does not have", async () => {
    origin.answer = () => html(PAGE, { ETag: '"v1"' });
    const text = await sendRaw(
      "HEAD / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n",
      { port: scene.plane.port },
    );
    const { fields, body } = readHead(text);
    expect(fields.get("content-encoding")).toBe("gzip");
    expect([fields.get("etag"), fields.get("vary"), body]).toEqual([
      'W/"v1"',
      "Accept-Encoding",
      "",
    ]);
    expect(fields.get("content-length")).toBeNull();
    origin.answer = () => html("short");
    const short = await ask("/", "gzip", { method: "HEAD" });
    expect([codingOf(short), short.headers.get("content-length")]).toEqual([null, "5"]);
  });

  test("of 304 has the tag that the client has", async () => {
    origin.answer = () => new Response(null, { status: 304, headers: { ETag: '"v1"' } });
    const tagFor = async (shown: string) =>
      (await ask("/", "gzip", { headers: { "If-None-Match": shown } })).headers.get("etag");
    expect(await tagFor('W/"v1"')).toBe('W/"v1"');
    expect(await tagFor('"v1"')).toBe('"v1"');
  });

  test("of 304 has the caching fields of the response with its tag", async () => {
    origin.answer = () =>
      new Response(null, { status: 304, headers: { ETag: '"v1"', Vary: "Origin" } });
    const varyFor = async (shown: string) =>
      (await ask("/", "gzip", { headers: { "If-None-Match": shown } })).headers.get("vary");
    expect(await varyFor('W/"v1"')).toBe("Origin, Accept-Encoding");
    expect(await varyFor('"v1"')).toBe("Origin");
  });
});

function readHead(text: string) {
  const [head = "", body = ""] = text.split("\r\n\r\n");
  const fields = new Headers();
  for (const line of head.split("\r\n").slice(1)) {
    const colon = line.indexOf(":");
    fields.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return { fields, body };
}

describe("bodies of every kind are delivered", () => {
  const sizes = [0, 1, 1023, 1024, 4095, 4096, 16_384, 262_144, 262_145, 1_048_576, 3_000_000];
  const bodies = sizes.map((size) => "0123456789abcdef\n".repeat(size / 17 + 1).slice(0, size));

  test.each(["gzip", "br", "zstd"])("of known and of unknown length, as %s", async (accept) => {
    for (const body of bodies) {
      origin.answer = () => html(body);
      expect((await ask("/known", accept)).text === body).toBe(true);
      origin.answer = () =>
        new Response(
          new ReadableStream({
            async start(controller) {
              const bytes = new TextEncoder().encode(body);
              for (let at = 0; at < bytes.length; at += 50_000)
                controller.enqueue(bytes.subarray(at, at + 50_000));
              controller.close();
            },
          }),
          { headers: { "Content-Type": "text/html" } },
        );
      expect((await ask("/unknown", accept)).text === body).toBe(true);
    }
  });

  test("also error pages and responses of other plugins", async () => {
    await scene.apply({
      plugins: [
        { name: "compress", config: { min_bytes: 1 } },
        {
          name: "respond",
          config: { status: 200, body: PAGE, headers: { "Content-Type": "text/html" } },
        },
      ],
    });
    for (const coding of ["gzip", "gzip", "br"]) {
      const answer = await ask("/", coding);
      expect([codingOf(answer), answer.text]).toEqual([coding, PAGE]);
    }
    await scene.apply({ removedPlugins: ["respond"], services: [{ name: "web", targets: [] }] });
    const page = await ask("/", "gzip", { headers: { Accept: "text/html" } });
    expect([page.status, codingOf(page)]).toEqual([503, "gzip"]);
    expect(page.text).toContain("<title>503");
    await scene.apply({
      services: [{ name: "web", targets: [{ port: scene.originPort }] }],
      routes: [{ name: "all", service_id: "web", maintenance: { html: PAGE, bypass_cidrs: [] } }],
    });
    const closed = await ask("/", "gzip");
    expect([closed.status, codingOf(closed), closed.text]).toEqual([503, "gzip", PAGE]);
    await scene.apply({ routes: [{ name: "all", service_id: "web" }] });
  });

  test("also from a cache inside of it, which stores them plain, or outside, which stores them coded", async () => {
    origin.answer = () => html(PAGE, { "Cache-Control": "max-age=60" });
    for (const priority of [9500, 10]) {
      await scene.apply({
        plugins: [{ name: "compress", priority }, { name: "response-cache" }],
      });
      const path = `/cached-${priority}`;
      for (const accept of ["gzip", "br", "gzip", null]) {
        const answer = await ask(path, accept);
        expect([codingOf(answer), answer.text === PAGE]).toEqual([accept, true]);
      }
      expect(scene.requests.filter(({ target }) => target === path).length).toBe(
        priority === 10 ? 3 : 1,
      );
    }
  });
});

test.each([
  ["br", "web"],
  ["zstd", "web"],
  ["br", "respond"],
])("others need not wait for %s at its highest level (%s)", async (coding, source) => {
  const page = Array.from({ length: 9000 }, (_, at) => `<p id=${at * 7919}>${at}</p>`).join("");
  const headers = { "Content-Type": "text/html" };
  origin.answer = ({ url }) => html(url.endsWith("/long") ? page : "short");
  const compress = { name: "compress", config: { br_level: 11, zstd_level: 19 } };
  const respond = {
    name: "respond",
    config: { status: 200, headers, body: page.slice(0, 65_536) },
  };
  const when = { path: ["=/long"] };
  await scene.apply({ plugins: [compress, ...(source === "web" ? [] : [{ ...respond, when }])] });
  const done: string[] = [];
  const long = ask("/long", coding).then((answer) => {
    done.push("long");
    return answer;
  });
  // One behind the other, while the long one is being coded.
  for (let at = 0; at < 3; at++) {
    await ask("/short", coding);
    done.push("short");
  }
  const answer = await long;
  expect([codingOf(answer), answer.text === page || answer.text === page.slice(0, 65_536)]).toEqual(
    [coding, true],
  );
  expect(done).toEqual(["short", "short", "short", "long"]);
  await scene.apply({ removedPlugins: ["respond"] });
});

test("events are passed on immediately when flush is set", async () => {
  const events: Origin = startOrigin({ answer: null });
  const plane = await startDataPlane({
    services: [{ name: "web", targets: [{ port: events.port }] }],
    routes: [{ name: "all", service_id: "web" }],
    plugins: [{ name: "compress", config: { flush: true } }],
  });
  for (const [accept, decoder] of [
    ["gzip", zlib.createGunzip()],
    ["br", zlib.createBrotliDecompress()],
    ["zstd", zlib.createZstdDecompress()],
  ] as const) {
    let text = "";
    decoder.on("data", (chunk: Buffer) => (text += chunk.toString()));
    const asked = events.requests.length;
    const response = fetch(plane.url, {
      headers: { "Accept-Encoding": accept },
      decompress: false,
    });
    await events.untilRequests(asked + 1);
    const connection = events.connections.at(-1);
    connection?.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
    connection?.write("data: one\n\n");
    const { body, headers } = await response;
    expect(headers.get("content-encoding")).toBe(accept);
    const reading = (async () => {
      for await (const chunk of body ?? []) decoder.write(chunk);
    })();
    await eventually(() => text.includes("data: one\n\n"));
    connection?.write("data: two\n\n");
    await eventually(() => text.endsWith("data: two\n\n"));
    connection?.end();
    await reading;
  }
  await plane.stop();
  events.stop();
});

test("an aborted response never looks complete", async () => {
  const half: Origin = startOrigin({
    answer: (_, connection) => {
      connection.write(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3000000\r\n\r\n",
      );
      connection.write(PAGE);
      connection.end();
      return null;
    },
  });
  const plane = await startDataPlane({
    services: [{ name: "web", targets: [{ port: half.port }] }],
    routes: [{ name: "all", service_id: "web" }],
    plugins: [{ name: "compress" }],
  });
  const text = await sendRaw("GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n", {
    port: plane.port,
  });
  expect(text).not.toEndWith("0\r\n\r\n");
  expect(parseResponse(text).status).toBe(200);
  await plane.stop();
  half.stop();
});
