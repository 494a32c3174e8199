// Overrides of target health in a fleet: in force on all nodes with the reply, after restarts, and on a node that comes back.
import { expect } from "bun:test";
import { cleanupsOf } from "../support/cleanups.ts";
import { isServing, send, statesOn, TestFleet } from "../support/fleet.ts";
import type { Gateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";

const { afterEach, test } = needs("executable", "postgres", "network namespaces");

const cleanups = cleanupsOf(afterEach);

/** Three nodes before the targets a and b. */
async function scene() {
  const fleet = await TestFleet.start(3, { networks: true, workers: 2 });
  cleanups.push(() => fleet.stop());
  const targets = ["a", "b"].map((name) => {
    const { hostname } = fleet;
    const server = Bun.serve({ hostname, port: 0, fetch: () => new Response(name) });
    cleanups.push(() => server.stop(true));
    return { host: hostname, port: server.port };
  });
  const [first] = fleet.nodes as [Gateway];
  const service = await first.ok("POST", "/api/v1/services", { name: "site", targets });
  await first.ok("POST", "/api/v1/routes", { name: "site", service_id: "site" });
  /** The targets that get requests of a node, by their names. */
  const ask = async (index: number) => {
    const replies = await Promise.all(
      Array.from({ length: 16 }, async () => {
        const url = `http://${fleet.addresses[index]}:8080/`;
        return await (await fetch(url, { headers: { connection: "close" } })).text();
      }),
    );
    return [...new Set(replies)].sort().join("");
  };
  const askAll = () => Promise.all([0, 1, 2].map((index) => ask(index)));
  const order = (node: Gateway, body: object) =>
    send(node, "PUT", [`/api/v1/targets/${service.targets[0].id}/health`, body]);
  const seenOn = async (node: Gateway) => {
    const [report] = (await node.ok("GET", "/api/v1/services/site/health")).targets;
    const { state, by, override, observed_state } = report;
    return { state, by, override, observed_state };
  };
  const areServing = () => eventually(async () => (await statesOn(first)).every(isServing));
  return { fleet, nodes: fleet.nodes, askAll, ask, order, seenOn, areServing };
}

const DOWN = { state: "unhealthy", by: "override", override: { state: "unhealthy", until: null } };

test("an override on one node is one on all of them before its reply, until it is removed on any", async () => {
  const { nodes, askAll, ask, order, seenOn } = await scene();
  const [first, second, third] = nodes as [Gateway, Gateway, Gateway];
  expect(await askAll()).toEqual(["ab", "ab", "ab"]);
  const reply = await order(second, { state: "unhealthy" });
  expect([reply.status, reply.nodes, reply.missing]).toEqual([200, "3/3", null]);
  expect(await askAll()).toEqual(["b", "b", "b"]);
  // Each node shows what it sees itself as well.
  for (const node of nodes)
    expect(await seenOn(node)).toEqual({ ...DOWN, observed_state: "healthy" });
  await third.kill9();
  await third.start();
  expect(await ask(2)).toBe("b");
  expect(await seenOn(third)).toMatchObject(DOWN);
  // One with the state of the fleet as it is now.
  const removed = await order(third, { state: "auto" });
  expect([removed.status, removed.nodes]).toEqual([200, "3/3"]);
  expect(await askAll()).toEqual(["ab", "ab", "ab"]);
  expect((await seenOn(first)).override).toBeNull();
  expect((await order(first, { state: "unhealthy", ttl: 1 })).nodes).toBe("3/3");
  await eventually(async () => (await askAll()).join() === "ab,ab,ab");
});

test("a node that is cut off refuses overrides, and has those of the others when it is back", async () => {
  const { fleet, nodes, ask, order, seenOn, areServing } = await scene();
  const [first, second] = nodes as [Gateway, Gateway];
  fleet.wires[1]!.hold();
  const refused = await eventually(async () => {
    const reply = await order(second, { state: "healthy" });
    return reply.text.includes("is cut off") ? reply : null;
  });
  expect(refused.status).toBe(503);
  await eventually(async () => (await statesOn(first)).includes("n2 away"));
  const reply = await order(first, { state: "unhealthy" });
  expect([reply.status, reply.nodes, reply.missing]).toEqual([200, "2/3", "n2;away"]);
  expect([await ask(0), await ask(1)]).toEqual(["b", "ab"]);
  fleet.wires[1]!.heal();
  await areServing();
  expect([await ask(1), (await seenOn(second)).by]).toEqual(["b", "override"]);
  // A node that joins has them from its start.
  await fleet.add();
  expect(await ask(3)).toBe("b");
});
