// A real nginx behind the executable: browsers, crawlers and download tools get the same responses as from nginx itself.
import { expect } from "bun:test";
import { randomBytes } from "node:crypto";
import { curl, type CurlAnswer } from "../support/curl.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { type Nginx, startNginx } from "../support/nginx.ts";
import { connectRaw, sendRaw } from "../support/raw-http.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, describe, test } = needs("executable", "curl", "nginx");

const MEBIBYTE = 1_048_576;
const BIG = 200 * MEBIBYTE;
const COLLECTED_BYTES = MEBIBYTE;

const block = randomBytes(MEBIBYTE);

/** No two mebibytes of it are the same, so that a misplaced piece is detected. */
function bigFile(): Uint8Array {
  const bytes = Buffer.alloc(BIG);
  for (let i = 0; i < BIG / MEBIBYTE; i++) {
    block.copy(bytes, i * MEBIBYTE);
    bytes.writeUInt32BE(i, i * MEBIBYTE);
  }
  return bytes;
}

const page = `<!doctype html><title>Site</title><link rel="stylesheet" href="/style.css">\n${"<p>A line of text.</p>\n".repeat(400)}`;

const files = {
  "index.html": page,
  "style.css": "body { color: #222; }\n".repeat(300),
  "empty.txt": "",
  "image.png": randomBytes(70_000),
  "exact.bin": block.subarray(0, COLLECTED_BYTES),
  "over.bin": Buffer.concat([block, new Uint8Array(1)]),
  "docs/index.html": "<h1>Docs</h1>\n",
  "a name with spaces & ümläut.txt": "found\n",
  "100%.txt": "percent\n",
  "plus+sign;semicolon.txt": "signs\n",
};

const directives = `
  location /echo { default_type text/plain; return 200 "$request_uri\\n$args\\n"; }
  location /relative { absolute_redirect off; return 301 /docs/?from=relative; }
  location = /gone { return 410; }
  location = /nothing { return 204; }
  location = /headers {
    add_header Set-Cookie "a=1; Path=/; HttpOnly";
    add_header Set-Cookie "b=2; Path=/";
    add_header X-Frame-Options DENY;
    add_header Link "</style.css>; rel=preload";
    add_header Cache-Control "public, max-age=60";
    return 200 "headers\\n";
  }
`;

let nginx: Nginx;
let gateway: Gateway;

beforeAll(async () => {
  nginx = await startNginx({ files: { ...files, "big.bin": bigFile() }, directives });
  gateway = await startGateway({ binary: executable });
  const targets = [{ host: "127.0.0.1", port: nginx.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "site", targets });
  await gateway.ok("POST", "/api/v1/routes", {
    name: "site",
    service_id: "site",
    hosts: ["site.test"],
  });
});
afterAll(async () => {
  await gateway?.stop();
  await nginx?.stop();
});

const direct = () => `http://127.0.0.1:${nginx.port}`;
const plain = () => `http://127.0.0.1:${gateway.httpPort}`;
const secure = () => `https://127.0.0.1:${gateway.httpsPort}`;

const ways = [
  { way: "HTTP/1.1", base: plain, version: "1.1", args: ["--http1.1"] },
  { way: "HTTP/2 without TLS", base: plain, version: "2", args: ["--http2-prior-knowledge"] },
  { way: "HTTP/1.1 over TLS", base: secure, version: "1.1", args: ["--http1.1"] },
  { way: "HTTP/2 over TLS", base: secure, version: "2", args: ["--http2"] },
] as const;
type Way = (typeof ways)[number];

const ask = (base: string, path: string, args: readonly string[] = []) =>
  curl(`${base}${path}`, ["--header", "Host: site.test", ...args]);

/** RFC 9110 section 7.6.1: hop-by-hop, so each connection has its own. */
const HOP_BY_HOP = new Set(["connection", "keep-alive", "transfer-encoding"]);

/** Headers that must be the same, sorted; see `expectSame` for those omitted. */
function comparable(answer: CurlAnswer): string[] {
  const boundary = boundaryOf(answer);
  return answer.headers
    .filter(
      ([name]) =>
        !HOP_BY_HOP.has(name) && !["date", "content-length", "x-request-id"].includes(name),
    )
    .map(([name, value]) => `${name}: ${boundary ? value.replace(boundary, "B") : value}`)
    .sort();
}

/** nginx counts its multipart boundaries up. */
const boundaryOf = (answer: CurlAnswer) =>
  /boundary=(\S+)/.exec(answer.header("content-type") ?? "")?.[1];

/**
 * Same status, bytes and headers. Allowed to differ: hop-by-hop fields; the id of the request, which the gateway adds; Date, by the time between two requests; the
 * boundary of multipart bodies; Content-Length, which is lost when a body is streamed (Bun.serve sends it chunked) and
 * gained when a short chunked body is sent in one piece.
 */
