// Many that wait for the same thing look as often as one.
import { expect, test } from "bun:test";
import { SharedLook } from "../../../src/fleet/shared-look.ts";

test("a hundred that wait look as often as one, and each gets what was there after it began to wait", async () => {
  let looks = 0;
  let head = 0;
  const look = async () => {
    if (++looks === 8) head = 1;
    const seen = head;
    await Bun.sleep(1);
    return seen;
  };
  const shared = new SharedLook(look);
  const wait = async (until: number) => {
    let seen = await shared.first();
    while (seen < until) seen = await shared.next();
    return seen;
  };
  const waiting = Array.from({ length: 100 }, () => wait(1));
  expect(new Set(await Promise.all(waiting))).toEqual(new Set([1]));
  expect(looks).toBeLessThan(20);
  head = 2;
  expect(await wait(2)).toBe(2);
});

test("one that begins to wait does not wait for the pause of the others, and an error reaches all", async () => {
  const state: { seen: number; error: Error | null } = { seen: 0, error: null };
  const shared = new SharedLook(async () => {
    if (state.error !== null) throw state.error;
    return ++state.seen;
  });
  for (let look = 0; look < 6; look++) await shared.next();
  const slow = shared.next();
  const fast = shared.first();
  expect(await fast).toBe(await slow);
  state.error = new Error("the database is away");
  const failing = [shared.first(), shared.next()].map((each) =>
    each.catch((error: Error) => error.message),
  );
  expect(await Promise.all(failing)).toEqual(["the database is away", "the database is away"]);
});
