// How nodes come into a fleet, are upgraded in it, and leave it; and what their command line and log must not show.
import { expect } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanupsOf, stopsIn } from "../support/cleanups.ts";
import { create, namesOn, newKey, settled, statesOn, TestFleet } from "../support/fleet.ts";
import { type Gateway, runCommand, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { Postgres } from "../support/postgres.ts";
import { executable } from "../support/executable.ts";

const { afterEach, test } = needs("executable", "postgres");

const cleanups = cleanupsOf(afterEach);
const track = stopsIn(cleanups);

const run = (words: readonly string[]) => runCommand([...words], { binary: executable });

const nodeArgs = (postgres: Postgres, name: string) => [
  "--store",
  postgres.url,
  "--node-name",
  name,
];

test("a node that knows its fleet starts and serves while packets of the database are dropped", async () => {
  const fleet = track(await TestFleet.start(1, { wired: true }));
  const [node] = fleet.nodes as [Gateway];
  await create(node, "a");
  fleet.wires[0]?.hold();
  await node.kill9();
  await node.start();
  expect(await namesOn(node)).toEqual(["a"]);
  expect((await create(node, "b")).status).toBe(503);
  fleet.wires[0]?.heal();
  await eventually(async () => (await create(node, "c")).nodes === "1/1");
});

test("nodes that start at the same time on an empty database found one fleet", async () => {
  const postgres = track(await Postgres.create());
  const secret = newKey();
  // Each with listeners of its own: only those of the founder are configured on all nodes, so the others do not start twice.
  const start = (index: number) =>
    startGateway({
      binary: executable,
      workers: 1,
      env: { SLUICE_SECRET_KEY: secret },
      args: nodeArgs(postgres, `n${index}`),
    }).then(
      (node) => track(node),
      (error: Error) => error.message,
    );
  const results = await Promise.all([1, 2, 3].map(start));
  const nodes = results.filter((result): result is Gateway => typeof result !== "string");
  // On one machine the others find the ports of the founder taken: they have joined, and say so.
  expect(nodes.length).toBeGreaterThanOrEqual(1);
  for (const result of results)
    if (typeof result === "string") expect(result).toMatch(/address|port/);
  const sql = new Bun.SQL(postgres.url, { max: 1 });
  const [{ entries }] =
    await sql`select count(*)::int as entries from sluice.entry where position = 1`;
  const [{ founders }] =
    await sql`select count(distinct node)::int as founders from sluice.entry where position = 1`;
  expect([entries, founders]).toEqual([1, 1]);
  await sql.close();
});

test("one machine becomes a fleet with all it has, and a machine of its own again", async () => {
  const postgres = track(await Postgres.create());
  const first = track(await startGateway({ binary: executable, workers: 1, args: [] }));
  for (const name of ["http", "https"]) await first.ok("DELETE", `/api/v1/listeners/${name}`);
  await create(first, "before the fleet");
  const [{ revision }] = await first.ok("GET", "/api/v1/revisions");
  first.signal("SIGTERM");
  await first.exited();
  const key = join(first.dataDir, "secret.key");
  const init = await run(["fleet", "init", "--data-dir", first.dataDir, "--store", postgres.url]);
  expect([init.code, init.stderr]).toEqual([0, ""]);
  expect(init.stdout).toContain("secret.key");
  const { dataDir } = first;
  const serve = async (name: string, directory: string) => {
    const args = nodeArgs(postgres, name);
    return track(await startGateway({ binary: executable, workers: 1, args, dataDir: directory }));
  };
  const founder = await serve("n1", dataDir);
  const joining = mkdtempSync(join(tmpdir(), "sluice-joining-"));
  cleanups.push(() => rmSync(joining, { recursive: true, force: true }));
  copyFileSync(key, join(joining, "secret.key"));
  const second = await serve("n2", joining);
  expect(await namesOn(second)).toEqual(["before the fleet"]);
  expect((await second.ok("GET", "/api/v1/revisions"))[0].revision).toBe(revision);
  expect((await create(second, "of the fleet")).nodes).toBe("2/2");
  const status = await run(["fleet", "status", "--store", postgres.url]);
  expect(status.stdout).toMatch(/n1 +serving[\s\S]*n2 +serving/);
  const json = await run(["fleet", "status", "--store", postgres.url, "--output", "json"]);
  expect(JSON.parse(json.stdout)).toMatchObject({
    head: expect.any(Number),
    nodes: [
      { name: "n1", state: "serving" },
      { name: "n2", state: "serving" },
    ],
  });
  founder.signal("SIGTERM");
  await founder.exited();
  // A node that has ended is not waited for, and not counted.
  expect((await create(second, "alone")).nodes).toBe("1/1");
  const refused = await startGateway({
    binary: executable,
    workers: 1,
    dataDir,
    args: [],
  }).then(
    () => "it started",
    (error: Error) => error.message,
  );
  expect(refused).toContain("sluice fleet leave");
  const rotated = await run(["rotate-key", "--data-dir", dataDir]);
  expect([rotated.code, rotated.stderr]).toEqual([1, expect.stringContaining("part of a fleet")]);
  const offline = await run(["reset-admin-networks", "--data-dir", dataDir]);
  expect([offline.code, offline.stderr]).toEqual([1, expect.stringContaining("part of a fleet")]);
  const left = await run(["fleet", "leave", "--data-dir", dataDir, "--store", postgres.url]);
  expect([left.code, left.stderr]).toEqual([0, ""]);
  const alone = track(await startGateway({ binary: executable, workers: 1, dataDir, args: [] }));
  expect(await namesOn(alone)).toEqual(["before the fleet", "of the fleet"]);
  expect((await create(alone, "alone again")).nodes).toBeNull();
});

test("a node is upgraded in place: the others wait for it once, and it has lost nothing", async () => {
  const fleet = track(await TestFleet.start(2));
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  await create(first, "before");
  let isOver = false;
  const answered: string[] = ["before"];
  const writer = (async () => {
    for (let round = 0; !isOver; round++) {
      const { status } = await create(first, `during ${round}`);
      expect(status).toBe(200);
      answered.push(`during ${round}`);
    }
  })();
  const upgraded = await runCommand(
    ["upgrade", "--data-dir", second.dataDir, "--store", fleet.postgres.url, "--unready", "0"],
    { binary: executable, env: { SLUICE_SECRET_KEY: fleet.secret } },
  );
  const pid = Number(/^Process (\d+) serves/.exec(upgraded.stdout)?.[1]);
  // It is no child of the test, and holds the pipes of the one that it replaced.
  cleanups.push(() => process.kill(pid, "SIGKILL"));
  const before = answered.length;
  await eventually(() => answered.length > before + 5);
  isOver = true;
  await writer;
  expect([upgraded.code, upgraded.stderr]).toEqual([0, ""]);
  await eventually(async () => (await statesOn(first)).join() === "n1 serving,n2 serving");
  await eventually(async () => (await namesOn(second)).length === answered.length);
  expect(await settled(fleet.nodes)).toEqual(answered);
  expect((await create(second, "of the new process")).nodes).toBe("2/2");
});

test("a node with a damaged database is told what to do, and is the node again", async () => {
  const fleet = track(await TestFleet.start(2));
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  await create(second, "before");
  await second.kill9();
  const path = join(second.dataDir, "sluice.db");
  for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
  writeFileSync(path, "what a disk has made of it");
  const said = await second.start().catch((error: Error) => error.message);
  expect(said).toContain(
    "is damaged and was left as it is. Move it away with its -wal and -shm files",
  );
  expect(said).toContain("start again: this node gets the configuration of its fleet");
  rmSync(path);
  // Until then somebody may have its name.
  await eventually(async () => (await statesOn(first)).includes("n2 away"));
  await second.start();
  expect(await namesOn(second)).toEqual(["before"]);
  expect((await create(second, "after")).nodes).toBe("2/2");
  expect(await settled(fleet.nodes)).toEqual(["before", "after"]);
});

test("a node that is gone for good is removed, and another machine takes its name", async () => {
  const fleet = track(await TestFleet.start(2));
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  const remove = (name: string) =>
    run(["fleet", "remove", "--store", fleet.postgres.url, "--node", name]);
  const running = await remove("n2");
  expect([running.code, running.stderr]).toEqual([
    1,
    'sluice: node "n2" runs; stop it, and it leaves the fleet by itself\n',
  ]);
  expect((await remove("n9")).stderr).toContain('has no node "n9", only n1, n2');
  await second.kill9();
  await eventually(async () => (await statesOn(first)).includes("n2 away"));
  const removed = await remove("n2");
  expect([removed.code, removed.stdout]).toEqual([0, expect.stringContaining("Node n2 is gone")]);
  expect((await create(first, "alone")).nodes).toBe("1/1");
  const rows = await fleet.query(
    (sql) => sql`
      select node from sluice.node_start union all select node from sluice.node_plugins union all
      select node_id from sluice.lease`,
  );
  const [{ id }] = await first.ok("GET", "/api/v1/nodes");
  expect([...new Set(rows.map(({ node }: { node: string }) => node))]).toEqual([id]);
  await fleet.add({ name: "n2" });
  expect((await create(first, "both")).nodes).toBe("2/2");
});

test("what a version adds to the database is there when the database was away at its start", async () => {
  const fleet = track(await TestFleet.start(1, { wired: true }));
  const [node] = fleet.nodes as [Gateway];
  await create(node, "before");
  fleet.wires[0]?.cut();
  await node.kill9();
  // As an older version has left it.
  await fleet.query(async (sql) => {
    await sql`drop table sluice.lease, sluice.rollup, sluice.node_plugins, sluice.node_start`;
    await sql`drop table sluice.addition`;
  });
  await node.restart();
  fleet.wires[0]?.heal();
  await eventually(async () => (await create(node, "after")).nodes === "1/1");
  await eventually(async () => (await node.ok("GET", "/api/v1/nodes/n1")).leader === true);
});

test("only our log lines are written while the database is away, and no password in any", async () => {
  const postgres = track(await Postgres.create({ password: "hunter2-of-the-database" }));
  const directory = mkdtempSync(join(tmpdir(), "sluice-password-"));
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, "password");
  writeFileSync(file, "hunter2-of-the-database\n", { mode: 0o600 });
  const url = URL.parse(postgres.url)!;
  url.password = "";
  const args = ["--store", url.href, "--store-password-file", file, "--node-name", "n1"];
  const node = track(await startGateway({ binary: executable, workers: 1, args }));
  await postgres.kill();
  await eventually(async () => (await create(node, "refused")).text.includes("cut off"));
  await eventually(() => node.stderr.includes("does not answer"));
  await postgres.start();
  await eventually(async () => (await create(node, "served")).status === 200);
  const lines = node.stderr.trim().split("\n");
  for (const line of lines) expect(() => JSON.parse(line)).not.toThrow();
  expect(node.stderr).not.toContain("hunter2");
  const listed = await Bun.file(`/proc/${node.pid}/cmdline`).text();
  expect(listed).not.toContain("hunter2");
  // A password on the command line is reported, without it.
  const open = postgres.url.includes("@") ? postgres.url : "";
  const second = startGateway({
    binary: executable,
    workers: 1,
    args: ["--store", open, "--node-name", "n2"],
  });
  const said = await second.then(
    async (started) => {
      await started.stop();
      return started.stderr;
    },
    (error: Error) => error.message,
  );
  expect(said).not.toContain("hunter2");
});

