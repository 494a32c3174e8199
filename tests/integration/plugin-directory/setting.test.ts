// settings.plugins_directory: takes effect at once, only an admin sets it, and it makes nothing of an admin but an admin.
import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Gateway } from "../../support/gateway.ts";
import { pluginSource } from "../../support/own-plugin.ts";
import { usePluginSetting } from "../../support/plugin-setting.ts";
import { eventually } from "../../support/poll.ts";

const { newFiles, newDirectory, start, set, looked, view, serveSite } = usePluginSetting();

describe("without --plugins-dir", () => {
  test("the plugins of the setting are served, followed, replaced, and there after a restart", async () => {
    const files = newFiles();
    files.write("own.ts", pluginSource("own"));
    const dataDir = newDirectory();
    const gateway = await start({ dataDir });
    expect(await view(gateway)).toMatchObject({ directory: null, source: "setting", plugins: [] });
    expect((await gateway.api("POST", "/api/v1/plugins/directory")).status).toBe(404);
    const word = await serveSite(gateway);
    await set(gateway, files.path);
    await eventually(async () => (await view(gateway)).plugins[0]?.state === "loaded");
    const { id } = await gateway.ok("POST", "/api/v1/plugins", { name: "own", config: {} });
    expect(await word()).toBe("one none");
    files.write("own.ts", pluginSource("own", { word: "two" }));
    await eventually(async () => (await word()) === "two none");

    // Another directory with the same plugin.
    const others = newFiles();
    others.write("own.ts", pluginSource("own", { word: "other" }));
    await set(gateway, others.path);
    await eventually(async () => (await word()) === "other none");

    await gateway.stop();
    const next = await start({ dataDir });
    const served = await fetch(`http://127.0.0.1:${next.httpPort}/`);
    expect(served.headers.get("x-own")).toBe("other none");

    // Without a directory what is in use goes on, and what is not is gone.
    others.write("idle.ts", pluginSource("idle"));
    expect((await looked(next)).plugins).toHaveLength(2);
    await set(next, null);
    const after = (await looked(next)).plugins;
    expect(after).toMatchObject([{ name: "own", state: "removed" }]);
    await next.ok("DELETE", `/api/v1/plugins/${id}`);
    await eventually(async () => (await view(next)).plugins.length === 0);
  });

  test("a directory that cannot be used is reported, and the gateway starts without it", async () => {
    const dataDir = newDirectory();
    const gateway = await start({ dataDir });
    await serveSite(gateway);
    await set(gateway, "/nowhere/plugins");
    const isReported = async (from: Gateway) =>
      (await view(from)).problems.join().includes("/nowhere");
    await eventually(() => isReported(gateway));
    await gateway.stop();
    const next = await start({ dataDir });
    expect(await isReported(next)).toBe(true);
    const { warnings } = await next.ok("GET", "/api/v1/admin/status");
    expect(warnings.join()).toContain("of the plugins directory not served");
    expect((await fetch(`http://127.0.0.1:${next.httpPort}/`)).status).toBe(200);
  });

  test("a relative path is refused with its field", async () => {
    const gateway = await start();
    const response = await gateway.api("PATCH", "/api/v1/settings", { plugins_directory: "x" });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      error: "plugins_directory: must be an absolute path",
    });
  });
});

test("--plugins-dir precedes the setting", async () => {
  const [byFlag, bySetting] = [newFiles(), newFiles()];
  byFlag.write("own.ts", pluginSource("own"));
  bySetting.write("own.ts", pluginSource("own", { word: "setting" }));
  const gateway = await start({ args: ["--plugins-dir", byFlag.path] });
  const word = await serveSite(gateway);
  await gateway.ok("POST", "/api/v1/plugins", { name: "own", config: {} });
  await set(gateway, bySetting.path);
  expect(await looked(gateway)).toMatchObject({ directory: byFlag.path, source: "flag" });
  expect(await word()).toBe("one none");
});

