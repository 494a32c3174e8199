// WebSockets whose frames the engine follows: what a target sends together with its 101.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { frameBytes, opcodes, switching } from "../websocket/peer.ts";
import { type Scene, startScene } from "../websocket/scene.ts";

describe("our own engine:", () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await startScene({ listener: { engine: "sluice" } });
  });
  afterAll(() => scene.stop());

  test.each([1, 3, 6])(
    "%d bytes of a frame in the segment of the target's 101 do not stop the rest",
    async (size) => {
      const { client, origin, head } = await scene.knock();
      const frame = frameBytes(opcodes.text, "early");
      origin.write(Buffer.concat([Buffer.from(switching(head)), frame.subarray(0, size)]));
      await client.head();
      origin.write(frame.subarray(size));
      expect((await client.frame()).payload.toString()).toBe("early");
      // And what follows, both ways.
      client.send(opcodes.text, "up");
      expect((await origin.frame()).payload.toString()).toBe("up");
      origin.send(opcodes.text, "down");
      expect((await client.frame()).payload.toString()).toBe("down");
    },
  );

  test("frames that a client sends before the 101 reach the target behind it", async () => {
    const { client, origin, head } = await scene.knock();
    client.send(opcodes.text, "at once");
    origin.write(switching(head));
    await client.head();
    expect((await origin.frame()).payload.toString()).toBe("at once");
  });
});
