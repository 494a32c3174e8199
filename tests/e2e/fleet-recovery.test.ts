// What a fleet says and does when its database goes back in time, moves to a standby or is lost, and when a node's own disk is full.
import { expect } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanupsOf, stopsIn } from "../support/cleanups.ts";
import { create, isServing, namesOn, settled, statesOn, TestFleet } from "../support/fleet.ts";
import { type Gateway, runCommand } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { Postgres } from "../support/postgres.ts";
import { executable } from "../support/executable.ts";

const { afterEach, test } = needs("executable", "postgres");

const cleanups = cleanupsOf(afterEach);
const track = stopsIn(cleanups);

/** Ends a node; its directory stays. */
async function end(node: Gateway): Promise<void> {
  node.signal("SIGTERM");
  await node.exited();
}

/** `sluice fleet adopt` in the directory of a stopped node. */
async function adopt(fleet: TestFleet, node: Gateway, from: "this-node" | "store", url?: string) {
  const words = [
    "--data-dir",
    node.dataDir,
    "--store",
    url ?? fleet.postgres.url,
    "--from",
    from,
    "--yes",
  ];
  const { code, stderr } = await runCommand(["fleet", "adopt", ...words], {
    binary: executable,
    env: { SLUICE_SECRET_KEY: fleet.secret },
  });
  expect([code, stderr]).toEqual([0, ""]);
}

/** All that is said of a node that has more than its database: it serves, changes nothing, and says what to do. */
async function expectDiverged(node: Gateway, names: readonly string[]): Promise<void> {
  await eventually(async () => {
    const refused = await create(node, "on a diverged node");
    return refused.status === 503 && refused.text.includes("sluice fleet adopt");
  });
  expect(await namesOn(node)).toEqual([...names]);
}

const restartAll = async ({ nodes }: TestFleet) => {
  for (const node of nodes) await node.restart();
};

/** Changes of each node are live on all of them again. */
async function expectWhole({ nodes }: TestFleet, names: readonly string[]): Promise<void> {
  await eventually(async () => (await statesOn(nodes[0]!)).every(isServing));
  for (const [index, node] of nodes.entries())
    expect((await create(node, `whole ${index}`)).nodes).toBe(`${nodes.length}/${nodes.length}`);
  const made = nodes.map((_, index) => `whole ${index}`);
  expect(await settled(nodes, { history: false })).toEqual([...names, ...made]);
}

/** A fleet whose database has lost two of three changes. */
async function restored(): Promise<TestFleet> {
  const fleet = track(await TestFleet.start(2));
  await create(fleet.nodes[0]!, "in the backup");
  const backup = fleet.postgres.backup();
  for (const name of ["later", "last"]) await create(fleet.nodes[1]!, name);
  await fleet.postgres.restore(backup);
  for (const node of fleet.nodes) await expectDiverged(node, ["in the backup", "later", "last"]);
  await eventually(async () =>
    /n1 diverged.*n2 diverged/.test((await statesOn(fleet.nodes[0]!)).join()),
  );
  return fleet;
}

test("after the restore of an older backup nodes serve what they have, also after a restart, until one is adopted", async () => {
  const fleet = await restored();
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  await second.restart();
  await expectDiverged(second, ["in the backup", "later", "last"]);
  await end(first);
  await adopt(fleet, first, "this-node");
  await first.start();
  expect(await namesOn(first)).toEqual(["in the backup", "later", "last"]);
  // The other one has the same changes, but the log does not say so: it follows or is told to.
  await eventually(async () => {
    const [state] = (await statesOn(first)).filter((one) => one.startsWith("n2"));
    if (state === "n2 diverged") {
      await end(second);
      await adopt(fleet, second, "store");
      await second.start();
    }
    return state === "n2 serving";
  });
  await expectWhole(fleet, ["in the backup", "later", "last"]);
});

test("after the restore of an older backup nodes can take what it holds", async () => {
  const fleet = await restored();
  for (const node of fleet.nodes) {
    await end(node);
    await adopt(fleet, node, "store");
  }
  await restartAll(fleet);
  expect(await settled(fleet.nodes, { history: false })).toEqual(["in the backup"]);
  await expectWhole(fleet, ["in the backup"]);
});

test("an empty database in the place of the lost one takes nothing away from the nodes", async () => {
  const fleet = track(await TestFleet.start(2));
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  await create(first, "before");
  await fleet.query((sql) => sql`drop schema sluice cascade`);
  await restartAll(fleet);
  for (const node of fleet.nodes) await expectDiverged(node, ["before"]);
  for (const node of fleet.nodes) await end(node);
  await adopt(fleet, first, "this-node");
  await first.start();
  await adopt(fleet, second, "store");
  await second.start();
  await expectWhole(fleet, ["before"]);
});

