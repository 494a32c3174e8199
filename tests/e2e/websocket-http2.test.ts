// WebSockets over HTTP/2 (RFC 8441) and exact lengths in Chromium, through the executable.
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
const origin = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request, server) {
    const { pathname } = new URL(request.url);
    if (pathname === "/long") return new Response(Buffer.alloc(LONG, 97));
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

async function open(): Promise<Page> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const page = await context.newPage();
  await page.goto(`https://localhost:${port}/`);
  await page.evaluate(SCRIPT);
  expect(await page.evaluate("window.protocols()")).toEqual(["h2"]);
  return page;
}

test("a page opens a WebSocket on its HTTP/2 connection", async () => {
  const page = await open();
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
  const page = await open();
  expect(await page.evaluate("window.download()")).toEqual({
    length: String(LONG),
    byteLength: LONG,
  });
  await page.context().close();
});
