// Discovery in a fleet: each node follows its own files, all nodes have what any of them finds, and each deletes only its own.
import { expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TestFleet } from "../support/fleet.ts";
import type { Gateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";

const { afterAll, beforeAll, test } = needs("executable", "postgres");

let fleet: TestFleet;
const root = mkdtempSync(join(tmpdir(), "sluice-fleet-discovery-"));
const directoryOf = (name: string) => mkdtempSync(join(root, `${name}-`));
const directories = { n1: directoryOf("n1"), n2: directoryOf("n2") };

beforeAll(async () => {
  const node = (name: string) => ({
    args: ["--config-dir", directories[name as keyof typeof directories]],
  });
  fleet = await TestFleet.start(2, { node });
});
afterAll(async () => {
  await fleet?.stop();
  rmSync(root, { recursive: true, force: true });
});

const write = (node: keyof typeof directories, name: string) =>
  writeFileSync(join(directories[node], `${name}.yaml`), `services: [{ name: ${name} }]\n`);
const managers = async (gateway: Gateway): Promise<string[]> =>
  (await gateway.ok("GET", "/api/v1/services")).map(
    ({ name, managed_by }: { name: string; managed_by: string }) => `${name} ${managed_by}`,
  );

test("the files of each node are served by both, and end with their own node's file only", async () => {
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  write("n1", "one");
  write("n2", "two");
  for (const gateway of [first, second])
    await eventually(async () => (await managers(gateway)).length === 2);
  expect((await managers(second)).toSorted()).toEqual(["one files@n1", "two files@n2"]);
  rmSync(join(directories.n1, "one.yaml"));
  for (const gateway of [first, second])
    await eventually(async () => (await managers(gateway)).join() === "two files@n2");
});

test("what one node has found keeps its name: the other says so", async () => {
  const [first] = fleet.nodes as [Gateway];
  write("n1", "two");
  await eventually(async () => {
    const sources = await first.ok("GET", "/api/v1/discovery");
    const files = sources.find(({ name }: { name: string }) => name === "files@n1");
    return files.sites.some(({ problems }: { problems: string[] }) =>
      problems.join().includes('service "two" exists already'),
    );
  });
  expect(await managers(first)).toEqual(["two files@n2"]);
});

test("the objects of a node that is gone stay, until an admin deletes them", async () => {
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  await second.stop();
  expect(await managers(first)).toEqual(["two files@n2"]);
  const refused = await first.api("DELETE", "/api/v1/services/two");
  expect(refused.status).toBe(409);
  await first.ok("DELETE", "/api/v1/services/two?force=1");
  await eventually(async () => (await managers(first)).join() === "two files@n1");
});
