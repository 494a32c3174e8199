// When a peer of a WebSocket is asked for a sign of life, when it is gone, and how long it has taken nothing.
import { describe, expect, test } from "bun:test";
import { PeerWatch } from "../../../src/dataplane/websocket/peer-watch.ts";

describe("silence", () => {
  const IDLE = 100;

  test("is asked about once, and its end awaited as long again", () => {
    const watch = new PeerWatch(1000);
    const verdicts = [1000, 1099, 1100, 1150, 1199, 1200].map((now) =>
      watch.silence(now, IDLE, false),
    );
    expect(verdicts).toEqual(["none", "none", "ask", "none", "none", "gone"]);
  });

  test("begins anew with everything that comes, also after the question", () => {
    const watch = new PeerWatch(0);
    watch.spoke();
    expect(watch.silence(100, IDLE, false)).toBe("none");
    expect(watch.silence(199, IDLE, false)).toBe("none");
    expect(watch.silence(200, IDLE, false)).toBe("ask");
    watch.spoke();
    expect(watch.silence(299, IDLE, false)).toBe("none");
    expect(watch.silence(398, IDLE, false)).toBe("none");
    expect(watch.silence(399, IDLE, false)).toBe("ask");
    expect(watch.silence(499, IDLE, false)).toBe("gone");
  });

  test("does not count while it is excused", () => {
    const watch = new PeerWatch(0);
    expect(watch.silence(500, IDLE, true)).toBe("none");
    expect(watch.silence(599, IDLE, false)).toBe("none");
    expect(watch.silence(600, IDLE, false)).toBe("ask");
    expect(watch.silence(700, IDLE, true)).toBe("none");
    expect(watch.silence(800, IDLE, false)).toBe("ask");
  });

  test("a clock that was late by many periods asks before it gives up", () => {
    const watch = new PeerWatch(0);
    expect(watch.silence(100_000, IDLE, false)).toBe("ask");
    expect(watch.silence(100_001, IDLE, false)).toBe("none");
  });
});

describe("bytes that wait", () => {
  test("count from the look at which they stood still", () => {
    const watch = new PeerWatch(0);
    expect(watch.stuckFor(100, 0)).toBe(0);
    expect(watch.stuckFor(200, 50)).toBe(0);
    expect(watch.stuckFor(300, 50)).toBe(100);
    expect(watch.stuckFor(400, 49)).toBe(0);
    expect(watch.stuckFor(500, 49)).toBe(100);
    expect(watch.stuckFor(600, 49)).toBe(200);
  });

  test("are none when all have gone out, however long ago", () => {
    const watch = new PeerWatch(0);
    watch.stuckFor(100, 50);
    expect(watch.stuckFor(200, 0)).toBe(0);
    expect(watch.stuckFor(9000, 0)).toBe(0);
    expect(watch.stuckFor(9100, 50)).toBe(0);
  });
});
