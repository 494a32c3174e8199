// What a fleet refuses: entries and nodes that were forged in its database, and what an operator may give it by mistake.
import { expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanupsOf, stopsIn } from "../support/cleanups.ts";
import { create, namesOn, newKey, settled, TestFleet } from "../support/fleet.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { PgBouncer } from "../support/pgbouncer.ts";
import { eventually } from "../support/poll.ts";
import { Postgres } from "../support/postgres.ts";
import { executable } from "../support/executable.ts";

const { afterEach, describe, test } = needs("executable", "postgres");

const cleanups = cleanupsOf(afterEach);
const track = stopsIn(cleanups);

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "sluice-fleet-"));
  cleanups.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Two nodes; the second one is stopped before the last change, which it reads when it goes on. */
async function behind() {
  const fleet = track(await TestFleet.start(2));
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  expect((await create(first, "before")).nodes).toBe("2/2");
  second.signal("SIGSTOP");
  expect((await create(first, "forged")).nodes).toBe("1/2");
  return { fleet, first, second };
}

/** The node says why it does not go on, and does not. */
async function refusesTheLast(first: Gateway, second: Gateway): Promise<void> {
  second.signal("SIGCONT");
  const { error } = await eventually(async () => {
    const node = await first.ok("GET", "/api/v1/nodes/n2");
    return node.state === "refused" ? node : null;
  });
  expect(error).toContain("is not signed with the secret key of this fleet");
  expect(await namesOn(second)).toEqual(["before"]);
}

describe("whoever can write to the database is no admin of the gateways", () => {
  test("an entry whose body was changed is not applied", async () => {
    const { fleet, first, second } = await behind();
    // A valid body of another entry.
    await fleet.query(
      (sql) => sql`
        update sluice.entry set body = (select body from sluice.entry where position = 2)
        where position = (select position from sluice.head)`,
    );
    await refusesTheLast(first, second);
  });

  test("an entry without a signature of the fleet is not applied", async () => {
    const { fleet, first, second } = await behind();
    await fleet.query(
      (sql) => sql`
        update sluice.entry set mac = sha256(body)
        where position = (select position from sluice.head)`,
    );
    await refusesTheLast(first, second);
  });

  test("an entry at another position is not applied", async () => {
    const { fleet, first, second } = await behind();
    await fleet.query(
      (sql) => sql`
        with older as (select * from sluice.entry where position = 2)
        update sluice.entry set node = older.node, format = older.format, body = older.body, mac = older.mac
        from older where entry.position = (select position from sluice.head)`,
    );
    await refusesTheLast(first, second);
  });

  test("a format that was changed is not applied", async () => {
    const { fleet, first, second } = await behind();
    await fleet.query(
      (sql) => sql`
        update sluice.entry set format = 0 where position = (select position from sluice.head)`,
    );
    await refusesTheLast(first, second);
  });

  test("a node is not live because its row says so", async () => {
    const { fleet, first } = await behind();
    await fleet.query(
      (sql) => sql`update sluice.node set stored = 1000, served = 1000 where name = 'n2'`,
    );
    const { status, nodes } = await create(first, "live on n1 only");
    expect([status, nodes]).toEqual([200, "1/2"]);
    // A node that does not exist holds up no change.
    await fleet.query(
      (sql) => sql`
        insert into sluice.node select * from json_populate_record(
          (select node from sluice.node where name = 'n2'), '{"id":"ghost","name":"ghost"}')`,
    );
    const reply = await create(first, "without the ghost");
    expect([reply.status, reply.missing]).toEqual([200, "ghost;refused, n2;refused"]);
    expect(reply.ms).toBeLessThan(1900);
    expect((await first.ok("GET", "/api/v1/nodes/ghost")).error).toContain("is not signed");
  });
});

