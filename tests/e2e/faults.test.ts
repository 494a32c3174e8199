// Faults of the environment while the gateway starts or serves: disks, databases, ports, directories, time zones.
import { afterEach, describe, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { cleanupsOf } from "../support/cleanups.ts";
import { type Gateway, runCommand, startGateway } from "../support/gateway.ts";
import { needs, pathOf } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";

const cleanups = cleanupsOf(afterEach);

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "sluice-fault-"));
  cleanups.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

async function gatewayIn(dataDir: string, env: Record<string, string> = {}): Promise<Gateway> {
  const gateway = await startGateway({ dataDir, workers: 1, env });
  cleanups.push(() => gateway.stop());
  return gateway;
}

/** A site with its own origin. */
async function publish(gateway: Gateway): Promise<void> {
  const origin = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("here") });
  cleanups.push(() => origin.stop(true));
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "site", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "site", service_id: "site" });
}

const page = async (gateway: Gateway) =>
  (await fetch(`http://127.0.0.1:${gateway.httpPort}/`)).text();

/** Output of a start that must fail. */
async function refusal(dataDir: string, words: readonly string[] = []): Promise<string> {
  const result = await runCommand([
    ...["serve", "--data-dir", dataDir, "--admin", "127.0.0.1:0", "--workers", "1"],
    ...["--http", "127.0.0.1:0", "--https", "127.0.0.1:0", ...words],
  ]);
  expect(result.code).toBe(1);
  return result.stderr;
}

describe("a damaged database", () => {
  const damages = [
    { why: "a page in the middle", damage: (bytes: Buffer) => bytes.fill(0xaa, bytes.length / 2) },
    { why: "the beginning", damage: (bytes: Buffer) => bytes.fill(0, 0, 100) },
    { why: "only half of it", damage: (bytes: Buffer) => bytes.subarray(0, bytes.length / 2) },
    { why: "another file", damage: () => Buffer.from("what a person copied here by mistake") },
  ];

  test("is rejected by name and not changed, and the gateway serves a copy in its place", async () => {
    const dataDir = directory();
    const gateway = await gatewayIn(dataDir);
    await publish(gateway);
    const copy = join(directory(), "copy.db");
    const backup = await runCommand(["backup", copy, "--data-dir", dataDir]);
    expect([backup.code, backup.stderr]).toEqual([0, ""]);
    await gateway.stop();
    const path = join(dataDir, "sluice.db");
    const whole = readFileSync(path);
    for (const { why, damage } of damages) {
      const damaged = damage(Buffer.from(whole));
      writeFileSync(path, damaged);
      const said = await refusal(dataDir);
      expect([why, said]).toEqual([
        why,
        expect.stringContaining(`${path} is damaged and was left as it is`),
      ]);
      expect(said).toContain("docs/operations.md");
      expect(readFileSync(path).equals(damaged)).toBeTrue();
    }
    // The error suggests the newest copy where the installer stores copies.
    mkdirSync(join(dataDir, "backups"));
    const offered = join(dataDir, "backups/newest.db");
    writeFileSync(join(dataDir, "backups/older.db"), "");
    utimesSync(join(dataDir, "backups/older.db"), 1, 1);
    cpSync(copy, offered);
    expect(await refusal(dataDir)).toContain(`the newest here is ${offered}`);
    for (const name of [path, `${path}-wal`, `${path}-shm`]) rmSync(name, { force: true });
    cpSync(offered, path);
    await gateway.start();
    expect(await page(gateway)).toBe("here");
  });
});

test("after removal of the data directory, traffic continues, changes fail, and the status reports it", async () => {
  const dataDir = directory();
  const gateway = await gatewayIn(dataDir);
  await publish(gateway);
  rmSync(dataDir, { recursive: true });
  expect(await page(gateway)).toBe("here");
  const path = join(dataDir, "sluice.db");
  const response = await gateway.api("POST", "/api/v1/services", { name: "late" });
  expect([response.status, await response.json()]).toEqual([
    503,
    { error: `${path} was removed while it was in use; nothing was changed` },
  ]);
  const services: { name: string }[] = await gateway.ok("GET", "/api/v1/services");
  expect(services.map(({ name }) => name)).toEqual(["site"]);
  const { warnings } = await gateway.ok("GET", "/api/v1/admin/status");
  expect(warnings).toContain(`changes cannot be stored: ${path} was removed while it was in use`);
  expect(await page(gateway)).toBe("here");
  // The test's own directory, so that the test can end the process there.
  mkdirSync(dataDir);
});

async function mountDisk(): Promise<{ path: string; remount(how: "ro" | "rw"): Promise<void> }> {
  const path = directory();
  await run("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", path);
  cleanups.push(() => run("umount", "--lazy", path));
  return { path, remount: (how) => run("mount", "-o", `remount,${how}`, path) };
}

