// The secret key of a fleet is replaced by an entry of its log: while changes go on, with a node away, and with nodes that die meanwhile.
import { expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SecretBox } from "../../src/crypto/secret-box.ts";
import { cleanupsOf } from "../support/cleanups.ts";
import {
  type FleetOptions,
  isServing,
  newKey,
  send,
  settled,
  statesOn,
  TestFleet,
} from "../support/fleet.ts";
import { type Gateway, runCommand } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";
import { openSource } from "../support/fleet-source.ts";

const { afterEach, test } = needs("executable", "postgres");

const cleanups = cleanupsOf(afterEach);

async function startFleet(options: FleetOptions): Promise<TestFleet> {
  const fleet = await TestFleet.start(3, options);
  cleanups.push(() => fleet.stop());
  return fleet;
}

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "sluice-rotation-"));
  cleanups.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const keyOf = ({ dataDir }: Pick<Gateway, "dataDir">) =>
  readFileSync(join(dataDir, "secret.key")).toString("hex");

function rotate({ dataDir }: Gateway, words: string[] = [], env: Record<string, string> = {}) {
  const argv = ["rotate-key", "--data-dir", dataDir, ...words];
  return runCommand(argv, { binary: executable, env });
}

const createSecret = (node: Gateway, name: string) =>
  send(node, "POST", ["/api/v1/secrets", { name, value: `value of ${name}` }]);

/** Writing the value that is there changes nothing, so the revision shows whether it can still be read. */
async function expectReadable(node: Gateway, names: readonly string[]): Promise<void> {
  const { revision } = await node.ok("GET", "/api/v1/admin/status");
  for (const name of names) {
    const body = { value: `value of ${name}` };
    const response = await node.api("PATCH", `/api/v1/secrets/${name}`, body);
    expect([name, response.status, response.headers.get("x-config-revision")]).toEqual([
      name,
      200,
      String(revision),
    ]);
  }
}

/** Positions of the entries that the log has, and of the whole state. */
const logOf = (fleet: TestFleet) =>
  fleet.query(async (sql) => {
    const [row] = await sql`
      select (select min(position) from sluice.entry)::float8 as first, (select position from sluice.head)::float8 as head,
        (select max(position) from sluice.whole)::float8 as whole,
        (select value from sluice.meta where key = 'former_key') as former,
        (select value from sluice.meta where key = 'key_id') as key`;
    return row as {
      first: number | null;
      head: number;
      whole: number;
      former: string;
      key: string;
    };
  });

const areServing = (fleet: TestFleet) =>
  eventually(async () => {
    const states = await Promise.all(fleet.nodes.map(statesOn));
    return states.every((each) => each.length === fleet.nodes.length && each.every(isServing));
  });

/** The log has no entry any more that a former key opens. */
const isPruned = (fleet: TestFleet) =>
  eventually(async () => {
    const { first, former, whole } = await logOf(fleet);
    const position = Number(former.split(" ")[1]);
    return whole >= position && (first === null || first > position);
  });

test("all nodes get the new key between two changes, and start with it", async () => {
  const fleet = await startFleet({ keyIn: "file" });
  const { nodes } = fleet;
  const names: string[] = [];
  const write = async (node: Gateway, name: string) => {
    // Two nodes at the same time may have to take turns.
    expect(await createSecret(node, name)).toMatchObject({ status: 200 });
    names.push(name);
  };
  for (const [index, node] of nodes.entries()) await write(node, `before-${index}`);
  const before = keyOf(nodes[0]!);
  const state = { isOver: false };
  const writers = nodes.map(async (node, index) => {
    for (let count = 0; !state.isOver; count++) await write(node, `during-${index}-${count}`);
  });
  const keys = [before];
  for (const node of nodes) {
    const known = names.length;
    const { code, stdout, stderr } = await rotate(node);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("3 of 3 nodes of the fleet have it.");
    for (const each of nodes) expect(keyOf(each)).toBe(keyOf(node));
    keys.push(keyOf(node));
    await eventually(() => names.length > known + 5);
  }
  state.isOver = true;
  await Promise.all(writers);
  expect(new Set(keys).size).toBe(4);
  await settled(nodes);
  for (const node of nodes) await expectReadable(node, names);
  await areServing(fleet);
  await isPruned(fleet);
  for (const node of nodes) {
    await node.restart();
    await areServing(fleet);
    const name = `after-${names.length}`;
    expect((await createSecret(node, name)).nodes).toBe("3/3");
    names.push(name);
    for (const each of nodes) await expectReadable(each, names);
  }
  // A node that joins needs the new key.
  const joined = await fleet.add();
  await expectReadable(joined, names);
  expect((await createSecret(joined, "joined")).nodes).toBe("4/4");
  const old = directory();
  writeFileSync(join(old, "secret.key"), Buffer.from(keys[2]!, "hex"), { mode: 0o600 });
  await expect(fleet.add({ name: "late", dataDir: old })).rejects.toThrow(
    "was replaced in its fleet by another one",
  );
  const entries = await nodes[1]!.ok("GET", "/api/v1/audit?kind=secret_key");
  expect(entries).toHaveLength(3);
});

