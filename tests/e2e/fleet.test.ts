// Two compiled nodes with one configuration over a real PostgreSQL: live before the reply, and what faults of either look like.
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanupsOf } from "../support/cleanups.ts";
import { create, namesOn, newKey, statesOn, TestFleet } from "../support/fleet.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";

const { afterEach, describe, test } = needs("executable", "postgres");

const cleanups = cleanupsOf(afterEach);

async function startFleet(count: number): Promise<TestFleet> {
  const fleet = await TestFleet.start(count);
  cleanups.push(() => fleet.stop());
  return fleet;
}

test("a change is live on all nodes before the reply, whichever node it is sent to", async () => {
  const { nodes } = await startFleet(3);
  const names: string[] = [];
  for (let round = 0; round < 30; round++) {
    const name = `s${round}`;
    names.push(name);
    const { status, nodes: live } = await create(nodes[round % 3]!, name);
    expect([status, live]).toEqual([200, "3/3"]);
    for (const node of nodes) expect(await namesOn(node)).toEqual(names);
  }
  const revisions = await Promise.all(
    nodes.map(async (node) => (await node.ok("GET", "/api/v1/revisions"))[0]),
  );
  expect(revisions[1]).toEqual(revisions[0]);
  expect(revisions[2]).toEqual(revisions[0]);
});

test("a node that is killed is counted as missing, and catches up when it starts again", async () => {
  const { nodes } = await startFleet(2);
  const [first, second] = nodes as [Gateway, Gateway];
  await second.kill9();
  const slow = await create(first, "while it is dead");
  expect([slow.status, slow.nodes, slow.missing]).toEqual([200, "1/2", "n2;lagging"]);
  await eventually(async () => (await statesOn(first)).includes("n2 away"));
  expect((await create(first, "without waiting")).missing).toBe("n2;away");
  await second.start();
  expect(await namesOn(second)).toEqual(["while it is dead", "without waiting"]);
  expect(await statesOn(second)).toEqual(["n1 serving", "n2 serving"]);
  expect((await second.ok("GET", "/api/v1/nodes/n1")).stored).toBe(5);
  expect((await create(second, "afterwards")).nodes).toBe("2/2");
  expect(await namesOn(first)).toEqual(["while it is dead", "without waiting", "afterwards"]);
});

test("without the database all nodes serve, refuse changes, start, and go on when it is back", async () => {
  const { postgres, nodes } = await startFleet(2);
  const [first, second] = nodes as [Gateway, Gateway];
  expect((await create(first, "before")).nodes).toBe("2/2");
  await postgres.kill();
  for (const node of nodes) {
    const refused = await create(node, "meanwhile");
    expect(refused.status).toBe(503);
    expect(refused.text).toContain("nothing was changed");
    expect(await namesOn(node)).toEqual(["before"]);
  }
  await second.restart();
  expect(await namesOn(second)).toEqual(["before"]);
  await postgres.start();
  const all = await eventually(async () => {
    const { status, nodes: live } = await create(first, `after ${Bun.randomUUIDv7()}`);
    return status === 200 && live === "2/2";
  });
  expect(all).toBe(true);
  expect(await namesOn(second)).toEqual(await namesOn(first));
  // Both listen, also the one whose first attempt failed.
  const sql = new Bun.SQL(postgres.url, { max: 1 });
  cleanups.push(() => sql.close());
  await eventually(async () => {
    const rows = await sql`
      select 1 from pg_stat_activity
      where application_name = 'sluice' and query ilike 'listen%'`;
    return rows.length === 2;
  });
});

test("three writers at the same time: every answered change is on all nodes, in one order", async () => {
  const { nodes } = await startFleet(3);
  const answered: string[] = [];
  await Promise.all(
    nodes.map(async (node, index) => {
      for (let round = 0; round < 20; round++) {
        const { status } = await create(node, `n${index}-${round}`);
        expect(status).toBe(200);
        answered.push(`n${index}-${round}`);
      }
    }),
  );
  const lists = await Promise.all(nodes.map(namesOn));
  expect([...lists[0]!].sort()).toEqual([...answered].sort());
  expect(lists[1]).toEqual(lists[0]!);
  expect(lists[2]).toEqual(lists[0]!);
});

