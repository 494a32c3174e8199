// Copies of a node's data directory that start beside it: of all processes with its id one speaks for the node, and the others say so.
import { expect } from "bun:test";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FleetError } from "../../src/fleet/postgres-connection.ts";
import { PostgresSource } from "../../src/fleet/postgres-source.ts";
import { Superseded } from "../../src/fleet/source.ts";
import { Speaker } from "../../src/fleet/speaker.ts";
import { createLog } from "../../src/log.ts";
import { cleanupsOf } from "../support/cleanups.ts";
import {
  create,
  isServing,
  namesOn,
  send,
  settled,
  statesOn,
  TestFleet,
} from "../support/fleet.ts";
import { openSource } from "../support/fleet-source.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";
import { codec } from "../unit/fleet/node.ts";

const { afterEach, describe, test } = needs("executable", "postgres");

const cleanups = cleanupsOf(afterEach);

async function startFleet(count = 3) {
  const fleet = await TestFleet.start(count, { wired: true });
  cleanups.push(() => fleet.stop());
  return fleet;
}

/** As the copy of a disk, or the restore of a snapshot. */
function copyOf(node: Gateway): string {
  const directory = mkdtempSync(join(tmpdir(), "sluice-copy-"));
  cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
  const filter = (path: string) => !path.endsWith(".sock");
  cpSync(node.dataDir, directory, { recursive: true, filter });
  return directory;
}

const said = ({ log }: Gateway, words: string) =>
  log.find(({ message }) => message.includes(words));

const readyOf = async (node: Gateway) => {
  const response = await node.api("GET", "/readyz");
  return `${response.status} ${await response.text()}`;
};

/** A change that all nodes must be present for; on a busy machine one may miss heartbeats for a moment. */
const createOnAll = async (node: Gateway, name: string) =>
  await eventually(async () => {
    const headers = { "sluice-require-nodes": "all" };
    const response = await node.api("POST", "/api/v1/services?wait=30", { name }, headers);
    if (response.status === 409 && (await response.text()).includes("are present")) return null;
    return [response.status, response.headers.get("sluice-nodes")];
  });

/** What a process says that does not speak for its node: at its start, or soon after it when the database was slow to answer. */
async function refusalOf(fleet: TestFleet, name: string, dataDir: string): Promise<string> {
  const started = startGateway({
    binary: executable,
    workers: 1,
    dataDir,
    deadlineMs: 30_000,
    env: { SLUICE_SECRET_KEY: fleet.secret },
    args: ["--store", fleet.postgres.url, "--node-name", name],
  });
  return await started.then(
    async (gateway) => {
      cleanups.push(() => gateway.stop());
      return (await eventually(() => said(gateway, "speaks for it in the fleet"))).message;
    },
    (error: Error) => error.message,
  );
}

test("a copy of a node that lives is refused with both addresses, and the node is told", async () => {
  const fleet = await startFleet();
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  const refused = await refusalOf(fleet, "n2", copyOf(second));
  expect(refused).toContain(`process ${second.pid})`);
  if (refused.includes("does not start"))
    expect(refused.match(/process \d+/g)?.length).toBeGreaterThanOrEqual(2);
  const told = await eventually(() => said(second, "wants to speak for it and is refused"));
  expect(String(told["address"])).not.toContain(`process ${second.pid})`);
  expect((await second.ok("GET", "/api/v1/admin/status")).warnings.join()).toContain(
    "Another process with a copy of this node's data directory wanted to speak",
  );
  // Another name does not help.
  expect(await refusalOf(fleet, "n4", copyOf(second))).toContain(`process ${second.pid})`);
  expect(await createOnAll(first, "after")).toEqual([200, "3/3"]);
});

test("a node that was killed starts again at once, also after an upgrade that fails", async () => {
  const fleet = await startFleet(2);
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  for (let round = 0; round < 3; round++) {
    await second.kill9();
    await second.start();
    expect(await createOnAll(first, `round ${round}`)).toEqual([200, "2/2"]);
  }
  for (const words of ["waiting for its end", "in the place of a process"])
    expect([words, said(second, words)]).toEqual([words, undefined]);
  const upgrade = startGateway({
    binary: executable,
    workers: 1,
    dataDir: second.dataDir,
    env: { SLUICE_SECRET_KEY: fleet.secret },
    // The name of a node that is there: found out after this process was admitted with the data directory.
    args: [...["--store", fleet.postgres.url, "--node-name", "n1", "--take-over"]],
  });
  await expect(upgrade).rejects.toThrow();
  // Until it has resumed it is not counted, and changes nothing.
  await eventually(async () => (await create(first, `n${Bun.randomUUIDv7()}`)).nodes === "2/2");
  await eventually(async () => (await create(second, `n${Bun.randomUUIDv7()}`)).status === 200);
  expect(said(second, "speaks for it in the fleet")).toBeUndefined();
});

