// Rolling upgrades of a fleet: nodes of an older version, replaced one by one by this one while clients and writers go on.
import { expect } from "bun:test";
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ENTRY_FORMAT } from "../../src/fleet/entry-format.ts";
import { cleanupsOf } from "../support/cleanups.ts";
import { create, send, settled, statesOn, TestFleet } from "../support/fleet.ts";
import { checkNames, startWriters } from "../support/fleet-writers.ts";
import { type Gateway, runCommand } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { previousExecutable, previousVersion } from "../support/previous.ts";
import { SteadyLoad } from "../support/steady-load.ts";
import { executable } from "../support/executable.ts";

const { afterEach, test } = needs("executable", "postgres");
const mixed = needs("executable", "postgres", "network namespaces", previousVersion);

const cleanups = cleanupsOf(afterEach);

async function startFleet(...options: Parameters<typeof TestFleet.start>): Promise<TestFleet> {
  const fleet = await TestFleet.start(...options);
  cleanups.push(() => fleet.stop());
  // Processes that have taken over are not those of the fleet.
  cleanups.push(() => {
    for (const node of fleet.nodes) signal(node, "SIGKILL");
  });
  return fleet;
}

const isRunning = (pid: number, of = "") => {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    // That of a process that has ended is empty.
    return words !== "" && words.includes(of);
  } catch {
    return false;
  }
};

/** The process that serves a node, which is no child of the tests after an upgrade; null: none does. */
function pidOf({ dataDir }: Gateway): number | null {
  const pid = Number(readFileSync(join(dataDir, "sluice.pid"), "utf8"));
  return isRunning(pid, dataDir) ? pid : null;
}

function signal(node: Gateway, name: NodeJS.Signals): void {
  const pid = pidOf(node);
  if (pid !== null) process.kill(pid, name);
}

const upgrade = (fleet: TestFleet, node: Gateway, ...words: string[]) =>
  runCommand(
    [
      "upgrade",
      "--data-dir",
      node.dataDir,
      "--store",
      fleet.postgres.url,
      "--drain",
      "1",
      ...words,
    ],
    { binary: executable, env: { SLUICE_SECRET_KEY: fleet.secret } },
  );