function expectSame(through: CurlAnswer, alone: CurlAnswer): void {
  expect(through.status).toBe(alone.status);
  expect(comparable(through)).toEqual(comparable(alone));
  expect(Date.parse(through.header("date") ?? "")).not.toBeNaN();
  const boundary = boundaryOf(alone);
  if (boundary === undefined)
    expect([through.size, through.sha256]).toEqual([alone.size, alone.sha256]);
  else
    expect(through.text().replaceAll(boundaryOf(through)!, "B")).toBe(
      alone.text().replaceAll(boundary, "B"),
    );
  const [length, known] = [through.header("content-length"), alone.header("content-length")];
  if (length === null) expect(known === null || Number(known) > COLLECTED_BYTES).toBe(true);
  else expect(length).toBe(known ?? String(through.size));
}

async function expectSameBothWays(way: Way, path: string, args: readonly string[] = []) {
  const [through, alone] = await Promise.all([
    ask(way.base(), path, [...way.args, ...args]),
    ask(direct(), path, args),
  ]);
  expect(through.version).toBe(way.version);
  expectSame(through, alone);
  return through;
}

const header = (line: string) => ["--header", line];
const ETAG = /^"[0-9a-f]+-[0-9a-f]+"$/;

describe.each([...ways])("a site over $way", (way) => {
  const contents = [
    { path: "/", why: "a page", status: 200 },
    { path: "/style.css", why: "a style sheet", status: 200 },
    { path: "/empty.txt", why: "an empty file", status: 200 },
    { path: "/image.png", why: "a picture", status: 200 },
    { path: "/exact.bin", why: "as long as is collected", status: 200 },
    { path: "/over.bin", why: "a byte longer than is collected", status: 200 },
    { path: "/docs/", why: "the index of a folder", status: 200 },
    { path: "/missing.html", why: "nginx's own 404", status: 404 },
    { path: "/gone", why: "a status that browsers know by heart", status: 410 },
    { path: "/nothing", why: "no content", status: 204 },
    { path: "/headers", why: "repeated and unusual headers", status: 200 },
    { path: "/a%20name%20with%20spaces%20&%20%C3%BCml%C3%A4ut.txt", why: "escapes", status: 200 },
    { path: "/100%25.txt", why: "an escaped percent sign", status: 200 },
    { path: "/plus+sign;semicolon.txt", why: "sub-delimiters", status: 200 },
    { path: "/docs%2Findex.html", why: "an escaped slash stays one", status: 200 },
    { path: "//docs//index.html", why: "repeated slashes stay", status: 200 },
  ];
  test.each(contents)("GET and HEAD are the same: $why", async ({ path, status }) => {
    const got = await expectSameBothWays(way, path);
    expect(got.status).toBe(status);
    expect((await expectSameBothWays(way, path, ["--head"])).size).toBe(0);
  });

  test("nginx itself rejects a form that it does not accept", async () => {
    const refused = await expectSameBothWays(way, "/docs/", ["--data-binary", "a=1"]);
    expect(refused.status).toBe(405);
  });

  const queries = [
    "?",
    "?a=1&a=2&=3&&b",
    "?q=%20+%2B%25%26",
    "?json=%7B%22a%22:[1,2]%7D",
    "?odd=`|^\\!*();:@$,{}",
    "?utf8=%C3%BC&broken=%FF%zz%",
    "?path=../../etc/passwd&url=https://x.test/?y=1",
    `?long=${"x".repeat(7000)}`,
  ];
  test.each(queries)("a query arrives as it was sent: %s", async (query) => {
    const echoed = await expectSameBothWays(way, `/echo${query}`);
    expect(echoed.text()).toBe(`/echo${query}\n${query.slice(1)}\n`);
  });

  test("four characters of a query arrive percent-encoded, as Bun does", async () => {
    const echoed = await ask(way.base(), "/echo?a=\"b\"&c='d'&e=<f>", way.args);
    expect(echoed.text()).toStartWith("/echo?a=%22b%22&c=%27d%27&e=%3Cf%3E\n");
  });

  const ranges = [
    { range: "bytes=0-0", status: 206, why: "the first byte" },
    { range: "bytes=1000-1999", status: 206, why: "a thousand bytes" },
    { range: "bytes=-500", status: 206, why: "the last bytes" },
    { range: `bytes=${BIG - 10}-`, status: 206, why: "from somewhere to the end" },
    { range: `bytes=5000000-${5_000_000 + 3 * MEBIBYTE}`, status: 206, why: "long: streamed" },
    { range: "bytes=0-99,1000-1099,-50", status: 206, why: "several parts" },
    { range: `bytes=${BIG}-`, status: 416, why: "past the end" },
  ];
  test.each(ranges)("a range is the same: $why", async ({ range, status }) => {
    const part = await expectSameBothWays(way, "/big.bin", header(`Range: ${range}`));
    expect(part.status).toBe(status);
  });

  test("conditions decide the same, and 304 keeps the validators", async () => {
    const { header: of } = await ask(direct(), "/image.png");
    const [etag, modified] = [of("etag") ?? "", of("last-modified") ?? ""];
    expect(etag).toMatch(ETAG);
    const earlier = "Thu, 01 Jan 2026 00:00:00 GMT";
    const conditions: [string, number][] = [
      [`If-None-Match: ${etag}`, 304],
      [`If-None-Match: W/${etag}`, 304],
      ['If-None-Match: "other"', 200],
      ["Range: lines=1-2", 200],
      [`If-Modified-Since: ${modified}`, 304],
      [`If-Modified-Since: ${earlier}`, 200],
      [`If-Match: ${etag}`, 200],
      ['If-Match: "other"', 412],
      [`If-Unmodified-Since: ${earlier}`, 412],
    ];
    for (const [condition, status] of conditions) {
      const answer = await expectSameBothWays(way, "/image.png", header(condition));
      expect([condition, answer.status]).toEqual([condition, status]);
      if (status === 304)
        expect([answer.size, answer.header("etag"), answer.header("last-modified")]).toEqual([
          0,
          etag,
          modified,
        ]);
    }
    for (const [validator, status] of [
      [etag, 206],
      ['"other"', 200],
    ]) {
      const lines = [...header("Range: bytes=0-9"), ...header(`If-Range: ${validator}`)];
      expect((await expectSameBothWays(way, "/image.png", lines)).status).toBe(Number(status));
    }
  });

  test.each(["/", "/style.css", "/image.png"])(
    "compressed responses stay unchanged: %s",
    async (path) => {
      const packed = await expectSameBothWays(way, path, header("Accept-Encoding: gzip"));
      expect(packed.header("content-encoding")).toBe(path === "/image.png" ? null : "gzip");
      const plainText = await expectSameBothWays(way, path, header("Accept-Encoding: identity"));
      expect(plainText.header("content-encoding")).toBeNull();
      expect(packed.header("vary")).toBe(path === "/image.png" ? null : "Accept-Encoding");
    },
  );

  test("redirects have the location of nginx", async () => {
    const folder = await expectSameBothWays(way, "/docs");
    expect([folder.status, folder.header("location")]).toEqual([
      301,
      `http://site.test:${nginx.port}/docs/`,
    ]);
    const relative = await expectSameBothWays(way, "/relative");
    expect(relative.header("location")).toBe("/docs/?from=relative");
  });

  test("200 MB arrive complete, four times at once", async () => {
    const sha256 = new Bun.CryptoHasher("sha256").update(bigFile()).digest("hex");
    const downloads = Array.from({ length: 4 }, () => ask(way.base(), "/big.bin", way.args));
    for (const download of await Promise.all(downloads))
      expect([download.status, download.size, download.sha256]).toEqual([200, BIG, sha256]);
  });

  test("concurrent requests each get the right file", async () => {
    const paths = contents.filter(({ status }) => status === 200).map(({ path }) => path);
    const wanted = Array.from({ length: 60 }, (_, index) => paths[index % paths.length] ?? "/");
    await Promise.all(wanted.map((path) => expectSameBothWays(way, path)));
  });
});