test("a node that is away follows when it is back, and the log waits for it", async () => {
  const fleet = await startFleet({ keyIn: "file" });
  const [first, second, third] = fleet.nodes as [Gateway, Gateway, Gateway];
  await createSecret(first, "before");
  third.signal("SIGSTOP");
  await eventually(async () => (await statesOn(first)).includes("n3 away"));
  const before = keyOf(first);
  const refused = await rotate(second);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("n3 (away)")]);
  expect(keyOf(first)).toBe(before);
  const forced = await rotate(second, ["--force"]);
  expect([forced.code, forced.stderr]).toEqual([0, ""]);
  expect(forced.stdout).toContain("2 of 3 nodes of the fleet have it; missing: n3 (away).");
  expect(keyOf(first)).toBe(keyOf(second));
  expect(keyOf(third)).toBe(before);
  expect((await createSecret(first, "after")).nodes).toBe("2/3");
  const { whole } = await eventually(async () => {
    const log = await logOf(fleet);
    return log.whole === null ? null : log;
  });
  // With another key after this one n3 could never come back.
  const twice = await rotate(first, ["--force"]);
  expect([twice.code, twice.stderr]).toEqual([
    1,
    expect.stringContaining("node n3 does not have the present secret key yet"),
  ]);
  // What it needs stays, and what joins has the whole state.
  expect((await logOf(fleet)).first).toBe(1);
  expect(whole).toBeGreaterThan(1);
  third.signal("SIGCONT");
  await areServing(fleet);
  expect(keyOf(third)).toBe(keyOf(second));
  await expectReadable(third, ["before", "after"]);
  await isPruned(fleet);
  // One that was killed starts with the key that its secrets are sealed under, and gets the new one from the log.
  await third.kill9();
  await eventually(async () => (await statesOn(first)).includes("n3 away"));
  expect((await rotate(first, ["--force"])).code).toBe(0);
  await third.start();
  await areServing(fleet);
  expect(keyOf(third)).toBe(keyOf(second));
  await expectReadable(third, ["before", "after"]);
  await isPruned(fleet);
  expect((await createSecret(third, "last")).nodes).toBe("3/3");
  await settled(fleet.nodes);
});

test("nodes with the key in a variable start with the old variable only beside the new one", async () => {
  const environments: Record<string, string>[] = [];
  const fleet = await startFleet({
    node: () => {
      const env = {};
      environments.push(env);
      return { env };
    },
  });
  const [first, second] = fleet.nodes as [Gateway, Gateway, Gateway];
  await createSecret(first, "before");
  const refused = await rotate(first);
  expect(refused.stderr).toContain("SLUICE_NEW_SECRET_KEY: must contain the new key");
  const next = newKey();
  const rotated = await rotate(first, [], { SLUICE_NEW_SECRET_KEY: next });
  expect([rotated.code, rotated.stderr]).toEqual([0, ""]);
  expect(rotated.stdout).toContain("3 of 3 nodes of the fleet have it.");
  for (const node of fleet.nodes) await expectReadable(node, ["before"]);
  await second.kill9();
  await expect(second.start()).rejects.toThrow("which was expected in SLUICE_SECRET_KEY");
  for (const env of environments) env["SLUICE_NEW_SECRET_KEY"] = next;
  await second.start();
  await areServing(fleet);
  for (const env of environments) {
    delete env["SLUICE_NEW_SECRET_KEY"];
    env["SLUICE_SECRET_KEY"] = next;
  }
  for (const node of fleet.nodes) await node.restart();
  await areServing(fleet);
  for (const node of fleet.nodes) await expectReadable(node, ["before"]);
});