/** A fleet that knows a primary and its standby. */
async function withStandby(count: number, isSynchronous: boolean) {
  const primary = await Postgres.create();
  const standby = track(await primary.standby());
  await primary.commitOnStandby(isSynchronous);
  const args = ["--store-fallback-hosts", `127.0.0.1:${standby.port}`];
  const fleet = track(await TestFleet.start(count, { postgres: primary, node: () => ({ args }) }));
  return { fleet, primary, standby };
}

test("a failover to a synchronous standby loses no change", async () => {
  const { fleet, primary, standby } = await withStandby(3, true);
  const answered: string[] = [];
  let isOver = false;
  const writers = fleet.nodes.map(async (node, index) => {
    for (let round = 0; !isOver; round++) {
      const name = `n${index}-${round}`;
      const { status } = await create(node, name);
      if (status === 200) answered.push(name);
      else await Bun.sleep(50);
    }
  });
  await eventually(() => answered.length > 20);
  await primary.kill();
  await standby.promote();
  const before = answered.length;
  await eventually(() => answered.length > before + 20);
  isOver = true;
  await Promise.all(writers);
  const names = await settled(fleet.nodes);
  expect(answered.filter((name) => !names.includes(name))).toEqual([]);
  await expectWhole(fleet, names);
});

test("a failover that lost changes is noticed by those that have them, also when others went on", async () => {
  const { fleet, primary, standby } = await withStandby(3, false);
  const [first, second, third] = fleet.nodes as [Gateway, Gateway, Gateway];
  await create(first, "kept");
  await settled(fleet.nodes);
  await eventually(async () => {
    const [{ lag }] = await fleet.query(
      (sql) => sql`
        select coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)), 1)::int as lag
        from pg_stat_replication`,
    );
    return lag === 0;
  });
  // The standby and one node miss the next change.
  await standby.kill();
  third.signal("SIGSTOP");
  expect((await create(first, "lost")).nodes).toBe("2/3");
  await primary.kill();
  await standby.start();
  await standby.promote();
  third.signal("SIGCONT");
  // It has lost nothing, and goes on at the position of the lost change.
  await eventually(async () => (await create(third, "after the failover")).status === 200);
  for (const node of [first, second]) await expectDiverged(node, ["kept", "lost"]);
  await eventually(async () =>
    /n1 diverged.*n2 diverged.*n3 serving/.test((await statesOn(third)).join()),
  );
  for (const node of [first, second]) {
    await end(node);
    await adopt(fleet, node, "store", standby.url);
    await node.start();
  }
  await expectWhole(fleet, ["kept", "after the failover"]);
});

test("a node that has diverged is not counted as live, however far it is in its own history", async () => {
  const fleet = track(await TestFleet.start(2));
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  expect((await create(first, "in the backup")).nodes).toBe("2/2");
  const backup = fleet.postgres.backup();
  second.signal("SIGSTOP");
  for (const name of ["x", "y", "z"])
    expect((await first.api("POST", "/api/v1/services?wait=0", { name })).status).toBe(200);
  await fleet.postgres.restore(backup);
  await expectDiverged(first, ["in the backup", "x", "y", "z"]);
  second.signal("SIGCONT");
  await eventually(async () => (await statesOn(second)).join().includes("n1 diverged"));
  const { nodes, missing } = await create(second, "after the restore");
  expect([nodes, missing]).toEqual(["1/2", "n1;diverged"]);
});

/** A small file system; `fill` leaves no room on it. */
async function mountDisk() {
  const path = mkdtempSync(join(tmpdir(), "sluice-disk-"));
  await run("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", path);
  cleanups.push(async () => {
    await run("umount", "--lazy", path);
    rmSync(path, { recursive: true, force: true });
  });
  const ballast = join(path, "ballast");
  return {
    path,
    fill: () => run("dd", "if=/dev/zero", `of=${ballast}`, "bs=4096").catch(() => undefined),
    clear: () => rmSync(ballast),
  };
}

