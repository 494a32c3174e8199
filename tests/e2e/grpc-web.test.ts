// gRPC-Web in Chromium: a page of another origin calls a gRPC service through the executable, with fetch and with Google's client.
import { expect } from "bun:test";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { type Http2Target, startHttp2Target } from "../integration/upstream-http2/target.ts";
import { openBrowser } from "../support/browser.ts";
import { freePort } from "../support/data-plane.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { framed, grpcHandler, readGrpcWeb } from "../support/grpc-web.ts";
import { needs } from "../support/needs.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, describe, test } = needs("chromium", "executable");

const CLIENT = join(import.meta.dir, "../../node_modules/grpc-web/index.esm.js");

/** The functions that tests call; messages of Google's client are texts here. */
const PAGE = `<!doctype html><h1>page</h1><script type="module">
import * as grpc from "/client.js";
const utf8 = (text) => new TextEncoder().encode(text);
const text = (bytes) => new TextDecoder().decode(bytes);
window.post = async (url, type, body, wantsAll) => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": type, "x-grpc-web": "1" },
    body: Uint8Array.from(body),
  });
  const reader = response.body.getReader();
  const bytes = [];
  do {
    const { done, value } = await reader.read();
    if (done) break;
    bytes.push(...value);
  } while (wantsAll);
  if (!wantsAll) await reader.cancel();
  return { status: response.status, initial: response.headers.get("x-initial"), bytes };
};
const method = (name, type) => new grpc.MethodDescriptor(name, type, Object, Object, utf8, text);
window.unary = (origin, name, format) => new Promise((resolve) => {
  const call = new grpc.GrpcWebClientBase({ format }).rpcCall(
    origin + name, "hello", { "x-meta": "kept" }, method(name, grpc.MethodType.UNARY),
    (error, message) => resolve({ message, error: error && { code: error.code, message: error.message } }),
  );
});
window.stream = (origin, name, count) => new Promise((resolve) => {
  const messages = [];
  const call = new grpc.GrpcWebClientBase({ format: "text" }).serverStreaming(
    origin + name, count, {}, method(name, grpc.MethodType.SERVER_STREAMING));
  let status = null;
  call.on("data", (message) => messages.push(message));
  call.on("status", (got) => { status = got; });
  call.on("error", (error) => resolve({ messages, status: { code: error.code } }));
  call.on("end", () => resolve({ messages, status: { code: status.code, late: status.metadata["x-late"] } }));
});
window.isReady = true;
</script>`;

const ports = { http: freePort(), https: freePort() };
let gateway: Gateway;
let target: Http2Target;
let browser: Browser;
let page: Page;
const pages = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: ({ url }) =>
    url.endsWith("/client.js")
      ? new Response(Bun.file(CLIENT), { headers: { "Content-Type": "text/javascript" } })
      : new Response(PAGE, { headers: { "Content-Type": "text/html" } }),
});

beforeAll(async () => {
  target = await startHttp2Target(grpcHandler);
  gateway = await startGateway({ binary: executable, workers: 1 });
  const { id } = await gateway.ok("POST", "/api/v1/services", {
    name: "greeter",
    protocol: "grpc",
    targets: [{ host: "127.0.0.1", port: target.port }],
  });
  const origins = [`http://127.0.0.1:${pages.port}`];
  await gateway.ok("POST", "/api/v1/plugins", { name: "grpc-web", service_id: id });
  await gateway.ok("POST", "/api/v1/plugins", {
    name: "cors",
    service_id: id,
    config: { origins, expose_headers: ["x-initial"] },
  });
  for (const protocol of ["http", "https"] as const) {
    // These serve no gRPC.
    const bun = { name: `bun-${protocol}`, address: "127.0.0.1", port: ports[protocol] };
    await gateway.ok("POST", "/api/v1/listeners", { ...bun, protocol, engine: "bun" });
  }
  await gateway.ok("POST", "/api/v1/routes", { name: "greeter", service_id: id });
  browser = await openBrowser();
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  page = await context.newPage();
  await page.goto(`http://127.0.0.1:${pages.port}/`);
  await page.waitForFunction("window.isReady");
});
afterAll(async () => {
  await browser?.close();
  await gateway?.stop();
  target?.stop();
  await pages.stop(true);
});

/** Calls a function of the page. */
const run = <T>(name: string, ...values: readonly unknown[]): Promise<T> =>
  page.evaluate(`window.${name}(...${JSON.stringify(values)})`);

interface Posted {
  readonly status: number;
  readonly initial: string | null;
  readonly bytes: readonly number[];
}

const post = (origin: string, method: string, options: { body: string; wantsAll?: boolean }) =>
  run<Posted>(
    "post",
    `${origin}/test.Service/${method}`,
    "application/grpc-web+proto",
    [...framed(options.body)],
    options.wantsAll ?? true,
  );

/** Of the listener of an engine. */
function originOf(engine: "bun" | "sluice", scheme: "http" | "https"): string {
  const own = scheme === "http" ? gateway.httpPort : gateway.httpsPort;
  return `${scheme}://127.0.0.1:${engine === "sluice" ? own : ports[scheme]}`;
}

describe.each([
  ["bun", "http"],
  ["bun", "https"],
  ["sluice", "http"],
  ["sluice", "https"],
] as const)("a page that uses fetch, engine %s over %s", (engine, scheme) => {
  const origin = () => originOf(engine, scheme);

  test("reads the message and the trailers of a unary call", async () => {
    const { status, initial, bytes } = await post(origin(), "Echo", { body: "hello" });
    const { messages, trailers } = readGrpcWeb(Buffer.from(bytes));
    expect([status, initial, messages.map(String)]).toEqual([200, "early", ["hello"]]);
    expect(trailers).toEqual({ "grpc-status": "0", "grpc-message": "fine", "x-late": "last" });
  });

  test("reads all messages of a stream, and the first one before the end", async () => {
    const all = await post(origin(), "Count", { body: "500" });
    const { messages, trailers } = readGrpcWeb(Buffer.from(all.bytes));
    expect([messages.length, String(messages[499]), trailers?.["grpc-status"]]).toEqual([
      500,
      "message 499",
      "0",
    ]);
    const first = await post(origin(), "Hang", { body: "", wantsAll: false });
    expect(readGrpcWeb(Buffer.from(first.bytes)).messages.map(String)).toEqual(["first"]);
  });
});

describe.each(["bun", "sluice"] as const)("Google's client, engine %s", (engine) => {
  const origin = () => originOf(engine, "http");

  test.each(["text", "binary"])("gets the message of a unary call as %s", async (format) => {
    expect(await run("unary", origin(), "/test.Service/Echo", format)).toEqual({
      message: "hello",
      error: null,
    });
    expect(target.requests.at(-1)).toMatchObject({
      te: "trailers",
      "x-meta": "kept",
      "x-user-agent": expect.stringContaining("grpc-web-javascript"),
    });
  });

  test.each(["text", "binary"])("gets the status of a failed call as %s", async (format) => {
    const failed = await run<{ error: object }>("unary", origin(), "/test.Service/Fail", format);
    expect(failed.error).toEqual({ code: 5, message: "no such thing" });
    const refused = await run<{ error: object }>("unary", origin(), "/test.Service/Html", format);
    expect(refused.error).toMatchObject({ code: 14 });
  });

  test("gets the messages and the status of a stream", async () => {
    const { messages, status } = await run<{ messages: string[]; status: object }>(
      "stream",
      origin(),
      "/test.Service/Count",
      "300",
    );
    expect([messages.length, messages[299]]).toEqual([300, "message 299"]);
    expect(status).toEqual({ code: 0, late: "last" });
  });
});