describe("an admin of the API does not become the user of the gateway", () => {
  test("a directory that the gateway writes to is refused, and one that holds or leads to it", async () => {
    const parent = newDirectory();
    const [dataDir, logDir] = [join(parent, "data"), join(parent, "logs")];
    mkdirSync(dataDir, { mode: 0o700 });
    mkdirSync(logDir, { mode: 0o700 });
    const gateway = await start({ dataDir, args: ["--log-dir", logDir] });
    await serveSite(gateway);
    // What an admin can have written: a line of an access log that is a program.
    const mark = join(parent, "ran");
    const program = `import { definePlugin } from "@sluice/plugin"; require("fs").writeFileSync(${JSON.stringify(mark)}, "");`;
    mkdirSync(join(dataDir, "logs"), { recursive: true, mode: 0o700 });
    for (const folder of [join(dataDir, "logs"), logDir])
      writeFileSync(join(folder, "own.ts"), program, { mode: 0o600 });
    const link = join(parent, "link");
    symlinkSync(logDir, link);
    for (const path of [join(dataDir, "logs"), dataDir, logDir, link, parent, "/"]) {
      await set(gateway, path);
      await eventually(async () => {
        const { directory, problems, plugins } = await view(gateway);
        expect({ directory, plugins }).toEqual({ directory: path, plugins: [] });
        return /the gateway itself writes to|other users can write to it/.test(problems.join());
      });
    }
    expect(await Bun.file(mark).exists()).toBe(false);
  });

  test("code that is no plugin does not run", async () => {
    const files = newFiles();
    const mark = join(files.path, "ran.txt");
    const program = `require("node:fs").writeFileSync(${JSON.stringify(mark)}, "");\n`;
    files.write("npm-cli.js", program);
    files.write("secret.js", 'const secret = "not-for-the-api";\nsecret = ;\n');
    // A name in a type or a comment is no import.
    files.write("typed.ts", `import type { AnyPlugin } from "@sluice/plugin";\n${program}`);
    const gateway = await start();
    await set(gateway, files.path);
    await eventually(async () => (await view(gateway)).plugins.length === 3);
    const { plugins } = await looked(gateway);
    for (const name of ["npm-cli", "typed"])
      expect(plugins.find((plugin: { name: string }) => plugin.name === name)).toMatchObject({
        state: "refused",
        problem: { phase: "bundle", message: expect.stringContaining("is no plugin") },
      });
    expect(JSON.stringify(plugins)).not.toContain("not-for-the-api");
    expect(await Bun.file(mark).exists()).toBe(false);
  });

  test("a link or an import into what the gateway writes is refused, and a macro", async () => {
    const files = newFiles();
    const logDir = newDirectory();
    const mark = join(files.path, "ran.txt");
    const code = `import { writeFileSync } from "node:fs";\nexport const run = () => writeFileSync(${JSON.stringify(mark)}, "");\n`;
    writeFileSync(join(logDir, "linked.ts"), `${code}run();\n${pluginSource("linked")}`);
    writeFileSync(join(logDir, "part.ts"), `${code}run();\n`);
    symlinkSync(join(logDir, "linked.ts"), join(files.path, "linked.ts"));
    const head = `import { run } from ${JSON.stringify(join(logDir, "part.ts"))};\nrun();`;
    files.write("imports.ts", pluginSource("imports", { head }));
    files.write("_macro.ts", code);
    for (const [name, attribute] of [
      ["macro", 'with { type: "macro" }'],
      ["older", "assert { 'type': 'macro' }"],
    ] as const)
      files.write(
        `${name}.ts`,
        pluginSource(name, { head: `import { run } from "./_macro.ts" ${attribute};\nrun();` }),
      );
    const gateway = await start({ args: ["--log-dir", logDir] });
    await set(gateway, files.path);
    await eventually(async () => (await view(gateway)).plugins.length === 4);
    const { plugins } = await looked(gateway);
    const written = `the gateway itself writes to ${logDir}`;
    expect(plugins).toMatchObject(
      [
        ...[written, written].map((says) => ({ says, phase: "read" })),
        ...["older", "macro"].map(() => ({ says: "macros are not run", phase: "bundle" })),
      ].map(({ says, phase }) => ({
        state: "refused",
        problem: { phase, message: expect.stringContaining(says) },
      })),
    );
    expect(await Bun.file(mark).exists()).toBe(false);
  });

  test("a directory with more than 100 plugins is not loaded", async () => {
    const files = newFiles();
    for (let i = 0; i < 101; i++) writeFileSync(join(files.path, `p${i}.js`), "");
    const gateway = await start();
    await set(gateway, files.path);
    await eventually(async () =>
      (await view(gateway)).problems.join().includes("has more than 100 plugins"),
    );
    expect((await view(gateway)).plugins).toEqual([]);
    files.remove("p100.js");
    expect((await looked(gateway)).plugins).toHaveLength(100);
  });

  test("what others can write to is refused", async () => {
    const files = newFiles();
    files.write("own.ts", pluginSource("own"));
    chmodSync(files.path, 0o777);
    const gateway = await start();
    await set(gateway, files.path);
    await eventually(async () =>
      (await view(gateway)).problems.join().includes("other users can write to it"),
    );
    expect((await view(gateway)).plugins).toEqual([]);
  });

  test("a directory with more than 2,000 entries is not looked at", async () => {
    const files = newFiles();
    for (let i = 0; i < 1999; i++) writeFileSync(join(files.path, `${i}.txt`), "");
    files.write("own.ts", pluginSource("own"));
    const gateway = await start();
    await set(gateway, files.path);
    await eventually(async () => (await view(gateway)).plugins[0]?.state === "loaded");
    writeFileSync(join(files.path, "one-more.txt"), "");
    await eventually(async () =>
      (await view(gateway)).problems.join().includes("has more than 2000 files"),
    );
    // What is served goes on.
    expect((await view(gateway)).plugins).toMatchObject([{ name: "own", state: "loaded" }]);
  });

  test("an editor sets it in no way", async () => {
    const files = newFiles();
    files.write("own.ts", pluginSource("own"));
    const gateway = await start();
    await set(gateway, files.path);
    const [past, present] = [
      await gateway.ok("POST", "/api/v1/tokens", { name: "e", role: "admin" }),
      await gateway.ok("POST", "/api/v1/tokens", { name: "other", role: "editor" }),
    ];
    await gateway.ok("POST", "/api/v1/users", {
      ...{ name: "Admin", email: "admin@example.com", role: "admin" },
      password: "correct horse battery staple",
    });
    const by = (token: string) => (method: string, path: string, body?: unknown) =>
      gateway.api(method, path, body, { authorization: `Bearer ${token}` });
    const asAdmin = by(past.token);
    const unset = await asAdmin("PATCH", "/api/v1/settings", { plugins_directory: null });
    const number = Number(unset.headers.get("x-config-revision"));
    // An editor who was an admin may not undo either what they have changed then.
    const renamed = await asAdmin("PATCH", `/api/v1/tokens/${past.id}`, { name: "former" });
    expect(renamed.status).toBe(200);
    const made = await asAdmin("PATCH", `/api/v1/tokens/${present.id}`, { name: "e" });
    expect(made.status).toBe(200);
    const as = by(present.token);
    const settings = { plugins_directory: files.path };
    const tries = [
      await as("PATCH", "/api/v1/settings", settings),
      await as("PUT", "/api/v1/settings", settings),
      await as("PATCH", "/api/v1/settings?force=1", settings),
      await as("PATCH", "/api/v1/settings?dry_run=1", settings),
      await as("POST", "/api/v1/import", { format: 1, settings }),
      await as("POST", "/api/v1/import?mode=merge&dry_run=1", { format: 1, settings }),
      await as("POST", `/api/v1/revisions/${number}/undo`),
      await as("POST", `/api/v1/revisions/${number - 1}/restore`),
      await as("POST", "/api/v1/plugins/directory"),
    ];
    for (const response of tries)
      expect([response.url, response.status]).toEqual([response.url, 403]);
    const shown = await as("GET", "/api/v1/plugins/directory");
    expect((await shown.json()).directory).toBeNull();
  });
});
