// The opening handshake: what reaches the target, what the client gets, and every way in which it can fail.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { freePort, startDataPlane } from "../../support/data-plane.ts";
import { hasTunnels } from "../../support/engines.ts";
import { reading } from "../../support/message-reading.ts";
import { eventually } from "../../support/poll.ts";
import { acceptOf, handshake, KEY, ManualTarget, opcodes, Peer, switching } from "./peer.ts";
import { type Scene, startScene } from "./scene.ts";

const field = (head: string, name: string) =>
  [...head.matchAll(new RegExp(`^${name}: (.*)\\r$`, "gim"))].map((match) => match[1]);

describe("the handshake to the target", () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await startScene();
  });
  afterAll(() => scene.stop());

  test("has the usual head, and its own upgrade", async () => {
    const { client, head } = await scene.knock(
      handshake("X-Forwarded-For: 6.6.6.6\r\nAuthorization: Bearer x\r\n", "/chat?room=1"),
    );
    expect(head).toStartWith("GET /chat?room=1 HTTP/1.1\r\nHost: app.test\r\n");
    expect(field(head, "connection")).toEqual(["Upgrade"]);
    expect(field(head, "upgrade")).toEqual(["websocket"]);
    expect(field(head, "sec-websocket-key")).toEqual([KEY]);
    expect(field(head, "sec-websocket-version")).toEqual(["13"]);
    expect(field(head, "x-forwarded-for")).toEqual(["127.0.0.1"]);
    expect(field(head, "authorization")).toEqual(["Bearer x"]);
    expect(field(head, "via")).toEqual(["1.1 sluice"]);
    expect(field(head, "content-length")).toEqual([]);
    expect(field(head, "transfer-encoding")).toEqual([]);
    client.destroy();
  });

  // In a tunnel it passes: integration/sluice-engine/tunnels.
  reading.test("does not offer compression, which the gateway does not support", async () => {
    const { client, head, origin } = await scene.knock(
      handshake("Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"),
    );
    expect(field(head, "sec-websocket-extensions")).toEqual([]);
    origin.write(switching(head));
    expect(field(await client.head(), "sec-websocket-extensions")).toEqual([]);
    client.destroy();
  });

  test("keeps headers of the gateway that a client names in Connection", async () => {
    const request = handshake().replace(
      "Connection: Upgrade",
      "Connection: Upgrade, X-Real-IP, Via",
    );
    const { client, head } = await scene.knock(request);
    expect(field(head, "x-real-ip")).toEqual(["127.0.0.1"]);
    expect(field(head, "via")).toEqual(["1.1 sluice"]);
    client.destroy();
  });

  test.each([
    ["Upgrade: WebSocket", "Connection: upgrade"],
    ["upgrade: WEBSOCKET", "connection: keep-alive, Upgrade"],
    ["Upgrade: websocket", "Connection: Upgrade,keep-alive"],
    ["Upgrade: websocket", "Connection: keep-alive\r\nConnection: Upgrade"],
  ])("accepts the spellings %p and %p", async (upgrade, connection) => {
    const request = handshake()
      .replace("Upgrade: websocket", upgrade)
      .replace("Connection: Upgrade", connection);
    const { client, origin, head } = await scene.knock(request);
    origin.write(switching(head));
    expect(await client.head()).toStartWith("HTTP/1.1 101 ");
    client.send(opcodes.text, "works");
    expect((await origin.frame()).payload.toString()).toBe("works");
    client.destroy();
  });

  test.each([
    ["Upgrade without the connection option", handshake().replace("Connection: Upgrade\r\n", "")],
    ["another protocol", handshake().replace("Upgrade: websocket", "Upgrade: h2c")],
    ["another method", handshake("Content-Length: 0\r\n").replace("GET", "POST")],
  ])("%s is an ordinary request", async (_, request) => {
    const { client, origin, head } = await scene.knock(request);
    expect(field(head, "upgrade")).toEqual([]);
    // Not kept, so that the next request comes on a connection of its own.
    origin.write("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    expect(await client.head()).toStartWith("HTTP/1.1 200 ");
    client.destroy();
  });
});

