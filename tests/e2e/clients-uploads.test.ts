// Programs that send: images to a registry, forms and sockets of a browser, upgrades; through the executable in cleartext on each engine.
import { describe, expect } from "bun:test";
import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { type Application, startApplication } from "../support/application.ts";
import { openBrowser } from "../support/browser.ts";
import {
  type ClientEngine,
  type ClientScene,
  clientEngines,
  startClientScene,
} from "../support/client-scene.ts";
import { curl } from "../support/curl.ts";
import { needs } from "../support/needs.ts";
import { writeImage } from "../support/oci-image.ts";

const { afterAll, beforeAll } = needs("executable");

const UPLOAD_BYTES = 8_000_000;
const PICTURES = 60;
const EVENTS = 5;

const page = `<!doctype html><title>page</title>
${Array.from({ length: PICTURES }, (_, at) => `<img src="/page/picture?${at}" alt="">`).join("\n")}
<script>
window.pictures = () => [...document.images].filter(({ naturalWidth }) => naturalWidth === 4).length;
window.upload = async () => {
  const form = new FormData();
  form.set("file", new Blob([new Uint8Array(${UPLOAD_BYTES})]), "file.bin");
  return await (await fetch("/page/upload", { method: "POST", body: form })).text();
};
window.events = () => new Promise((resolve) => {
  const source = new EventSource("/page/events");
  const got = [];
  source.onmessage = ({ data }) => {
    if (got.push(data) < ${EVENTS}) return fetch("/page/next", { method: "POST" });
    source.close();
    resolve(got);
  };
});
window.echo = (texts) => new Promise((resolve, reject) => {
  const socket = new WebSocket(location.origin.replace("http", "ws") + "/page/socket");
  const got = [];
  socket.onopen = () => texts.forEach((text) => socket.send(text));
  socket.onmessage = ({ data }) => { if (got.push(data) === texts.length) socket.close(1000); };
  socket.onclose = ({ code, wasClean }) => resolve({ got, code, wasClean });
  socket.onerror = () => reject(new Error("the WebSocket failed"));
});
</script>`;
const picture = '<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"></svg>';
const as = (type: string) => ({ headers: { "content-type": type } });

/** Lets the next event go, once the browser has the one before. */
let next = Promise.withResolvers<void>();
async function* events() {
  for (let at = 0; at < EVENTS; at++) {
    next = Promise.withResolvers<void>();
    yield `data: event ${at}\n\n`;
    await next.promise;
  }
}

const site = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request, server) {
    switch (new URL(request.url).pathname) {
      case "/page/socket":
        return server.upgrade(request) ? undefined : new Response(null, { status: 400 });
      case "/page/upload":
        return new Response(String(((await request.formData()).get("file") as File).size));
      case "/page/count":
        return new Response(String((await request.bytes()).length));
      case "/page/events":
        return new Response(events() as never, as("text/event-stream"));
      case "/page/next":
        next.resolve();
        return new Response();
      case "/page/picture":
        return new Response(picture, as("image/svg+xml"));
      default:
        return new Response(page, as("text/html"));
    }
  },
  websocket: {
    perMessageDeflate: true,
    message: (socket, message) => void socket.send(message),
  },
});

/** Switches protocols behind the body of a POST, and then echoes. */
const switching: Server = createServer((socket) => {
  socket.on("error", () => socket.destroy());
  let request = "";
  socket.on("data", function read(bytes: Buffer) {
    request += bytes.toString("latin1");
    if (!request.endsWith('{"Detach":false}')) return;
    socket.off("data", read);
    socket.write("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n");
    socket.pipe(socket);
  });
});

let scene: ClientScene;
beforeAll(async () => {
  scene = await startClientScene();
  await new Promise<void>((ready) => switching.listen(0, "127.0.0.1", ready));
  await scene.route("/page", site.port ?? 0);
  await scene.route("/exec", (switching.address() as { port: number }).port);
});
afterAll(async () => {
  await scene?.stop();
  switching.close();
  await site.stop(true);
});

