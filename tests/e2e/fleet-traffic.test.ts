// Proxied traffic of a fleet whose nodes have a network each: what changes and faults of the database mean for clients.
import { expect } from "bun:test";
import { cleanupsOf } from "../support/cleanups.ts";
import { create, isServing, send, settled, statesOn, TestFleet } from "../support/fleet.ts";
import type { Gateway } from "../support/gateway.ts";
import { LastingClients } from "../support/lasting-clients.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";

const { afterEach, test } = needs("executable", "postgres", "network namespaces");

const cleanups = cleanupsOf(afterEach);

const PORT = 8080;

/** Three nodes with a site, and clients of each that stay connected. */
async function scene() {
  const fleet = await TestFleet.start(3, { networks: true, workers: 2 });
  cleanups.push(() => fleet.stop());
  await fleet.createSite();
  const clients = await Promise.all(
    fleet.addresses.map((address) => LastingClients.connect(address, PORT)),
  );
  return { fleet, clients };
}

/** Each client goes on, and has had no failure. */
async function expectNoFailure(clients: readonly LastingClients[]): Promise<void> {
  for (const client of clients) await client.progress();
  for (const client of clients) expect(await client.stop()).toEqual([]);
}

/** A route of its own for each node, with a header that tells its version. */
async function versionedRoute(node: Gateway, name: string) {
  await node.ok("POST", "/api/v1/routes", {
    ...{ name, service_id: "site", paths: [{ type: "prefix", value: `/${name}` }] },
  });
  const config = (version: number) => ({
    response: { headers: { set: { "x-version": String(version) } } },
  });
  const plugin = { name: "transform", route_id: name, config: config(0) };
  const { id } = await node.ok("POST", "/api/v1/plugins", plugin);
  return (version: number) =>
    send(node, "PATCH", [`/api/v1/plugins/${id}`, { config: config(version) }]);
}

const CHANGES = 500;

test("no client of any node sees an old version after a 3/3 reply, and no connection breaks", async () => {
  const { fleet, clients } = await scene();
  const names = ["w1", "w2", "w3"];
  const writers = await Promise.all(
    names.map((name, index) => versionedRoute(fleet.nodes[index]!, name)),
  );
  /** The newest version of each route that was answered with 3/3. */
  const answered = [0, 0, 0];
  const [stale, replies]: [string[], Map<string, number>] = [[], new Map()];
  let isOver = false;
  const read = async (address: string, index: number) => {
    const before = answered[index]!;
    const response = await fetch(`http://${address}:${PORT}/${names[index]}`);
    await response.text();
    const version = Number(response.headers.get("x-version") ?? -1);
    if (version < before) stale.push(`${address}: ${version} after ${before}`);
  };
  const readers = fleet.addresses.map(async (address) => {
    for (let round = 0; !isOver; round++) {
      await read(address, round % 3);
      await Bun.sleep(2);
    }
  });
  await Promise.all(
    writers.map(async (write, index) => {
      for (let version = 1; version <= CHANGES / 3; version++) {
        const { status, nodes } = await write(version);
        const reply = `${status} ${nodes}`;
        replies.set(reply, (replies.get(reply) ?? 0) + 1);
        if (reply === "200 3/3") answered[index] = version;
        // Also at once: all nodes serve it when the reply is there.
        await Promise.all(fleet.addresses.map((address) => read(address, index)));
      }
    }),
  );
  isOver = true;
  await Promise.all(readers);
  expect(stale).toEqual([]);
  // A reply waits for a node 2 s, in which a busy machine may not get to it.
  expect(replies.get("200 3/3")).toBeGreaterThan(CHANGES / 2);
  expect([...replies.keys()].filter((reply) => !/^200 [23]\/3$/.test(reply))).toEqual([]);
  await expectNoFailure(clients);
  await settled(fleet.nodes);
});

test("no fault of the database fails a proxied request or breaks a connection", async () => {
  const { fleet, clients } = await scene();
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  let isOver = false;
  const writing = fleet.nodes.map(async (node, index) => {
    for (let round = 0; !isOver; round++) {
      const { status } = await create(node, `n${index}-${round}`);
      await Bun.sleep(status === 200 ? 10 : 100);
    }
  });
  const isCutOff = async (node: Gateway) =>
    (await create(node, Bun.randomUUIDv7().slice(-12))).text.includes("cut off");
  const areServing = () => eventually(async () => (await statesOn(first)).every(isServing));
  // Its packets are dropped; then its connections break; then nobody has a database.
  fleet.wires[1]!.hold();
  await eventually(() => isCutOff(second));
  for (const client of clients) await client.progress();
  fleet.wires[1]!.heal();
  await areServing();
  fleet.wires[1]!.cut();
  await eventually(() => isCutOff(second));
  fleet.wires[1]!.heal();
  await areServing();
  for (let round = 0; round < 3; round++) {
    await fleet.postgres.kill();
    await eventually(() => isCutOff(first));
    for (const client of clients) await client.progress();
    await fleet.postgres.start();
    await areServing();
  }
  isOver = true;
  await Promise.all(writing);
  await expectNoFailure(clients);
  await settled(fleet.nodes);
});

/** Holds a port on the machine of the second node. */
async function holdPort({ addresses, wraps }: TestFleet, port: number) {
  const [address, wrap] = [addresses[1] ?? "", wraps[1] ?? []];
  const code = `Bun.listen({ hostname: "0.0.0.0", port: ${port}, socket: { data() {} } })`;
  const child = Bun.spawn([...wrap, process.execPath, "-e", code], {
    stdio: ["ignore", "ignore", "ignore"],
  });
  cleanups.push(() => child.kill("SIGKILL"));
  await eventually(async () => {
    const socket = await Bun.connect({ hostname: address, port, socket: { data() {} } });
    socket.end();
    return true;
  });
  return async () => {
    child.kill("SIGKILL");
    await child.exited;
  };
}

test("a node on which a port is taken refuses the change, keeps what it has, and serves it when the port is free", async () => {
  const { fleet, clients } = await scene();
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  const release = await holdPort(fleet, 7000);
  const listener = { name: "late", address: "0.0.0.0", port: 7000, protocol: "http" };
  const reply = await send(first, "POST", ["/api/v1/listeners", listener]);
  expect([reply.status, reply.nodes, reply.missing]).toEqual([200, "2/3", "n2;refused"]);
  const { state, error } = await first.ok("GET", "/api/v1/nodes/n2");
  expect(state).toBe("refused");
  expect(error).toContain("7000");
  const names = async () =>
    (await second.ok("GET", "/api/v1/listeners")).map(({ name }: { name: string }) => name);
  expect(await names()).not.toContain("late");
  // It does not take part in the next change either.
  expect((await create(first, "behind it")).missing).toBe("n2;refused");
  await release();
  await eventually(async () => (await statesOn(first)).every(isServing));
  expect(await names()).toContain("late");
  await eventually(async () => (await fetch(`http://${fleet.addresses[1]}:7000/`)).status === 200);
  expect((await create(second, "with it")).nodes).toBe("3/3");
  await expectNoFailure(clients);
  await settled(fleet.nodes);
});