describe("a copy that starts while the node is", () => {
  const silences: Readonly<Record<string, (node: Gateway, fleet: TestFleet) => void>> = {
    stopped: (node) => node.signal("SIGSTOP"),
    "cut off": (_node, { wires }) => wires[1]?.hold(),
  };
  for (const [how, silence] of Object.entries(silences))
    test(`${how} speaks for it, and the node changes nothing when it is back`, async () => {
      const fleet = await startFleet();
      const [first, second, third] = fleet.nodes as [Gateway, Gateway, Gateway];
      expect(await createOnAll(first, "before")).toEqual([200, "3/3"]);
      silence(second, fleet);
      await eventually(async () => (await statesOn(first)).includes("n2 away"));
      const copy = await fleet.add({ name: "n2", dataDir: copyOf(second) });
      const speaking = await eventually(async () => {
        const rows = await fleet.query((sql) => sql`select address from sluice.node_start`);
        return rows.find(({ address }: { address: string }) => address.includes(`${copy.pid})`));
      });
      expect(speaking).toBeDefined();
      await eventually(async () => (await statesOn(first)).every(isServing));
      expect(await createOnAll(first, "with the copy")).toEqual([200, "3/3"]);
      expect(await namesOn(copy)).toEqual(["before", "with the copy"]);
      second.signal("SIGCONT");
      fleet.wires[1]?.heal();
      const error = await eventually(() => said(second, "speaks for it in the fleet"));
      expect(error.message).toContain(`process ${copy.pid})`);
      await eventually(async () => (await readyOf(second)).startsWith("503"));
      // First it only knows that the database answers again.
      await eventually(async () => {
        const { status, text } = await send(second, "POST", ["/api/v1/services", { name: "no" }]);
        expect(status).toBe(503);
        return text.includes(`process ${copy.pid})`);
      });
      expect(
        (await second.ok("GET", "/api/v1/nodes")).find(
          ({ name }: { name: string }) => name === "n2",
        ).state,
      ).toBe("refused");
      await eventually(() => said(copy, "wants to speak for it and is refused"));
      // It reads on, because clients may still come; it is counted by nobody.
      for (let round = 0; round < 3; round++)
        expect(await createOnAll(third, `round ${round}`)).toEqual([200, "3/3"]);
      await eventually(async () => (await namesOn(second)).includes("round 2"));
      await eventually(async () => {
        const states = await statesOn(first);
        return states.length === 3 && states.every(isServing);
      });
      // Its end takes nothing from the copy.
      if (how === "stopped") {
        await second.stop();
        expect(await createOnAll(first, "after its end")).toEqual([200, "3/3"]);
        return;
      }
      await copy.stop();
      await eventually(() => said(second, "speaks for its node again"));
      await eventually(async () => (await readyOf(second)).startsWith("200"));
      expect(await createOnAll(second, "speaks again")).toEqual([200, "3/3"]);
      await settled([first, second, third]);
    });
});

test("of a node and its copy that start at the same moment one speaks", async () => {
  const fleet = await startFleet(2);
  const [first, second] = fleet.nodes as [Gateway, Gateway];
  const directories = [copyOf(second), copyOf(second)];
  // It leaves the fleet: there is no row of it any more.
  await second.stop();
  const started = await Promise.allSettled(
    directories.map((directory) => fleet.add({ name: "n2", dataDir: directory })),
  );
  const live = started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  expect(live.length).toBeGreaterThanOrEqual(1);
  // The slower one may have to find out by its heartbeats.
  const outcomes = await eventually(async () => {
    const replies = await Promise.all(
      live.map((node, index) => create(node, `n${Bun.randomUUIDv7()} ${index}`)),
    );
    const speaking = replies.filter(({ nodes }) => nodes === "2/2").length;
    return speaking === 1 && replies.every(({ status }) => status === 200 || status === 503);
  });
  expect(outcomes).toBe(true);
  expect(await createOnAll(first, "after")).toEqual([200, "2/2"]);
});

const log = createLog({ level: "error", format: "json", sink: () => {} });

/** Sources of processes with one node id, each in a directory of its own. */
async function processes(count: number) {
  const opened = await openSource(cleanups);
  const { postgres, source } = opened;
  const times = { queryMs: 60_000, appendMs: 60_000, beatMs: 60_000 };
  const address = { urls: [postgres.url], rootCertificate: null, ...times };
  const sources = Array.from({ length: count }, () => {
    const directory = mkdtempSync(join(tmpdir(), "sluice-speaker-"));
    writeFileSync(join(directory, "kept"), "");
    cleanups.push(() => rmSync(directory, { recursive: true, force: true }));
    const kept = new Map<string, string>();
    const store = {
      get: (key: string) => kept.get(key) ?? null,
      set: (key: string, value: string) => void kept.set(key, value),
    };
    const speaker = new Speaker("n", directory, store);
    const own = new PostgresSource({ ...address, speaker });
    cleanups.push(() => own.close());
    return { source: own, speaker, directory, store };
  });
  const sql = postgres.connect();
  cleanups.push(() => sql.close({ timeout: 0 }));
  return { source, sources, sql, address };
}

