// A thread whose requests lead and follow flights as a worker's do; run by cache-flights.test.ts.
import { Flights } from "../../../src/shared-memory/cache/flights.ts";

declare const self: Worker;

/** Words of the memory that the threads of a test share. */
export const words = { epoch: 0, following: 1, waits: 2, isOpen: 3, tooMany: 4, keys: 8 } as const;

/** Requests for one key each; `keys + 2 n` counts the fetches of key n, `keys + 2 n + 1` is 1 once its response is stored. */
export interface FlightTask {
  readonly flights: SharedArrayBuffer;
  readonly shared: SharedArrayBuffer;
  /** From 1. */
  readonly thread: number;
  readonly keys: readonly number[];
  /** `once`: a fetch lasts until `isOpen`, then the response is stored; `fail`: then it ends with `fetch`. */
  readonly mode: "once" | "fail" | "load";
  /** Flights that each request of `load` leads or follows. */
  readonly rounds: number;
}

self.onmessage = async ({ data }: MessageEvent<FlightTask>) => {
  const shared = new Int32Array(data.shared);
  const { waitAsync } = Atomics;
  Atomics.waitAsync = ((...args: Parameters<typeof waitAsync>) => {
    Atomics.add(shared, words.waits, 1);
    return waitAsync(...args);
  }) as typeof waitAsync;
  const flights = new Flights(data.flights, {
    thread: data.thread,
    isOutdated: (_, epoch) => Atomics.load(shared, words.epoch) > epoch,
  });
  const serve = data.mode === "load" ? hammer : request;
  await Promise.all(data.keys.map((key) => serve(flights, shared, { ...data, key })));
  self.postMessage("done");
};

const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));

type Request = FlightTask & { readonly key: number };

async function request(flights: Flights, shared: Int32Array, { key, mode }: Request) {
  const [fetches, stored] = [words.keys + 2 * key, words.keys + 2 * key + 1];
  for (;;) {
    if (Atomics.load(shared, stored) === 1) return;
    const verdict = flights.follow(`key ${key}`, "/", 30_000);
    if (verdict !== null) {
      Atomics.add(shared, words.following, 1);
      if ((await verdict) === "look") continue;
      Atomics.add(shared, fetches, 1);
      return;
    }
    const flight = flights.lead(`key ${key}`, "/", Atomics.load(shared, words.epoch));
    if (flight === null) continue;
    // The response may have been stored since the look.
    if (Atomics.load(shared, stored) === 1) return flight.end("look");
    Atomics.add(shared, fetches, 1);
    while (Atomics.load(shared, words.isOpen) === 0) await turn();
    if (mode === "once") Atomics.store(shared, stored, 1);
    flight.end(mode === "once" ? "look" : "fetch");
    return;
  }
}

/** Leads and follows until so many flights have ended, and counts fetches that led at the same time. */
async function hammer(flights: Flights, shared: Int32Array, { key, rounds }: Request) {
  const [fetches, leading] = [words.keys + 2 * key, words.keys + 2 * key + 1];
  for (let round = 0; round < rounds;) {
    const flight = flights.lead(`key ${key}`, "/", 0);
    if (flight === null) {
      const verdict = flights.follow(`key ${key}`, "/", 30_000);
      if (verdict === null) continue;
      Atomics.add(shared, words.following, 1);
      await verdict;
      round++;
      continue;
    }
    if (Atomics.add(shared, leading, 1) !== 0) Atomics.add(shared, words.tooMany, 1);
    Atomics.add(shared, fetches, 1);
    if (round % 4 === 0) await turn();
    Atomics.sub(shared, leading, 1);
    flight.end(round % 2 === 0 ? "look" : "fetch");
    round++;
  }
}