describe("the response to the client", () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await startScene();
  });
  afterAll(() => scene.stop());

  test("has the target's headers except hop-by-hop and handshake ones", async () => {
    const { client, origin, head } = await scene.knock();
    origin.write(
      switching(
        head,
        "Set-Cookie: a=1\r\nset-cookie: b=2\r\nX-App: yes\r\nKeep-Alive: 5\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n",
      ),
    );
    const answer = await client.head();
    expect(answer).toStartWith("HTTP/1.1 101 ");
    expect(field(answer, "set-cookie")).toEqual(["a=1", "b=2"]);
    expect(field(answer, "x-app")).toEqual(["yes"]);
    expect(field(answer, "keep-alive")).toEqual([]);
    expect(field(answer, "date")).toEqual(["Thu, 01 Jan 2026 00:00:00 GMT"]);
    expect(field(answer, "sec-websocket-accept")).toEqual([acceptOf(KEY)]);
    client.destroy();
  });

  test.each([
    { offered: "chat, superchat", chosen: "superchat" },
    { offered: "chat,superchat", chosen: "chat" },
    { offered: "chat", chosen: null },
    { offered: null, chosen: null },
  ])("of sub-protocols $offered the target chooses $chosen", async ({ offered, chosen }) => {
    const offer = offered === null ? "" : `Sec-WebSocket-Protocol: ${offered}\r\n`;
    const { client, origin, head } = await scene.knock(handshake(offer));
    expect(field(head, "sec-websocket-protocol")).toEqual(offered === null ? [] : [offered]);
    origin.write(switching(head, chosen === null ? "" : `Sec-WebSocket-Protocol: ${chosen}\r\n`));
    const answer = await client.head();
    expect(answer).toStartWith("HTTP/1.1 101 ");
    expect(field(answer, "sec-websocket-protocol")).toEqual(chosen === null ? [] : [chosen]);
    client.destroy();
  });

  const accept = `Sec-WebSocket-Accept: ${acceptOf(KEY)}\r\n`;
  const start = "HTTP/1.1 101 Switching Protocols\r\n";
  const upgrade = "Upgrade: websocket\r\n";
  const connection = "Connection: Upgrade\r\n";

  test.each([
    [
      "a wrong Sec-WebSocket-Accept",
      `${start}${upgrade}${connection}Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n`,
    ],
    ["no Sec-WebSocket-Accept", `${start}${upgrade}${connection}\r\n`],
    ["Sec-WebSocket-Accept twice", `${start}${upgrade}${connection}${accept}${accept}\r\n`],
    ["no Upgrade", `${start}${connection}${accept}\r\n`],
    ["another Upgrade", `${start}Upgrade: h2c\r\n${connection}${accept}\r\n`],
    ["no Connection", `${start}${upgrade}${accept}\r\n`],
    ["Connection without the option", `${start}${upgrade}Connection: keep-alive\r\n${accept}\r\n`],
    ["HTTP/1.0", `${start.replace("1.1", "1.0")}${upgrade}${connection}${accept}\r\n`],
    [
      "a sub-protocol that was not offered",
      `${start}${upgrade}${connection}${accept}Sec-WebSocket-Protocol: other\r\n\r\n`,
    ],
    [
      "two sub-protocols in one field",
      `${start}${upgrade}${connection}${accept}Sec-WebSocket-Protocol: chat, superchat\r\n\r\n`,
    ],
    [
      "two sub-protocols in two fields",
      `${start}${upgrade}${connection}${accept}Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Protocol: chat\r\n\r\n`,
    ],
    [
      "an extension that was not offered",
      `${start}${upgrade}${connection}${accept}Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n`,
    ],
    ["a field that is not valid", `${start}${upgrade}${connection}${accept}X-Bad: a\0b\r\n\r\n`],
    ["a field name that is not valid", `${start}${upgrade}${connection}${accept}X Bad: a\r\n\r\n`],
    ["garbage", "\x16\x03\x01 this is no HTTP\r\n\r\n"],
    ["a head without end", `${start}X: ${"x".repeat(70_000)}`],
    ["nothing, and then the end", ""],
  ])("%s becomes 502, and the target's connection is closed", async (_, answer) => {
    const { client, origin } = await scene.knock(
      handshake("Sec-WebSocket-Protocol: chat, superchat\r\n"),
    );
    origin.socket.write(answer, "latin1");
    if (answer === "") origin.socket.end();
    const head = await client.head();
    expect(head).toStartWith("HTTP/1.1 502 ");
    expect(head).toMatch(/proxy-status: sluice; error=/i);
    await origin.ended();
    client.destroy();
  });
});

