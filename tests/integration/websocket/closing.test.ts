// How a WebSocket ends: codes and reasons both ways, either side vanishing or breaking the protocol, nothing lost before.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startDataPlane } from "../../support/data-plane.ts";
import { reading } from "../../support/message-reading.ts";
import { eventually } from "../../support/poll.ts";
import { closePayload, frameBytes, opcodes, type Peer, switching } from "./peer.ts";
import { type Scene, startScene } from "./scene.ts";

let scene: Scene;
beforeAll(async () => {
  scene = await startScene();
});
afterAll(() => scene.stop());

const allEnded = () => eventually(() => scene.openCount() === 0);

const codes: [number, string][] = [
  [1000, ""],
  [1000, "done"],
  [1001, "going away"],
  [1011, "broken"],
  [3000, "library"],
  [4999, "é".repeat(61)],
];

describe("codes and reasons", () => {
  test.each(codes)("of the client reach the target: %d %p", async (code, reason) => {
    const { client, origin } = await scene.open();
    client.send(opcodes.text, "last words");
    client.send(opcodes.close, closePayload(code, reason));
    expect((await origin.frame()).payload.toString()).toBe("last words");
    expect(await origin.closeFrame()).toEqual([code, reason]);
    // The target ends the connection, after it has answered.
    expect(origin.hasEnded).toBe(false);
    origin.send(opcodes.close, closePayload(code, reason));
    expect(await client.closeFrame()).toEqual([code, reason]);
    await origin.ended();
    await allEnded();
  });

  test.each(codes)("of the target reach the client: %d %p", async (code, reason) => {
    const { client, origin } = await scene.open();
    origin.write(
      Buffer.concat([
        frameBytes(opcodes.text, "last words"),
        frameBytes(opcodes.close, closePayload(code, reason)),
      ]),
    );
    expect((await client.frame()).payload.toString()).toBe("last words");
    expect(await client.closeFrame()).toEqual([code, reason]);
    client.send(opcodes.close, closePayload(code, reason));
    expect(await origin.closeFrame()).toEqual([code, reason]);
    await origin.ended();
    await allEnded();
  });

  test("a close without a code stays one without, both ways", async () => {
    const first = await scene.open();
    first.client.send(opcodes.close);
    expect(await first.origin.closeFrame()).toEqual([1005, ""]);
    first.origin.send(opcodes.close);
    expect(await first.client.closeFrame()).toEqual([1005, ""]);
    const second = await scene.open();
    second.origin.send(opcodes.close);
    expect(await second.client.closeFrame()).toEqual([1005, ""]);
    second.client.send(opcodes.close);
    expect(await second.origin.closeFrame()).toEqual([1005, ""]);
    first.origin.destroy();
    await allEnded();
  });

  test("both sides may close at once", async () => {
    const { client, origin } = await scene.open();
    origin.send(opcodes.close, closePayload(4001));
    client.send(opcodes.close, closePayload(4002));
    expect((await client.closeFrame())[0]).toBeOneOf([4001, 4002]);
    expect((await origin.closeFrame())[0]).toBeOneOf([4001, 4002]);
    origin.destroy();
    await allEnded();
  });
});

describe("a side that vanishes", () => {
  test.each<[string, (peer: Peer) => void]>([
    ["ends the connection", (peer) => peer.socket.end()],
    ["resets it", (peer) => peer.socket.resetAndDestroy()],
  ])("the target %s: so does the client's, without a Close", async (_, vanish) => {
    const { client, origin } = await scene.open();
    origin.send(opcodes.text, "last words");
    expect((await client.frame()).payload.toString()).toBe("last words");
    vanish(origin);
    await client.ended();
    expect(client.pending.length).toBe(0);
    await allEnded();
  });

  test("data that the target sent before it ended the connection arrives", async () => {
    const { client, origin } = await scene.open();
    const message = Buffer.alloc(2_000_000, 7);
    origin.send(opcodes.binary, message);
    origin.socket.end(frameBytes(opcodes.text, "last words"));
    expect((await client.frame()).payload.equals(message)).toBe(true);
    expect((await client.frame()).payload.toString()).toBe("last words");
    await client.ended();
    expect(client.pending.length).toBe(0);
    await allEnded();
  });

  test("a client of Bun sees code 1006 then", async () => {
    const socket = new WebSocket(scene.gateway.webSocketUrl);
    const closed = new Promise<CloseEvent>((resolve) => {
      socket.onclose = resolve;
    });
    const next = await scene.target.connection();
    next.write(switching(await next.head()));
    await eventually(() => socket.readyState === WebSocket.OPEN);
    next.destroy();
    const { code, wasClean } = await closed;
    expect([code, wasClean]).toEqual([1006, false]);
  });

  test.each<[string, (peer: Peer) => void]>([
    ["ends the connection", (peer) => peer.socket.end()],
    ["resets it", (peer) => peer.socket.resetAndDestroy()],
  ])(
    "the client %s: the target's ends, after what the client had sent, without a Close",
    async (_, vanish) => {
      const { client, origin } = await scene.open();
      client.send(opcodes.text, "last words");
      expect((await origin.frame()).payload.toString()).toBe("last words");
      vanish(client);
      await origin.ended();
      expect(origin.pending.length).toBe(0);
      await allEnded();
    },
  );
});

