// A change is in force in every worker when its reply arrives, and no other client notices it.
import { afterEach, expect, test } from "bun:test";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { Random, seedOfRun } from "../../support/random.ts";
import { carryOut } from "./carry-out.ts";
import { probe, startOrigins } from "./probing.ts";
import { startSteadyOrigin, startUnrelatedClients } from "./unrelated-clients.ts";
import { changedAddresses, emptyWorld, Mutations, outcomes, type Outcome } from "./world.ts";

const CHANGES = 500;
const WORKERS = 4;
const CONNECTIONS = 40;

const cleanups = cleanupsOf(afterEach);

test("after each of 500 random changes every worker serves it at once, and no other request fails", async () => {
  const seed = seedOfRun();
  const origins = startOrigins(5);
  cleanups.push(() => origins.stop());
  const gateway = await startGateway({ workers: WORKERS });
  cleanups.push(() => gateway.stop());
  const unrelated = await unrelatedClientsOf(gateway);

  const mutations = new Mutations(new Random(seed), { ports: origins.ports, size: 20 });
  const workers = new Set<string>();
  let state = emptyWorld;
  for (let change = 1; change <= CHANGES; change++) {
    const mutation = mutations.next(state);
    const what = `seed ${seed}, change ${change}: ${mutation.method} ${mutation.path}`;
    const revision = await named(what, carryOut(gateway, mutation));
    const expected = visible(changedAddresses(state, mutation.after), outcomes(mutation.after));
    const probing = probe(gateway.httpPort, expected, {
      count: CONNECTIONS,
      each(reply, address) {
        workers.add(reply.header("x-sluice-worker") ?? "none");
        const served = Number(reply.header("x-sluice-revision") ?? 0);
        if (served < revision)
          throw new Error(`${address}: revision ${served} is served after ${revision}`);
      },
    });
    await named(what, probing);
    expect(unrelated.failures, what).toEqual([]);
    state = mutation.after;
  }
  await unrelated.stop();
  expect(unrelated.failures).toEqual([]);
  // They did not just hang: 500 changes take seconds.
  for (const count of Object.values(unrelated.counts)) expect(count).toBeGreaterThan(50);
  expect([...workers].sort()).toEqual(["0", "1", "2", "3"]);
});

async function unrelatedClientsOf(gateway: Gateway) {
  const origin = startSteadyOrigin();
  cleanups.push(() => origin.stop(true));
  await gateway.ok("PATCH", "/api/v1/settings", { debug_headers: true });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "steady", targets });
  await gateway.ok("POST", "/api/v1/routes", {
    name: "steady",
    service_id: "steady",
    hosts: ["steady.test"],
    paths: ["/steady"],
  });
  const clients = await startUnrelatedClients({
    http: gateway.httpPort,
    https: gateway.httpsPort,
  });
  cleanups.push(() => clients.stop());
  return clients;
}

/** A failure names the change that it followed, and with the seed the run can be repeated. */
function named<T>(what: string, work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw new Error(what, { cause: error });
  });
}

/** A few of the addresses that changed; when none did, any address. */
function visible(changed: Map<string, Outcome>, all: Map<string, Outcome>): Map<string, Outcome> {
  const some = [...(changed.size > 0 ? changed : all)].slice(0, 3);
  return new Map(some.length > 0 ? some : [["nowhere.test/", 404]]);
}
