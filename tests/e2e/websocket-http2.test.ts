// HTTP/2 in Chromium, through the executable: WebSockets (RFC 8441), exact lengths, progress, many images with priorities.
import { expect } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { openBrowser } from "../support/browser.ts";
import { freePort } from "../support/data-plane.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, test } = needs("chromium", "executable");

const LONG = 5_000_000;
const IMAGES = 200;
/** Of 1 x 1 pixel, with a comment of 20 KB. */
const IMAGE = `<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"><!--${"x".repeat(20_000)}--></svg>`;
/** The first half of them is what a page wants first. */
const isUrgent = (index: number) => index < IMAGES / 2;
const IMAGE_PAGE = `<!doctype html><h1>images</h1>${Array.from(
  { length: IMAGES },
  (_, index) => `<img src="/image/${index}" fetchpriority="${isUrgent(index) ? "high" : "low"}">`,
).join("")}`;
const PIECES = 10;
const PIECE = 50_000;
/** Priority (RFC 9218) of each image as it reached the origin. */
const priorities = new Map<number, string | null>();
/** Sends the next piece of the slow response. */
let nextPiece: (() => void) | null = null;

/** A piece each time that the page asks for one. */
function slow(): Response {
  let sent = 0;
  const body = new ReadableStream<Uint8Array>({
    type: "direct",
    async pull(controller: ReadableStreamDirectController) {
      while (sent < PIECES) {
        await controller.write(Buffer.alloc(PIECE, 97));
        await controller.flush();
        if (++sent < PIECES) await new Promise<void>((resolve) => (nextPiece = resolve));
      }
      await controller.close();
    },
  } as never);
  return new Response(body);
}
const origin = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request, server) {
    const { pathname } = new URL(request.url);
    if (pathname === "/long") return new Response(Buffer.alloc(LONG, 97));
    if (pathname === "/slow") return slow();
    if (pathname === "/piece") {
      nextPiece?.();
      return new Response("asked for");
    }
    if (pathname.startsWith("/image/")) {
      priorities.set(Number(pathname.slice(7)), request.headers.get("priority"));
      return new Response(IMAGE, { headers: { "Content-Type": "image/svg+xml" } });
    }
    if (pathname === "/images")
      return new Response(IMAGE_PAGE, { headers: { "Content-Type": "text/html" } });
    if (pathname === "/socket" && server.upgrade(request)) return;
    return new Response("<!doctype html><h1>page</h1>", {
      headers: { "Content-Type": "text/html" },
    });
  },
  websocket: {
    perMessageDeflate: true,
    message: (socket, message) => void socket.send(message),
  },
});

/** The functions that tests call, in the page. */
const SCRIPT = `
window.echo = (texts) => new Promise((resolve, reject) => {
  const socket = new WebSocket(location.origin.replace("https", "wss") + "/socket");
  const got = [];
  socket.onopen = () => texts.forEach((text) => socket.send(text));
  socket.onmessage = ({ data }) => { if (got.push(data) === texts.length) socket.close(1000, "done"); };
  socket.onclose = ({ code, wasClean }) => resolve({ got, code, wasClean });
  socket.onerror = () => reject(new Error("the WebSocket failed"));
});
window.download = async () => {
  const response = await fetch("/long");
  const { byteLength } = await response.arrayBuffer();
  return { length: response.headers.get("content-length"), byteLength };
};
window.progress = async () => {
  const response = await fetch("/slow");
  const reader = response.body.getReader();
  const sizes = [];
  for (let size = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return sizes;
    size += value.byteLength;
    if (size % ${PIECE} !== 0) continue;
    sizes.push(size);
    await fetch("/piece");
  }
};
window.images = () => ({
  loaded: [...document.images].filter(({ complete, naturalWidth }) => complete && naturalWidth === 1).length,
  protocols: [...new Set(performance.getEntriesByType("resource").map((one) => one.nextHopProtocol))],
});
window.protocols = () => performance.getEntriesByType("navigation").map((one) => one.nextHopProtocol);
`;

let gateway: Gateway;
let browser: Browser;
const port = freePort();

beforeAll(async () => {
  gateway = await startGateway({ binary: executable, workers: 2 });
  const post = (path: string, body: object) => gateway.ok("POST", `/api/v1/${path}`, body);
  const https = { address: "127.0.0.1", protocol: "https" };
  await post("listeners", { ...https, name: "own", port, engine: "sluice" });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await post("services", { name: "origin", targets });
  await post("routes", { name: "origin", service_id: "origin", hosts: ["localhost"] });
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await gateway?.stop();
  await origin.stop(true);
});

async function open(port: number, path = "/"): Promise<Page> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const page = await context.newPage();
  await page.goto(`https://localhost:${port}${path}`, { waitUntil: "load" });
  await page.evaluate(SCRIPT);
  expect(await page.evaluate("window.protocols()")).toEqual(["h2"]);
  return page;
}

test("a page opens a WebSocket on its HTTP/2 connection", async () => {
  const page = await open(port);
  // Chromium holds an empty message back over HTTP/2 until another one follows.
  const texts = ["hello", "ü".repeat(40_000), "", "last"];
  const result = await page.evaluate(`window.echo(${JSON.stringify(texts)})`);
  expect(result).toEqual({ got: texts, code: 1000, wasClean: true });
  // The gateway notes it after the page has seen the close.
  const upgrade = await eventually(async () => {
    const requests: { path: string; http_version: string | null; status: number }[] =
      await gateway.ok("GET", "/api/v1/requests?limit=50");
    return requests.find(({ path }) => path === "/socket");
  });
  expect([upgrade.http_version, upgrade.status]).toEqual(["2", 101]);
  await page.context().close();
});

test("a page knows the length of a download", async () => {
  const page = await open(port);
  expect(await page.evaluate("window.download()")).toEqual({
    length: String(LONG),
    byteLength: LONG,
  });
  await page.context().close();
});

test("a page sees how far a download has come", async () => {
  const page = await open(port);
  const sizes = Array.from({ length: PIECES }, (_, index) => (index + 1) * PIECE);
  expect(await page.evaluate("window.progress()")).toEqual(sizes);
  await page.context().close();
});

test("a page of 200 images gets all, with priorities", async () => {
  priorities.clear();
  const page = await open(port, "/images");
  expect(await page.evaluate("window.images()")).toEqual({ loaded: IMAGES, protocols: ["h2"] });
  const urgency = (index: number) => Number(/u=(\d)/.exec(priorities.get(index) ?? "")?.[1] ?? 3);
  const urgencies = Array.from({ length: IMAGES }, (_, index) => urgency(index));
  const [first = 0, last = 0] = [urgencies[0], urgencies.at(-1)];
  expect(first).toBeLessThan(last);
  expect(urgencies).toEqual(urgencies.map((_, index) => (isUrgent(index) ? first : last)));
  await page.context().close();
});
