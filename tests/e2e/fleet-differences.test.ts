// Nodes of a fleet that differ: in their clocks, in what they can listen on, and in the version of the program.
import { createHmac, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "bun:test";
import { openSecretBox } from "../../src/control/sealing.ts";
import { ENTRY_FORMAT } from "../../src/fleet/entry-format.ts";
import { cleanupsOf } from "../support/cleanups.ts";
import { clockOff, fakeTime } from "../support/faketime.ts";
import {
  create,
  isServing,
  namesOn,
  send,
  settled,
  statesOn,
  TestFleet,
} from "../support/fleet.ts";
import type { Gateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { quietPort } from "../support/quiet-port.ts";

const { afterEach, test } = needs("executable", "postgres");

const cleanups = cleanupsOf(afterEach);

async function startFleet(...options: Parameters<typeof TestFleet.start>): Promise<TestFleet> {
  const fleet = await TestFleet.start(...options);
  cleanups.push(() => fleet.stop());
  return fleet;
}

const FIVE_MINUTES_MS = 300_000;

needs("executable", "postgres", fakeTime).test(
  "a clock that is five minutes fast on one node makes no change older than the one before it",
  async () => {
    const { nodes } = await startFleet(3, {
      node: (name) => (name === "n2" ? { env: clockOff(300) } : {}),
    });
    const begun = Date.now();
    const names = Array.from({ length: 12 }, (_, round) => `s${round}`);
    for (const [round, name] of names.entries()) {
      const { status, nodes: live } = await create(nodes[round % 3]!, name);
      expect([status, live]).toEqual([200, "3/3"]);
    }
    expect(await settled(nodes)).toEqual(names);
    const revisions: { at: string; number: number }[] = await nodes[0]!.ok(
      "GET",
      "/api/v1/revisions",
    );
    const times = revisions.sort((a, b) => a.number - b.number).map(({ at }) => Date.parse(at));
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    // The wrong clock was at work.
    expect(times.at(-1)! - begun).toBeGreaterThan(FIVE_MINUTES_MS - 60_000);
    // Nobody takes a node for away because of its clock.
    expect(await statesOn(nodes[1]!)).toEqual(["n1 serving", "n2 serving", "n3 serving"]);
    const services: { created_at: string; updated_at: string }[] = await nodes[2]!.ok(
      "GET",
      "/api/v1/services",
    );
    const made = services.map(({ created_at }) => created_at);
    expect(made).toEqual(made.toSorted());
  },
  60_000,
);

test("a node that cannot listen where the others do says so, and comes back when it can", async () => {
  const { nodes } = await startFleet(2);
  const [first, second] = nodes as [Gateway, Gateway];
  const port = quietPort();
  // All nodes of this test are on one machine: what one listens on is taken for the other.
  const listener = { name: "late", address: "127.0.0.1", port, protocol: "http" };
  const reply = await send(first, "POST", ["/api/v1/listeners", listener]);
  expect([reply.status, reply.nodes, reply.missing]).toEqual([200, "1/2", "n2;refused"]);
  expect(reply.ms).toBeLessThan(1900);
  const { state, error } = await second.ok("GET", "/api/v1/nodes/n2");
  expect([state, error.includes(String(port))]).toEqual(["refused", true]);
  expect((await create(first, "behind it")).missing).toBe("n2;refused");
  expect(await namesOn(second)).toEqual([]);
  // It cannot change what it does not have: a change of its own must build on the first two.
  const late = await create(second, "by n2");
  expect(late.status).toBeGreaterThanOrEqual(400);
  expect(late.text).toContain(String(port));
  expect((await send(first, "DELETE", ["/api/v1/listeners/late"])).status).toBe(200);
  await eventually(async () => (await statesOn(first)).every(isServing));
  expect((await create(second, "with it")).nodes).toBe("2/2");
  expect(await settled(nodes)).toEqual(["behind it", "with it"]);
});

test("a node that starts without one of its ports serves the rest, says so, and counts as refused until it has the port", async () => {
  const { nodes } = await startFleet(2);
  const [first, second] = nodes as [Gateway, Gateway];
  const port = quietPort();
  const listener = { name: "late", address: "127.0.0.1", port, enabled: false };
  expect((await send(first, "POST", ["/api/v1/listeners", listener])).nodes).toBe("2/2");
  // Another program, so that no node is in the way of the other.
  await second.stop();
  await eventually(async () => (await first.ok("GET", "/api/v1/nodes")).length === 1);
  await send(first, "PATCH", ["/api/v1/listeners/late", { enabled: true }]);
  // The directory stays.
  await first.kill9();
  const holder = Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } });
  cleanups.push(() => holder.stop(true));
  await first.start();
  const { state, error } = await first.ok("GET", "/api/v1/nodes/n1");
  expect([state, error]).toEqual([
    "refused",
    `listener "late" does not listen on port ${port}: address already in use`,
  ]);
  const reply = await create(first, "meanwhile");
  expect([reply.status, reply.missing]).toEqual([200, "n1;refused"]);
  holder.stop(true);
  await eventually(async () => (await statesOn(first)).every(isServing));
  expect((await create(first, "with it")).nodes).toBe("1/1");
});

