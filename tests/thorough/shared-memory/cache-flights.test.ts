// Fetches that requests of several threads wait for: one leads, however it ends, and no follower waits for ever.
import { afterEach, expect, test } from "bun:test";
import { createFlights, Flights, forgetFlights } from "../../../src/shared-memory/cache/flights.ts";
import { eventually } from "../../support/poll.ts";
import { type FlightTask, words } from "./cache-flights-thread.ts";

const threads: Worker[] = [];
afterEach(() => {
  for (const thread of threads.splice(0)) thread.terminate();
});

/** A thread, and the end of its task. */
function startThread(task: FlightTask): { thread: Worker; done: Promise<void> } {
  const thread = new Worker(new URL("./cache-flights-thread.ts", import.meta.url));
  threads.push(thread);
  const { promise: done, resolve, reject } = Promise.withResolvers<void>();
  thread.addEventListener("message", () => resolve());
  thread.addEventListener("error", (event) => reject(new Error(event.message)));
  thread.postMessage(task);
  return { thread, done };
}

const THREADS = 4;
const REQUESTS = 50;

/** Four threads with 50 requests for one key; resolves when one of them leads and all others of the living ones wait. */
async function crowd(mode: FlightTask["mode"]) {
  const task = { flights: createFlights(), shared: new SharedArrayBuffer(4096), mode, rounds: 0 };
  const shared = new Int32Array(task.shared);
  const keys = Array.from({ length: REQUESTS }, () => 0);
  const all = Array.from({ length: THREADS }, (_, index) =>
    startThread({ ...task, thread: index + 1, keys }),
  );
  const read = (index: number) => Atomics.load(shared, index);
  const following = (count: number) => eventually(() => read(words.following) === count);
  await following(THREADS * REQUESTS - 1);
  const open = async (which = all) => {
    Atomics.store(shared, words.isOpen, 1);
    await Promise.all(which.map(({ done }) => done));
  };
  return { ...task, read, following, open, all, fetches: () => read(words.keys) };
}

/** The flights of one thread in this thread, with a simulated clock. */
function world(slots = 4096) {
  const state = { now: 1_000_000, epoch: 0 };
  const buffer = createFlights(slots);
  const of = (thread: number) =>
    new Flights(buffer, {
      thread,
      isOutdated: (resource, epoch) => resource === "/" && state.epoch > epoch,
      now: () => state.now,
    });
  return { state, buffer, of };
}

test("one fetch is enough for 50 requests in each of four threads, with one wait per thread", async () => {
  const { open, fetches, read } = await crowd("once");
  expect(fetches()).toBe(1);
  await open();
  expect(fetches()).toBe(1);
  expect(read(words.waits)).toBe(THREADS);
});

test("when the response cannot be shared, each request fetches", async () => {
  const { open, fetches } = await crowd("fail");
  await open();
  expect(fetches()).toBe(THREADS * REQUESTS);
});

test("when the leader's thread is terminated, one follower of another thread leads", async () => {
  const { all, flights, read, following, open, fetches } = await crowd("once");
  const owners = new Int32Array(flights, 16 + 4096 * 20, 4096);
  const leader = owners.find((owner) => owner !== 0)!;
  const { thread } = all[leader - 1]!;
  const closed = new Promise((resolve) => thread.addEventListener("close", resolve));
  thread.terminate();
  await closed;
  const before = read(words.following);
  forgetFlights(flights, leader);
  // All requests of the others but their first wait again.
  await following(before + (THREADS - 1) * REQUESTS - 1);
  expect(fetches()).toBe(2);
  await open(all.filter((_, index) => index + 1 !== leader));
  expect(fetches()).toBe(2);
});

test("100,000 flights in 16 slots: one leader at a time for each key, and every follower continues", async () => {
  const task = { flights: createFlights(16), shared: new SharedArrayBuffer(4096) };
  const shared = new Int32Array(task.shared);
  const keys = [0, 1, 2, 3, 0, 1, 2, 3];
  const rounds = 100_000 / THREADS / keys.length;
  const all = Array.from({ length: THREADS }, (_, index) =>
    startThread({ ...task, thread: index + 1, keys, rounds, mode: "load" }),
  );
  await Promise.all(all.map(({ done }) => done));
  let ended = Atomics.load(shared, words.following);
  for (const key of [0, 1, 2, 3]) ended += shared[words.keys + 2 * key] ?? 0;
  expect(ended).toBe(100_000);
  expect(Atomics.load(shared, words.following)).toBeGreaterThan(0);
  expect(Atomics.load(shared, words.tooMany)).toBe(0);
});

test("however many threads end at any step, the others continue, and all slots are free afterwards", async () => {
  const task = { flights: createFlights(16), shared: new SharedArrayBuffer(4096) };
  const shared = new Int32Array(task.shared);
  const keys = [0, 1, 2, 3, 0, 1, 2, 3];
  let number = 0;
  const begin = (rounds: number) =>
    startThread({ ...task, thread: ++number, keys, rounds, mode: "load" });
  const staying = begin(20_000);
  for (let ended = 0; ended < 20; ended++) {
    const { thread } = begin(1_000_000);
    const before = Atomics.load(shared, words.following);
    await eventually(() => Atomics.load(shared, words.following) > before + ended);
    const closed = new Promise((resolve) => thread.addEventListener("close", resolve));
    thread.terminate();
    await closed;
    forgetFlights(task.flights, number);
  }
  await staying.done;
  const flights = new Flights(task.flights, { thread: ++number, isOutdated: () => false });
  const all = Array.from({ length: 16 }, (_, index) => flights.lead(`key ${index}`, "/", 0));
  expect(all.every((flight) => flight !== null)).toBe(true);
});