async function run(...command: string[]): Promise<void> {
  const child = Bun.spawn(command, { stdout: "ignore", stderr: "pipe" });
  const said = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${said}`);
}

needs("mount").test(
  "a read-only disk fails the start with a message, and no data is lost",
  async () => {
    const disk = await mountDisk();
    const gateway = await gatewayIn(disk.path);
    await publish(gateway);
    await gateway.stop();
    await disk.remount("ro");
    const said = await refusal(disk.path);
    expect(said).toContain(disk.path);
    expect(said).toMatch(/read-only|cannot be written/);
    expect(said).not.toContain("stack");
    await disk.remount("rw");
    await gateway.start();
    expect(await page(gateway)).toBe("here");
  },
  30_000,
);

const hasLoop = existsSync("/dev/loop-control") && pathOf("mkfs.ext4") !== null;
const loopDevices = { lacks: hasLoop ? null : "/dev/loop-control and mkfs.ext4" };

needs("mount", loopDevices).test(
  "on a disk that turns read-only, traffic continues and changes fail until it is writable again",
  async () => {
    const path = directory();
    const image = join(directory(), "image");
    writeFileSync(image, Buffer.alloc(24 * 1_048_576));
    await run("mkfs.ext4", "-q", image);
    await run("mount", "-o", "loop,errors=remount-ro", image, path);
    cleanups.push(() => run("umount", "--lazy", path));
    const dataDir = join(path, "data");
    mkdirSync(dataDir);
    const gateway = await gatewayIn(dataDir);
    await publish(gateway);
    const device = (await Bun.$`findmnt --noheadings --output SOURCE ${path}`.text()).trim();
    // The kernel does this when a disk reports an error.
    writeFileSync(`/sys/fs/ext4/${basename(device)}/trigger_fs_error`, "tested");
    const change = () => gateway.api("PATCH", "/api/v1/services/site", { description: "late" });
    const refused = await change();
    expect(refused.status).toBe(503);
    expect((await refused.json()).error).toMatch(/read-only|disk.*nothing was changed/);
    expect(await page(gateway)).toBe("here");
    const warnings = async () => (await gateway.ok("GET", "/api/v1/admin/status")).warnings.join();
    expect(await warnings()).toContain("changes cannot be stored");
    expect((await gateway.ok("GET", "/api/v1/services/site")).description).toBe("");
    expect(gateway.log.filter(({ message }) => message === "worker stopped")).toEqual([]);
  },
  30_000,
);

needs("mount").test(
  "the status reports a full disk until a change is stored again",
  async () => {
    const disk = await mountDisk();
    const gateway = await gatewayIn(disk.path);
    await publish(gateway);
    const ballast = join(disk.path, "ballast");
    await run("dd", "if=/dev/zero", `of=${ballast}`, "bs=4096").catch(() => undefined);
    const change = () =>
      gateway.api("PATCH", "/api/v1/services/site", { description: "x".repeat(4000) });
    expect((await change()).status).toBe(503);
    const warnings = async () => (await gateway.ok("GET", "/api/v1/admin/status")).warnings.join();
    expect(await warnings()).toContain("the disk is full");
    expect(await page(gateway)).toBe("here");
    rmSync(ballast);
    expect((await change()).status).toBe(200);
    expect(await warnings()).not.toContain("the disk is full");
  },
  30_000,
);

test("a start names port and program when another program has the port, and serves it once it is free", async () => {
  const dataDir = directory();
  const gateway = await gatewayIn(dataDir);
  await publish(gateway);
  const { httpPort } = gateway;
  await gateway.stop();
  const thief = Bun.listen({ hostname: "127.0.0.1", port: httpPort, socket: { data() {} } });
  await gateway.start();
  expect(gateway.stderr).toContain(`(pid ${process.pid})`);
  const ready = await gateway.api("GET", "/readyz");
  expect([ready.status, await ready.text()]).toEqual([
    503,
    expect.stringContaining(`does not listen on port ${httpPort}`),
  ]);
  thief.stop(true);
  await eventually(async () => (await gateway.api("GET", "/readyz")).status === 200);
  expect(await page(gateway)).toBe("here");
});

test.each(["America/New_York", "Asia/Kolkata"])(
  "in the time zone %s, stored and reported times are in UTC",
  async (TZ) => {
    const gateway = await gatewayIn(directory(), { TZ });
    await publish(gateway);
    await page(gateway);
    const { created_at: createdAt } = await gateway.ok("GET", "/api/v1/services/site");
    expect(createdAt).toEndWith("Z");
    expect(Math.abs(Date.now() - Date.parse(createdAt))).toBeLessThan(60_000);
    const stats = JSON.stringify(await gateway.ok("GET", "/api/v1/stats"));
    const times = [...stats.matchAll(/"(\d{4}-\d\d-\d\dT[^"]+)"/g)];
    expect(times.length).toBeGreaterThan(0);
    for (const [, time = ""] of times) expect(time).toMatch(/Z$/);
    const [last] = gateway.log.slice(-1);
    expect(last?.time).toMatch(/Z$/);
  },
);