test("a name that is taken on one node is taken on all", async () => {
  const { nodes } = await startFleet(2);
  const [a, b] = await Promise.all(nodes.map((node) => create(node, "one")));
  expect([a!.status, b!.status].sort()).toEqual([200, 409]);
});

describe("a node does not start", () => {
  const refusal = async (options: { args: string[]; secret: string; dataDir?: string }) => {
    const { args, secret, dataDir } = options;
    const started = startGateway({
      binary: executable,
      workers: 1,
      env: { SLUICE_SECRET_KEY: secret },
      args,
      ...(dataDir === undefined ? {} : { dataDir }),
    });
    return await started.then(
      async (gateway) => {
        await gateway.stop();
        return "it started";
      },
      (error: Error) => error.message,
    );
  };

  test("with another secret key, or with a configuration of its own", async () => {
    const { postgres, secret } = await startFleet(1);
    const args = ["--store", postgres.url, "--node-name", "n2"];
    expect(await refusal({ args, secret: newKey() })).toContain(
      "copy the secret.key of a node of that fleet",
    );
    const dataDir = mkdtempSync(join(tmpdir(), "sluice-fleet-"));
    cleanups.push(() => rmSync(dataDir, { recursive: true, force: true }));
    const alone = await startGateway({
      binary: executable,
      dataDir,
      env: { SLUICE_SECRET_KEY: secret },
    });
    await alone.stop();
    expect(await refusal({ args, secret, dataDir })).toContain(
      "start with an empty data directory",
    );
  });

  test("without the database at its first start, or with a wrong address", async () => {
    const secret = newKey();
    const args = ["--store", "postgres://sluice@127.0.0.1:1/postgres"];
    expect(await refusal({ args, secret })).toContain("the database cannot be reached");
    expect(await refusal({ args: ["--store", "mysql://x"], secret })).toContain("--store: must be");
  });
});

test("whoever writes to the database is no admin of the gateways", async () => {
  const { postgres, nodes } = await startFleet(2);
  const [first, second] = nodes as [Gateway, Gateway];
  await create(first, "before");
  const sql = new Bun.SQL(postgres.url, { max: 1 });
  cleanups.push(() => sql.close());
  // The last entry once more, at the next position.
  await sql`update sluice.head set position = position + 1`;
  await sql`
    insert into sluice.entry (position, entry_id, node, format, body, mac)
    select position + 1, gen_random_uuid(), node, format, body, mac from sluice.entry
    order by position desc limit 1`;
  await sql`select pg_notify('sluice', '')`;
  await eventually(() => second.stderr.includes("is not signed"));
  expect(await namesOn(second)).toEqual(["before"]);
});

describe("access", () => {
  const PASSWORD = "correct horse battery";
  const user = { email: "root@a.example", name: "root", role: "admin", password: PASSWORD };

  async function signIn(node: Gateway, totp?: string) {
    const body = { email: user.email, password: PASSWORD, ...(totp === undefined ? {} : { totp }) };
    const response = await node.api("POST", "/api/v1/auth/login", body);
    return { status: response.status, cookie: response.headers.get("set-cookie")?.split(";")[0] };
  }

  const statusWith = async (node: Gateway, cookie = "") =>
    (await node.api("GET", "/api/v1/users", undefined, { cookie })).status;

  test("a session made on one node works on the other, and ends on both", async () => {
    const { nodes } = await startFleet(2);
    const [first, second] = nodes as [Gateway, Gateway];
    await first.ok("POST", "/api/v1/users", user);
    const { cookie } = await signIn(first);
    expect(await statusWith(first, cookie)).toBe(200);
    await eventually(async () => (await statusWith(second, cookie)) === 200);
    await second.api("POST", "/api/v1/auth/logout", {}, { cookie: cookie ?? "" });
    expect(await statusWith(second, cookie)).toBe(401);
    await eventually(async () => (await statusWith(first, cookie)) === 401);
  });
});