const row = (served: number) => ({
  ...{ id: "n", name: "n", url: "", version: "0.1.0", formatMax: 2, stored: served, served },
  ...{ state: "serving", error: "", draining: false, clockOffsetMs: 0, mac: new Uint8Array(32) },
});

const admission = { id: "n", name: "n", presentMs: 5000, log };

const entryAt = (position: number) =>
  codec.encode({ position, id: Bun.randomUUIDv7() }, "n", {
    changed: null,
    facts: [],
    previous: null,
  });

describe("what a superseded start writes", () => {
  test("changes nothing: heartbeat, acknowledgement, entry, lease, plugins, statistics and its end", async () => {
    const { sources, sql } = await processes(2);
    const [former, next] = sources as [(typeof sources)[0], (typeof sources)[0]];
    await former.source.admit(admission);
    await former.source.beat(row(1));
    expect(await former.source.append(entryAt(1))).toBe(true);
    await sql`update sluice.node set seen = now() - interval '6 seconds'`;
    await sql`update sluice.node_start set at = now() - interval '6 seconds'`;
    await next.source.admit(admission);
    await next.source.beat(row(1));
    const end = await former.source.beat(row(7));
    expect([end.position, end.other]).toEqual([1, { address: next.speaker.address, speaks: true }]);
    const served = async () => (await sql`select served::int from sluice.node`)[0].served;
    expect(await served()).toBe(1);
    await expect(former.source.append(entryAt(2))).rejects.toBeInstanceOf(Superseded);
    const holder = crypto.randomUUID();
    const lease = await former.source.lease({ holder, nodeId: "n", ms: 3000 });
    expect(lease.holder).not.toBe(holder);
    await former.source.writePlugins({
      node: "n",
      document: Buffer.from("{}"),
      mac: Buffer.from(""),
    });
    expect(await sql`select from sluice.node_plugins`).toHaveLength(0);
    const empty = { document: Buffer.from("{}"), mac: Buffer.from("") };
    const rollup = { node: "n", span: 60, at: 60, kind: "total", ...empty } as const;
    await expect(former.source.writeRollups([rollup])).rejects.toBeInstanceOf(Superseded);
    expect(await sql`select from sluice.rollup`).toHaveLength(0);
    await next.source.writeRollups([rollup]);
    expect(await sql`select from sluice.rollup`).toHaveLength(1);
    await former.source.forget("n");
    expect(await served()).toBe(1);
    // The one that speaks goes on, and knows of the other one.
    const own = await next.source.beat(row(2));
    expect([await served(), own.other]).toEqual([
      2,
      { address: former.speaker.address, speaks: false },
    ]);
    expect(await next.source.append(entryAt(2))).toBe(true);
    const leading = await next.source.lease({ holder, nodeId: "n", ms: 3000 });
    expect(leading.holder).toBe(holder);
    await next.source.forget("n");
    expect(await sql`select from sluice.node`).toHaveLength(0);
    // With the end of the copy the former one speaks again.
    expect((await former.source.beat(row(3))).other).toBeNull();
    expect(await served()).toBe(3);
  });

  test("of statistics is kept when the next process in its data directory speaks, as after an upgrade", async () => {
    const { sources, address, sql } = await processes(1);
    const [former] = sources as [(typeof sources)[0]];
    await former.source.admit(admission);
    await former.source.beat(row(1));
    const speaker = new Speaker("n", former.directory, former.store);
    const next = new PostgresSource({ ...address, speaker });
    cleanups.push(() => next.close());
    await next.admit(admission);
    await next.beat(row(1));
    const empty = { document: Buffer.from("{}"), mac: Buffer.from("") };
    await former.source.writeRollups([{ node: "n", span: 60, at: 60, kind: "total", ...empty }]);
    expect(await sql`select from sluice.rollup`).toHaveLength(1);
  });

  test("by two processes with one start, as after the snapshot of a running machine, is that of one", async () => {
    const { sources, sql } = await processes(1);
    const [{ source, speaker }] = sources as [(typeof sources)[0]];
    await source.admit(admission);
    await source.beat(row(1));
    const { start } = speaker;
    // The other one has sent more heartbeats.
    await sql`update sluice.node_start set beats = beats + 10`;
    const end = await source.beat(row(2));
    expect(end.other?.speaks).toBe(true);
    expect(speaker.start).not.toBe(start);
    expect(
      (await sql`select start, (select served::int from sluice.node) from sluice.node_start`)[0],
    ).toEqual({ start, served: 1 });
  });

  test("beside a process of an older version, which has no start, waits until that is silent", async () => {
    const { source: older, sources } = await processes(1);
    const [{ source }] = sources as [(typeof sources)[0]];
    await older.beat(row(1));
    let isOver = false;
    const beating = (async () => {
      while (!isOver) {
        await older.beat(row(1));
        await Bun.sleep(20);
      }
    })();
    await expect(source.admit(admission)).rejects.toBeInstanceOf(FleetError);
    isOver = true;
    await beating;
    await source.admit(admission);
    expect((await source.beat(row(2))).other).toBeNull();
  });
});
