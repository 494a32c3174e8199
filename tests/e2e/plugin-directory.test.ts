// The executable alone: it creates, checks and tests a plugin, and reloads it under load. No Bun is on the PATH.
import { expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { PluginFiles, pluginSource } from "../support/own-plugin.ts";
import { eventually } from "../support/poll.ts";
import { SteadyLoad } from "../support/steady-load.ts";
import { executable } from "../support/executable.ts";

const { test } = needs("executable");

test("a plugin is created, checked, tested, served and reloaded under load", async () => {
  const directory = mkdtempSync(join(tmpdir(), "sluice-own-"));
  const sluice = (...words: string[]) => {
    const env = { PATH: "/usr/bin:/bin", HOME: directory };
    const command = [executable, "plugin", ...words, "--plugins-dir", directory];
    const run = Bun.spawnSync(command, { env, cwd: "/" });
    return { code: run.exitCode, text: run.stdout.toString() + run.stderr.toString() };
  };
  const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") });
  expect(sluice("new", "greet").code).toBe(0);
  expect(sluice("check")).toMatchObject({ code: 0 });
  const tested = sluice("test");
  expect(tested.text).toContain("2 pass");
  expect(tested.code).toBe(0);
  const gateway = await startGateway({ binary: executable, args: ["--plugins-dir", directory] });
  try {
    const targets = [{ host: "127.0.0.1", port: origin.port }];
    const { id } = await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
    await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: id, paths: ["/"] });
    const config = { header: "host" };
    await gateway.ok("POST", "/api/v1/plugins", { name: "greet", config });
    const port = gateway.httpPort;
    const load = new SteadyLoad({ port, path: "/", expected: "ok", fresh: 2, kept: 4 });
    const path = join(directory, "greet/index.ts");
    const text = readFileSync(path, "utf8");
    for (let round = 1; round <= 10; round++) {
      writeFileSync(path, text.replace('"X-Plugin", "greet"', `"X-Plugin", "round ${round}"`));
      const { plugins } = await gateway.ok("POST", "/api/v1/plugins/directory");
      expect(plugins[0]).toMatchObject({ reloads: round, problem: null });
      for (let i = 0; i < 10; i++) {
        const response = await fetch(`http://127.0.0.1:${port}/`, { keepalive: false });
        expect(response.headers.get("x-plugin")).toBe(`round ${round}`);
      }
    }
    const { failures, askedAgain, sentElsewhere } = await load.stop();
    expect({ failures, askedAgain, sentElsewhere }).toEqual({
      failures: [],
      askedAgain: 0,
      sentElsewhere: 0,
    });
    expect(load.answered).toBeGreaterThan(100);
    // The name and line of an error are those of the file.
    writeFileSync(path, text.replace("create(own) {", 'create(own) {\n    throw new Error("no");'));
    const { plugins } = await gateway.ok("POST", "/api/v1/plugins/directory");
    expect(plugins[0].problem.message).toMatch(/create: no \(greet\/index\.ts:\d+:\d+\)/);
  } finally {
    await gateway.stop();
    await origin.stop(true);
    rmSync(directory, { recursive: true });
  }
});

test.each([
  { what: "without a plugin that is served", change: null, why: 'no plugin "own"' },
  {
    what: "with a changed plugin whose create never returns",
    change: "for (;;) {}",
    why: "create has not finished after",
  },
])("an upgrade is refused $what, and the process goes on", async ({ change, why }) => {
  using files = new PluginFiles();
  files.write("own.ts", pluginSource("own"));
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-own-"));
  const gateway = await startGateway({ binary: executable, dataDir });
  try {
    await gateway.ok("PATCH", "/api/v1/settings", { plugins_directory: files.path });
    const view = () => gateway.ok("GET", "/api/v1/plugins/directory");
    await eventually(async () => (await view()).plugins[0]?.state === "loaded");
    await gateway.ok("POST", "/api/v1/plugins", { name: "own", config: {} });
    if (change === null) files.remove("own.ts");
    else files.write("own.ts", pluginSource("own", { create: change }));
    const upgrade = Bun.spawnSync([executable, "upgrade", "--data-dir", dataDir]);
    expect(upgrade.stderr.toString() + upgrade.stdout.toString()).toContain(why);
    expect(upgrade.exitCode).toBe(1);
    const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/`);
    expect(response.headers.get("x-own")).toBe("one none");
  } finally {
    await gateway.stop();
    rmSync(dataDir, { recursive: true });
  }
});
