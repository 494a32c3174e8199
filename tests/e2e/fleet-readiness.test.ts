// When load balancers are told to send a node no requests, because it does not follow its fleet.
import { expect } from "bun:test";
import { cleanupsOf } from "../support/cleanups.ts";
import { create, isServing, statesOn, TestFleet } from "../support/fleet.ts";
import type { Gateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { quietPort } from "../support/quiet-port.ts";

const { afterEach, test } = needs("executable", "postgres");

const cleanups = cleanupsOf(afterEach);

async function startFleet() {
  const fleet = await TestFleet.start(2);
  cleanups.push(() => fleet.stop());
  return { fleet, nodes: fleet.nodes as [Gateway, Gateway] };
}

const readyOf = async (node: Gateway) => {
  const response = await node.api("GET", "/readyz");
  return `${response.status} ${await response.text()}`;
};

const use = (node: Gateway, fleet: object) => node.ok("PATCH", "/api/v1/settings", { fleet });

test("a node that refuses a change stops to be ready, but not while no other node serves", async () => {
  const { nodes } = await startFleet();
  const [first, second] = nodes;
  // Both nodes are on one machine: the port is taken for the second one.
  const listener = { name: "web", address: "127.0.0.1", port: quietPort() };
  await use(first, { unready_after: 1 });
  await first.ok("POST", "/api/v1/listeners", listener);
  await eventually(async () => (await statesOn(first)).includes("n2 refused"));
  const reason = await eventually(async () => {
    const said = await readyOf(second);
    return said.startsWith("503") ? said : null;
  });
  expect(reason).toContain("refused: this node cannot serve or store the next change");
  // Addresses and programs of the machine are for admins.
  expect(reason).not.toContain(String(listener.port));
  expect(await readyOf(first)).toStartWith("200");
  first.signal("SIGSTOP");
  await eventually(async () => (await readyOf(second)).startsWith("200"));
  first.signal("SIGCONT");
  await eventually(async () => (await readyOf(second)).startsWith("503"));
  await first.ok("DELETE", "/api/v1/listeners/web");
  await eventually(async () => (await statesOn(first)).every(isServing));
  expect(await readyOf(second)).toStartWith("200");
});

test("all nodes stay ready that have diverged, because none serves more", async () => {
  const { fleet, nodes } = await startFleet();
  const [first, second] = nodes;
  await use(first, { unready_after: 1 });
  expect((await create(first, "lost")).nodes).toBe("2/2");
  await fleet.query(
    (sql) => sql`
      with lost as (update sluice.head set position = position - 1 returning position)
      delete from sluice.entry using lost where entry.position > lost.position`,
  );
  await eventually(async () =>
    (await statesOn(first)).every((state) => state.endsWith(" diverged")),
  );
  // After the next look at each other.
  for (const node of [first, second])
    await eventually(async () => (await readyOf(node)).startsWith("200"));
});