// With tunnels: integration/sluice-engine/tunnels.
describe("a target that breaks the protocol", () => {
  const { test } = reading;
  test.each([
    ["masks its frames", frameBytes(opcodes.text, "x", { mask: true }), 1002],
    ["sets a reserved bit", frameBytes(opcodes.text, "x", { reserved: 0x40 }), 1002],
    ["sends a ping of 126 bytes", frameBytes(opcodes.ping, "x".repeat(126)), 1002],
    ["sends a ping in fragments", frameBytes(opcodes.ping, "x", { isFinal: false }), 1002],
    ["uses an unknown opcode", frameBytes(5, "x"), 1002],
    ["sends text that is not UTF-8", frameBytes(opcodes.text, Buffer.from([0xc3, 0x28])), 1007],
    [
      "announces more than a message may have",
      Buffer.from([0x82, 127, 0, 0, 0, 0, 4, 0, 0, 1]),
      1009,
    ],
    ["closes with a code that is none", frameBytes(opcodes.close, closePayload(1006)), 1002],
  ])(
    "%s: it gets the close code, and the client gets 1011 after what came before",
    async (_, bytes, code) => {
      const { client, origin } = await scene.open();
      origin.write(
        Buffer.concat([frameBytes(opcodes.text, "good"), bytes, frameBytes(1, "after")]),
      );
      expect((await client.frame()).payload.toString()).toBe("good");
      expect((await client.closeFrame())[0]).toBe(1011);
      expect((await origin.closeFrame())[0]).toBe(code);
      await client.ended();
      await origin.ended();
      await allEnded();
    },
  );
});

describe("a client that breaks the protocol", () => {
  const { test } = reading;
  test.each([
    ["does not mask its frames", frameBytes(opcodes.text, "x"), 1002],
    ["sets a reserved bit", frameBytes(opcodes.text, "x", { mask: true, reserved: 0x40 }), 1002],
    ["sends a ping of 126 bytes", frameBytes(opcodes.ping, "x".repeat(126), { mask: true }), 1002],
    ["uses an unknown opcode", frameBytes(5, "x", { mask: true }), 1002],
    [
      "sends text that is not UTF-8",
      frameBytes(opcodes.text, Buffer.from([0xc3, 0x28]), { mask: true }),
      1007,
    ],
    [
      "announces more than a message may have",
      Buffer.from([0x82, 0xff, 0, 0, 0, 0, 4, 0, 0, 1, 1, 2, 3, 4]),
      1009,
    ],
  ])(
    "%s: it gets the close code, and the target's connection ends after what came before",
    async (_, bytes, code) => {
      const { client, origin } = await scene.open();
      client.write(Buffer.concat([frameBytes(opcodes.text, "good", { mask: true }), bytes]));
      expect((await origin.frame()).payload.toString()).toBe("good");
      expect((await client.closeFrame())[0]).toBe(code);
      await origin.ended();
      expect(origin.pending.length).toBe(0);
      await allEnded();
    },
  );
});

test("real peers agree on code and reason, in both directions", async () => {
  const heard: [number, string][] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request, self) => (self.upgrade(request) ? undefined : new Response("no")),
    websocket: {
      message: (socket, message) => socket.close(4321, String(message)),
      close: (_, code, reason) => {
        heard.push([code, reason]);
      },
    },
  });
  const gateway = await startDataPlane({
    services: [{ name: "app", targets: [{ port: server.port ?? 0 }] }],
    routes: [{ name: "all", service_id: "app" }],
  });
  const run = async (act: (socket: WebSocket) => void) => {
    const socket = new WebSocket(gateway.webSocketUrl);
    const closed = new Promise<CloseEvent>((resolve) => {
      socket.onclose = resolve;
    });
    await eventually(() => socket.readyState === WebSocket.OPEN);
    act(socket);
    const { code, reason, wasClean } = await closed;
    return [code, reason, wasClean];
  };
  expect(await run((socket) => socket.close(3210, "client"))).toEqual([3210, "client", true]);
  await eventually(() => heard.length === 1);
  expect(await run((socket) => socket.send("server"))).toEqual([4321, "server", true]);
  await eventually(() => heard.length === 2);
  expect(heard).toEqual([
    [3210, "client"],
    [4321, "server"],
  ]);
  await eventually(() => gateway.board.get(0, "open_websockets") === 0);
  await gateway.stop();
  await server.stop(true);
});
