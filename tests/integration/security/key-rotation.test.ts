// The command that changes the key of secrets, while a gateway runs and while none does, and killed while it is at work.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Gateway, program, runCommand, startGateway } from "../../support/gateway.ts";

const SECRETS = Array.from({ length: 20 }, (_, index) => `value number ${index}`);

let gateway: Gateway;
let dataDir: string;

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "sluice-rotation-"));
  gateway = await startGateway({ dataDir, workers: 1 });
  for (const [index, value] of SECRETS.entries())
    await gateway.ok("POST", "/api/v1/secrets", { name: `s${index}`, value });
});
afterAll(async () => {
  await gateway.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

const keyFile = () => readFileSync(join(dataDir, "secret.key")).toString("hex");
const rotate = (env: Record<string, string> = {}) =>
  runCommand(["rotate-key", "--data-dir", dataDir], { env });

/** Writing the value that is there changes nothing, so the revision shows whether it can still be read. */
async function expectReadable(): Promise<void> {
  const { revision } = await gateway.ok("GET", "/api/v1/admin/status");
  for (const [index, value] of SECRETS.entries()) {
    const response = await gateway.api("PATCH", `/api/v1/secrets/s${index}`, { value });
    expect([response.status, response.headers.get("x-config-revision")]).toEqual([
      200,
      String(revision),
    ]);
  }
}

describe("the encryption key", () => {
  test("changes while a gateway runs", async () => {
    const before = keyFile();
    const { code, stderr, stdout } = await rotate();
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/with the key [0-9a-f]{8} now, not with [0-9a-f]{8} any more/);
    expect(keyFile()).not.toBe(before);
    await expectReadable();
    const entries = await gateway.ok("GET", "/api/v1/audit?kind=secret_key");
    expect(entries).toMatchObject([{ actor: "local", action: "rotate", result: "ok" }]);
  });

  test("changes while none runs, and the next start decrypts everything with the new one", async () => {
    await gateway.stop();
    const before = keyFile();
    const { code, stdout, stderr } = await rotate();
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/with the key [0-9a-f]{8} now, not with [0-9a-f]{8} any more/);
    expect(keyFile()).not.toBe(before);
    expect(statSync(join(dataDir, "secret.key")).mode & 0o777).toBe(0o600);
    await gateway.start();
    await expectReadable();
    expect(await gateway.ok("GET", "/api/v1/audit?kind=secret_key")).toHaveLength(2);
  });

  test("is refused at the start when it is wrong, with a message that names the right one", async () => {
    await gateway.stop();
    const wrong = { SLUICE_SECRET_KEY: "11".repeat(32) };
    const args = ["serve", "--data-dir", dataDir, "--admin", "127.0.0.1:0", "--workers", "1"];
    const { code, stderr } = await runCommand(args, { env: wrong });
    expect(code).toBe(1);
    expect(stderr).toMatch(/with the key [0-9a-f]{8}, which was expected in SLUICE_SECRET_KEY/);
    expect(stderr).not.toContain("11".repeat(8));
    await gateway.start();
    await expectReadable();
  });

  test("cannot be lost at any moment of the change", async () => {
    await gateway.stop();
    const started = performance.now();
    await rotate();
    const whole = performance.now() - started;
    // The last third of the run is where things happen; what comes before is the start of the program.
    for (let round = 0; round < 12; round++) {
      const child = Bun.spawn([...program(), "rotate-key", "--data-dir", dataDir], {
        env: { PATH: process.env["PATH"] ?? "", HOME: tmpdir() },
        stdout: "ignore",
        stderr: "ignore",
      });
      await Bun.sleep(whole * (0.4 + round * 0.05));
      child.kill("SIGKILL");
      await child.exited;
      if (round % 3 !== 2) continue;
      await gateway.start();
      await expectReadable();
      expect(existsSync(join(dataDir, "secret.key.new"))).toBe(false);
      await gateway.stop();
    }
    await gateway.start();
  });

  test("cannot be lost when the gateway is killed meanwhile", async () => {
    for (let round = 0; round < 10; round++) {
      const child = Bun.spawn([...program(), "rotate-key", "--data-dir", dataDir], {
        env: { PATH: process.env["PATH"] ?? "", HOME: tmpdir() },
        stdout: "ignore",
        stderr: "ignore",
      });
      const before = keyFile();
      const isChanging = () => existsSync(join(dataDir, "secret.key.new")) || keyFile() !== before;
      // From the moment on at which the new key is on the disk.
      while (!isChanging()) await Bun.sleep(0);
      await Bun.sleep(round * 0.5);
      await gateway.kill9();
      await child.exited;
      await gateway.start();
      await expectReadable();
      expect(existsSync(join(dataDir, "secret.key.new"))).toBe(false);
    }
  });
});

test("a directory without a gateway's data is unchanged", async () => {
  const empty = join(tmpdir(), `sluice-nothing-${process.pid}`);
  const { code, stderr } = await runCommand(["rotate-key", "--data-dir", empty]);
  expect(code).toBe(1);
  expect(stderr).toContain("there is no database");
  expect(existsSync(empty)).toBe(false);
});
