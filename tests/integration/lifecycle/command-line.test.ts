// The command line: exit codes, what is written where, and what is refused before anything is opened.
import { describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import manifest from "../../../package.json";
import { runCommand, startGateway } from "../../support/gateway.ts";

test.each([
  { args: ["help"], code: 0, stdout: /serve +Serve traffic/ },
  { args: [], code: 0, stdout: /Usage: sluice COMMAND/ },
  { args: ["--help"], code: 0, stdout: /Usage: sluice COMMAND/ },
  { args: ["help", "serve"], code: 0, stdout: /--data-dir DIR\n[^\n]+\n +SLUICE_DATA_DIR/ },
  {
    args: ["help", "serve"],
    code: 0,
    stdout: /\(default: 127\.0\.0\.1:9080\)[\s\S]*0\.0\.0\.0:8080\)[\s\S]*0\.0\.0\.0:8443\)/,
  },
  { args: ["serve", "--help"], code: 0, stdout: /Usage: sluice serve/ },
  { args: ["version"], code: 0, stdout: new RegExp(`^sluice ${manifest.version} `) },
  { args: ["--version"], code: 0, stdout: /^sluice / },
])("$args ends with code $code", async ({ args, code, stdout }) => {
  const result = await runCommand(args);
  expect(result.stdout).toMatch(stdout);
  expect([result.code, result.stderr]).toEqual([code, ""]);
});

test.each([
  { args: ["sevre"], says: 'unknown command "sevre"; did you mean "serve"?' },
  { args: ["help", "sevre"], says: 'unknown command "sevre"' },
  { args: ["serve", "--admn", "x"], says: 'unknown flag --admn; did you mean "--admin"?' },
  { args: ["serve", "--workers", "0"], says: "--workers: must be a whole number" },
  { args: ["version", "now"], says: 'unexpected argument "now"' },
])("$args is a usage error: code 2", async ({ args, says }) => {
  const result = await runCommand(args);
  expect([result.code, result.stdout]).toEqual([2, ""]);
  expect(result.stderr).toContain(`sluice: ${says}`);
  expect(result.stderr).toContain('Run "sluice help');
});

test("the error names an invalid value in the environment", async () => {
  const result = await runCommand(["serve"], { env: { SLUICE_WORKERS: "many" } });
  expect([result.code, result.stderr.includes("--workers: must be")]).toEqual([2, true]);
});

describe("check", () => {
  test("reports what can be served, also while it is served", async () => {
    await using gateway = disposable(await startGateway());
    await gateway.value.ok("POST", "/api/v1/services", { name: "shop" });
    const { revision } = await gateway.value.ok("GET", "/api/v1/admin/status");
    const result = await runCommand(["check", "--data-dir", gateway.value.dataDir]);
    expect([result.code, result.stdout]).toEqual([
      0,
      `revision ${revision} can be served: services 1, targets 0, routes 0, listeners 2\n`,
    ]);
  });

  test("ends with code 1 when there is no database", async () => {
    const empty = mkdtempSync(join(tmpdir(), "sluice-empty-"));
    const result = await runCommand(["check", "--data-dir", empty]);
    expect([result.code, result.stdout]).toEqual([
      1,
      `there is no database at ${empty}/sluice.db\n`,
    ]);
    expect(readdirSync(empty)).toEqual([]);
    rmSync(empty, { recursive: true });
  });
});

describe("serve refuses to start", () => {
  test.each([{ admin: "0.0.0.0:0" }, { admin: "[::]:0" }])(
    "with the management API on $admin while no users exist",
    async ({ admin }) => {
      const dataDir = join(tmpdir(), `sluice-refused-${process.pid}`);
      const result = await runCommand(["serve", "--data-dir", dataDir, "--admin", admin]);
      expect(result.code).toBe(1);
      expect(result.stderr).toContain("--admin-allow");
      expect(result.stderr).toContain("--allow-unauthenticated-remote");
      expect(await Bun.file(join(dataDir, "sluice.db")).exists()).toBe(false);
    },
  );

  test("on a data directory that is in use, and names the process", async () => {
    await using gateway = disposable(await startGateway());
    const { dataDir, pid } = gateway.value;
    const result = await runCommand(["serve", "--data-dir", dataDir, "--admin", "127.0.0.1:0"]);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain(`is in use by another sluice (process ${pid})`);
    expect((await gateway.value.api("GET", "/readyz")).status).toBe(200);
  });

  test("when a port is in use, and a next start may choose another one", async () => {
    using holder = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const dataDir = mkdtempSync(join(tmpdir(), "sluice-taken-"));
    const args = [
      "serve",
      "--data-dir",
      dataDir,
      "--admin",
      "127.0.0.1:0",
      "--https",
      "127.0.0.1:0",
    ];
    const result = await runCommand([...args, "--http", `127.0.0.1:${holder.port}`]);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain(`port ${holder.port} on 127.0.0.1: address already in use`);
    await using gateway = disposable(await startGateway({ dataDir }));
    expect(gateway.value.httpPort).not.toBe(holder.port);
    await gateway.value.stop();
    rmSync(dataDir, { recursive: true });
  });

  test("when the port of the management API is in use", async () => {
    using holder = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const dataDir = mkdtempSync(join(tmpdir(), "sluice-taken-"));
    const words = ["--data-dir", dataDir, "--http", "127.0.0.1:0", "--https", "127.0.0.1:0"];
    const result = await runCommand(["serve", ...words, "--admin", `127.0.0.1:${holder.port}`]);
    rmSync(dataDir, { recursive: true });
    expect(result.code).toBe(1);
    expect(result.stderr).toContain(`--admin 127.0.0.1:${holder.port}: address already in use`);
  });
});

test("a listener flag that the database overrides produces a warning", async () => {
  await using gateway = disposable(await startGateway());
  const { httpPort } = gateway.value;
  await gateway.value.restart(["--http", "127.0.0.1:1"]);
  expect(gateway.value.httpPort).toBe(httpPort);
  const warning = gateway.value.log.find(({ level }) => level === "warn");
  expect(warning?.message).toStartWith("--http 127.0.0.1:1 is ignored");
});

test("the management API may be open to other machines when configured so", async () => {
  const args = ["--admin", "0.0.0.0:0", "--admin-allow", "any", "--allow-unauthenticated-remote"];
  await using gateway = disposable(await startGateway({ args }));
  expect((await gateway.value.api("GET", "/healthz")).status).toBe(200);
});

function disposable<T extends { stop(): Promise<unknown> }>(value: T) {
  return { value, [Symbol.asyncDispose]: async () => void (await value.stop()) };
}