describe("when the target refuses", () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await startScene();
  });
  afterAll(() => scene.stop());

  test.each([
    {
      why: "with a length",
      answer:
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nX-Why: no\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nnever",
    },
    {
      why: "chunked",
      answer:
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nX-Why: no\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nne\r\n3\r\nver\r\n0\r\n\r\n",
    },
    {
      why: "with Upgrade fields beside",
      answer:
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nX-Why: no\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 5\r\n\r\nnever",
    },
  ])("the client gets status, fields and body: $why", async ({ answer }) => {
    const { client, origin } = await scene.knock();
    origin.write(answer);
    const head = await client.head();
    expect(head).toStartWith("HTTP/1.1 401 ");
    expect(field(head, "www-authenticate")).toEqual(["Basic"]);
    expect(field(head, "x-why")).toEqual(["no"]);
    expect(field(head, "content-length")).toEqual(["5"]);
    expect(field(head, "upgrade")).toEqual([]);
    await eventually(() => client.pending.toString() === "never");
    // Not kept: the two sides may differ in what they take it for.
    await origin.ended();
    // Our own engine ends it: what the client has sent for the other protocol would be a request.
    if (hasTunnels) return client.ended();
    // The client's connection is, and is ordinary HTTP.
    client.write("GET /next HTTP/1.1\r\nHost: app.test\r\n\r\n");
    const next = await scene.target.connection();
    expect(await next.head()).toStartWith("GET /next ");
    client.destroy();
  });

  test("a body that ends with the connection is passed on", async () => {
    const { client, origin } = await scene.knock();
    origin.write("HTTP/1.1 403 Forbidden\r\n\r\nno way");
    origin.socket.end();
    expect(await client.head()).toStartWith("HTTP/1.1 403 ");
    await eventually(() => client.pending.toString() === "no way");
    client.destroy();
  });

  test("200 is a response and no upgrade, despite its headers", async () => {
    const { client, origin, head } = await scene.knock();
    const body = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhidden";
    origin.write(
      `${switching(head).replace("101 Switching Protocols", "200 OK").replace("\r\n\r\n", `\r\nContent-Length: ${body.length}\r\n\r\n`)}${body}`,
    );
    expect(await client.head()).toStartWith("HTTP/1.1 200 ");
    await eventually(() => client.pending.toString() === body);
    expect(scene.openCount()).toBe(0);
    await origin.ended();
    client.destroy();
  });

  test("a refusal of more than 1 MiB becomes 502", async () => {
    const { client, origin } = await scene.knock();
    origin.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 2000000\r\n\r\n");
    origin.write(Buffer.alloc(1_100_000));
    expect(await client.head()).toStartWith("HTTP/1.1 502 ");
    await origin.ended();
    client.destroy();
  });

  test("a refusal that breaks off becomes 502", async () => {
    const { client, origin } = await scene.knock();
    origin.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 20\r\n\r\nhalf");
    origin.socket.end();
    expect(await client.head()).toStartWith("HTTP/1.1 502 ");
    client.destroy();
  });
});