test("the node that founds the fleet creates the first admin, whom the next node has when it starts", async () => {
  const postgres = track(await Postgres.create());
  const env = { SLUICE_SECRET_KEY: newKey(), SLUICE_ADMIN_EMAIL: "ann@example.com" };
  const remote = ["--admin", "0.0.0.0:0", "--admin-allow", "127.0.0.0/8"];
  const start = async (name: string) => {
    const args = [...nodeArgs(postgres, name), ...remote];
    return track(await startGateway({ binary: executable, workers: 1, env, args }));
  };
  const signsIn = async (node: Gateway, password: string) => {
    // It listens for other machines from the first start on, because a user exists.
    expect(node.admin).toStartWith("http://0.0.0.0:");
    node.admin = node.admin.replace("0.0.0.0", "127.0.0.1");
    expect((await node.api("GET", "/api/v1/services")).status).toBe(401);
    const body = { email: "ann@example.com", password };
    expect((await node.api("POST", "/api/v1/auth/login", body)).status).toBe(200);
  };
  const founder = await start("n1");
  const [, password = ""] = /with the password (\S+) /.exec(founder.stderr) ?? [];
  await signsIn(founder, password);
  // Its ports are those of all nodes.
  await founder.kill9();
  const second = await start("n2");
  expect(second.stderr).not.toContain("with the password");
  await signsIn(second, password);
});
