// A data directory whose configuration uses a plugin of the directory: what works without the files, and what needs them.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { program, startGateway } from "../../support/gateway.ts";
import { PluginFiles, pluginSource } from "../../support/own-plugin.ts";

const files = new PluginFiles();
const dataDir = mkdtempSync(join(tmpdir(), "sluice-offline-"));

function sluice(...words: string[]) {
  const run = Bun.spawnSync([...program(), ...words]);
  return { code: run.exitCode, text: run.stdout.toString() + run.stderr.toString() };
}

beforeAll(async () => {
  files.write("own.ts", pluginSource("own"));
  const gateway = await startGateway({ dataDir, args: ["--plugins-dir", files.path] });
  const config = { key: "a secret of mine" };
  await gateway.ok("POST", "/api/v1/plugins", { name: "own", label: "mine", config });
  await gateway.stop();
});
afterAll(() => {
  files[Symbol.dispose]();
  rmSync(dataDir, { recursive: true });
});

test("repairs need no plugins, and keep their secrets", async () => {
  expect(sluice("token", "--data-dir", dataDir)).toMatchObject({ code: 0 });
  expect(sluice("rotate-key", "--data-dir", dataDir)).toMatchObject({ code: 0 });
  const gateway = await startGateway({ dataDir, args: ["--plugins-dir", files.path] });
  await gateway.stop();
});

test("check needs them", () => {
  const without = sluice("check", "--data-dir", dataDir);
  expect(without.text).toContain('plugin "mine": name: there is no plugin "own"');
  expect(without.code).toBe(1);
  expect(sluice("check", "--data-dir", dataDir, "--plugins-dir", files.path).code).toBe(0);
});

test("without the directory the gateway starts, and rejects what needs the plugin", async () => {
  const gateway = await startGateway({ dataDir });
  expect((await fetch(`http://127.0.0.1:${gateway.httpPort}/`)).status).toBe(503);
  expect(gateway.stderr).toContain("requests that need the plugin are rejected with 503");
  await gateway.stop();
});

test("with a directory of the flag it does not start without the plugin, and names it", async () => {
  using empty = new PluginFiles();
  const start = startGateway({ dataDir, args: ["--plugins-dir", empty.path] });
  await expect(start).rejects.toThrow("one of your own must be in the plugins directory");
});

test("check finds the directory of the settings", async () => {
  const gateway = await startGateway({ dataDir, args: ["--plugins-dir", files.path] });
  await gateway.ok("PATCH", "/api/v1/settings", { plugins_directory: files.path });
  await gateway.stop();
  expect(sluice("check", "--data-dir", dataDir)).toMatchObject({ code: 0 });
});

test("the gateway does not start with a directory that others can write to", async () => {
  chmodSync(files.path, 0o777);
  const start = startGateway({ dataDir, args: ["--plugins-dir", files.path] });
  await expect(start).rejects.toThrow("other users can write to it");
  chmodSync(files.path, 0o700);
});