test("followers of one thread share a promise, and learn the verdict", async () => {
  const { of } = world();
  const [one, other] = [of(1), of(2)];
  expect(one.follow("k", "/", 1000)).toBeNull();
  for (const verdict of ["look", "fetch", "look"] as const) {
    const flight = one.lead("k", "/", 0)!;
    expect(other.lead("k", "/", 0)).toBeNull();
    const waiting = other.follow("k", "/", 1000)!;
    expect(other.follow("k", "/", 1000)).toBe(waiting);
    expect(other.follow("other", "/", 1000)).toBeNull();
    flight.end(verdict);
    expect(other.follow("k", "/", 1000)).toBeNull();
    expect(await waiting).toBe(verdict);
  }
});

test("a flight ends once: its slot's next flight stays", () => {
  const { of } = world(16);
  const first = of(1).lead("k", "/", 0)!;
  first.end("look");
  const others = Array.from({ length: 16 }, (_, index) => of(1).lead(`other ${index}`, "/", 0));
  expect(others.every((flight) => flight !== null)).toBe(true);
  first.end("look");
  expect(of(2).lead("other 0", "/", 0)).toBeNull();
  expect(of(2).follow("other 15", "/", 1000)).not.toBeNull();
  for (const flight of others) flight?.end("look");
});

test("a follower that looks only after its slot has another flight looks again", async () => {
  const { of } = world(16);
  const flight = of(1).lead("k", "/", 0)!;
  const waiting = of(2).follow("k", "/", 1000)!;
  flight.end("fetch");
  const others = Array.from({ length: 16 }, (_, index) => of(1).lead(`other ${index}`, "/", 0));
  expect(await waiting).toBe("look");
  for (const each of others) each?.end("look");
});

test("requests after an invalidation wait for no fetch from before it, those before it still do", async () => {
  const { state, of } = world();
  const flights = of(1);
  const old = flights.lead("k", "/", 0)!;
  const before = flights.follow("k", "/", 1000)!;
  const elsewhere = flights.lead("e", "/elsewhere", 0)!;
  state.epoch = 1;
  expect(flights.follow("k", "/", 1000)).toBeNull();
  expect(flights.follow("e", "/elsewhere", 1000)).not.toBeNull();
  const next = flights.lead("k", "/", 1)!;
  const after = flights.follow("k", "/", 1000)!;
  old.end("fetch");
  expect(await before).toBe("fetch");
  expect(flights.follow("k", "/", 1000)).toBe(after);
  next.end("look");
  expect(await after).toBe("look");
  elsewhere.end("look");
});

test("a wait ends after its timeout, and another one may begin", async () => {
  const flights = world().of(1);
  const flight = flights.lead("k", "/", 0)!;
  expect(await flights.follow("k", "/", 20)).toBe("fetch");
  const waiting = flights.follow("k", "/", 10_000)!;
  flight.end("look");
  expect(await waiting).toBe("look");
});

test("after 30 seconds a fetch has no further followers, and another one may lead", () => {
  const { state, of } = world();
  const [one, other] = [of(1), of(2)];
  const flight = one.lead("k", "/", 0)!;
  state.now += 29_999;
  expect(other.lead("k", "/", 0)).toBeNull();
  expect(other.follow("k", "/", 1)).not.toBeNull();
  state.now++;
  expect(one.follow("k", "/", 1)).toBeNull();
  const next = other.lead("k", "/", 0)!;
  expect(one.follow("k", "/", 1)).not.toBeNull();
  flight.end("look");
  next.end("look");
});

test("when all slots for a key are in use, its fetch has no followers, until one is free", () => {
  const { of } = world(16);
  const flights = of(1);
  const all = Array.from({ length: 16 }, (_, index) => flights.lead(`k ${index}`, "/", 0)!);
  expect(flights.lead("k 16", "/", 0)).toBeNull();
  expect(flights.follow("k 16", "/", 1)).toBeNull();
  all[7]!.end("look");
  const last = flights.lead("k 16", "/", 0)!;
  expect(last).not.toBeNull();
  for (const flight of [...all, last]) flight.end("look");
});

test("500 fetches at once have followers, in a table of less than 140 KB", () => {
  const { of, buffer } = world();
  const flights = of(1);
  for (let key = 0; key < 500; key++) expect(flights.lead(`k ${key}`, "/", 0)).not.toBeNull();
  expect(buffer.byteLength).toBeLessThan(140_000);
});

test("a thread that ended in the middle of a claim leaves its slot to others", () => {
  const { of, buffer } = world(16);
  for (let index = 0; index < 15; index++) of(2).lead(`k ${index}`, "/", 0);
  const owners = new Int32Array(buffer, 16 + 16 * 20, 16);
  owners[owners.indexOf(0)] = 1;
  expect(of(2).lead("last", "/", 0)).toBeNull();
  forgetFlights(buffer, 1);
  expect(of(2).lead("last", "/", 0)).not.toBeNull();
  forgetFlights(buffer, 2);
  for (let index = 0; index < 16; index++) expect(of(1).lead(`k ${index}`, "/", 0)).not.toBeNull();
});
