// Idle WebSockets stay open while their peers respond to pings; the gateway detects dead peers and those that do not read.
import { describe, expect, test } from "bun:test";
import { startDataPlane } from "../../support/data-plane.ts";
import { eventually } from "../../support/poll.ts";
import { type Frame, frameBytes, opcodes, Peer, switching } from "./peer.ts";
import { type Scene, startScene } from "./scene.ts";

type SceneOptions = NonNullable<Parameters<typeof startScene>[0]>;

/** Tests run side by side, so each has a gateway of its own. */
async function inScene(options: SceneOptions, act: (scene: Scene) => Promise<void>): Promise<void> {
  const scene = await startScene(options);
  try {
    await act(scene);
  } finally {
    await scene.stop();
  }
}

const IDLE = { webSocketTimeouts: { idleSeconds: 0.5 } };
const PROBE_BYTES = 8;

const isProbe = ({ opcode, payload }: Frame) =>
  opcode === opcodes.ping && payload.length === PROBE_BYTES;

/** The next frame that is not the gateway's own ping; those are answered on the way. */
async function nextFrame(peer: Peer): Promise<Frame> {
  while (true) {
    const frame = await peer.frame();
    if (!isProbe(frame)) return frame;
    peer.send(opcodes.pong, frame.payload);
  }
}

async function expectAlive(client: Peer, origin: Peer): Promise<void> {
  client.send(opcodes.text, "to the target");
  expect((await nextFrame(origin)).payload.toString()).toBe("to the target");
  origin.send(opcodes.text, "to the client");
  expect((await nextFrame(client)).payload.toString()).toBe("to the client");
}

/** Resolves when Bun has closed a connection that is idle for as long as its WebSockets, or longer. */
async function idleConnectionEnded(scene: Scene): Promise<void> {
  const idle = await Peer.client(scene.gateway.port);
  idle.write("GET / HTTP/1.1\r\nHost: app.test\r\n\r\n");
  const plain = await scene.target.connection();
  plain.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  await idle.ended();
}

describe("the idle timeout of the listener", () => {
  test.concurrent("does not apply to open WebSockets", () =>
    inScene({ listener: { idle_timeout: 1 }, service: { read_timeout: 100 } }, async (scene) => {
      const { client, origin } = await scene.open();
      await idleConnectionEnded(scene);
      await expectAlive(client, origin);
    }),
  );

  test.concurrent(
    "does not apply to handshakes either, and the route's timeout overrides the service's",
    () =>
      inScene(
        {
          route: { timeouts: { response_timeout: 60_000 } },
          service: { response_timeout: 100 },
          listener: { idle_timeout: 1 },
        },
        async (scene) => {
          const { client, origin, head } = await scene.knock();
          await idleConnectionEnded(scene);
          origin.write(switching(head));
          expect(await client.head()).toStartWith("HTTP/1.1 101 ");
        },
      ),
  );
});

describe("live peers", () => {
  test.concurrent("stay connected while they send pongs, and do not see each other's", () =>
    inScene({ ...IDLE, service: { read_timeout: 100, write_timeout: 100 } }, async (scene) => {
      const { client, origin } = await scene.open();
      const answerPings = async (peer: Peer) => {
        for (let count = 0; count < 4; count++) {
          const frame = await peer.frame();
          expect(isProbe(frame)).toBe(true);
          peer.send(opcodes.pong, frame.payload);
        }
      };
      await Promise.all([answerPings(client), answerPings(origin)]);
      await expectAlive(client, origin);
      expect(scene.openCount()).toBe(1);
    }),
  );

  test.concurrent("ping each other as before", () =>
    inScene(IDLE, async (scene) => {
      const { client, origin } = await scene.open();
      for (let round = 0; round < 4; round++) {
        // Each round begins with the gateway's own ping.
        const probe = await origin.frame();
        expect(isProbe(probe)).toBe(true);
        client.send(opcodes.ping, `from the client ${round}`);
        expect((await origin.frame()).payload.toString()).toBe(`from the client ${round}`);
        // The one pong answers both. Where the gateway reads messages, Bun has answered the client before.
        origin.send(opcodes.pong, `from the client ${round}`);
        origin.send(opcodes.ping, `from the target ${round}`);
        expect(await nextFrame(client)).toMatchObject({ opcode: opcodes.pong });
        const ping = await nextFrame(client);
        expect(ping).toMatchObject({ opcode: opcodes.ping });
        expect(ping.payload.toString()).toBe(`from the target ${round}`);
        client.send(opcodes.pong, ping.payload);
        const pong = await nextFrame(origin);
        expect([pong.opcode, pong.payload.toString()]).toEqual([
          opcodes.pong,
          `from the target ${round}`,
        ]);
      }
      await expectAlive(client, origin);
    }),
  );

  test.concurrent("need no extra code when they are real ones", async () => {
    let pings = 0;
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: (request, self) => (self.upgrade(request) ? undefined : new Response("no")),
      websocket: {
        ping: () => {
          pings++;
        },
        message: (socket, message) => void socket.send(message),
      },
    });
    const gateway = await startDataPlane({
      services: [{ name: "app", targets: [{ port: server.port ?? 0 }] }],
      routes: [{ name: "all", service_id: "app" }],
      ...IDLE,
    });
    const socket = new WebSocket(gateway.webSocketUrl);
    const echoed: unknown[] = [];
    socket.onmessage = ({ data }) => echoed.push(data);
    await eventually(() => pings >= 4);
    socket.send("still here");
    await eventually(() => echoed.length === 1);
    expect(echoed).toEqual(["still here"]);
    socket.close();
    await gateway.stop();
    await server.stop(true);
  });
});