async function run(...command: string[]): Promise<void> {
  const child = Bun.spawn(command, { stdout: "ignore", stderr: "pipe" });
  const said = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${said}`);
}

needs("executable", "postgres", "mount").test(
  "a change whose node has no room for it is live on the others, and on that node once there is room",
  async () => {
    const disk = await mountDisk();
    const fleet = track(await TestFleet.start(2));
    const [first] = fleet.nodes as [Gateway];
    const second = await fleet.add({ name: "n3", dataDir: join(disk.path) });
    expect((await create(second, "before")).nodes).toBe("3/3");
    await disk.fill();
    const large = (name: string) =>
      second.api("POST", "/api/v1/services", { name, description: "x".repeat(4000) });
    const names = ["before"];
    // Until the pages that its database has already are full.
    const [status, live, missing] = await eventually(async () => {
      const name = `full ${names.length}`;
      const response = await large(name);
      names.push(name);
      const { headers } = response;
      const reply = headers.get("sluice-nodes");
      return reply === "3/3" ? null : [response.status, reply, headers.get("sluice-nodes-missing")];
    });
    expect([status, live, missing]).toEqual([200, "2/3", "n3;refused"]);
    // It serves from memory what it could not store, and makes no further change.
    expect(await namesOn(second)).toEqual(names);
    expect(await namesOn(first)).toEqual(names);
    const refused = await create(second, "one more");
    expect([refused.status, refused.text.includes("nothing was changed")]).toEqual([503, true]);
    expect(refused.text).toMatch(/disk is full/);
    expect((await create(first, "of n1")).status).toBe(200);
    names.push("of n1");
    disk.clear();
    await eventually(async () => (await statesOn(first)).every(isServing));
    expect(await settled(fleet.nodes)).toEqual(names);
    await second.kill9();
    await second.start();
    expect(await settled(fleet.nodes)).toEqual(names);
  },
  60_000,
);

test.each([
  { from: "this-node", names: ["in the backup", "later", "last"] },
  { from: "store", names: ["in the backup"] },
] as const)(
  "after the restore of an older backup one command on a running node gives all nodes one state: $from",
  async ({ from, names }) => {
    const fleet = await restored();
    const [first, second] = fleet.nodes as [Gateway, Gateway];
    const base = ["--data-dir", first.dataDir, "--store", fleet.postgres.url];
    const env = { SLUICE_SECRET_KEY: fleet.secret };
    const run = (words: string[]) =>
      runCommand(["fleet", "adopt", ...base, ...words], { binary: executable, env });
    // Without a choice and a confirmation it shows what there is, and changes nothing.
    for (const words of [[], ["--from", from]]) {
      const shown = await run(words);
      expect([shown.code, shown.stdout]).toEqual([
        expect.any(Number),
        expect.stringMatching(
          /This node differs from the database in services \(2 added or changed\)[\s\S]*n2 +diverged/,
        ),
      ]);
      expect(shown.code).not.toBe(0);
    }
    await expectDiverged(second, ["in the backup", "later", "last"]);
    const { code, stderr } = await run(["--from", from, "--yes"]);
    expect([code, stderr]).toEqual([0, ""]);
    await expectWhole(fleet, names);
    // Once more there is nothing that it could take back.
    const again = await run(["--from", "this-node", "--yes"]);
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining("nothing to decide")]);
    expect(await settled(fleet.nodes, { history: false })).toHaveLength(names.length + 2);
    // What a node gives up it keeps as a copy, and as revisions that can be restored.
    const copies = fleet.nodes.map(({ dataDir }) => {
      const folder = join(dataDir, "backups");
      return existsSync(folder) ? readdirSync(folder).length : 0;
    });
    expect(copies).toEqual(from === "store" ? [1, 1] : [0, 0]);
    const audit: { action: string; actor: string; kind: string }[] = await second.ok(
      "GET",
      "/api/v1/audit?action=adopt",
    );
    expect(audit.map(({ actor, kind }) => [actor, kind])).toEqual([["local", "fleet"]]);
    if (from === "this-node") return;
    const revisions: { number: number; summary: string }[] = await second.ok(
      "GET",
      "/api/v1/revisions",
    );
    const last = revisions.find(({ summary }) => summary === 'create service "last"');
    await second.ok("POST", `/api/v1/revisions/${last?.number}/restore`, {});
    expect(await settled(fleet.nodes, { history: false })).toContain("later");
  },
);

test("a decision is made though other nodes go on with changes on the restored database", async () => {
  const fleet = track(await TestFleet.start(3, { wired: true }));
  const [first, second, third] = fleet.nodes as [Gateway, Gateway, Gateway];
  await create(first, "in the backup");
  // It misses what is lost, and goes on with the restored database.
  fleet.wires[2]!.cut();
  await eventually(async () => (await statesOn(third).catch(() => ["n3 cut_off"])).length > 0);
  const backup = fleet.postgres.backup();
  await create(second, "lost");
  await fleet.postgres.restore(backup);
  fleet.wires[2]!.heal();
  for (const node of [first, second]) await expectDiverged(node, ["in the backup", "lost"]);
  await eventually(async () => (await create(third, "begins")).status === 200);
  let isOver = false;
  const writing = (async () => {
    for (let round = 0; !isOver; round++) await create(third, `on ${round}`);
  })();
  await adopt(fleet, first, "this-node");
  isOver = true;
  await writing;
  await eventually(async () => (await statesOn(first)).every(isServing));
  const names = await settled(fleet.nodes, { history: false });
  expect(names).toContain("lost");
  expect(names).not.toContain("begins");
});
