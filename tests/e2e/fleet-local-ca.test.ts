// The local CA of a fleet: one root for all nodes, also when two need it first, on nodes that join, and under another secret key.
import { expect } from "bun:test";
import { connect } from "node:tls";
import { cleanupsOf } from "../support/cleanups.ts";
import { isServing, newKey, statesOn, TestFleet } from "../support/fleet.ts";
import { type Gateway, runCommand } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";

const { afterEach, test } = needs("executable", "postgres", "network namespaces");

const cleanups = cleanupsOf(afterEach);

const rootOf = async (node: Gateway) => (await node.ok("GET", "/api/v1/local-ca")).root;
const sign = (node: Gateway, name: string) =>
  node.ok("POST", "/api/v1/certificates", { name, source: "local_ca", domains: [`${name}.lan`] });

/** Whether a client that trusts the root accepts what the node presents for a name. */
async function accepts(host: string, ca: string, servername: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host, port: 8443, ca, servername }, () => resolve(socket.authorized));
  socket.on("error", () => resolve(false));
  const isAccepted = await promise;
  socket.destroy();
  return isAccepted;
}

test("has one root on all nodes, whose key survives another secret key and restarts", async () => {
  const fleet = await TestFleet.start(2, { keyIn: "file", networks: true });
  cleanups.push(() => fleet.stop());
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  await Promise.all([sign(first, "one"), sign(second, "two")]);
  const root = await rootOf(first);
  expect(await rootOf(second)).toEqual(root);
  const third = await fleet.add();
  expect(await rootOf(third)).toEqual(root);
  for (const address of fleet.addresses)
    for (const name of ["one.lan", "two.lan"])
      await eventually(() => accepts(address, root.certificate, name));
  const argv = ["rotate-key", "--data-dir", first.dataDir];
  const rotated = await runCommand(argv, {
    binary: executable,
    env: { SLUICE_NEW_SECRET_KEY: newKey() },
  });
  expect(rotated.code).toBe(0);
  await eventually(async () => (await statesOn(first)).every(isServing));
  for (const node of fleet.nodes) await node.restart();
  await eventually(async () => (await statesOn(third)).every(isServing));
  await sign(third, "three");
  for (const node of fleet.nodes) expect(await rootOf(node)).toEqual(root);
  for (const address of fleet.addresses)
    await eventually(() => accepts(address, root.certificate, "three.lan"));
  const replaced = await second.ok("POST", "/api/v1/local-ca/rotate");
  for (const address of fleet.addresses)
    for (const name of ["one.lan", "two.lan", "three.lan"])
      await eventually(() => accepts(address, replaced.root.certificate, name));
});