test("a node that may not write a file of the others says so, and serves what it has", async () => {
  const directory = mkdtempSync(join(tmpdir(), "sluice-logs-"));
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
  const { nodes } = await startFleet(2, {
    node: (name) => (name === "n1" ? { args: ["--log-dir", directory] } : {}),
  });
  const [first, second] = nodes as [Gateway, Gateway];
  const path = join(directory, "access.log");
  const plugin = { name: "access-log", config: { sinks: [{ file: { path } }] } };
  const reply = await send(first, "POST", ["/api/v1/plugins", plugin]);
  expect([reply.status, reply.nodes, reply.missing]).toEqual([200, "1/2", "n2;refused"]);
  const { error } = await second.ok("GET", "/api/v1/nodes/n2");
  expect(error).toContain("--log-dir");
  const { id } = JSON.parse(reply.text) as { id: string };
  expect((await send(first, "DELETE", [`/api/v1/plugins/${id}`])).status).toBe(200);
  await eventually(async () => (await statesOn(first)).every(isServing));
});

const NEXT_FORMAT = ENTRY_FORMAT + 1;

/** An entry of a version to come, signed as its nodes would. */
async function appendOfNextVersion(fleet: TestFleet): Promise<void> {
  const env = { SLUICE_SECRET_KEY: fleet.secret };
  const { dataDir } = fleet.nodes[0]!;
  const box = openSecretBox({ dataDir, env, keyIds: new Set() });
  const [{ value: fleetId }] = await fleet.query(
    (sql) => sql`select value from sluice.meta where key = 'fleet_id'`,
  );
  const [{ position }] = await fleet.query((sql) => sql`select position::float8 from sluice.head`);
  const body = Bun.zstdCompressSync("of a form that nobody knows yet");
  const [id, next] = [randomUUID(), Number(position) + 1];
  const mac = createHmac("sha256", box.derive("fleet entries"))
    .update(`${JSON.stringify([fleetId, "change", next, id, "n9", NEXT_FORMAT])}\n`)
    .update(body)
    .digest();
  await fleet.query((sql) =>
    sql.begin(async (transaction) => {
      await transaction`
        insert into sluice.entry (position, entry_id, node, format, body, mac)
        values (${next}, ${id}::uuid, 'n9', ${NEXT_FORMAT}, ${body}, ${mac})`;
      await transaction`update sluice.head set position = ${next}`;
    }),
  );
}

test("a node that is too old for an entry says that it must be upgraded, and serves what it has", async () => {
  const fleet = await startFleet(2);
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  expect((await create(first, "before")).nodes).toBe("2/2");
  await appendOfNextVersion(fleet);
  await eventually(async () => {
    const nodes = await second.ok("GET", "/api/v1/nodes");
    return nodes.every(
      ({ state, error }: { state: string; error: string }) =>
        state === "outdated" && error.includes("newer version of Sluice"),
    );
  });
  expect(await namesOn(first)).toEqual(["before"]);
  const refused = await create(first, "after");
  expect(refused.status).toBeGreaterThanOrEqual(400);
  expect(refused.text).toContain("upgrade this node");
  await second.restart();
  expect(await namesOn(second)).toEqual(["before"]);
});
