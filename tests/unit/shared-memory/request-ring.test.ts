// The ring of recent requests: entries are read whole or not at all, with several threads writing at once.
import { afterEach, describe, expect, spyOn, test } from "bun:test";
import { RequestRing } from "../../../src/shared-memory/request-ring.ts";
import { TrafficMetrics } from "../../../src/shared-memory/traffic-metrics.ts";
import type { CountingTask } from "./counting-thread.ts";
import { factsOf } from "./request-facts.ts";

const threads: Worker[] = [];
afterEach(() => {
  for (const thread of threads.splice(0)) thread.terminate();
});

test("an entry is read as it was written", () => {
  const ring = RequestRing.create(10);
  ring.write(factsOf(3, 7), 3);
  expect(ring.read(0)).toEqual({ ...factsOf(3, 7), sequence: 0, cut: [] });
  expect(ring.read(1)).toBeNull();
  expect(new RequestRing(ring.buffer).read(0)?.id).toBe("3-7");
});

test("the newest entries overwrite the oldest", () => {
  const ring = RequestRing.create(4);
  for (let request = 0; request < 10; request++) ring.write(factsOf(0, request), 0);
  expect(ring.next).toBe(10);
  expect(Array.from({ length: 10 }, (_, sequence) => ring.read(sequence)?.id ?? null)).toEqual([
    ...Array.from({ length: 6 }, () => null),
    "0-6",
    "0-7",
    "0-8",
    "0-9",
  ]);
});

test("a text that is too long is truncated and marked; no text overwrites another one or another request", () => {
  const ring = RequestRing.create(3);
  const long = (character: string) => character.repeat(5000);
  const facts = factsOf(0, 0);
  const longTexts = Object.fromEntries(
    Object.entries(facts).map(([name, value]) => [
      name,
      typeof value === "string" && name !== "kind" ? long(name[0] ?? "") : value,
    ]),
  ) as unknown as typeof facts;
  ring.write(factsOf(0, 1), 0);
  ring.write(longTexts, 0);
  ring.write(factsOf(0, 2), 0);
  const entry = ring.read(1)!;
  expect(new Set(entry.cut).size).toBe(14);
  expect(entry.target).toMatch(/^t{200,}$/);
  expect(entry.user_agent).toMatch(/^u+$/);
  expect(entry.http_version).toMatch(/^h+$/);
  expect([ring.read(0)?.id, ring.read(2)?.id]).toEqual(["0-1", "0-2"]);
});

test("characters outside Latin-1 are safe", () => {
  const ring = RequestRing.create(1);
  ring.write({ ...factsOf(0, 0), user_agent: "\u{1f600} ünï\n", host: "ﬀ" }, 0);
  expect(ring.read(0)?.user_agent).toContain("ünï");
});

describe("with several threads", () => {
  test("an entry never mixes two requests, whatever is written meanwhile", async () => {
    const ring = RequestRing.create(64);
    const traffic = TrafficMetrics.create(4);
    const done: Promise<unknown>[] = [];
    for (let worker = 0; worker < 4; worker++) {
      const thread = new Worker(new URL("./counting-thread.ts", import.meta.url));
      threads.push(thread);
      done.push(new Promise((resolve) => thread.addEventListener("message", resolve)));
      const task: CountingTask = {
        traffic: traffic.memoryFor(worker),
        ring: ring.buffer,
        worker,
        keys: ["a"],
        requests: 100_000,
      };
      thread.postMessage(task);
    }
    const state = { isOver: false };
    void Promise.all(done).then(() => {
      state.isOver = true;
    });
    let read = 0;
    while (!state.isOver) {
      for (let back = 1; back <= 64; back++) {
        const entry = ring.read(ring.next - back);
        if (entry === null) continue;
        read++;
        const expected = factsOf(entry.status - 200, entry.attempts);
        if (!Bun.deepEquals(entry, { ...expected, sequence: entry.sequence, cut: entry.cut }))
          throw new Error(`a mixture: ${JSON.stringify(entry)}`);
      }
      await Bun.sleep(0);
    }
    expect(ring.next).toBe(400_000);
    expect(read).toBeGreaterThan(0);
  });

  test("an entry whose slot is locked just after a look at the lock is not read before it is written", () => {
    const ring = RequestRing.create(1);
    ring.write(factsOf(0, 0), 0);
    const [locks, floats] = [new Int32Array(ring.buffer, 64), new Float64Array(ring.buffer, 64)];
    let looks = 0;
    // What another thread does with the second request: it begins after the first look, and has ended before the second one.
    const spies = (["load", "compareExchange"] as const).map((name) => {
      const look = Atomics[name] as (...args: readonly unknown[]) => unknown;
      return spyOn(Atomics, name).mockImplementation(((...args: readonly unknown[]) => {
        if (++looks === 2) locks[0] = 0;
        const found = look(...args);
        if (looks === 1) [locks[0], floats[2]] = [1, 2];
        return found;
      }) as never);
    });
    const entry = ring.read(1);
    for (const spy of spies) spy.mockRestore();
    expect(entry).toBeNull();
  });

  test("a slot that a thread was writing when it died is free again", () => {
    const ring = RequestRing.create(2);
    ring.write(factsOf(0, 0), 0);
    // As left by a thread that dies while writing.
    const locks = new Int32Array(ring.buffer, 64);
    locks[0] = 1 + 1;
    expect(ring.read(0)).toBeNull();
    ring.write(factsOf(0, 1), 0);
    ring.write(factsOf(0, 2), 0);
    expect(ring.read(2)).toBeNull();
    ring.forgetWorker(1);
    expect(ring.read(0)).toBeNull();
    ring.write(factsOf(0, 3), 0);
    ring.write(factsOf(0, 4), 0);
    expect([ring.read(3)?.id, ring.read(4)?.id]).toEqual(["0-3", "0-4"]);
  });
});

test("resizing keeps the entries that fit, newest first, with their ids", () => {
  const [small, large] = [RequestRing.create(3), RequestRing.create(10)];
  for (let request = 0; request < 8; request++) large.write({ ...factsOf(0, request), id: "" }, 0);
  small.copyFrom(large, ({ sequence }) => `id-${sequence}`);
  expect([0, 1, 2].map((sequence) => small.read(sequence)?.id)).toEqual(["id-5", "id-6", "id-7"]);
});
