// A machine joins a fleet with one command and a token that works once.
import { expect } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanupsOf, stopsIn } from "../support/cleanups.ts";
import { create, namesOn, settled, TestFleet } from "../support/fleet.ts";
import { type Gateway, runCommand, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { executable } from "../support/executable.ts";

const { afterEach, test } = needs("executable", "postgres");

const cleanups = cleanupsOf(afterEach);
const track = stopsIn(cleanups);

function emptyDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), "sluice-joining-"));
  cleanups.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

async function scene() {
  const fleet = track(await TestFleet.start(1));
  const [node] = fleet.nodes as [Gateway];
  await create(node, "before");
  const run = (words: readonly string[], env: Record<string, string> = {}) =>
    runCommand(["fleet", ...words], { binary: executable, env });
  const store = ["--store", fleet.postgres.url];
  const invite = async (...words: string[]) => {
    const invited = await run(["invite", ...store, "--data-dir", node.dataDir, ...words], {
      SLUICE_SECRET_KEY: fleet.secret,
    });
    expect([invited.code, invited.stderr]).toEqual([0, ""]);
    return /SLUICE_JOIN_TOKEN=(\S+)/.exec(invited.stdout)?.[1] ?? "";
  };
  const joinWith = (token: string, dataDir: string, ...words: string[]) =>
    run(["join", "--data-dir", dataDir, ...words], { SLUICE_JOIN_TOKEN: token });
  return { fleet, node, run, store, invite, joinWith };
}

test("one command makes an empty directory a node, which starts without other words", async () => {
  const { fleet, node, invite, joinWith, run, store } = await scene();
  const token = await invite();
  const dataDir = emptyDirectory();
  const joined = await joinWith(token, dataDir, "--node-name", "n2");
  expect([joined.code, joined.stderr]).toEqual([0, ""]);
  for (const name of ["secret.key", "fleet.json"])
    expect(statSync(join(dataDir, name)).mode & 0o777).toBe(0o600);
  // Nothing of it is in the database any more.
  const left = await fleet.query(
    (sql) => sql`select from sluice.meta where key like 'invitation%'`,
  );
  expect(left).toHaveLength(0);
  const started = await startGateway({ binary: executable, workers: 1, dataDir, args: [] }).catch(
    (error: Error) => error.message,
  );
  // On one machine it may find the ports of the first node taken; it has joined, and starts again with what it knows.
  const second = track(
    typeof started === "string"
      ? await startGateway({ binary: executable, workers: 1, dataDir, args: [] })
      : started,
  );
  expect(await namesOn(second)).toEqual(["before"]);
  expect((await create(second, "after")).nodes).toBe("2/2");
  expect(await settled([node, second])).toEqual(["before", "after"]);
  const status = await run(["status", "--data-dir", dataDir]);
  expect(status.stdout).toContain("Registered nodes: 2");
  expect(status.stdout).toContain("n2");
  await second.stop();
  const leaving = await run(["leave", "--data-dir", dataDir]);
  expect([leaving.code, leaving.stderr]).toEqual([0, ""]);
  expect(existsSync(join(dataDir, "fleet.json"))).toBe(false);
  expect((await run(["status", ...store])).stdout).toContain("Registered nodes: 1");
});

test("a token works once and for a time, and says why it does not", async () => {
  const { fleet, node, run, store, invite, joinWith } = await scene();
  const refusedBy = async (token: string, dataDir = emptyDirectory(), ...words: string[]) => {
    const { code, stderr } = await joinWith(token, dataDir, ...words);
    expect(code).not.toBe(0);
    return stderr;
  };
  const token = await invite();
  // The key waits in the database, sealed with what only the token has.
  const [row] = await fleet.query(
    (sql) => sql`select value from sluice.meta where key like 'invitation%'`,
  );
  const key = Buffer.from(fleet.secret, "base64");
  for (const encoding of ["base64", "base64url", "hex", "latin1"] as const)
    expect(row.value).not.toContain(key.toString(encoding).replace(/=+$/, ""));
  const results = await Promise.all(
    [emptyDirectory(), emptyDirectory()].map((dataDir) => joinWith(token, dataDir)),
  );
  expect(results.map(({ code }) => code).toSorted()).toEqual([0, 1]);
  expect(results.find(({ code }) => code === 1)?.stderr).toContain("was used already");

  const late = await invite("--valid-minutes", "1");
  await fleet.query(
    (sql) => sql`
      update sluice.meta set value = '1 ' || split_part(value, ' ', 2) where key like 'invitation%'`,
  );
  const empty = emptyDirectory();
  expect(await refusedBy(late, empty)).toContain("its time is over");
  expect(existsSync(join(empty, "secret.key"))).toBe(false);
  // The next one removes it.
  const next = await invite();
  const rows = await fleet.query(
    (sql) => sql`select from sluice.meta where key like 'invitation%'`,
  );
  expect(rows).toHaveLength(1);

  await fleet.query(
    (sql) => sql`
      update sluice.meta set value = overlay(value placing 'AAAA' from length(value) - 8)
      where key like 'invitation%'`,
  );
  expect(await refusedBy(next)).toContain("was changed");
  for (const broken of ["", "sluice-join-", next.slice(0, 80), "x"])
    expect(await refusedBy(broken)).toContain("SLUICE_JOIN_TOKEN");
  // A gateway is not overwritten, nor is a key of its own used.
  const good = await invite();
  expect(await refusedBy(good, node.dataDir)).toContain("that of a gateway already");
  const ownKey = await run(["join", "--data-dir", emptyDirectory()], {
    SLUICE_JOIN_TOKEN: good,
    SLUICE_SECRET_KEY: fleet.secret,
  });
  expect(ownKey.stderr).toContain("SLUICE_SECRET_KEY is set");
  expect(await refusedBy(good, emptyDirectory(), "--node-name", "not a name")).toContain(
    "--node-name",
  );
  const damaged = emptyDirectory();
  expect((await joinWith(good, damaged)).code).toBe(0);
  writeFileSync(join(damaged, "fleet.json"), "{}");
  expect((await run(["status", "--data-dir", damaged])).stderr).toContain("fleet.json is damaged");
  expect(readFileSync(join(damaged, "secret.key"))).toEqual(key);

  // Whoever has no key of the fleet invites nobody, and no other key is handed out.
  const stranger = emptyDirectory();
  expect((await run(["invite", ...store, "--data-dir", stranger])).stderr).toContain(
    "there is no secret key",
  );
  const other = await run(["invite", ...store], {
    SLUICE_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
  });
  expect(other.stderr).toContain("is not the one of the fleet");
  for (const minutes of ["0", "10081", "1.5", "x"])
    expect((await run(["invite", ...store, "--valid-minutes", minutes])).stderr).toContain(
      "--valid-minutes: must be 1 to 10080",
    );
});
