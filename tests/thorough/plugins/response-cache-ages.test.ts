// Ages of stored responses are the same in all threads, whose clocks count from their own starts.
import { expect, test } from "bun:test";
import { createCacheMemory } from "../../../src/shared-memory/cache/memory.ts";
import { eventually } from "../../support/poll.ts";

function start() {
  const thread = new Worker(new URL("./cache-reader.ts", import.meta.url));
  const ask = (input: object) =>
    new Promise<number | null>((resolve) => {
      thread.onmessage = ({ data }: MessageEvent<number | null>) => resolve(data);
      thread.postMessage(input);
    });
  return { thread, ask };
}

test("a thread that starts later reads the age that the storing thread means", async () => {
  const memory = createCacheMemory({ maxBytes: 4_194_304, maxFileBytes: 0, workers: 2 });
  const first = start();
  const begun = Date.now();
  // Their clocks must differ by more than the second one takes to start.
  await eventually(() => Date.now() - begun > 3000, { intervalMs: 100 });
  expect(await first.ask({ memory, worker: 0 })).toBeLessThan(60_000);
  const second = start();
  const age = await second.ask({ memory, worker: 1 });
  first.thread.terminate();
  second.thread.terminate();
  expect(age).toBeGreaterThan(-100);
  expect(age).toBeLessThan(60_000);
});
