// A side that does not read stops the other one: the gateway's buffers are bounded, and nothing is lost.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { reading } from "../../support/message-reading.ts";
import { eventually } from "../../support/poll.ts";
import { closePayload, frameBytes, opcodes, type Peer } from "./peer.ts";
import { type Scene, startScene } from "./scene.ts";

const MESSAGE_BYTES = 65_536;
const TOTAL_BYTES = 72 * 1024 * 1024;
/** What four socket buffers of the system hold at the most, with room to spare. */
const MAX_TAKEN_BYTES = 48 * 1024 * 1024;

let scene: Scene;
beforeAll(async () => {
  scene = await startScene();
});
afterAll(() => scene.stop());

/** Writes `count` frames as fast as the connection takes them. */
class Pump {
  /** Bytes that the system has taken. */
  taken = 0;
  isDone = false;

  constructor(peer: Peer, count: number, frame: (index: number) => Buffer) {
    let index = 0;
    const next = (): void => {
      if (index === count) {
        this.isDone = true;
        return;
      }
      const bytes = frame(index++);
      peer.socket.write(bytes, (error) => {
        if (error) return;
        this.taken += bytes.length;
        next();
      });
    };
    next();
  }

  /** Resolves when nothing more has been taken for a while. */
  async stalled(): Promise<void> {
    let before = -1;
    let same = 0;
    await eventually(() => {
      same = this.taken === before ? same + 1 : 0;
      before = this.taken;
      return same >= 30;
    });
  }
}

const numbered = (mask: boolean) => (index: number) => {
  const payload = Buffer.alloc(MESSAGE_BYTES);
  payload.writeUInt32BE(index);
  return frameBytes(opcodes.binary, payload, { mask });
};

/** Reads `count` numbered messages and checks that none is missing. */
async function readNumbered(peer: Peer, count: number): Promise<void> {
  peer.socket.resume();
  for (let index = 0; index < count; index++) {
    const { payload } = await peer.frame();
    if (payload.length !== MESSAGE_BYTES || payload.readUInt32BE() !== index)
      throw new Error(`message ${index} is another one`);
  }
}

test("a client that does not read pauses the target, and gets everything once it reads", async () => {
  const { client, origin } = await scene.open();
  client.socket.pause();
  const count = TOTAL_BYTES / MESSAGE_BYTES;
  const pump = new Pump(origin, count, numbered(false));
  await pump.stalled();
  expect(pump.isDone).toBe(false);
  expect(pump.taken).toBeLessThan(MAX_TAKEN_BYTES);
  await readNumbered(client, count);
  client.destroy();
  await origin.ended();
});

test("a target that does not read pauses the client, and gets everything once it reads", async () => {
  const { client, origin } = await scene.open();
  origin.socket.pause();
  const count = TOTAL_BYTES / MESSAGE_BYTES;
  const pump = new Pump(client, count, numbered(true));
  await pump.stalled();
  expect(pump.isDone).toBe(false);
  expect(pump.taken).toBeLessThan(MAX_TAKEN_BYTES);
  await readNumbered(origin, count);
  client.destroy();
  await origin.ended();
});

// Where the gateway itself sends pongs.
reading.test("a client that sends pings and reads no pongs is paused", async () => {
  const { client, origin } = await scene.open();
  client.socket.pause();
  const pings = Buffer.concat(
    Array.from({ length: 500 }, () => frameBytes(opcodes.ping, "p".repeat(125), { mask: true })),
  );
  const pump = new Pump(client, Math.floor(TOTAL_BYTES / pings.length), () => pings);
  await pump.stalled();
  expect(pump.isDone).toBe(false);
  expect(pump.taken).toBeLessThan(MAX_TAKEN_BYTES);
  client.destroy();
  await origin.ended();
});

const BACKLOG = 256;

/** Hands all messages to the system at once, and waits until no more are taken. */
async function writeBacklog(peer: Peer, mask: boolean): Promise<void> {
  for (let index = 0; index < BACKLOG; index++) peer.write(numbered(mask)(index));
  let before = -1;
  await eventually(
    () => {
      const isSame = before === peer.socket.writableLength;
      before = peer.socket.writableLength;
      return isSame;
    },
    { intervalMs: 100 },
  );
}

test("data queued for a slow client arrives before the target's Close", async () => {
  const { client, origin } = await scene.open();
  client.socket.pause();
  await writeBacklog(origin, false);
  origin.send(opcodes.close, closePayload(4000, "late"));
  await readNumbered(client, BACKLOG);
  expect(await client.closeFrame()).toEqual([4000, "late"]);
  client.send(opcodes.close, closePayload(4000, "late"));
  await origin.ended();
  await eventually(() => scene.openCount() === 0);
});

test("data queued for a slow client arrives after the target has vanished", async () => {
  const { client, origin } = await scene.open();
  client.socket.pause();
  await writeBacklog(origin, false);
  origin.socket.end();
  await readNumbered(client, BACKLOG);
  await client.ended();
  expect(client.pending.length).toBe(0);
  await eventually(() => scene.openCount() === 0);
});

test("data queued for a slow target arrives before the client's Close", async () => {
  const { client, origin } = await scene.open();
  origin.socket.pause();
  await writeBacklog(client, true);
  client.send(opcodes.close, closePayload(4000, "late"));
  await readNumbered(origin, BACKLOG);
  expect(await origin.closeFrame()).toEqual([4000, "late"]);
  origin.send(opcodes.close, closePayload(4000, "late"));
  await origin.ended();
  await eventually(() => scene.openCount() === 0);
});

test("thousands of small messages to a target that starts late arrive in order", async () => {
  const { client, origin } = await scene.open();
  origin.socket.pause();
  const count = 200_000;
  const batch = (index: number) =>
    Buffer.concat(
      Array.from({ length: 1000 }, (_, at) =>
        frameBytes(opcodes.text, `${index * 1000 + at}`.padStart(60), { mask: true }),
      ),
    );
  const pump = new Pump(client, count / 1000, batch);
  await pump.stalled();
  // Read in the raw: a frame at a time would take the test too long.
  const frameSize = 6 + 60;
  const before = origin.receivedBytes;
  origin.socket.resume();
  await eventually(() => origin.receivedBytes - before === count * frameSize);
  const bytes = origin.pending;
  for (let index = 0; index < count; index += 997) {
    const start = index * frameSize;
    const text = Buffer.from(bytes.subarray(start + 6, start + frameSize));
    for (let at = 0; at < text.length; at++) text[at] = text[at]! ^ bytes[start + 2 + (at & 3)]!;
    expect(Number(text.toString())).toBe(index);
  }
  client.destroy();
  await origin.ended();
});