async function upgraded(fleet: TestFleet, node: Gateway, unready = "0"): Promise<string> {
  const { code, stdout, stderr } = await upgrade(fleet, node, "--unready", unready);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

const isReady = async (node: Gateway) => (await node.api("GET", "/readyz")).status === 200;

const fleetSettings = (absent_after: number) =>
  ["/api/v1/settings", { fleet: { absent_after } }] as const;

/** The format that each node reads. */
const formatsOf = (fleet: TestFleet): Promise<number[]> =>
  fleet.query(async (sql) => {
    const rows = await sql`select format_max from sluice.node order by name`;
    return rows.map(({ format_max }: { format_max: number }) => format_max);
  });

/** Three nodes of the older version behind which a site is, with clients of each. */
async function olderFleet() {
  const binary = previousExecutable();
  const fleet = await startFleet(3, { networks: true, node: () => ({ binary }) });
  await fleet.createSite();
  const load = { port: 8080, path: "/", expected: "here", pauseMs: 5, fresh: 1, kept: 1 };
  const loads = fleet.addresses.map((hostname) => new SteadyLoad({ ...load, hostname }));
  cleanups.push(() => Promise.all(loads.map((each) => each.stop())));
  return { fleet, binary, loads };
}

/** The older version again, with the copy of the database that it made before, as `install.sh --rollback` does. */
async function goBack(node: Gateway, copy: string): Promise<void> {
  signal(node, "SIGTERM");
  // Also the one from before the upgrade, which drains on the same ports.
  await eventually(() => pidOf(node) === null && !isRunning(node.pid));
  for (const end of ["", "-wal", "-shm"])
    rmSync(join(node.dataDir, `sluice.db${end}`), { force: true });
  cpSync(copy, join(node.dataDir, "sluice.db"));
  await node.start();
}

mixed.test(
  "three older nodes are upgraded one by one: no request fails, no answered change is lost, and a way back is open until something new is used",
  async () => {
    const { fleet, binary, loads } = await olderFleet();
    const [first, second, third] = fleet.nodes as [Gateway, Gateway, Gateway];
    const copy = join(first.dataDir, "before.db");
    const backup = ["backup", "--data-dir", first.dataDir, copy];
    expect((await runCommand(backup, { binary })).code).toBe(0);
    const writers = startWriters(fleet.nodes);

    expect(await upgraded(fleet, first, "1")).toMatch(
      /^Node n1 drains: load balancers have 1 s to leave\.\nProcess \d+ serves now, version \S+\.\nNode n1 serves all changes of its fleet\.\n$/,
    );
    await eventually(() => isReady(first));
    expect(await formatsOf(fleet)).toEqual([ENTRY_FORMAT, 1, 1]);
    // Older nodes do not report their plugins, which is no difference.
    const nodes: { plugins: unknown; warnings: unknown }[] = await first.ok("GET", "/api/v1/nodes");
    expect(nodes.map(({ plugins, warnings }) => [plugins, warnings])).toEqual([
      [[], []],
      [null, []],
      [null, []],
    ]);
    // What is new is refused; the rest is live everywhere, in both directions.
    const early = await send(first, "PATCH", fleetSettings(60_000));
    expect([early.status, early.text]).toEqual([
      409,
      expect.stringMatching(
        /node n2 runs \S+, node n3 runs \S+, which do not know settings.fleet.absent_after; upgrade them first; nothing was changed/,
      ),
    ]);
    for (const [node, max_stale] of [[first, 1000] as const, [third, 2000] as const]) {
      const reply = await send(node, "PATCH", ["/api/v1/settings", { fleet: { max_stale } }]);
      expect([reply.status, reply.nodes]).toEqual([200, "3/3"]);
    }
    const purge = await first.api("POST", "/api/v1/cache/purge");
    expect([
      purge.status,
      purge.headers.get("sluice-nodes"),
      purge.headers.get("x-warning"),
    ]).toEqual([
      200,
      null,
      expect.stringMatching(/^purged on this node only, because node n2 runs/),
    ]);
    const { fleet: known } = await first.ok("GET", "/api/v1/settings");
    expect(known).toMatchObject({ max_stale: 2000, absent_after: 86_400_000 });
    await writers.answers(10);

    await upgraded(fleet, second);
    expect((await send(second, "PATCH", fleetSettings(60_000))).text).toContain("node n3 runs");
    await upgraded(fleet, third);
    expect(await formatsOf(fleet)).toEqual([ENTRY_FORMAT, ENTRY_FORMAT, ENTRY_FORMAT]);
    await writers.answers(10);
    const report = await loads[0]!.stop();
    expect(report.failures).toEqual([]);
    expect(report.fresh + report.kept).toBeGreaterThan(100);

    await goBack(first, copy);
    expect(await formatsOf(fleet)).toEqual([1, ENTRY_FORMAT, ENTRY_FORMAT]);
    let attempts = 0;
    await eventually(async () => (await create(first, `back-${attempts++}`)).nodes === "3/3");
    expect((await send(third, "PATCH", fleetSettings(60_000))).text).toContain("node n1 runs");
    await upgraded(fleet, first);

    const written = await writers.stop();
    const late = await send(third, "PATCH", fleetSettings(60_000));
    expect([late.status, late.nodes]).toEqual([200, "3/3"]);
    expect((await send(first, "POST", ["/api/v1/cache/purge"])).nodes).toBe("3/3");
    const names = await settled(fleet.nodes, { history: false });
    checkNames(
      names.filter((name) => /^n\d-/.test(name)),
      written,
    );
    for (const load of loads.slice(1)) expect((await load.stop()).failures).toEqual([]);

    await goBack(first, copy);
    const { state, error } = await eventually(async () => {
      const node = await second.ok("GET", "/api/v1/nodes/n1");
      return node.state === "outdated" ? node : null;
    });
    expect([state, error]).toEqual([
      "outdated",
      expect.stringContaining("was written by a newer version of Sluice; upgrade this node"),
    ]);
    // It does not hinder the others any more.
    const next = await send(second, "PATCH", fleetSettings(70_000));
    expect([next.status, next.nodes, next.missing]).toEqual([200, "2/3", "n1;outdated"]);
    await upgraded(fleet, first);
    expect((await create(first, "after all")).nodes).toBe("3/3");
  },
  240_000,
);

/** A program for `upgrade`. */
function script(text: string): string {
  const directory = mkdtempSync(join(tmpdir(), "sluice-program-"));
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, "sluice");
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}