/** What the log of a node says that does not start. */
async function refusal(
  secret: string,
  url: string,
  more: { readonly name?: string; readonly args?: string[]; readonly dataDir?: string } = {},
): Promise<string> {
  const started = startGateway({
    binary: executable,
    workers: 1,
    env: { SLUICE_SECRET_KEY: secret },
    args: ["--store", url, "--node-name", more.name ?? "late", ...(more.args ?? [])],
    ...(more.dataDir === undefined ? {} : { dataDir: more.dataDir }),
  });
  return await started.then(
    async (gateway) => {
      await gateway.stop();
      return "it started";
    },
    (error: Error) => error.message.replace(/^\{.*$/gm, (line) => JSON.parse(line).message),
  );
}

describe("a node does not start, and says what to do", () => {
  test("in the directory of another fleet, or at a standby", async () => {
    const fleet = track(await TestFleet.start(1));
    const dataDir = directory();
    const second = await fleet.add({ dataDir });
    await second.stop();
    const other = track(await TestFleet.start(1));
    const said = await refusal(fleet.secret, other.postgres.url, { dataDir });
    expect(said).toMatch(/another fleet|not the one of its fleet/);
    const standby = track(await fleet.postgres.standby());
    expect(await refusal(fleet.secret, standby.url)).toContain("name the primary");
  });

  test("with a wrong user, password, database or port", async () => {
    const postgres = track(await Postgres.create({ password: "of the database" }));
    const wrong = (part: (url: URL) => void) => {
      const url = new URL(postgres.url);
      part(url);
      return refusal(newKey(), url.href);
    };
    expect(await wrong((url) => (url.password = "another"))).toContain(
      'it refuses the password of user "sluice", or has no such user: check --store-password-file',
    );
    // The server does not tell it from a wrong password.
    expect(await wrong((url) => (url.username = "nobody"))).toContain(
      'it refuses the password of user "nobody", or has no such user',
    );
    expect(await wrong((url) => (url.pathname = "/missing"))).toContain(
      'it has no such database as "missing": create it',
    );
    expect(await wrong((url) => (url.port = "1"))).toMatch(/cannot be reached/);
    expect(await wrong((url) => (url.hostname = "no-such-host.invalid"))).toMatch(
      /cannot be reached/,
    );
  });

  test("with a user that a server without passwords does not have", async () => {
    const { url } = track(await Postgres.create());
    expect(await refusal(newKey(), url.replace("sluice@", "nobody@"))).toContain(
      'it has no user "nobody": create it with createuser',
    );
  });

  test("with another key, and hears who has founded the fleet and how to go on", async () => {
    const fleet = track(await TestFleet.start(1));
    const said = await refusal(newKey(), fleet.postgres.url);
    expect(said).toMatch(/which was founded by node \\?"n1\\?" at 20/);
    expect(said).toContain("copy the secret.key of a node of that fleet");
    expect(said).toContain("drop schema sluice cascade");
  });

  test("and founds nothing then: a node with another key does", async () => {
    const postgres = track(await Postgres.create());
    const taken = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    cleanups.push(() => taken.stop(true));
    const dataDir = directory();
    const said = await refusal(newKey(), postgres.url, {
      dataDir,
      args: ["--admin", `127.0.0.1:${taken.port}`],
    });
    expect(said).toMatch(/in use/);
    expect(await refusal(newKey(), postgres.url, { name: "n1" })).toBe("it started");
    // The directory is that of a gateway without a fleet.
    const alone = track(await startGateway({ binary: executable, workers: 1, dataDir }));
    expect(await alone.ok("GET", "/api/v1/nodes")).toEqual([]);
  });

  test("with a database that is too old", async () => {
    const fleet = track(await TestFleet.start(1));
    // A function before those of the system says what an older server would say.
    await fleet.query(
      (sql) => sql`
        create function public.current_setting(text) returns text language sql as $$ select '130014' $$`,
    );
    await fleet.query((sql) => sql`alter role sluice set search_path = public, pg_catalog`);
    expect(await refusal(fleet.secret, fleet.postgres.url)).toContain(
      "older than PostgreSQL 14; upgrade it",
    );
  });

  test("without the right to create its tables", async () => {
    const fleet = track(await TestFleet.start(1));
    await fleet.query((sql) => sql`create role reader login`);
    const url = fleet.postgres.url.replace("sluice@", "reader@");
    expect(await refusal(fleet.secret, url)).toContain("make it the owner");
  });

  test("with a configuration file", async () => {
    const postgres = track(await Postgres.create());
    const config = join(directory(), "sluice.yaml");
    writeFileSync(config, "services: []\n");
    const said = await refusal(newKey(), postgres.url, { args: ["--config", config] });
    expect(said).toMatch(/--store.*--config|--config.*--store/);
  });

  test("with the name of a node that is there", async () => {
    const fleet = track(await TestFleet.start(1));
    expect(await refusal(fleet.secret, fleet.postgres.url, { name: "n1" })).toContain(
      "choose a name of its own for each node",
    );
  });
});

test("a fleet has 50 nodes at most, and those that are gone make room when they are forgotten", async () => {
  const fleet = track(await TestFleet.start(1));
  await fleet.query(
    (sql) => sql`
      insert into sluice.node
      select (json_populate_record(node, json_build_object(
        'id', 'gone-' || number, 'name', 'gone-' || number, 'seen', now() - interval '1 day'))).*
      from sluice.node, generate_series(1, 49) number`,
  );
  expect(await refusal(fleet.secret, fleet.postgres.url)).toContain("50 nodes");
  expect((await fleet.nodes[0]!.api("DELETE", "/api/v1/nodes/gone-7")).status).toBe(200);
  expect(await refusal(fleet.secret, fleet.postgres.url)).toBe("it started");
});

/** Until its second lost heartbeat a node only knows that it has no answer. */
const PASSING = /does not answer|cannot be reached/;

test("of two nodes that start with one name at the same time only one makes changes", async () => {
  const fleet = track(await TestFleet.start(1));
  const twins = await Promise.allSettled([1, 2].map(() => fleet.add({ name: "twin" })));
  // Either the second one does not start, or it says why it is cut off.
  const said = await eventually(async () => {
    const replies = await Promise.all(
      fleet.nodes
        .slice(1)
        .map((node, index) => create(node, `${Bun.randomUUIDv7().slice(-12)} ${index}`)),
    );
    const refused = replies.filter(({ status }) => status !== 200).map(({ text }) => text);
    const failed = twins.flatMap((twin) =>
      twin.status === "rejected" ? [String(twin.reason)] : [],
    );
    const all = [...refused, ...failed];
    return all.length === 1 && !PASSING.test(all[0] ?? "") ? all.join() : null;
  });
  expect(said).toContain("--node-name");
});

describe("a fleet works", () => {
  test("behind PgBouncer in transaction mode", async () => {
    const postgres = track(await Postgres.create());
    const pooler = track(await PgBouncer.create(postgres));
    const fleet = track(await TestFleet.start(2, { postgres, node: () => ({ url: pooler.url }) }));
    const names: string[] = [];
    for (let round = 0; round < 10; round++) {
      names.push(`s${round}`);
      const { status, nodes } = await create(fleet.nodes[round % 2]!, `s${round}`);
      expect([status, nodes]).toEqual([200, "2/2"]);
    }
    expect(await settled(fleet.nodes)).toEqual(names);
  });

  test("over TLS with a password, and refuses another authority", async () => {
    const postgres = track(await Postgres.create({ password: "of the database", tls: true }));
    const url = `${postgres.url}?sslmode=verify-full`;
    const trusted = `${url}&sslrootcert=${postgres.authority}`;
    const fleet = track(await TestFleet.start(2, { postgres, node: () => ({ url: trusted }) }));
    expect((await create(fleet.nodes[0]!, "over TLS")).nodes).toBe("2/2");
    const [row] = await fleet.query(
      (sql) => sql`
        select bool_and(ssl) as encrypted from pg_stat_ssl join pg_stat_activity using (pid)
        where application_name like 'sluice%'`,
    );
    expect(row.encrypted).toBe(true);
    expect(await refusal(fleet.secret, url)).toContain("sslrootcert=FILE");
    expect(await refusal(fleet.secret, postgres.url)).toContain("sslmode");
  });
});

needs("executable", "postgres", "mount").test(
  "a full database refuses changes and says so, and takes them when there is room",
  async () => {
    const disk = directory();
    await run("mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", disk);
    cleanups.push(() => run("umount", "--lazy", disk));
    const postgres = await Postgres.create({ disk });
    const fleet = track(await TestFleet.start(2, { postgres }));
    expect((await create(fleet.nodes[0]!, "before")).nodes).toBe("2/2");
    const ballast = join(disk, "ballast");
    await run("dd", "if=/dev/zero", `of=${ballast}`, "bs=4096").catch(() => undefined);
    const refused = await eventually(async () => {
      // Until the pages that the tables have already are full.
      const response = await fleet.nodes[0]!.api("POST", "/api/v1/services", {
        name: `large ${Bun.randomUUIDv7()}`,
        description: Bun.randomUUIDv7().repeat(100),
      });
      return response.status === 200 ? null : await response.text();
    });
    expect(refused).toContain("disk is full");
    expect(refused).toContain("nothing was changed");
    const names = await namesOn(fleet.nodes[1]!);
    rmSync(ballast);
    await eventually(async () => (await create(fleet.nodes[1]!, "after")).status === 200);
    expect(await settled(fleet.nodes)).toEqual([...names, "after"]);
  },
  90_000,
);

async function run(...command: string[]): Promise<void> {
  const child = Bun.spawn(command, { stdout: "ignore", stderr: "pipe" });
  const said = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${said}`);
}