test("a node that dies at any step of a rotation has the key of the others when it is back", async () => {
  const environments: Record<string, string>[] = [];
  const fleet = await startFleet({
    keyIn: "file",
    node: () => {
      const env = {};
      environments.push(env);
      return { env };
    },
  });
  const { nodes } = fleet;
  await createSecret(nodes[0]!, "before");
  const steps = {
    before_append: [0, false],
    after_append: [0, true],
    follow_after_store: [1, true],
  };
  for (const [step, [dying = 0, isMade]] of Object.entries(steps) as [
    string,
    [number, boolean],
  ][]) {
    const node = nodes[dying]!;
    await node.kill9();
    const before = keyOf(nodes[2]!);
    environments[dying]!["SLUICE_FAIL_POINT"] = `${step}:1`;
    await node.start();
    await areServing(fleet);
    const rotated = await rotate(nodes[0]!);
    expect([step, await node.exited()]).not.toEqual([step, 0]);
    expect([step, rotated.code]).toEqual([step, dying === 0 ? 1 : 0]);
    delete environments[dying]!["SLUICE_FAIL_POINT"];
    await node.start();
    await areServing(fleet);
    expect([step, keyOf(nodes[2]!) !== before]).toEqual([step, isMade]);
    for (const each of nodes) {
      expect([step, keyOf(each)]).toEqual([step, keyOf(nodes[2]!)]);
      await expectReadable(each, ["before"]);
    }
  }
  await settled(nodes);
});

test("a database from before a rotation is overruled by a node with the new key", async () => {
  const fleet = await startFleet({ keyIn: "file" });
  const [first, second, third] = fleet.nodes as [Gateway, Gateway, Gateway];
  await createSecret(first, "before");
  const backup = fleet.postgres.backup();
  expect((await rotate(first)).code).toBe(0);
  await createSecret(first, "after");
  await fleet.postgres.restore(backup);
  const end = async (node: Gateway) => {
    node.signal("SIGTERM");
    await node.exited();
  };
  const adopt = async ({ dataDir }: Gateway, from: string) => {
    const words = ["--data-dir", dataDir, "--store", fleet.postgres.url, "--from", from, "--yes"];
    const { code, stderr } = await runCommand(["fleet", "adopt", ...words], { binary: executable });
    expect([code, stderr]).toEqual([0, ""]);
  };
  for (const node of fleet.nodes) await end(node);
  await adopt(first, "this-node");
  await first.start();
  for (const node of [second, third]) {
    await adopt(node, "store");
    await node.start();
  }
  await areServing(fleet);
  for (const node of fleet.nodes) await expectReadable(node, ["before", "after"]);
  expect((await createSecret(third, "last")).nodes).toBe("3/3");
});

test("a rotation that the database does not note before it ends is noted when it answers", async () => {
  const fleet = await TestFleet.start(1, { keyIn: "file" });
  cleanups.push(() => fleet.stop());
  const [node] = fleet.nodes as [Gateway];
  const idNow = async () => (await logOf(fleet)).key;
  const locked = Promise.withResolvers<void>();
  const lock = fleet
    .query((sql) =>
      sql.begin(async (transaction) => {
        await transaction`select value from sluice.meta where key = 'key_id' for update`;
        locked.resolve();
        await new Promise(() => {});
      }),
    )
    .catch(() => undefined);
  await locked.promise;
  const former = await idNow();
  // The locked row may keep a connection from other queries.
  expect((await rotate(node)).code).toBe(0);
  expect(await idNow()).toBe(former);
  await fleet.postgres.kill();
  await lock;
  await fleet.postgres.start();
  const { keyId } = new SecretBox(readFileSync(join(node.dataDir, "secret.key")));
  expect(await eventually(async () => (await idNow()) === keyId)).toBe(true);
});

needs("postgres").test(
  "a later rotation is noted though the one before it was not, and an earlier one no more",
  async () => {
    const { source } = await openSource(cleanups);
    const identity = { fleetId: Bun.randomUUIDv7(), keyId: "first" };
    await source.identify(identity);
    await source.noteRotation({ formerKeyId: "second", position: 9 }, "third");
    await source.noteRotation({ formerKeyId: "first", position: 5 }, "second");
    expect(await source.identify(identity)).toEqual({
      ...identity,
      keyId: "third",
      rotation: { formerKeyId: "second", position: 9 },
    });
  },
);