test("an upgrade begins only while the other nodes serve, and ends with a node that gets requests", async () => {
  const fleet = await startFleet(2);
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  const env = { SLUICE_SECRET_KEY: fleet.secret };
  const blind = await runCommand(["upgrade", "--data-dir", first.dataDir], {
    binary: executable,
    env,
  });
  expect(blind).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("--store of the gateway is needed"),
  });

  // The old process goes on, and load balancers come back.
  const failing = upgrade(fleet, first, "--unready", "1", "--executable", script("exit 1"));
  await eventually(async () => !(await isReady(first)));
  expect(await failing).toMatchObject({
    code: 1,
    stderr: "sluice: the new process ended (code 1)\n",
  });
  await eventually(() => isReady(first));
  expect((await create(first, "still here")).nodes).toBe("2/2");

  await second.ok("POST", "/api/v1/nodes/n2/drain");
  expect(await upgrade(fleet, first)).toEqual({
    code: 1,
    stdout: "",
    stderr:
      "sluice: other nodes do not serve: n2 (draining); --force hands over without a look at them\n",
  });
  await second.ok("DELETE", "/api/v1/nodes/n2/drain");
  await second.kill9();
  await eventually(async () => (await statesOn(first)).includes("n2 away"));
  expect((await upgrade(fleet, first)).stderr).toContain("n2 (away)");
  // An operator who knows better.
  expect(await upgrade(fleet, first, "--force")).toMatchObject({ code: 0, stderr: "" });
  const reply = await create(first, "forced");
  expect([reply.nodes, reply.missing]).toEqual(["1/2", "n2;away"]);
});

test("one node is upgraded at a time", async () => {
  const fleet = await startFleet(2);
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  const hanging = upgrade(
    fleet,
    first,
    "--unready",
    "0",
    "--executable",
    script("exec sleep 1000"),
  );
  await eventually(() =>
    first.log.some(({ message }) => message === "the gateway is to be replaced"),
  );
  // A second command for the same node does not end what the first one holds.
  for (const node of [first, second])
    expect(await upgrade(fleet, node)).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "sluice: node n1 is being upgraded; wait until it is done; --force hands over without a look at them\n",
    });
  first.signal("SIGTERM");
  expect((await hanging).code).toBe(1);
  expect(await upgrade(fleet, second, "--unready", "0")).toMatchObject({ code: 0, stderr: "" });
  expect((await create(second, "alone")).nodes).toBe("1/1");
});

test("an upgrade during which the secret key is replaced leaves a log that all nodes follow", async () => {
  const fleet = await startFleet(2, { keyIn: "file" });
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  const words = ["--store", fleet.postgres.url, "--drain", "1", "--unready", "4"];
  const draining = runCommand(["upgrade", "--data-dir", first.dataDir, ...words], {
    binary: executable,
  });
  await eventually(async () => !(await isReady(first)));
  const rotated = await runCommand(["rotate-key", "--data-dir", second.dataDir], {
    binary: executable,
  });
  expect(rotated).toMatchObject({ code: 0, stderr: "" });
  expect(rotated.stdout).toContain("2 of 2 nodes of the fleet have it");
  expect(await draining).toMatchObject({ code: 0, stderr: "" });
  await eventually(() => isReady(first));
  for (const node of fleet.nodes) {
    const entries: { action: string; object_name: string }[] = await node.ok(
      "GET",
      "/api/v1/audit?kind=node",
    );
    const actions = entries.map(({ action, object_name }) => `${action} ${object_name}`);
    expect(actions.toSorted()).toEqual(["drain n1", "undrain n1"]);
  }
  for (const node of fleet.nodes)
    expect((await create(node, node.dataDir.slice(-8))).nodes).toBe("2/2");
});
