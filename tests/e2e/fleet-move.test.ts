// The database of a fleet gets another address: its nodes go over one by one, without a restart and without a failed request.
import { expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanupsOf, stopsIn } from "../support/cleanups.ts";
import { executable } from "../support/executable.ts";
import { create, isServing, statesOn, TestFleet } from "../support/fleet.ts";
import { type Gateway, runCommand, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { Postgres } from "../support/postgres.ts";
import { Wire } from "../support/wire.ts";

const { afterEach, test } = needs("executable", "postgres");

const cleanups = cleanupsOf(afterEach);
const track = stopsIn(cleanups);

const move = (node: Gateway, store: string, ...words: string[]) =>
  runCommand(["fleet", "move", "--data-dir", node.dataDir, ...words], {
    binary: executable,
    env: store === "" ? {} : { SLUICE_STORE: store },
  });

test("nodes go over to another address one by one, while all of them make changes", async () => {
  const fleet = track(await TestFleet.start(2, { wired: true }));
  const other = await Wire.open({ target: fleet.postgres.port });
  cleanups.push(() => other.close());
  const url = fleet.postgres.urlAt(other.port);
  const replies: (string | null)[] = [];
  let isOver = false;
  const writing = fleet.nodes.map(async (node, index) => {
    for (let round = 0; !isOver; round++)
      replies.push((await create(node, `n${index}-${round}`)).nodes);
  });
  for (const node of fleet.nodes) {
    const { code, stdout, stderr } = await move(node, url);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("Change its --store or SLUICE_STORE as well");
  }
  for (const wire of fleet.wires) wire.cut();
  const before = replies.length;
  await eventually(() => replies.length > before + 20);
  isOver = true;
  await Promise.all(writing);
  expect(new Set(replies)).toEqual(new Set(["2/2"]));
  for (const node of fleet.nodes) expect((await statesOn(node)).every(isServing)).toBe(true);
  // Entries of the other node arrive by notification again.
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  await create(first, "last");
  expect((await second.api("GET", "/api/v1/services/last")).status).toBe(200);
});

test("a node that has joined by an invitation keeps the address, in a file that only its user can read", async () => {
  const fleet = track(await TestFleet.start(1));
  const [founder] = fleet.nodes as [Gateway];
  const wires = await Promise.all([1, 2].map(() => Wire.open({ target: fleet.postgres.port })));
  cleanups.push(...wires.map((wire) => () => wire.close()));
  const [former, next] = wires.map(({ port }) => fleet.postgres.urlAt(port)) as [string, string];
  const invited = await runCommand(["fleet", "invite", "--data-dir", founder.dataDir], {
    binary: executable,
    env: { SLUICE_SECRET_KEY: fleet.secret, SLUICE_STORE: former },
  });
  const token = /SLUICE_JOIN_TOKEN=(\S+)/.exec(invited.stdout)?.[1] ?? "";
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-moving-"));
  cleanups.push(() => rmSync(dataDir, { recursive: true, force: true }));
  const words = ["--data-dir", dataDir, "--node-name", "n2"];
  const env = { SLUICE_JOIN_TOKEN: token };
  expect((await runCommand(["fleet", "join", ...words], { binary: executable, env })).code).toBe(0);
  const node = track(await startGateway({ binary: executable, workers: 1, dataDir, args: [] }));
  expect((await move(node, next)).stdout).toContain("also after a restart");
  const path = join(dataDir, "fleet.json");
  expect(JSON.parse(readFileSync(path, "utf8")).urls).toEqual([next]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  wires[0]?.cut();
  await node.restart();
  expect((await create(node, "after")).nodes).toBe("2/2");
});

test("an address that is not that of the fleet's database is refused with the reason, and changes nothing", async () => {
  const fleet = track(await TestFleet.start(1));
  const [node] = fleet.nodes as [Gateway];
  await create(node, "before");
  const backup = fleet.postgres.backup();
  await create(node, "after");
  const empty = await Postgres.create({ password: "from-nowhere" });
  cleanups.push(() => empty.stop());
  const older = await Postgres.create();
  cleanups.push(() => older.stop());
  await older.restore(backup);
  const secretUrl = "postgres://sluice:in-the-open@127.0.0.1:1/sluice";
  for (const { store, words = [], says } of [
    { store: empty.url, says: "this database holds no fleet; nothing was changed" },
    { store: older.url, says: "this database lacks entry" },
    { store: secretUrl, says: "the database cannot be used" },
    { store: "", words: ["--store", secretUrl], says: "can see a password there" },
    { store: "", says: "move needs the new --store" },
  ]) {
    const { code, stderr, stdout } = await move(node, store, ...words);
    expect([code === 0, stderr]).toEqual([false, expect.stringContaining(says)]);
    expect(stdout + stderr + node.stderr).not.toMatch(/in-the-open|from-nowhere/);
  }
  expect((await create(node, "last")).nodes).toBe("1/1");
});
