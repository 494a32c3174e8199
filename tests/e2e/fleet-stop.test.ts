// How long a node takes to stop: neither a change that arrives meanwhile nor a silent database delays its end.
import { expect } from "bun:test";
import { cleanupsOf, stopsIn } from "../support/cleanups.ts";
import { TestFleet } from "../support/fleet.ts";
import { needs } from "../support/needs.ts";

const { afterEach, test } = needs("executable", "postgres");

const track = stopsIn(cleanupsOf(afterEach));

/** Three seconds, and what a busy machine takes. */
const SOON_MS = 5000;

const site = { name: "site", targets: [{ host: "127.0.0.1", port: 9 }] };

test("a node stops at once while others make changes", async () => {
  const fleet = track(await TestFleet.start(2));
  const [first, second] = fleet.nodes as [TestFleet["nodes"][0], TestFleet["nodes"][0]];
  await first.ok("POST", "/api/v1/services", site);
  let isOver = false;
  const writing = (async () => {
    for (let round = 0; !isOver; round++) {
      const route = { name: `r${round}`, service_id: "site", paths: [`/${round}`] };
      await first.api("POST", "/api/v1/routes?wait=0", route);
    }
  })();
  const took: number[] = [];
  for (let round = 0; round < 5; round++) {
    const begun = performance.now();
    expect(await second.terminate()).toBe(0);
    took.push(performance.now() - begun);
    await second.start();
  }
  isOver = true;
  await writing;
  expect(Math.max(...took)).toBeLessThan(SOON_MS);
});

test("a node stops soon though the database is silent", async () => {
  const fleet = track(await TestFleet.start(1));
  const [node] = fleet.nodes as [TestFleet["nodes"][0]];
  fleet.postgres.signal("SIGSTOP");
  const begun = performance.now();
  expect(await node.terminate()).toBe(0);
  expect(performance.now() - begun).toBeLessThan(SOON_MS);
  fleet.postgres.signal("SIGCONT");
  await node.start();
});