describe("a peer that sends no pongs", () => {
  const talking = [
    ["is silent", false],
    ["talks", true],
  ] as const;

  /** Says something again and again; returns how to stop. */
  function talk(peer: Peer, isTalking: boolean): () => void {
    const timer = setInterval(() => isTalking && peer.send(opcodes.text, "news"), 50);
    return () => clearInterval(timer);
  }

  /** All frames until the end; `isThere`: pings are answered on the way. */
  async function framesToTheEnd(peer: Peer, isThere: boolean): Promise<Frame[]> {
    const frames: Frame[] = [];
    while (true) {
      const frame = await peer.frameOrEnd();
      if (frame === null) return frames;
      frames.push(frame);
      if (isThere && isProbe(frame)) peer.send(opcodes.pong, frame.payload);
    }
  }

  for (const [manner, isTalking] of talking)
    test.concurrent(
      `the client vanished, the target ${manner}: the target's connection ends without a Close`,
      () =>
        inScene(IDLE, async (scene) => {
          const { client, origin } = await scene.open();
          const stop = talk(origin, isTalking);
          const [toClient, toTarget] = await Promise.all([
            framesToTheEnd(client, false),
            framesToTheEnd(origin, true),
          ]);
          stop();
          expect(toClient.filter(isProbe).length).toBe(1);
          expect(toClient.some(({ opcode }) => opcode === opcodes.text)).toBe(isTalking);
          expect(toClient.some(({ opcode }) => opcode === opcodes.close)).toBe(false);
          expect(toTarget.every(isProbe)).toBe(true);
          await eventually(() => scene.openCount() === 0);
        }),
    );

  for (const [manner, isTalking] of talking)
    test.concurrent(
      `the target vanished, the client ${manner}: the client's connection ends without a Close`,
      () =>
        inScene(IDLE, async (scene) => {
          const { client, origin } = await scene.open();
          const stop = talk(client, isTalking);
          const [toClient, toTarget] = await Promise.all([
            framesToTheEnd(client, true),
            framesToTheEnd(origin, false),
          ]);
          stop();
          expect(toTarget.filter(isProbe).length).toBe(1);
          expect(toTarget.some(({ opcode }) => opcode === opcodes.text)).toBe(isTalking);
          expect(toTarget.some(({ opcode }) => opcode === opcodes.close)).toBe(false);
          expect(toClient.every(isProbe)).toBe(true);
          await eventually(() => scene.openCount() === 0);
        }),
    );

  test.concurrent("a target that never responds to a Close is cut after a while", () =>
    inScene({ webSocketTimeouts: { closingSeconds: 0.5 } }, async (scene) => {
      const { client, origin } = await scene.open();
      client.send(opcodes.close);
      expect(await origin.closeFrame()).toEqual([1005, ""]);
      await origin.ended();
      await eventually(() => scene.openCount() === 0);
    }),
  );
});

const WRITE_TIMEOUT = 1500;
const WRITING = {
  service: { write_timeout: WRITE_TIMEOUT },
  webSocketTimeouts: { idleSeconds: 0.5, closingSeconds: 1 },
};
/** Long enough for a reader whose machine is busy to read something within it. */
const SLOW_WRITE_TIMEOUT = 6000;
const WRITING_SLOWLY = { ...WRITING, service: { write_timeout: SLOW_WRITE_TIMEOUT } };
const MESSAGE = Buffer.alloc(65_536, 7);

/** Writes messages as fast as they are taken, until the connection ends. */
function flood(peer: Peer, mask: boolean): void {
  const frame = frameBytes(opcodes.binary, MESSAGE, { mask });
  const next = (error?: Error | null): void => {
    if (!error && !peer.hasEnded && !peer.isClosed) peer.socket.write(frame, next);
  };
  next();
}

/** Reads a little at a time, for longer than the write timeout; returns how many bytes there were. */
async function readSlowly(peer: Peer): Promise<number> {
  const before = peer.receivedBytes;
  const end = performance.now() + 1.5 * SLOW_WRITE_TIMEOUT;
  await eventually(
    () => {
      expect(peer.hasEnded || peer.isClosed).toBe(false);
      // Reads one piece, and is paused again by then.
      peer.socket.once("data", () => peer.socket.pause());
      peer.socket.resume();
      return performance.now() > end;
    },
    { intervalMs: 5 },
  );
  return peer.receivedBytes - before;
}

describe("a peer that does not read", () => {
  test.concurrent("the client is disconnected after the write timeout", () =>
    inScene(WRITING, async (scene) => {
      const { client, origin } = await scene.open();
      client.socket.pause();
      flood(origin, false);
      await origin.ended();
      await eventually(() => scene.openCount() === 0);
      client.socket.resume();
      await client.ended();
    }),
  );

  test.concurrent("the target is disconnected after the write timeout", () =>
    inScene(WRITING, async (scene) => {
      const { client, origin } = await scene.open();
      origin.socket.pause();
      flood(client, true);
      await client.ended();
      await eventually(() => scene.openCount() === 0);
      origin.socket.resume();
      await origin.ended();
    }),
  );

  test.concurrent("a client that reads slowly is not", () =>
    inScene(WRITING_SLOWLY, async (scene) => {
      const { client, origin } = await scene.open();
      client.socket.pause();
      flood(origin, false);
      expect(await readSlowly(client)).toBeGreaterThan(0);
      expect(scene.openCount()).toBe(1);
      expect(origin.hasEnded).toBe(false);
    }),
  );

  test.concurrent("nor is a target that reads slowly", () =>
    inScene(WRITING_SLOWLY, async (scene) => {
      const { client, origin } = await scene.open();
      origin.socket.pause();
      flood(client, true);
      expect(await readSlowly(origin)).toBeGreaterThan(0);
      expect(scene.openCount()).toBe(1);
      expect(client.hasEnded).toBe(false);
    }),
  );
});
