// HTTP requests of plugins: what is sent, what is returned, and the name of each failure; over real sockets.
import { brotliCompressSync, deflateSync } from "node:zlib";
import { afterEach, describe, expect, test } from "bun:test";
import { createCallout } from "../../../src/dataplane/plugin/callout.ts";
import type { CalloutRequest } from "../../../src/pdk/kit.ts";
import { selfSigned } from "../../support/certificate.ts";
import { eventually } from "../../support/poll.ts";

const callout = createCallout({ loopToken: "sluice-test" });
/** Ends what a test has opened. */
const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0)) await end();
});

function serve(handle: (request: Request) => Response | Promise<Response>): string {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: handle });
  endings.push(() => server.stop(true));
  return server.url.href;
}

/** Responds to each chunk that arrives with the same bytes; `null` closes instead. */
function listen(answer: string | null, { thenClose = false } = {}) {
  const seen = { url: "", opened: 0, closed: 0, received: "" };
  const listener = Bun.listen({
    port: 0,
    hostname: "127.0.0.1",
    socket: {
      open: () => void seen.opened++,
      close: () => void seen.closed++,
      data(socket, bytes) {
        seen.received += bytes.toString("latin1");
        if (answer === null) socket.end();
        else if (thenClose) socket.end(answer);
        else socket.write(answer);
      },
    },
  });
  endings.push(() => listener.stop(true));
  seen.url = `http://127.0.0.1:${listener.port}/`;
  return seen;
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const call = (url: string, more: Partial<CalloutRequest> = {}) =>
  callout({ url, timeoutMs: 60_000, ...more });
const failure = async (url: string, more: Partial<CalloutRequest> = {}): Promise<string> => {
  const error = await call(url, more).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Error);
  // Nothing of the address, whatever it holds.
  expect(Bun.inspect(error)).not.toContain("s3cret");
  return (error as Error).message;
};

describe("a request", () => {
  const echo = () =>
    serve(async (request) =>
      Response.json({
        method: request.method,
        headers: Object.fromEntries(request.headers),
        body: await request.text(),
      }),
    );

  test("has the User-Agent of the gateway and offers no compression", async () => {
    const { status, body } = await call(echo());
    expect(status).toBe(200);
    expect(JSON.parse(text(body))).toMatchObject({
      method: "GET",
      headers: { "cdn-loop": "sluice-test", "user-agent": "sluice", "accept-encoding": "identity" },
    });
  });

  test("has the given method, headers and body", async () => {
    const { body } = await call(echo(), {
      method: "post",
      headers: { "User-Agent": "mine", "CDN-Loop": "other", "X-Own": "1", "Accept-Encoding": "br" },
      body: new TextEncoder().encode("hello"),
    });
    expect(JSON.parse(text(body))).toMatchObject({
      method: "POST",
      headers: {
        "user-agent": "mine",
        "cdn-loop": "other, sluice-test",
        "x-own": "1",
        "accept-encoding": "br",
      },
      body: "hello",
    });
  });

  test("reuses a connection", async () => {
    const origin = listen("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx");
    for (let round = 0; round < 3; round++) expect((await call(origin.url)).status).toBe(200);
    expect(origin.opened).toBe(1);
  });

  test("ignores proxies of the environment", async () => {
    const origin = echo();
    const code = `
      import { createCallout } from ${JSON.stringify(require.resolve("../../../src/dataplane/plugin/callout.ts"))};
      console.log((await createCallout({ loopToken: "t" })({ url: ${JSON.stringify(origin)}, timeoutMs: 60_000 })).status);`;
    const proxy = "http://127.0.0.1:1";
    const child = Bun.spawn([process.execPath, "-e", code], {
      env: { ...process.env, http_proxy: proxy, HTTP_PROXY: proxy, ALL_PROXY: proxy },
    });
    expect(await new Response(child.stdout).text()).toBe("200\n");
  });

  const url = "http://127.0.0.1/";
  test.each([
    ["a file", "file:///etc/passwd", {}, "the URL is neither http nor https"],
    ["data", "data:text/plain,s3cret", {}, "the URL is neither http nor https"],
    ["no address", "s3cret", {}, "the URL is neither http nor https"],
    ["a made-up method", url, { method: "S3CRET" }, "the method cannot be sent"],
    ["a GET with a body", url, { body: "s3cret" }, "a GET request cannot have a body"],
    ["two fields in one", url, { headers: { a: "s3cret\r\nb: c" } }, "a header cannot be sent"],
    ["a field name", url, { headers: { "a b": "s3cret" } }, "a header cannot be sent"],
  ])("that is invalid (%s) is rejected", async (_, address, more, message) => {
    expect(await failure(address, more)).toBe(message);
  });
});

