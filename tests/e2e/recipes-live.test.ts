// Applications that send live data, set up as docs/recipes.md describes: stand-ins that are as strict as these, and socket.io itself.
import { expect } from "bun:test";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Application, npmPackage, startApplication } from "../support/application.ts";
import { selfSigned } from "../support/certificate.ts";
import { runIn } from "../support/client-scene.ts";
import { needs } from "../support/needs.ts";
import { messageOf, visit, webSocket } from "../support/public-names.ts";
import {
  blocksOf,
  followRecipe,
  type RecipeGateway,
  startRecipeGateway,
} from "../support/recipes.ts";
import { freeUdpPort, UdpClient, type UdpTarget, udpTarget } from "../support/udp.ts";

const { afterAll, beforeAll, describe, test } = needs("executable", "curl");

const versions = ["--http1.1", "--http2"] as const;
const scratch = mkdtempSync(join(tmpdir(), "sluice-recipes-live-"));
const stops: (() => unknown)[] = [() => rmSync(scratch, { recursive: true, force: true })];
let scene: RecipeGateway;
beforeAll(async () => {
  scene = await startRecipeGateway();
  stops.push(() => scene.gateway.stop());
});
afterAll(async () => {
  for (const stop of stops.toReversed()) await stop();
});

const ask = (url: string, ...args: readonly string[]) => visit(scene.gateway, url, args);
const open = (url: string, ...protocols: string[]) => webSocket(scene.gateway, url, { protocols });

/** Resolves with its port. */
function serve(options: object): number {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, ...options } as never);
  stops.push(() => server.stop(true));
  return server.port ?? 0;
}

describe("Home Assistant", () => {
  let log: string[] = [];
  const spoofed = ["-H", "X-Forwarded-For: 203.0.113.9", "-H", "X-Forwarded-Proto: http"];

  /** What homeassistant/components/http/forwarded.py does, with the trusted proxies of the recipe. */
  function start(trusted: readonly string[]): number {
    return serve({
      fetch(request: Request, server: Bun.Server<object>) {
        const bad = (why: string) => {
          log.push(why);
          return new Response("400: Bad Request", { status: 400 });
        };
        const listOf = (name: string) =>
          request.headers
            .get(name)
            ?.split(",")
            .map((part) => part.trim());
        const addresses = listOf("x-forwarded-for");
        const peer = server.requestIP(request)?.address ?? "";
        let seen = { remote: peer, scheme: "http", host: request.headers.get("host") ?? "" };
        if (addresses !== undefined) {
          if (!trusted.includes(peer))
            return bad(`Received X-Forwarded-For header from an untrusted proxy ${peer}`);
          if (addresses.some((address) => !/^[\d.]+$|^[\da-f:]+$/.test(address)))
            return bad("Invalid IP address");
          const schemes = listOf("x-forwarded-proto") ?? ["http"];
          if (schemes.includes("")) return bad("Empty item");
          if (schemes.length !== 1 && schemes.length !== addresses.length)
            return bad("Incorrect number of elements");
          const host = listOf("x-forwarded-host")?.at(-1) ?? seen.host;
          if (host === "") return bad("Empty value");
          // The first from the right that is no proxy; the client of this test has the proxy's address.
          const remote =
            addresses.findLast((address) => !trusted.includes(address)) ?? addresses[0] ?? "";
          seen = { remote, scheme: schemes[0] ?? "", host };
        }
        const isSocket = new URL(request.url).pathname === "/api/websocket";
        if (isSocket && server.upgrade(request, { data: {} })) return undefined;
        return Response.json(seen);
      },
      websocket: {
        open: (socket: Bun.ServerWebSocket) => void socket.send('{"type":"auth_required"}'),
        message: (socket: Bun.ServerWebSocket, text: string) =>
          void socket.send(
            text.includes('"auth"') ? '{"type":"auth_ok"}' : '{"type":"auth_invalid"}',
          ),
      },
    });
  }
  const trustedOf = () =>
    [...blocksOf("Home Assistant", "yaml").matchAll(/- (\S+)/g)].map(([, address = ""]) => address);

  beforeAll(async () => {
    expect(blocksOf("Home Assistant", "yaml")).toContain("use_x_forwarded_for: true");
    const trusted = trustedOf().map((address) => address.replace("10.0.0.2", "127.0.0.1"));
    await followRecipe("Home Assistant", scene, {
      "http://10.0.0.12:8123": `http://127.0.0.1:${start(trusted)}`,
    });
  });

  test.each(versions)("it trusts the gateway, and sees the client (%s)", async (version) => {
    const { status, text } = await ask("https://home.example.com/", version, ...spoofed);
    expect([status, JSON.parse(text())]).toEqual([
      200,
      { remote: "127.0.0.1", scheme: "https", host: "home.example.com" },
    ]);
  });

  test("its WebSocket asks for a token", async () => {
    const socket = await open("wss://home.example.com/api/websocket");
    const first = await messageOf(socket);
    const second = messageOf(socket);
    socket.send('{"type":"auth","access_token":"1"}');
    expect([first, await second]).toEqual(['{"type":"auth_required"}', '{"type":"auth_ok"}']);
    socket.close();
  });

  test("it responds 400 to a gateway at another address", async () => {
    log = [];
    const port = start(trustedOf());
    await followRecipe("Home Assistant", scene, {
      "http://10.0.0.12:8123": `http://127.0.0.1:${port}`,
      '"name": "home"': '"name": "strange"',
      "home.example": "strange.example",
      "services/home": "services/strange",
    });
    expect((await ask("https://strange.example.com/")).status).toBe(400);
    expect(log).toEqual(["Received X-Forwarded-For header from an untrusted proxy 127.0.0.1"]);
  });
});

