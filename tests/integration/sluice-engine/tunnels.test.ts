// WebSockets on our own engine are tunnels: frames pass as they are, extensions and fragments with them, and nothing is collected.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { createServer } from "node:http";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { eventually } from "../../support/poll.ts";
import {
  closePayload,
  frameBytes,
  type FrameOptions,
  handshake,
  opcodes,
  Peer,
  switching,
} from "../websocket/peer.ts";
import { type Scene, startScene } from "../websocket/scene.ts";

const clients = ["HTTP/1.1", "HTTP/2"] as const;

describe.each(clients)("of clients with %s", (version) => {
  const ENGINE = { listener: { engine: "sluice" }, isHttp2: version === "HTTP/2" } as const;
  const DEFLATE = "Sec-WebSocket-Extensions: permessage-deflate\r\n";

  let scene: Scene;
  beforeAll(async () => {
    scene = await startScene(ENGINE);
  });
  afterAll(() => scene.stop());

  const peers: Peer[] = [];
  afterEach(async () => {
    for (const peer of peers.splice(0)) peer.destroy();
    await eventually(() => scene.openCount() === 0);
  });

  /** Both ends of a WebSocket, and one of them as the sender. */
  async function open(sender: "client" | "target", extensions = "") {
    const { client, origin } = await scene.open(extensions, extensions);
    peers.push(client, origin);
    const isClient = sender === "client";
    return {
      client,
      origin,
      from: isClient ? client : origin,
      to: isClient ? origin : client,
      mask: isClient,
    };
  }

  const senders = ["client", "target"] as const;

  describe.each(senders)("frames of the %s", (sender) => {
    test("pass byte for byte, with their masking keys and fragments", async () => {
      const { from, to, mask } = await open(sender);
      const bytes = Buffer.concat([
        frameBytes(opcodes.text, "one ", { mask, isFinal: false }),
        frameBytes(opcodes.ping, "between", { mask }),
        frameBytes(opcodes.continuation, "", { mask, isFinal: false }),
        frameBytes(opcodes.continuation, "two", { mask }),
        frameBytes(opcodes.pong, "unasked", { mask }),
        frameBytes(opcodes.binary, Buffer.alloc(70_000, 7), { mask }),
        frameBytes(opcodes.binary, Buffer.alloc(300, 8), { mask }),
      ]);
      from.write(bytes);
      await eventually(() => to.pending.length === bytes.length);
      expect(to.pending.equals(bytes)).toBe(true);
    });

    test("pass however they are split", async () => {
      const { from, to, mask } = await open(sender);
      const bytes = Buffer.concat([
        frameBytes(opcodes.text, "a", { mask, isFinal: false }),
        frameBytes(opcodes.ping, "p", { mask }),
        frameBytes(opcodes.continuation, Buffer.alloc(130, 7), { mask }),
        frameBytes(opcodes.close, closePayload(1000, "bye"), { mask }),
      ]);
      for (let at = 0; at < bytes.length; at++) {
        from.write(bytes.subarray(at, at + 1));
        // The one before has arrived, unless it waits within a header or a control frame.
        await new Promise((resolve) => setImmediate(resolve));
      }
      await eventually(() => to.pending.length === bytes.length);
      expect(to.pending.equals(bytes)).toBe(true);
    });

    test("of 70 MiB pass as they arrive, and little of it waits", async () => {
      const { from, to, mask } = await open(sender);
      const size = 70 * 1024 * 1024;
      const header = frameBytes(opcodes.binary, "", { mask });
      const long = Buffer.alloc(10);
      long[0] = header[0] ?? 0;
      long[1] = (header[1] ?? 0) | 127;
      long.writeUInt32BE(size, 6);
      from.write(Buffer.concat([long, header.subarray(2)]));
      const piece = Buffer.alloc(1024 * 1024, 5);
      let most = 0;
      let received = 0;
      // Its own count: `Peer` would keep the message.
      to.socket.removeAllListeners("data");
      to.socket.on("data", (chunk: Buffer) => {
        received += chunk.length;
      });
      for (let sent = 0; sent < 70; sent++) {
        await new Promise((resolve) => from.socket.write(piece, resolve));
        most = Math.max(most, (sent + 1) * piece.length - received);
      }
      await eventually(() => received === size + long.length + header.length - 2);
      // What the buffers of the system hold: a gateway that collects the message holds all of it.
      expect(most).toBeLessThan(48 * 1024 * 1024);
    });

    test("that are compressed reach the other end compressed", async () => {
      const { from, to, mask } = await open(sender, DEFLATE);
      const text = "the same again and again ".repeat(100);
      const packed = deflateRawSync(text, { finishFlush: 2 }).subarray(0, -4);
      from.write(frameBytes(opcodes.text, packed, { mask, reserved: 0x40 }));
      await eventually(() => to.pending.length > 2);
      expect((to.pending[0] ?? 0) & 0x70).toBe(0x40);
      const { payload } = await to.frame();
      const whole = Buffer.concat([payload, Buffer.from([0, 0, 0xff, 0xff])]);
      expect(inflateRawSync(whole, { finishFlush: 2 }).toString()).toBe(text);
    });

    test("wait with their sender while the receiver does not read", async () => {
      const { from, to, mask } = await open(sender);
      to.socket.pause();
      const piece = frameBytes(opcodes.binary, Buffer.alloc(1024 * 1024), { mask });
      const count = 100;
      let taken = 0;
      for (let index = 0; index < count; index++) from.socket.write(piece, () => taken++);
      let [last, since] = [-1, 0];
      await eventually(() => {
        since = taken === last ? since + 1 : 0;
        last = taken;
        return since >= 20;
      });
      // What the buffers of the system hold.
      expect(taken).toBeLessThan(48);
      to.socket.resume();
      await eventually(() => to.receivedBytes >= count * piece.length);
      expect(taken).toBe(count);
    });
  });

  type Sketch = (mask: boolean) => Buffer;
  const frame =
    (opcode: number, payload: string | Buffer = "", options: FrameOptions = {}): Sketch =>
    (mask) =>
      frameBytes(opcode, payload, { mask, ...options });
  /** A header with these two bytes, and what follows them. */
  const header =
    (first: number, form: number, ...length: number[]): Sketch =>
    (mask) =>
      Buffer.from([
        first,
        (mask ? 0x80 : 0) | form,
        ...length,
        ...(mask ? [0, 0, 0, 0] : []),
        0x61,
      ]);

  /** RFC 6455 section 5. `extensions`: of the handshake. */
  const mistakes: readonly (readonly [why: string, last: Sketch, extensions?: string])[] = [
    ["the mask of the other side", (mask) => frameBytes(opcodes.text, "x", { mask: !mask })],
    ["RSV 1 without an extension", frame(opcodes.text, "x", { reserved: 0x40 })],
    ["RSV 2 without an extension", frame(opcodes.text, "x", { reserved: 0x20 })],
    ["RSV 3 without an extension", frame(opcodes.ping, "x", { reserved: 0x10 })],
    ["RSV 2 with compression", frame(opcodes.text, "x", { reserved: 0x20 }), DEFLATE],
    ["a compressed ping", frame(opcodes.ping, "x", { reserved: 0x40 }), DEFLATE],
    ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map(
      (opcode) => [`opcode ${opcode}`, frame(opcode, "x")] as const,
    ),
    ["a ping of 126 bytes", frame(opcodes.ping, "x".repeat(126))],
    ["a Close of 126 bytes", frame(opcodes.close, "x".repeat(126))],
    ["a ping in fragments", frame(opcodes.ping, "x", { isFinal: false })],
    ["a pong in fragments", frame(opcodes.pong, "x", { isFinal: false })],
    ["a continuation of nothing", frame(opcodes.continuation, "x")],
    ["the last fragment of nothing", frame(opcodes.continuation, "x", { isFinal: false })],
    ["1 in 16 bits", header(0x82, 126, 0, 1)],
    ["125 in 16 bits", header(0x82, 126, 0, 125)],
    ["1 in 64 bits", header(0x82, 127, 0, 0, 0, 0, 0, 0, 0, 1)],
    ["65,535 in 64 bits", header(0x82, 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff)],
    ["the highest bit of a length", header(0x82, 127, 0x80, 0, 0, 0, 0, 1, 0, 0)],
    ["a Close of one byte", frame(opcodes.close, "x")],
    ["a close code that is none", frame(opcodes.close, closePayload(1006))],
  ];

  describe.each(senders)("a %s that breaks the protocol", (sender) => {
    test.each(mistakes.map(([why, last, extensions = ""]) => [why, last, extensions] as const))(
      "%s: 1002 for both ends after what came before, replies included",
      async (_, last, extensions) => {
        const { from, to, mask } = await open(sender, extensions);
        const bytes = Buffer.concat([frame(opcodes.text, "before")(mask), last(mask)]);
        from.write(Buffer.concat([bytes, frame(opcodes.text, "after")(mask)]));
        expect((await to.frame()).payload.toString()).toBe("before");
        expect(await to.closeFrame()).toEqual([1002, ""]);
        to.send(opcodes.text, "a reply");
        to.send(opcodes.close, closePayload(1002));
        expect((await from.frame()).payload.toString()).toBe("a reply");
        expect(await from.closeFrame()).toEqual([1002, ""]);
        await Promise.all([from.ended(), to.ended()]);
        expect(from.pending.length + to.pending.length).toBe(0);
        await eventually(() => scene.openCount() === 0);
      },
    );

    test("within a message of its own: the other end gets the Close between two fragments", async () => {
      const { from, to, mask } = await open(sender);
      from.write(
        Buffer.concat([
          frame(opcodes.text, "half", { isFinal: false })(mask),
          frame(opcodes.text, "another")(mask),
        ]),
      );
      expect(await to.frame()).toMatchObject({ opcode: opcodes.text, isFinal: false });
      expect(await to.closeFrame()).toEqual([1002, ""]);
      to.destroy();
      expect(await from.closeFrame()).toEqual([1002, ""]);
    });

    test("byte by byte: the same", async () => {
      const { from, to, mask } = await open(sender);
      const bytes = [frame(opcodes.text, "before")(mask), header(0x82, 126, 0, 1)(mask)];
      for (const byte of Buffer.concat(bytes)) {
        from.write(Buffer.from([byte]));
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect((await to.frame()).payload.toString()).toBe("before");
      expect(await to.closeFrame()).toEqual([1002, ""]);
      to.destroy();
      expect(await from.closeFrame()).toEqual([1002, ""]);
    });

    test("and gets no reply: it gets 1002 after a while", async () => {
      const impatient = await startScene({ ...ENGINE, webSocketTimeouts: { closingSeconds: 0.5 } });
      const { client, origin } = await impatient.open();
      const [from, to] = sender === "client" ? [client, origin] : [origin, client];
      from.write(frame(3, "x")(sender === "client"));
      expect(await to.closeFrame()).toEqual([1002, ""]);
      expect(await from.closeFrame()).toEqual([1002, ""]);
      await Promise.all([from.ended(), to.ended()]);
      await eventually(() => impatient.openCount() === 0);
      await impatient.stop();
    });
  });

  describe.each(senders)("the gateway's own frames to the end that is not the %s", (sender) => {
    /** A frame of which the sender holds back the end. */
    const parts = (mask: boolean) => {
      const whole = frameBytes(opcodes.binary, Buffer.alloc(1000, 7), { mask });
      return [whole.subarray(0, 500), whole.subarray(500)] as const;
    };

    test("a ping comes before or after a frame, never within", async () => {
      const restless = await startScene({ ...ENGINE, webSocketTimeouts: { idleSeconds: 0.2 } });
      const { client, origin } = await restless.open();
      const [from, to] = sender === "client" ? [client, origin] : [origin, client];
      const [begin, end] = parts(sender === "client");
      from.write(begin);
      // The sender is silent as well, and nothing is in the way of its ping.
      expect(await from.frame()).toMatchObject({ opcode: opcodes.ping });
      expect(to.pending.length).toBe(begin.length);
      from.write(end);
      expect((await to.frame()).payload.equals(Buffer.alloc(1000, 7))).toBe(true);
      const ping = await to.frame();
      expect([ping.opcode, ping.payload.length]).toEqual([opcodes.ping, 8]);
      await restless.stop();
    });

    test("Close 1001 waits for the end of a frame", async () => {
      const other = await startScene(ENGINE);
      const { client, origin } = await other.open();
      const [from, to] = sender === "client" ? [client, origin] : [origin, client];
      const [begin, end] = parts(sender === "client");
      from.write(begin);
      await eventually(() => to.pending.length === begin.length);
      await other.gateway.apply({ removedRoutes: ["all"] });
      // In the other direction no frame is open.
      expect((await from.closeFrame())[0]).toBe(1001);
      expect(to.pending.length).toBe(begin.length);
      from.write(Buffer.concat([end, frameBytes(opcodes.text, "late", { mask: from === client })]));
      expect((await to.frame()).payload.equals(Buffer.alloc(1000, 7))).toBe(true);
      expect((await to.closeFrame())[0]).toBe(1001);
      for (const peer of [from, to]) peer.send(opcodes.close, closePayload(1001));
      await Promise.all([from.ended(), to.ended()]);
      expect(to.pending.length).toBe(0);
      await eventually(() => other.openCount() === 0);
      await other.stop();
    });
  });

  describe("extensions", () => {
    test("a target may not choose one that was not offered", async () => {
      const { client, origin, head } = await scene.knock();
      origin.write(switching(head, DEFLATE));
      expect(await client.head()).toStartWith("HTTP/1.1 502 ");
      await origin.ended();
    });

    test("their parameters pass both ways", async () => {
      const offer = "permessage-deflate; client_max_window_bits, x-other";
      const { client, origin, head } = await scene.knock(
        handshake(`Sec-WebSocket-Extensions: ${offer}\r\n`),
      );
      expect(head.toLowerCase()).toContain(`sec-websocket-extensions: ${offer}\r\n`);
      const chosen = "permessage-deflate; client_max_window_bits=10";
      origin.write(switching(head, `Sec-WebSocket-Extensions: ${chosen}\r\n`));
      expect((await client.head()).toLowerCase()).toContain(
        `sec-websocket-extensions: ${chosen}\r\n`,
      );
      client.destroy();
    });

    test("real peers compress through the gateway", async () => {
      const seen: string[] = [];
      const server = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch: (request, self) => {
          seen.push(request.headers.get("sec-websocket-extensions") ?? "");
          return self.upgrade(request) ? undefined : new Response("no");
        },
        websocket: {
          perMessageDeflate: true,
          message: (socket, message) => void socket.send(message, true),
        },
      });
      await using own = {
        scene: await startScene({ ...ENGINE, service: { targets: [{ port: server.port ?? 0 }] } }),
        [Symbol.asyncDispose]: async () => {
          await own.scene.stop();
          await server.stop(true);
        },
      };
      const socket = new WebSocket(own.scene.gateway.webSocketUrl);
      const replies: unknown[] = [];
      socket.onmessage = ({ data }) => replies.push(data);
      await eventually(() => socket.readyState === WebSocket.OPEN);
      expect(seen[0]).toContain("permessage-deflate");
      expect(socket.extensions).toContain("permessage-deflate");
      const text = "compress me ".repeat(10_000);
      socket.send(text);
      await eventually(() => replies.length === 1);
      expect(replies).toEqual([text]);
      socket.close();
    });
  });

  test("a Close is answered by the other end, after what it still has to say", async () => {
    const { client, origin } = await scene.open();
    client.send(opcodes.close, closePayload(1000, "done"));
    expect(await origin.closeFrame()).toEqual([1000, "done"]);
    origin.send(opcodes.text, "one more");
    origin.send(opcodes.close, closePayload(4000, "bye"));
    expect((await client.frame()).payload.toString()).toBe("one more");
    expect(await client.closeFrame()).toEqual([4000, "bye"]);
    await Promise.all([client.ended(), origin.ended()]);
    await eventually(() => scene.openCount() === 0);
  });

  test("a target that is Node's sees the same handshake and bytes", async () => {
    const server = createServer();
    server.on("upgrade", (request, socket) => {
      socket.on("error", () => {});
      socket.write(switching(`Sec-WebSocket-Key: ${request.headers["sec-websocket-key"]}\r\n`));
      socket.on("data", (chunk: Buffer) => void socket.write(frameBytes(opcodes.binary, chunk)));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const own = await startScene({ ...ENGINE, service: { targets: [{ port }] } });
    const client = await Peer.client(own.gateway.port);
    client.write(handshake());
    await client.head();
    const sent = frameBytes(opcodes.text, "raw", { mask: true });
    client.write(sent);
    expect((await client.frame()).payload.equals(sent)).toBe(true);
    client.destroy();
    await own.stop();
    server.close();
  });
});
