// A peer that goes on sending after a Close has reached it: what it was sending arrives, and it does not keep the WebSocket open.
import { describe, expect, test } from "bun:test";
import { engines } from "../../support/engines.ts";
import { eventually } from "../../support/poll.ts";
import { closePayload, frameBytes, opcodes, type Peer } from "./peer.ts";
import { startScene } from "./scene.ts";

/** Sends the bytes again and again until the connection has closed. */
function flood(peer: Peer, bytes: Buffer): void {
  const timer = setInterval(() => {
    if (peer.isClosed) clearInterval(timer);
    else peer.write(bytes);
  }, 5);
}

const start = (engine: (typeof engines)[number], closingSeconds?: number) =>
  startScene({
    listener: { engine },
    ...(closingSeconds === undefined ? {} : { webSocketTimeouts: { closingSeconds } }),
  });

describe.each([...engines])("%s engine:", (engine) => {
  const ends = (scene: Awaited<ReturnType<typeof start>>, sender: string) =>
    scene.open().then(({ client, origin }) => ({
      closer: sender === "client" ? origin : client,
      endless: sender === "client" ? client : origin,
      mask: sender === "client",
    }));

  test.each(["client", "target"])(
    "a %s that sends messages without end after the other's Close is cut off",
    async (sender) => {
      const scene = await start(engine, 0.5);
      const { closer, endless, mask } = await ends(scene, sender);
      closer.send(opcodes.close, closePayload(1000));
      expect(await endless.closeFrame()).toEqual([1000, ""]);
      flood(endless, frameBytes(opcodes.text, "more", { mask }));
      await eventually(() => endless.isClosed && closer.isClosed);
      await eventually(() => scene.openCount() === 0);
      await scene.stop();
    },
  );

  test.each(["client", "target"])(
    "a %s whose frame has no end is cut off when its route is removed",
    async (sender) => {
      const scene = await start(engine, 0.5);
      const { closer, endless, mask } = await ends(scene, sender);
      const header = Buffer.from([0x82, (mask ? 0x80 : 0) | 127, 0, 0, 1, 0, 0, 0, 0, 0]);
      endless.write(mask ? Buffer.concat([header, Buffer.from([1, 2, 3, 4])]) : header);
      flood(endless, Buffer.alloc(100));
      // The other engines collect messages, up to their limit.
      if (engine === "sluice") await eventually(() => closer.pending.length > 100);
      await scene.gateway.apply({ removedRoutes: ["all"] });
      await eventually(() => endless.isClosed);
      await eventually(() => scene.openCount() === 0);
      await scene.stop();
    },
  );
});

// Where frames pass as they are: the other engines close the client themselves.
test.each(["client", "target"])(
  "what a %s sends between the other's Close and its own arrives",
  async (sender) => {
    const scene = await start("sluice");
    const { client, origin } = await scene.open();
    const [closer, other] = sender === "client" ? [origin, client] : [client, origin];
    closer.send(opcodes.close, closePayload(1000));
    expect(await other.closeFrame()).toEqual([1000, ""]);
    for (let count = 0; count < 20; count++) {
      other.send(opcodes.text, `message ${count}`);
      expect((await closer.frame()).payload.toString()).toBe(`message ${count}`);
    }
    other.send(opcodes.close, closePayload(1000));
    expect(await closer.closeFrame()).toEqual([1000, ""]);
    await Promise.all([closer.ended(), other.ended()]);
    await scene.stop();
  },
);
