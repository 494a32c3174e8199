// Full disks, crashes during changes, unusable databases: the whole product as a process.
import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanupsOf } from "../../support/cleanups.ts";
import { freePort } from "../../support/data-plane.ts";
import { Gateway, type GatewayOptions, runCommand, startGateway } from "../../support/gateway.ts";
import { needs } from "../../support/needs.ts";
import { startOrigin } from "../../support/origin.ts";
import { parseResponse, sendRaw } from "../../support/raw-http.ts";

const cleanups = cleanupsOf(afterEach);

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "sluice-failure-"));
  cleanups.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

async function gatewayFor(options: GatewayOptions = {}): Promise<Gateway> {
  const gateway = await startGateway(options);
  cleanups.push(() => gateway.stop());
  return gateway;
}

async function statusOf(gateway: Gateway, host: string): Promise<number> {
  const request = `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
  return parseResponse(await sendRaw(request, { port: gateway.httpPort })).status;
}

test("every change with a 200 response survives a kill -9", async () => {
  const gateway = await gatewayFor();
  const answered: string[] = [];
  const changes = (async () => {
    for (let index = 0; index < 1000; index++) {
      const name = `service-${index}`;
      const targets = [{ host: "10.0.0.1", port: 80 }];
      const response = await gateway.api("POST", "/api/v1/services", { name, targets });
      if (response.status === 200) answered.push(name);
      if (index === 20) gateway.signal("SIGKILL");
    }
  })().catch(() => undefined);
  await gateway.exited();
  await changes;
  await gateway.start();
  const services: { name: string }[] = await gateway.ok("GET", "/api/v1/services");
  const names = services.map(({ name }) => name);
  expect(answered.length).toBeGreaterThan(20);
  expect(names.slice(0, answered.length)).toEqual(answered);
  // At most the one change that was in progress.
  expect(names.length - answered.length).toBeLessThanOrEqual(1);
  const targets: unknown[] = await gateway.ok("GET", "/api/v1/targets");
  expect(targets).toHaveLength(names.length);
});

test("the ports of a change that could not be stored are free when it is refused", async () => {
  const dataDir = directory();
  const gateway = await gatewayFor({ dataDir, workers: 4 });
  const path = join(dataDir, "sluice.db");
  renameSync(path, `${path}.away`);
  for (let round = 0; round < 10; round++) {
    const listener = { name: "new", address: "127.0.0.1", port: freePort(), protocol: "http" };
    const refused = await gateway.api("POST", "/api/v1/listeners", listener);
    expect(await refused.text()).toContain("nothing was changed");
    Bun.listen({ hostname: "127.0.0.1", port: listener.port, socket: { data() {} } }).stop(true);
  }
  renameSync(`${path}.away`, path);
});

test("a database of a newer version is rejected with both versions, and left alone", async () => {
  const dataDir = directory();
  const gateway = await gatewayFor({ dataDir });
  await gateway.stop();
  const database = new Database(join(dataDir, "sluice.db"));
  database.run("PRAGMA user_version = 99");
  database.close();
  const result = await runCommand(["serve", "--data-dir", dataDir, "--admin", "127.0.0.1:0"]);
  expect(result.code).toBe(1);
  expect(result.stderr).toContain("schema version 99, this program knows versions up to");
  const check = await runCommand(["check", "--data-dir", dataDir]);
  expect([check.code, check.stdout.includes("schema version 99")]).toEqual([1, true]);
});

/** A data directory on a file system that is small enough to be filled; only root may mount one. */
async function smallDisk(): Promise<{ readonly disk: string; readonly dataDir: string }> {
  const disk = directory();
  expect(await run("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk)).toBe(0);
  cleanups.push(() => run("umount", "--lazy", disk));
  const dataDir = join(disk, "data");
  mkdirSync(dataDir);
  return { disk, dataDir };
}

needs("mount").test(
  "the gateway on a full disk rejects changes, keeps serving, and recovers",
  async () => {
    const { disk, dataDir } = await smallDisk();
    const gateway = await gatewayFor({ dataDir });
    const origin = startOrigin();
    cleanups.push(() => origin.stop());
    const targets = [{ host: "127.0.0.1", port: origin.port }];
    await gateway.ok("POST", "/api/v1/services", { name: "site", targets });
    await gateway.ok("POST", "/api/v1/routes", { service_id: "site", hosts: ["a.test"] });

    const ballast = join(disk, "ballast");
    fill(ballast);
    const refused = await gateway.api("POST", "/api/v1/routes", {
      service_id: "site",
      hosts: ["b.test"],
      description: "x".repeat(4000),
    });
    expect([refused.status, await refused.json()]).toEqual([
      503,
      { error: "the database could not be written: the disk is full; nothing was changed" },
    ]);
    expect([await statusOf(gateway, "a.test"), await statusOf(gateway, "b.test")]).toEqual([
      200, 404,
    ]);

    rmSync(ballast);
    await gateway.ok("POST", "/api/v1/routes", { service_id: "site", hosts: ["b.test"] });
    expect(await statusOf(gateway, "b.test")).toBe(200);
    await gateway.restart();
    expect([await statusOf(gateway, "a.test"), await statusOf(gateway, "b.test")]).toEqual([
      200, 200,
    ]);
  },
);

const FULL = "the database could not be written: the disk is full; nothing was changed";

needs("mount").test(
  "whatever is to be stored on a full disk gets 503 with the reason and when to retry, and changes nothing",
  async () => {
    const { disk, dataDir } = await smallDisk();
    const gateway = await gatewayFor({ dataDir });
    const password = "correct horse battery";
    const sent = async (method: string, path: string, body: unknown, headers = {}) => {
      const response = await gateway.api(method, path, body, headers);
      return { response, body: await response.json().catch(() => null) };
    };
    const admin = { name: "Root", email: "root@a.test", role: "admin", password };
    const user = await sent("POST", "/api/v1/users", admin);
    const { email } = admin;
    const signIn = await sent("POST", "/api/v1/auth/login", { email, password });
    const cookie = (signIn.response.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const targets = [{ host: "127.0.0.1", port: 9 }];
    await sent("POST", "/api/v1/services", { name: "site", targets }, { cookie });
    const exported = async () => (await sent("GET", "/api/v1/export", undefined, { cookie })).body;
    const before = await exported();
    fill(join(disk, "ballast"));
    const long = "x".repeat(4000);
    const writes: readonly [method: string, path: string, body?: unknown][] = [
      ["POST", "/api/v1/services", { name: "other", description: long }],
      ["PATCH", "/api/v1/settings", { limits: { shutdown_timeout: 5000 } }],
      ["DELETE", "/api/v1/services/site?cascade=1"],
      ["POST", "/api/v1/import", { ...before, services: [{ name: "third", description: long }] }],
      ["POST", "/api/v1/tokens", { name: "other", role: "viewer" }],
      ["POST", "/api/v1/admin/token", {}],
      ["POST", "/api/v1/auth/login", { email, password }],
      [
        "PUT",
        `/api/v1/users/${user.body.id}/password`,
        { current_password: password, password: "another horse battery" },
      ],
      ["POST", `/api/v1/users/${user.body.id}/totp`, { current_password: password }],
    ];
    for (const [method, path, body] of writes) {
      const { response, body: reply } = await sent(method, path, body, { cookie });
      const retry = response.headers.get("retry-after");
      expect([method, path, response.status, retry, reply]).toEqual([
        method,
        path,
        503,
        "5",
        { error: FULL },
      ]);
    }
    expect(await exported()).toEqual(before);
    rmSync(join(disk, "ballast"));
    for (const [method, path, body] of writes) {
      const { response } = await sent(method, path, body, { cookie });
      expect([method, path, response.status]).not.toContain(503);
    }
  },
);

needs("mount").test(
  "a disk that fills up during the first start is reported, and with space the next start serves",
  async () => {
    // In KiB: from before the database to behind the last file.
    for (let size = 356; size <= 396; size += 8) {
      const disk = directory();
      expect(await run("mount", "-t", "tmpfs", "-o", `size=${size}k`, "tmpfs", disk)).toBe(0);
      cleanups.push(() => run("umount", "--lazy", disk));
      const dataDir = join(disk, "data");
      mkdirSync(dataDir);
      const attempt = new Gateway({ dataDir, workers: 1 }, dataDir);
      const isReady = await attempt.start().then(
        () => true,
        () => false,
      );
      await attempt.stop();
      if (!isReady) {
        const message = attempt.log.findLast(({ level }) => level === "error")?.message;
        expect([size, message]).toEqual([size, expect.stringContaining("full")]);
      }
      await run("mount", "-o", "remount,size=20m", disk);
      const gateway = await gatewayFor({ dataDir, workers: 1 });
      expect((await gateway.api("GET", "/readyz")).status).toBe(200);
      await gateway.stop();
    }
  },
  60_000,
);

/** Writes until the file system is full. */
function fill(path: string): void {
  for (let size = 65_536; size >= 512; size /= 2)
    try {
      for (;;) writeFileSync(path, new Uint8Array(size), { flag: "a" });
    } catch {
      // No space for a piece of this size.
    }
}

async function run(...command: string[]): Promise<number> {
  return await Bun.spawn(command, { stdout: "ignore", stderr: "ignore" }).exited;
}
