// The fetches of one worker and the requests that wait for them, with the flights of all workers.
import { expect, test } from "bun:test";
import { Fills } from "../../../src/plugins/response-cache/fills.ts";
import { createFlights, Flights } from "../../../src/shared-memory/cache/flights.ts";

const target = { key: "k", resource: "/", epoch: 0 };
const { signal } = new AbortController();

/** Two workers. */
function world() {
  const buffer = createFlights();
  const of = (thread: number) => {
    const flights = new Flights(buffer, { thread, isOutdated: () => false });
    return new Fills({
      lead: flights.lead.bind(flights),
      follow: flights.follow.bind(flights),
    });
  };
  return { one: of(1), other: of(2) };
}

/** The end to wait for. */
function endOf(fills: Fills) {
  const joined = fills.join(target);
  if (!(joined instanceof Promise)) throw new Error("it does not wait");
  return joined;
}

test("the first request leads, those of all workers wait for it and look", async () => {
  const { one, other } = world();
  const fill = one.join(target);
  if (fill instanceof Promise) throw new Error("it does not lead");
  expect(fill.flight).not.toBeNull();
  const waiting = [one, one, other].map((fills) => fills.wait(endOf(fills), signal));
  one.stored(fill);
  expect(await Promise.all(waiting)).toEqual(["look", "look", "look"]);
});

test("of one worker 10,000 requests wait, and further ones fetch until one of those has left", async () => {
  const { one, other } = world();
  const fill = other.lead(target);
  const leaving = new AbortController();
  const waiting = Array.from({ length: 9999 }, () => one.wait(endOf(one), signal));
  const left = one.wait(endOf(one), leaving.signal);
  expect(one.join(target)).toEqual({ flight: null });
  leaving.abort();
  expect(await left).toBe("fetch");
  waiting.push(one.wait(endOf(one), signal));
  expect(one.join(target)).toEqual({ flight: null });
  if (fill !== null) other.uncacheable(fill);
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(["fetch"]));
  const next = one.join(target);
  if (next instanceof Promise) throw new Error("it does not lead");
  expect(next.flight).not.toBeNull();
  one.abandoned(next);
});

test("a client that has disconnected already does not wait", async () => {
  const { one } = world();
  const fill = one.lead(target);
  expect(await one.wait(endOf(one), AbortSignal.abort())).toBe("fetch");
  if (fill !== null) one.stored(fill);
});

test("the end of an instance releases its waiting requests, and those of other workers that wait for its fetches", async () => {
  const { one, other } = world();
  one.lead(target);
  other.lead({ ...target, key: "other" });
  const own = one.wait(endOf(one), signal);
  const elsewhere = other.wait(endOf(other), signal);
  const ofOther = one.join({ ...target, key: "other" });
  if (!(ofOther instanceof Promise)) throw new Error("it does not wait");
  const waiting = one.wait(ofOther, signal);
  one.close();
  expect(await Promise.all([own, elsewhere, waiting])).toEqual(["fetch", "fetch", "fetch"]);
  other.close();
});