describe.each(clientEngines)("%s engine:", (engine) => {
  needs("executable", "curl").test("curl waits for 100 before it sends a body", async () => {
    const file = join(scene.scratch, "upload.bin");
    writeFileSync(file, Buffer.alloc(UPLOAD_BYTES));
    const expecting = ["-H", "Expect: 100-continue", "--expect100-timeout", "60"];
    for (const chunked of [[], ["-H", "Transfer-Encoding: chunked"]]) {
      const args = [...expecting, ...chunked, "-T", file];
      const { status, text } = await curl(`${scene.url(engine)}/page/count`, args);
      expect([status, text()]).toEqual([200, String(UPLOAD_BYTES)]);
    }
  });
});

describe("Chromium", () => {
  const { test, beforeAll, afterAll } = needs("executable", "chromium");
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.close());

  async function open(engine: ClientEngine): Promise<Page> {
    const opened = await browser.newPage();
    await opened.goto(`${scene.url(engine)}/page`, { waitUntil: "load" });
    return opened;
  }

  test.each(clientEngines)(
    "loads, uploads, follows events, opens a WebSocket: %s",
    async (engine) => {
      const opened = await open(engine);
      expect(await opened.evaluate("window.pictures()")).toBe(PICTURES);
      expect(await opened.evaluate("window.upload()")).toBe(String(UPLOAD_BYTES));
      expect(await opened.evaluate("window.events()")).toEqual(
        Array.from({ length: EVENTS }, (_, at) => `event ${at}`),
      );
      const texts = ["hello", "ü".repeat(40_000), ""];
      expect(await opened.evaluate(`window.echo(${JSON.stringify(texts)})`)).toEqual({
        got: texts,
        code: 1000,
        wasClean: true,
      });
      await opened.close();
    },
  );
});

describe("skopeo with a registry", () => {
  const { test, beforeAll, afterAll } = needs("executable", "skopeo", "docker-registry");
  let registry: Application;
  beforeAll(async () => {
    registry = await startApplication({
      command: ({ directory }) => ["docker-registry", "serve", join(directory, "config.yml")],
      files: ({ directory, port }) => ({
        "config.yml": `version: 0.1
storage: { filesystem: { rootdirectory: ${directory}/images } }
http: { addr: "127.0.0.1:${port}" }
`,
      }),
    });
    await scene.route("/v2", registry.port);
  });
  afterAll(() => registry?.stop());

  test.each(clientEngines)("pushes an image and pulls it: %s", async (engine) => {
    const folder = scene.folder("image");
    const digest = writeImage(join(folder, "pushed"));
    const there = `docker://127.0.0.1:${scene.port(engine)}/${engine}/image:1.0`;
    const copy = (from: string, to: string) =>
      scene.run([
        ...["skopeo", "--insecure-policy", "copy", "--preserve-digests"],
        ...["--src-tls-verify=false", "--dest-tls-verify=false", from, to],
      ]);
    await copy(`oci:${folder}/pushed:1.0`, there);
    await copy(there, `oci:${folder}/pulled:1.0`);
    const pulled = await Bun.file(join(folder, "pulled/index.json")).json();
    expect(pulled.manifests[0].digest).toBe(digest);
  });
});

/** As the Docker client does for attach and exec. Bun.serve passes WebSockets only. */
needs("executable", "node").test("Node upgrades a POST with a body", async () => {
  const program = `
    const request = require("node:http").request("${scene.url("sluice")}/exec", {
      method: "POST",
      headers: { Connection: "Upgrade", Upgrade: "tcp", "Content-Type": "application/json", "Content-Length": 16 },
    });
    request.on("upgrade", ({ statusCode }, socket, head) => {
      let text = head.toString();
      socket.on("data", (bytes) => {
        text += bytes;
        if (text.length === 600000) socket.end();
      });
      socket.on("end", () => console.log(statusCode, text.length, new Set(text).size));
      for (let at = 0; at < 6; at++) socket.write("m".repeat(100000));
    });
    request.end('{"Detach":false}');`;
  expect(await scene.run(["node", "-e", program])).toBe("101 600000 1\n");
});