describe("a response", () => {
  test("that redirects is returned", async () => {
    const url = serve(() => Response.redirect("/elsewhere", 302));
    const { status, headers } = await call(url);
    expect([status, headers.get("location")]).toEqual([302, "/elsewhere"]);
  });

  test.each([
    ["gzip", Bun.gzipSync("hello")],
    ["GZip", Bun.gzipSync("hello")],
    ["x-gzip", Bun.gzipSync("hello")],
    ["deflate", deflateSync("hello")],
    ["br", brotliCompressSync("hello")],
    ["zstd", Bun.zstdCompressSync("hello")],
  ])("that is compressed with %s is decoded, and its headers match", async (coding, bytes) => {
    const url = serve(
      () => new Response(new Uint8Array(bytes), { headers: { "content-encoding": coding } }),
    );
    const { body, headers } = await call(url);
    expect(text(body)).toBe("hello");
    expect([headers.get("content-encoding"), headers.get("content-length")]).toEqual([null, null]);
  });

  test("with an unknown coding stays as it is", async () => {
    const url = serve(() => new Response("hello", { headers: { "content-encoding": "own" } }));
    const { body, headers } = await call(url);
    expect([text(body), headers.get("content-encoding")]).toEqual(["hello", "own"]);
  });

  test("may have the allowed number of bytes, and not one more", async () => {
    const url = serve(() => new Response("x".repeat(1000)));
    expect((await call(url, { maxBytes: 1000 })).body.length).toBe(1000);
    expect(await failure(url, { maxBytes: 999 })).toBe("the response is too large");
  });

  test("that never ends is aborted", async () => {
    const origin = listen(`HTTP/1.1 200 OK\r\n\r\n${"x".repeat(10_000)}`);
    expect(await failure(origin.url, { maxBytes: 100 })).toBe("the response is too large");
    await eventually(() => origin.closed === 1);
  });

  test("that decompresses beyond the limit is too long", async () => {
    const bomb = Bun.gzipSync(new Uint8Array(20_000_000));
    const url = serve(() => new Response(bomb, { headers: { "content-encoding": "gzip" } }));
    expect(await failure(url)).toBe("the response is too large");
  });
});

describe("a failure has a name, without the address:", () => {
  const query = "?token=s3cret";

  test("connection refused", async () => {
    expect(await failure(`http://127.0.0.1:1/${query}`)).toBe("the connection was refused");
  });

  test("unknown host", async () => {
    const message = await failure(`http://no-such-host.invalid/${query}`);
    expect(message).toBe("the host could not be resolved");
  });

  test("no response", async () => {
    const origin = listen("");
    expect(await failure(origin.url + query, { timeoutMs: 50 })).toBe("no response in time");
    await eventually(() => origin.closed === 1);
  });

  test("the response does not end", async () => {
    const origin = listen("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc");
    expect(await failure(origin.url + query, { timeoutMs: 50 })).toBe("no response in time");
    await eventually(() => origin.closed === 1);
  });

  test.each([
    ["before the response", null],
    ["within the response", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"],
    ["after something that is no HTTP", "hello\r\n\r\n"],
  ])("the connection is closed %s", async (_, answer) => {
    const origin = listen(answer, { thenClose: true });
    expect(await failure(origin.url + query)).toBe(
      "the connection was closed before the response was complete",
    );
  });

  test("the response is not compressed as it says", async () => {
    const url = serve(() => new Response("hello", { headers: { "content-encoding": "gzip" } }));
    expect(await failure(url + query)).toBe("the response cannot be decoded");
  });

  test("untrusted certificate", async () => {
    const tls = await selfSigned();
    const server = Bun.serve({ port: 0, tls, fetch: () => new Response() });
    endings.push(() => server.stop(true));
    expect(await failure(`https://localhost:${server.port}/${query}`)).toBe(
      "the certificate is not trusted",
    );
  });

  test("the host does not speak TLS", async () => {
    const url = serve(() => new Response()).replace("http:", "https:");
    expect(await failure(url + query)).toBe("the TLS handshake failed");
  });

  test("too many are in flight", async () => {
    const { promise, resolve } = Promise.withResolvers<Response>();
    const url = serve(() => promise);
    const narrow = createCallout({ loopToken: "t", maxConcurrent: 1 });
    const first = narrow({ url, timeoutMs: 60_000 });
    const error = await narrow({ url, timeoutMs: 60_000 }).catch((thrown: Error) => thrown);
    expect((error as Error).message).toBe("too many concurrent requests of plugins");
    resolve(new Response("done"));
    expect(text((await first).body)).toBe("done");
    expect((await narrow({ url: serve(() => new Response()), timeoutMs: 60_000 })).status).toBe(
      200,
    );
  });
});
