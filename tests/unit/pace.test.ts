// Slices of long work: how long they are, and when work pauses between them.
import { expect, test } from "bun:test";
import { finish, Pace, type Steps } from "../../src/pace.ts";

function* steps(count: number, done: number[]): Steps<string> {
  for (let step = 0; step < count; step++) {
    done.push(step);
    yield;
  }
  return "done";
}

test("no slice exceeds its number of objects", async () => {
  const slices: number[] = [];
  const pace = new Pace({ objects: 10, ms: 1e6, rested: (objects) => slices.push(objects) });
  const done: number[] = [];
  expect(await pace.run(steps(35, done))).toBe("done");
  expect(done).toHaveLength(35);
  expect(slices).toEqual([10, 10, 10]);
});

test("a slice ends when its time is over, however few objects it had", async () => {
  const slices: number[] = [];
  const pace = new Pace({ objects: 1e6, ms: 0, rested: (objects) => slices.push(objects) });
  await pace.run(steps(3, []));
  expect(slices).toEqual([1, 1, 1]);
});

test("timers and sockets get their turn between two slices", async () => {
  const order: string[] = [];
  const pace = new Pace({ objects: 1, ms: 1e6, rested: () => order.push("rested") });
  setImmediate(() => order.push("another"));
  await pace.run(steps(1, []));
  expect(order).toEqual(["another", "rested"]);
});

test("work that fits into one slice does not wait, and nothing counts from before it", async () => {
  let rests = 0;
  const pace = new Pace({ objects: 3, ms: 1e6, rested: () => rests++ });
  await pace.run(steps(2, []));
  pace.begin();
  await pace.run(steps(2, []));
  expect(rests).toBe(0);
});

test("the same work can be done at once", () => {
  const done: number[] = [];
  expect(finish(steps(3, done))).toBe("done");
  expect(done).toEqual([0, 1, 2]);
});

test("an error of the work is thrown", async () => {
  function* failing(): Steps<void> {
    yield;
    throw new Error("broken");
  }
  await expect(new Pace().run(failing())).rejects.toThrow("broken");
  expect(() => finish(failing())).toThrow("broken");
});