test("requests on a reused connection are independent of earlier ones", async () => {
  const client = await connectRaw({ port: gateway.httpPort });
  const asked = [
    { line: "HEAD /big.bin", more: "", ends: /\r\n\r\n$/, status: "200" },
    { line: "GET /nothing", more: "", ends: /\r\n\r\n$/, status: "204" },
    { line: "GET /missing", more: "", ends: /<\/html>\r\n$/, status: "404" },
    { line: "GET /image.png", more: "If-None-Match: *\r\n", ends: /\r\n\r\n$/, status: "304" },
    { line: "GET /docs/", more: "", ends: /<h1>Docs<\/h1>\n$/, status: "200" },
  ];
  for (const { line, more, ends, status } of asked) {
    client.received = "";
    client.write(`${line} HTTP/1.1\r\nHost: site.test\r\n${more}\r\n`);
    expect((await client.until(ends)).slice(0, 13)).toBe(`HTTP/1.1 ${status} `);
  }
  client.close();
});

test("requests sent before the last response are answered in their order", async () => {
  const request = (path: string, more = "") =>
    `GET ${path} HTTP/1.1\r\nHost: site.test\r\n${more}\r\n`;
  const sent = request("/docs/") + request("/nothing-here", "Connection: close\r\n");
  const answers = await sendRaw(sent, { port: gateway.httpPort });
  expect([...answers.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status)).toEqual([
    "200",
    "404",
  ]);
});
