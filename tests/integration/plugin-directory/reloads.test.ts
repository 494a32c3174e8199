// The engine never releases the code of a module: the status asks for a new process after 20 reloads, and not before.
import { expect, test } from "bun:test";
import { startGateway } from "../../support/gateway.ts";
import { PluginFiles, pluginSource } from "../../support/own-plugin.ts";

test("after 20 reloads the status asks for an upgrade", async () => {
  using files = new PluginFiles();
  files.write("own.ts", pluginSource("own"));
  const gateway = await startGateway({ workers: 1, args: ["--plugins-dir", files.path] });
  try {
    const warned = async () =>
      (await gateway.ok("GET", "/api/v1/admin/status")).warnings.join().includes("sluice upgrade");
    for (let reload = 1; reload <= 20; reload++) {
      expect([reload, await warned()]).toEqual([reload, false]);
      files.write("own.ts", pluginSource("own", { word: `w${reload}` }));
      const { reloads } = await gateway.ok("POST", "/api/v1/plugins/directory");
      expect(reloads).toBe(reload);
    }
    expect(await warned()).toBe(true);
    // The same code is no reload.
    files.write("own.ts", pluginSource("own", { word: "w20" }));
    expect((await gateway.ok("POST", "/api/v1/plugins/directory")).reloads).toBe(20);
  } finally {
    await gateway.stop();
  }
});
