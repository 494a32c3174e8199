// How much heavy work runs at once, waits, and is rejected.
import { expect, test } from "bun:test";
import { VerificationQueue } from "../../../src/auth/verification-queue.ts";
import type { ApiError } from "../../../src/model/error.ts";

test("runs and queues up to its limits, rejects the rest, and continues in order", async () => {
  const queue = new VerificationQueue({ running: 2, waiting: 3 });
  const started: number[] = [];
  const gates = Array.from({ length: 6 }, () => Promise.withResolvers<void>());
  const results = gates.map(({ promise }, index) =>
    queue
      .run(async () => {
        started.push(index);
        await promise;
        return index;
      })
      .catch((error: unknown) => error),
  );
  const refused = (await results[5]) as ApiError;
  expect([refused.status, refused.headers]).toEqual([429, { "retry-after": "1" }]);
  expect(started).toEqual([0, 1]);
  gates[1]!.resolve();
  expect(await results[1]).toBe(1);
  await Promise.resolve();
  expect(started).toEqual([0, 1, 2]);
  gates[2]!.reject(new Error("broken"));
  expect(await results[2]).toEqual(new Error("broken"));
  await Promise.resolve();
  expect(started).toEqual([0, 1, 2, 3]);
  for (const gate of gates) gate.resolve();
  expect(await Promise.all(results.slice(3, 5))).toEqual([3, 4]);
  expect(await queue.run(() => Promise.resolve("again"))).toBe("again");
});
