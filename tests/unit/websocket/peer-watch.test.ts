// When the gateway pings a WebSocket peer, when the peer is dead, and how long it has not read.
import { describe, expect, test } from "bun:test";
import { PeerWatch } from "../../../src/dataplane/websocket/peer-watch.ts";

describe("silence", () => {
  const IDLE = 100;

  test("causes one ping, and after the same period again the peer is dead", () => {
    const watch = new PeerWatch(1000);
    const results = [1000, 1099, 1100, 1150, 1199, 1200].map((now) =>
      watch.silence(now, IDLE, false),
    );
    expect(results).toEqual(["none", "none", "ping", "none", "none", "dead"]);
  });

  test("starts over with every frame, also after the ping", () => {
    const watch = new PeerWatch(0);
    watch.onActivity();
    expect(watch.silence(100, IDLE, false)).toBe("none");
    expect(watch.silence(199, IDLE, false)).toBe("none");
    expect(watch.silence(200, IDLE, false)).toBe("ping");
    watch.onActivity();
    expect(watch.silence(299, IDLE, false)).toBe("none");
    expect(watch.silence(398, IDLE, false)).toBe("none");
    expect(watch.silence(399, IDLE, false)).toBe("ping");
    expect(watch.silence(499, IDLE, false)).toBe("dead");
  });

  test("does not count while it is excused", () => {
    const watch = new PeerWatch(0);
    expect(watch.silence(500, IDLE, true)).toBe("none");
    expect(watch.silence(599, IDLE, false)).toBe("none");
    expect(watch.silence(600, IDLE, false)).toBe("ping");
    expect(watch.silence(700, IDLE, true)).toBe("none");
    expect(watch.silence(800, IDLE, false)).toBe("ping");
  });

  test("a timer that is late by many periods pings first", () => {
    const watch = new PeerWatch(0);
    expect(watch.silence(100_000, IDLE, false)).toBe("ping");
    expect(watch.silence(100_001, IDLE, false)).toBe("none");
  });
});

describe("buffered bytes", () => {
  test("count from the tick at which they stopped progressing", () => {
    const watch = new PeerWatch(0);
    expect(watch.stalledFor(100, 0)).toBe(0);
    expect(watch.stalledFor(200, 50)).toBe(0);
    expect(watch.stalledFor(300, 50)).toBe(100);
    expect(watch.stalledFor(400, 49)).toBe(0);
    expect(watch.stalledFor(500, 49)).toBe(100);
    expect(watch.stalledFor(600, 49)).toBe(200);
  });

  test("do not count once all have gone out", () => {
    const watch = new PeerWatch(0);
    watch.stalledFor(100, 50);
    expect(watch.stalledFor(200, 0)).toBe(0);
    expect(watch.stalledFor(9000, 0)).toBe(0);
    expect(watch.stalledFor(9100, 50)).toBe(0);
  });
});
