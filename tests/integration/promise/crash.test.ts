// After a kill -9 the last acknowledged configuration is there and served, at most with the one change that was on its way, whole.
import { afterEach, expect, test } from "bun:test";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { Random, seedOfRun } from "../../support/random.ts";
import { callOf, carryOut, readEverything, worldOf } from "./carry-out.ts";
import { probe, startOrigins } from "./probing.ts";
import { emptyWorld, type Mutation, Mutations, outcomes, type WorldState } from "./world.ts";

const CHANGES = 200;
/** Changes between two kills. */
const FEWEST = 1;
const MOST = 9;
/** A change takes a few milliseconds: kills fall before, into and behind it. */
const LONGEST_WAIT_MS = 6;
/** Changes that are on their way at once in the second test, and how often. */
const CROWD = 12;
const CROWDS = 10;

const cleanups = cleanupsOf(afterEach);

test("a kill -9 at any moment of 200 changes loses nothing acknowledged and leaves no partial change", async () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  const origins = startOrigins(4);
  cleanups.push(() => origins.stop());
  const gateway = await startGateway();
  cleanups.push(() => gateway.stop());
  const mutations = new Mutations(random, { ports: origins.ports, size: 12 });

  let state = emptyWorld;
  for (let change = 1; change <= CHANGES;) {
    const killAt = Math.min(change + random.between(FEWEST, MOST), CHANGES);
    for (; change < killAt; change++) {
      const mutation = mutations.next(state);
      await carryOut(gateway, mutation);
      state = mutation.after;
    }
    change++;
    const mutation = mutations.next(state);
    const what = `seed ${seed}, change ${killAt}: ${mutation.method} ${mutation.path}`;
    const before = await readEverything(gateway);
    expect(worldOf(before), what).toEqual(state);
    const isAcknowledged = await killDuring(gateway, mutation, random.next() * LONGEST_WAIT_MS);
    await gateway.start();
    const after = await readEverything(gateway);
    state = judge({ before, after, state, mutation, isAcknowledged, what });
    await probe(gateway.httpPort, outcomes(state), { count: 2, each: () => undefined }).catch(
      (error: unknown) => {
        throw new Error(what, { cause: error });
      },
    );
  }
});

test("a kill -9 among concurrent changes keeps each acknowledged one and each other one whole or not at all", async () => {
  const seed = seedOfRun();
  const random = new Random(seed);
  const gateway = await startGateway();
  cleanups.push(() => gateway.stop());
  const targets = [1, 2, 3].map((port) => ({ host: "127.0.0.1", port }));
  const acknowledged = new Set<string>();
  for (let crowd = 0; crowd < CROWDS; crowd++) {
    const enough = Promise.withResolvers<void>();
    let untilKill = random.between(1, CROWD);
    const creations = Array.from({ length: CROWD }, async (_, index) => {
      const name = `service-${crowd}-${index}`;
      const call = gateway.api("POST", "/api/v1/services", { name, targets });
      const response = await call.catch(() => null);
      if (response?.status === 200) acknowledged.add(name);
      if (--untilKill === 0) enough.resolve();
    });
    await enough.promise;
    await Bun.sleep(random.next() * LONGEST_WAIT_MS);
    await gateway.kill9();
    await Promise.all(creations);
    await gateway.start();
    const { services } = worldOf(await readEverything(gateway));
    const what = `seed ${seed}, crowd ${crowd}`;
    expect(Object.keys(services), what).toEqual(expect.arrayContaining([...acknowledged]));
    for (const [name, service] of Object.entries(services))
      expect(Object.keys(service.targets), `${what}, ${name}`).toEqual(["1", "2", "3"]);
  }
  expect(acknowledged.size).toBeGreaterThanOrEqual(CROWDS);
});

/** Sends a mutation and kills the gateway a little later; true when the reply had arrived. */
async function killDuring(gateway: Gateway, mutation: Mutation, waitMs: number): Promise<boolean> {
  const call = await callOf(gateway, mutation);
  let isAcknowledged = false;
  // The status alone confirms the change; the kill may still cut the body.
  const reply = call().then(
    ({ status }) => {
      isAcknowledged = status === 200;
    },
    () => undefined,
  );
  await Bun.sleep(waitMs);
  await gateway.kill9();
  await reply;
  return isAcknowledged;
}

interface Evidence {
  readonly before: Record<string, string>;
  readonly after: Record<string, string>;
  readonly state: WorldState;
  readonly mutation: Mutation;
  readonly isAcknowledged: boolean;
  readonly what: string;
}

/** The state that the restarted gateway is in, which must be one of those that are allowed. */
function judge({ before, after, state, mutation, isAcknowledged, what }: Evidence): WorldState {
  if (isAcknowledged || !Bun.deepEquals(before, after)) {
    expect(worldOf(after), `${what}, acknowledged: ${isAcknowledged}`).toEqual(mutation.after);
    return mutation.after;
  }
  return state;
}