describe("the gateway itself refuses", () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await startScene();
  });
  afterAll(() => scene.stop());

  test.each([
    ["a body of known length", handshake("Content-Length: 4\r\n") + "body", 400],
    ["a chunked body", `${handshake("Transfer-Encoding: chunked\r\n")}4\r\nbody\r\n0\r\n\r\n`, 400],
    ["no key", handshake().replace(`Sec-WebSocket-Key: ${KEY}\r\n`, ""), 400],
    ["a key of the wrong length", handshake().replace(KEY, "c2hvcnQ="), 400],
    ["no version", handshake().replace("Sec-WebSocket-Version: 13\r\n", ""), 426],
    ["another version", handshake().replace("Version: 13", "Version: 8"), 426],
  ])("%s", async (_, request, status) => {
    const client = await Peer.client(scene.gateway.port);
    client.write(request);
    const head = await client.head();
    expect(head).toStartWith(`HTTP/1.1 ${status} `);
    if (status === 426) expect(field(head, "sec-websocket-version")).toEqual(["13"]);
    expect(scene.target.connections).toBe(0);
    client.destroy();
  });
});

describe("timeouts and retries", () => {
  let scene: Scene | null = null;
  afterEach(async () => {
    await scene?.stop();
    scene = null;
  });

  test("a target that does not respond to the handshake within response_timeout gets 504", async () => {
    scene = await startScene({ service: { response_timeout: 150 } });
    const { client, origin } = await scene.knock();
    expect(await client.head()).toStartWith("HTTP/1.1 504 ");
    await origin.ended();
  });

  test("a client that disconnects during the handshake ends it at the target", async () => {
    scene = await startScene();
    const { client, origin } = await scene.knock();
    client.destroy();
    await origin.ended();
    expect(scene.openCount()).toBe(0);
  });

  test("an unreachable target is skipped for a reachable one", async () => {
    const target = await ManualTarget.start();
    const gateway = await startDataPlane({
      services: [{ name: "app", targets: [{ port: freePort() }, { port: target.port }] }],
      routes: [{ name: "all", service_id: "app" }],
    });
    for (let round = 0; round < 2; round++) {
      const client = await Peer.client(gateway.port);
      client.write(handshake());
      const origin = await target.connection();
      origin.write(switching(await origin.head()));
      expect(await client.head()).toStartWith("HTTP/1.1 101 ");
      client.destroy();
    }
    await gateway.stop();
    await target.stop();
  });

  test("without any reachable target the response is 502", async () => {
    const gateway = await startDataPlane({
      services: [{ name: "app", targets: [{ port: freePort() }] }],
      routes: [{ name: "all", service_id: "app" }],
    });
    const client = await Peer.client(gateway.port);
    client.write(handshake());
    expect(await client.head()).toStartWith("HTTP/1.1 502 ");
    client.destroy();
    await gateway.stop();
  });

  test("on a route without WebSockets a handshake is an ordinary request", async () => {
    scene = await startScene({ route: { websocket: false } });
    const { client, origin, head } = await scene.knock();
    expect(field(head, "upgrade")).toEqual([]);
    expect(field(head, "connection")).toEqual([]);
    origin.write("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n");
    expect(await client.head()).toStartWith("HTTP/1.1 426 ");
  });

  test("an unrequested upgrade of the target is refused on such a route", async () => {
    scene = await startScene({ route: { websocket: false } });
    const { client, origin, head } = await scene.knock();
    origin.write(switching(head));
    expect(await client.head()).toStartWith("HTTP/1.1 502 ");
    await origin.ended();
  });

  test("debug fields are on the 101 as well", async () => {
    scene = await startScene({ settings: { debug_headers: true } });
    const { client, origin, head } = await scene.knock();
    origin.write(switching(head));
    const answer = await client.head();
    expect(field(answer, "x-sluice-route")).toEqual(["all"]);
    expect(field(answer, "x-sluice-target")).toEqual(["app-0"]);
  });
});