describe("Kodi", () => {
  const picture =
    "/image/image%3A%2F%2Fsmb%253a%252f%252fnas%252fFilm%2520%2528a%2526b%2529%252fposter.jpg/";
  beforeAll(async () => {
    const web = serve({
      async fetch(request: Request) {
        const { pathname } = new URL(request.url);
        if (pathname.startsWith("/image/")) return new Response(pathname);
        // CHTTPJsonRpcHandler: a call is a POST of JSON, anything else gets the description.
        const type = request.headers.get("content-type") ?? "";
        if (request.method !== "POST") return Response.json({ description: "JSON-RPC API" });
        if (!type.startsWith("application/json")) return new Response(null, { status: 415 });
        return Response.json({ id: ((await request.json()) as { id: number }).id, result: "pong" });
      },
    });
    await followRecipe("Kodi", scene, {
      "http://10.0.0.44:8080": `http://127.0.0.1:${web}`,
      '"host": "10.0.0.44", "port": 9090': `"host": "127.0.0.1", "port": ${startEvents()}`,
    });
  });

  /** xbmc/network/TCPServer.cpp: what is no whole handshake within one read is JSON-RPC of a remote control. */
  function startEvents(): number {
    const server = Bun.listen<{ isOpen: boolean }>({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open(socket) {
          socket.data = { isOpen: false };
        },
        data(socket, bytes) {
          if (socket.data.isOpen) return;
          const head = bytes.toString("latin1");
          const key = /\r\nSec-WebSocket-Key: (.{24})\r\n/i.exec(head)?.[1];
          if (!head.startsWith("GET ") || !head.endsWith("\r\n\r\n") || key === undefined)
            return void socket.end('{"error":{"code":-32700,"message":"Parse error."}}');
          socket.data.isOpen = true;
          const accept = new Bun.CryptoHasher("sha1")
            .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
            .digest("base64");
          const event = '{"jsonrpc":"2.0","method":"Player.OnPlay"}';
          socket.write(
            `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
          );
          socket.write(Buffer.concat([Buffer.from([0x81, event.length]), Buffer.from(event)]));
        },
      },
    });
    stops.push(() => server.stop(true));
    return server.port;
  }

  test.each(versions)("calls and pictures go to its web server (%s)", async (version) => {
    const call = [
      "-H",
      "Content-Type: application/json",
      "--data",
      '{"jsonrpc":"2.0","method":"JSONRPC.Ping","id":7}',
    ];
    const { text } = await ask("https://kodi.example.com/jsonrpc?Ping", version, ...call);
    expect(JSON.parse(text())).toEqual({ id: 7, result: "pong" });
    expect((await ask(`https://kodi.example.com${picture}`, version)).text()).toBe(picture);
  });

  test("events come over its other port, for its own pages only", async () => {
    const url = "wss://kodi.example.com/jsonrpc?kodi";
    const socket = await open(url);
    expect(await messageOf(socket)).toContain("Player.OnPlay");
    socket.close();
    const origin = "https://evil.example.com";
    await expect(webSocket(scene.gateway, url, { origin })).rejects.toThrow();
  });
});

describe("Frigate", () => {
  // Initialization of go2rtc's MSE, and how many pieces of a film follow; larger than what one read takes.
  const mime = 'video/mp4; codecs="avc1.640029,mp4a.40.2"';
  const piece = new Uint8Array(300_000).fill(7);
  const PIECES = 20;
  const playlist =
    '#EXTM3U\n#EXT-X-MAP:URI="init-v1.mp4"\n#EXTINF:10.0,\nseg-1-v1.m4s\n#EXT-X-ENDLIST\n';

  /** The places of docker/main/rootfs/usr/local/nginx/conf/nginx.conf, over TLS as its port 8971. */
  beforeAll(async () => {
    expect(blocksOf("Frigate", "yaml")).toContain("trusted_proxies");
    const port = serve({
      tls: await selfSigned("frigate.local"),
      fetch(request: Request, server: Bun.Server<{ path: string }>) {
        const { pathname } = new URL(request.url);
        if (/^\/(ws|live\/(jsmpeg\/yard|mse\/api\/ws))$/.test(pathname))
          return server.upgrade(request, { data: { path: pathname } })
            ? undefined
            : new Response(null, { status: 400 });
        if (pathname === "/vod/yard/index.m3u8")
          return new Response(playlist, {
            headers: {
              "content-type": "application/vnd.apple.mpegurl",
              "cache-control": "no-store",
            },
          });
        if (pathname === "/vod/yard/seg-1-v1.m4s") return new Response(piece);
        if (pathname === "/api/yard")
          return new Response(camera() as never, {
            headers: { "content-type": "multipart/x-mixed-replace; boundary=frame" },
          });
        return new Response(null, { status: 404 });
      },
      websocket: {
        open(socket: Bun.ServerWebSocket<{ path: string }>) {
          // The header of jsmpeg: magic bytes, width and height.
          if (socket.data.path === "/live/jsmpeg/yard") {
            socket.send(Buffer.from("jsmp\x05\x00\x02\xd0", "latin1"));
            for (let at = 0; at < PIECES; at++) socket.send(piece);
          }
        },
        message(socket: Bun.ServerWebSocket<{ path: string }>, text: string) {
          if (socket.data.path === "/ws") return void socket.send(text);
          const { type } = JSON.parse(text) as { type: string };
          socket.send(JSON.stringify({ type, value: mime }));
          for (let at = 0; at < PIECES; at++) socket.send(piece);
        },
      },
    });
    await followRecipe("Frigate", scene, { "https://10.0.0.48:8971": `https://127.0.0.1:${port}` });
  });

  let nextFrame = Promise.withResolvers<void>();
  async function* camera() {
    for (let at = 0; at < 3; at++) {
      nextFrame = Promise.withResolvers<void>();
      yield `--frame\r\nContent-Type: image/jpeg\r\n\r\nframe ${at}\r\n`;
      await nextFrame.promise;
    }
  }

  /** The first message, and the bytes of those behind it. */
  async function film(socket: WebSocket, begin?: string) {
    let bytes = 0;
    const { promise, resolve } = Promise.withResolvers<string | Uint8Array>();
    const all = Promise.withResolvers<void>();
    let isFirst = true;
    socket.onmessage = ({ data }) => {
      if (isFirst) resolve(typeof data === "string" ? data : new Uint8Array(data as ArrayBuffer));
      else bytes += (data as ArrayBuffer).byteLength;
      isFirst = false;
      if (bytes === PIECES * piece.length) all.resolve();
    };
    if (begin !== undefined) socket.send(begin);
    const first = await promise;
    await all.promise;
    socket.close();
    return { first, bytes };
  }

  test("live pictures by MSE: the type as text, then pieces of a film", async () => {
    const socket = await open("wss://frigate.example.com/live/mse/api/ws?src=yard");
    const { first, bytes } = await film(socket, '{"type":"mse","value":"avc1.640029"}');
    expect([JSON.parse(String(first)), bytes]).toEqual([
      { type: "mse", value: mime },
      PIECES * piece.length,
    ]);
  });

  test("live pictures by jsmpeg begin with its header", async () => {
    const { first, bytes } = await film(await open("wss://frigate.example.com/live/jsmpeg/yard"));
    expect([Buffer.from(first).toString("latin1", 0, 4), bytes]).toEqual([
      "jsmp",
      PIECES * piece.length,
    ]);
  });

  test("the state of the cameras comes over a WebSocket", async () => {
    const socket = await open("wss://frigate.example.com/ws");
    const reply = messageOf(socket);
    socket.send('{"topic":"onConnect","payload":"","retain":false}');
    expect(await reply).toContain("onConnect");
    socket.close();
  });

  test.each(versions)("recordings are HLS (%s)", async (version) => {
    const list = await ask("https://frigate.example.com/vod/yard/index.m3u8", version);
    expect([
      list.status,
      list.text(),
      list.header("content-type"),
      list.header("cache-control"),
    ]).toEqual([200, playlist, "application/vnd.apple.mpegurl", "no-store"]);
    const part = await ask("https://frigate.example.com/vod/yard/seg-1-v1.m4s", version);
    expect([part.status, part.size]).toEqual([200, piece.length]);
  });

  test("each frame of a camera arrives before the next one", async () => {
    const { httpsPort } = scene.gateway;
    const response = await fetch(`https://127.0.0.1:${httpsPort}/api/yard`, {
      headers: { host: "frigate.example.com" },
      tls: { rejectUnauthorized: false },
    });
    let text = "";
    let frames = 0;
    for await (const bytes of response.body ?? []) {
      text += Buffer.from(bytes).toString();
      const complete = text.split("frame ").length - 1;
      if (complete > frames) nextFrame.resolve();
      frames = complete;
    }
    expect(frames).toBe(3);
  });
});

describe("Proxmox VE", () => {
  const ticket = "PVEVNC:65A1B2C3::aG9sYQ+/==";
  const ISO_BYTES = 300_000_000;
  const image = join(scratch, "debian.iso");

  /** PVE/APIServer/AnyEvent.pm: the console is binary and needs cookie and ticket; a body needs a length. */
  beforeAll(async () => {
    const port = serve({
      tls: await selfSigned("pve.local"),
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      async fetch(request: Request, server: Bun.Server<undefined>) {
        const { pathname, searchParams } = new URL(request.url);
        if (request.headers.has("transfer-encoding"))
          return new Response("chunked transfer encoding not supported", { status: 501 });
        if (pathname.endsWith("/vncwebsocket")) {
          const isAllowed =
            searchParams.get("vncticket") === ticket &&
            request.headers.get("sec-websocket-protocol") === "binary";
          return isAllowed && server.upgrade(request)
            ? undefined
            : new Response("permission denied", { status: 401 });
        }
        let bytes = 0;
        for await (const part of request.body ?? []) bytes += part.length;
        return Response.json({ data: { method: request.method, bytes } });
      },
      websocket: {
        open: (socket: Bun.ServerWebSocket) => void socket.send(Buffer.from("RFB 003.008\n")),
        message: (socket: Bun.ServerWebSocket, bytes: Buffer) => void socket.send(bytes),
      },
    });
    await followRecipe("Proxmox VE", scene, {
      "https://10.0.0.26:8006": `https://127.0.0.1:${port}`,
    });
    writeFileSync(image, "");
    truncateSync(image, ISO_BYTES);
  });

  test("noVNC opens its console, with the subprotocol binary and its ticket", async () => {
    const url = `wss://pve.example.com/api2/json/nodes/pve/qemu/100/vncwebsocket?port=5900&vncticket=${encodeURIComponent(ticket)}`;
    const socket = await open(url, "binary");
    expect([socket.protocol, Buffer.from(await messageOf(socket)).toString()]).toEqual([
      "binary",
      "RFB 003.008\n",
    ]);
    const screen = Buffer.alloc(2_000_000, 3);
    let got = 0;
    const whole = new Promise<void>((done) => {
      socket.onmessage = ({ data }) => {
        got += (data as ArrayBuffer).byteLength;
        if (got === screen.length) done();
      };
    });
    socket.send(screen);
    await whole;
    socket.close();
  });

  test.each(versions)("an image of 300 MB is uploaded with its length (%s)", async (version) => {
    const { status, text } = await ask(
      "https://pve.example.com/api2/json/nodes/pve/storage/local/upload",
      ...[version, "-H", "Content-Type: application/octet-stream", "-X", "POST", "-T", image],
    );
    expect([status, JSON.parse(text()).data.bytes]).toEqual([200, ISO_BYTES]);
  });

  test.each(versions)(
    "a POST without a body, as of its buttons, is not chunked (%s)",
    async (version) => {
      const url = "https://pve.example.com/api2/extjs/nodes/pve/qemu/100/status/start";
      const { status, text } = await ask(url, version, "-X", "POST");
      expect([status, JSON.parse(text()).data]).toEqual([200, { method: "POST", bytes: 0 }]);
    },
  );

  test("bodies without a length get 501, unless the route keeps them", async () => {
    const { gateway, token } = scene;
    const send = () =>
      ask(
        "https://pve.example.com/api2/json/access/ticket",
        "-H",
        "Transfer-Encoding: chunked",
        "--data",
        "username=root",
      );
    const set = (request_buffering: string) =>
      gateway.api(
        "PATCH",
        "/api/v1/routes/pve",
        { request_buffering },
        { authorization: `Bearer ${token}` },
      );
    expect((await send()).status).toBe(501);
    expect((await set("on")).status).toBe(200);
    expect((await send()).status).toBe(200);
    expect((await set("off")).status).toBe(200);
  });
});

const [server, client] = await Promise.all([
  npmPackage("socket.io", "4.8.1"),
  npmPackage("socket.io-client", "4.8.1"),
]);

describe("Immich", () => {
  const kit = needs("executable", "curl", "node", server, client);
  const film = Buffer.from(Array.from({ length: 100_000 }, (_, at) => at % 251));
  let immich: Application;

  /** NestJS with socket.io at Immich's path, and Express' answer to ranges of a video. */
  kit.beforeAll(async () => {
    immich = await startApplication({
      command: () => ["node", "server.cjs"],
      files: ({ port }) => ({
        "film.mp4": film.toString("latin1"),
        "server.cjs": `
          const { createServer } = require("node:http");
          const { Server } = require(${JSON.stringify(server.folder)});
          const film = Buffer.from(require("node:fs").readFileSync("film.mp4", "utf8"), "latin1");
          const web = createServer((request, response) => {
            if (request.url.startsWith("/api/socket.io")) return;
            const range = /^bytes=(\\d+)-(\\d*)$/.exec(request.headers.range ?? "");
            if (range === null) return response.writeHead(200, { "accept-ranges": "bytes" }).end(film);
            const [from, to] = [Number(range[1]), range[2] === "" ? film.length - 1 : Number(range[2])];
            response.writeHead(206, { "content-range": \`bytes \${from}-\${to}/\${film.length}\` });
            response.end(film.subarray(from, to + 1));
          });
          const io = new Server(web, { path: "/api/socket.io", transports: ["polling", "websocket"], maxHttpBufferSize: 1e7 });
          io.on("connection", (socket) => {
            socket.on("echo", (text, reply) => reply({ text, transport: socket.conn.transport.name, address: socket.handshake.headers["x-forwarded-for"] }));
          });
          web.listen(${port}, "127.0.0.1");`,
      }),
    });
    stops.push(() => immich.stop());
    await followRecipe("Immich", scene, { "http://10.0.0.14:2283": immich.url });
  });

  kit.test.each(["polling", "websocket"])(
    "socket.io connects by %s, and ends with a WebSocket",
    async (transport) => {
      const program = `
        require("node:dns").lookup = (_name, { all }, done) =>
          all ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4);
        const { io } = require(${JSON.stringify(client.folder)});
        const socket = io("https://photos.example.com:${scene.gateway.httpsPort}", {
          path: "/api/socket.io",
          transports: ["${transport}", "websocket"],
          rejectUnauthorized: false,
          reconnection: false,
        });
        const ask = () => socket.emit("echo", "x".repeat(200_000), (reply) => {
          console.log(JSON.stringify({ ...reply, text: reply.text.length }));
          socket.close();
        });
        socket.on("connect_error", (error) => { console.error(error); process.exit(1); });
        socket.on("connect", () => "${transport}" === "websocket" ? ask() : socket.io.engine.on("upgrade", ask));`;
      const text = await runIn(scratch, ["node", "-e", program]);
      expect(JSON.parse(text)).toEqual({
        text: 200_000,
        transport: "websocket",
        address: "127.0.0.1",
      });
    },
  );

  kit.test.each(versions)("a video is played from anywhere (%s)", async (version) => {
    const url = "https://photos.example.com/api/assets/1/video/playback";
    const { status, header, body } = await ask(url, version, "-H", "Range: bytes=5000-");
    expect([status, header("content-range")]).toEqual([206, "bytes 5000-99999/100000"]);
    expect(Buffer.from(body ?? []).equals(film.subarray(5000))).toBe(true);
  });
});

describe("Game servers", () => {
  const MAGIC = Buffer.from("00ffff00fefefefefdfdfdfd12345678", "hex");
  const ports = { bedrock: 0, valheim: 0 };
  const targets: UdpTarget[] = [];

  /** RakNet, as Bedrock speaks it before login: the ping of server lists, and the first request with its padding to the size of a packet. */
  const bedrock = (datagram: Buffer) => {
    if (datagram[0] === 0x01)
      return Buffer.concat([
        Buffer.from([0x1c]),
        datagram.subarray(1, 9),
        Buffer.alloc(8),
        MAGIC,
        Buffer.from("\0\x2fMCPE;Sluice;800;1.21;0;10;1;world;Survival;1;19132", "latin1"),
      ]);
    if (datagram[0] === 0x05)
      return Buffer.concat([
        Buffer.from([0x06]),
        MAGIC,
        Buffer.alloc(9),
        Buffer.from([(datagram.length + 28) >> 8, (datagram.length + 28) & 255]),
      ]);
    return null;
  };
  /** A2S_INFO of Steam, which asks for a challenge first; the game itself has another port. */
  const query = (datagram: Buffer) => {
    const info = Buffer.from("\xff\xff\xff\xffTSource Engine Query\0", "latin1");
    if (!datagram.subarray(0, info.length).equals(info)) return null;
    return datagram.subarray(info.length).toString() === "1234"
      ? Buffer.from("\xff\xff\xff\xffI\x11Valheim\0", "latin1")
      : Buffer.from("\xff\xff\xff\xffA1234", "latin1");
  };

  beforeAll(async () => {
    ports.bedrock = await freeUdpPort();
    ports.valheim = await freeUdpPort(2);
    const first = await freeUdpPort(2);
    targets.push(
      await udpTarget(bedrock),
      await udpTarget((datagram) => datagram, first),
      await udpTarget(query, first + 1),
    );
    stops.push(() => {
      for (const target of targets) target.close();
    });
    await followRecipe("Game servers", scene, {
      '"host": "10.0.0.49", "port": 19132': `"host": "127.0.0.1", "port": ${targets[0]?.port}`,
      '"listen_port": 19132': `"listen_port": ${ports.bedrock}`,
      "for port in 2456 2457": `for port in ${ports.valheim} ${ports.valheim + 1}`,
      [`"host": "10.0.0.50", "port": '$port'`]: `"host": "127.0.0.1", "port": '$((port - ${ports.valheim} + ${first}))'`,
    });
  });

  const players = async (count: number) => {
    const made = await Promise.all(Array.from({ length: count }, () => UdpClient.open()));
    stops.push(() => {
      for (const player of made) player.close();
    });
    return made;
  };

  test("Bedrock appears in the list of servers, and finds the size of packets", async () => {
    const [player] = await players(1);
    const ping = Buffer.concat([Buffer.from([0x01]), Buffer.alloc(8, 5), MAGIC, Buffer.alloc(8)]);
    expect(String(await player?.ask(ports.bedrock, ping))).toContain("MCPE;Sluice;");
    const request = Buffer.concat([
      Buffer.from([0x05]),
      MAGIC,
      Buffer.from([11]),
      Buffer.alloc(1446),
    ]);
    expect((await player?.ask(ports.bedrock, request))?.readUInt16BE(26)).toBe(request.length + 28);
  });

  test("Valheim responds to Steam at its second port, and players keep theirs", async () => {
    const [one, two] = await players(2);
    const info = Buffer.from("\xff\xff\xff\xffTSource Engine Query\0", "latin1");
    const challenge = await one?.ask(ports.valheim + 1, info);
    const answer = await one?.ask(
      ports.valheim + 1,
      Buffer.concat([info, challenge?.subarray(5) ?? Buffer.alloc(0)]),
    );
    expect(String(answer)).toContain("Valheim");
    for (let at = 0; at < 20; at++) {
      expect(String(await one?.ask(ports.valheim, `one ${at}`))).toBe(`one ${at}`);
      expect(String(await two?.ask(ports.valheim, `two ${at}`))).toBe(`two ${at}`);
    }
    expect(targets[1]?.peers.size).toBe(2);
  });
});
