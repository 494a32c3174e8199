// Messages, pings and pongs through the gateway, with real WebSocket servers and with targets that speak by hand.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type RunningDataPlane, startDataPlane } from "../../support/data-plane.ts";
import { hasTunnels } from "../../support/engines.ts";
import { reading } from "../../support/message-reading.ts";
import { eventually } from "../../support/poll.ts";
import { frameBytes, handshake, opcodes, Peer, switching } from "./peer.ts";
import { type Scene, startScene } from "./scene.ts";

describe("with a server that echoes", () => {
  let gateway: RunningDataPlane;
  let server: ReturnType<typeof echoServer>;

  beforeAll(async () => {
    server = echoServer();
    gateway = await startDataPlane({
      services: [{ name: "echo", targets: [{ port: server.port ?? 0 }] }],
      routes: [{ name: "all", service_id: "echo" }],
    });
  });
  afterAll(async () => {
    await gateway.stop();
    await server.stop(true);
  });

  const texts = ["hello", "", "é👋", "\ufeffbyte order mark", "x".repeat(125), "y".repeat(70_000)];

  test.each(texts.map((text) => [text.length, text] as const))(
    "a text of %d characters comes back",
    async (_, text) => {
      const client = await open(gateway);
      client.send(text);
      expect(await client.next()).toBe(text);
      client.close();
    },
  );

  test.each([0, 1, 125, 126, 65_535, 65_536, 1_000_000, 5_000_001])(
    "a binary message of %d bytes comes back",
    async (length) => {
      const message = Buffer.alloc(length, Buffer.from([1, 2, 3, 4, 5, 6, 7]));
      const client = await open(gateway);
      client.send(message);
      const echoed = Buffer.from((await client.next()) as ArrayBuffer);
      expect(echoed.equals(message)).toBe(true);
      client.close();
    },
  );

  test("ten thousand small messages arrive in order", async () => {
    const client = await open(gateway);
    for (let index = 0; index < 10_000; index++) client.send(`message ${index}`);
    await eventually(() => client.messages.length === 10_000);
    expect(client.messages.every((message, index) => message === `message ${index}`)).toBe(true);
    client.close();
  });

  // In a tunnel they follow the handshake: integration/sluice-engine/upgrades.
  reading.test(
    "a client that sends frames before the 101 breaks HTTP, and only for itself",
    async () => {
      const early = await Peer.client(gateway.port);
      const frame = frameBytes(opcodes.text, "too early", { mask: true });
      early.write(Buffer.concat([Buffer.from(handshake()), frame]));
      expect(await early.rest()).toStartWith("HTTP/1.1 400 ");
      const client = await open(gateway);
      client.send("in time");
      expect(await client.next()).toBe("in time");
      client.close();
    },
  );

  test("a plain request goes through the same route", async () => {
    expect(await (await fetch(`${gateway.url}/plain`)).text()).toBe("plain");
  });
});

describe("with a scripted target", () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await startScene();
  });
  afterAll(() => scene.stop());

  test("a frame in the segment of the target's 101 is not lost", async () => {
    const { client, origin, head } = await scene.knock();
    origin.write(Buffer.concat([Buffer.from(switching(head)), frameBytes(opcodes.text, "early")]));
    await client.head();
    expect((await client.frame()).payload.toString()).toBe("early");
  });

  test("half a frame in the segment of the target's 101 is not lost either", async () => {
    const { client, origin, head } = await scene.knock();
    const frame = frameBytes(opcodes.text, "early");
    origin.write(Buffer.concat([Buffer.from(switching(head)), frame.subarray(0, 1)]));
    await client.head();
    origin.write(frame.subarray(1));
    expect((await client.frame()).payload.toString()).toBe("early");
  });

  // Tunnels pass them as they are: integration/sluice-engine/tunnels.
  reading.test(
    "fragments of the target arrive as one message, with the ping between them before it",
    async () => {
      const { client, origin } = await scene.open();
      origin.send(opcodes.text, "one ", { isFinal: false });
      origin.send(opcodes.ping, "now");
      origin.send(opcodes.continuation, "two ", { isFinal: false });
      origin.send(opcodes.continuation, "three");
      expect(await client.frame()).toMatchObject({ opcode: opcodes.ping });
      const message = await client.frame();
      expect(message).toMatchObject({ opcode: opcodes.text, isFinal: true, isMasked: false });
      expect(message.payload.toString()).toBe("one two three");
    },
  );

  reading.test("fragments of the client arrive as one masked message", async () => {
    const { client, origin } = await scene.open();
    client.send(opcodes.binary, "one ", { isFinal: false });
    client.send(opcodes.continuation, "two");
    const message = await origin.frame();
    expect(message).toMatchObject({ opcode: opcodes.binary, isFinal: true, isMasked: true });
    expect(message.payload.toString()).toBe("one two");
  });

  test.each(["", "payload", "p".repeat(125)])(
    "a ping of the client reaches the target and gets one pong (%#)",
    async (data) => {
      const { client, origin } = await scene.open();
      client.send(opcodes.ping, data);
      const ping = await origin.frame();
      expect(ping).toMatchObject({ opcode: opcodes.ping, isMasked: true });
      expect(ping.payload.toString()).toBe(data);
      origin.send(opcodes.pong, data);
      origin.send(opcodes.text, "after");
      const pong = await client.frame();
      expect([pong.opcode, pong.payload.toString()]).toEqual([opcodes.pong, data]);
      expect((await client.frame()).payload.toString()).toBe("after");
    },
  );

  test("one pong may stand for several pings, and an unsolicited pong passes", async () => {
    const { client, origin } = await scene.open();
    client.send(opcodes.ping, "1");
    client.send(opcodes.ping, "2");
    await origin.frame();
    await origin.frame();
    origin.send(opcodes.pong, "2");
    origin.send(opcodes.pong, "alive");
    // Bun answers each ping itself.
    const expected = hasTunnels ? ["2", "alive"] : ["1", "2", "alive"];
    for (const payload of expected) {
      const pong = await client.frame();
      expect([pong.opcode, pong.payload.toString()]).toEqual([opcodes.pong, payload]);
    }
  });

  test("the client responds to a ping of the target, not the gateway", async () => {
    const { client, origin } = await scene.open();
    origin.send(opcodes.ping, "are you there");
    const ping = await client.frame();
    expect([ping.opcode, ping.payload.toString()]).toEqual([opcodes.ping, "are you there"]);
    client.send(opcodes.text, "first this");
    client.send(opcodes.pong, "are you there");
    expect((await origin.frame()).payload.toString()).toBe("first this");
    const pong = await origin.frame();
    expect([pong.opcode, pong.payload.toString()]).toEqual([opcodes.pong, "are you there"]);
  });
});

function echoServer() {
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request, server) =>
      server.upgrade(request) ? undefined : new Response("plain", { status: 200 }),
    websocket: {
      maxPayloadLength: 100_000_000,
      message: (socket, message) => {
        socket.send(message);
      },
    },
  });
}

async function open(gateway: RunningDataPlane) {
  const socket = new WebSocket(gateway.webSocketUrl);
  socket.binaryType = "arraybuffer";
  const messages: unknown[] = [];
  socket.onmessage = (event) => messages.push(event.data);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onclose = (event) => reject(new Error(`closed with ${event.code}`));
  });
  return {
    messages,
    send: (message: string | Uint8Array<ArrayBuffer>) => socket.send(message),
    next: async () => {
      await eventually(() => messages.length > 0, { intervalMs: 1 });
      return messages.shift();
    },
    close: () => socket.close(),
  };
}
