// A plugin that blocks each worker as soon as it serves or starts is disabled the second time, although none ever runs long enough to agree.
import { afterAll, afterEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { cleanupsOf } from "../../support/cleanups.ts";
import { startGateway } from "../../support/gateway.ts";
import { PluginFiles, pluginSource } from "../../support/own-plugin.ts";
import { eventually } from "../../support/poll.ts";

const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") });
const cleanups = cleanupsOf(afterEach);
afterAll(() => origin.stop(true));

async function startSite(workers: number, source: Parameters<typeof pluginSource>[1]) {
  const files = new PluginFiles();
  cleanups.push(() => files[Symbol.dispose]());
  files.write("own.ts", pluginSource("own", source));
  const gateway = await startGateway({ workers, args: ["--plugins-dir", files.path] });
  cleanups.push(() => gateway.stop());
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "web", paths: ["/"] });
  await gateway.ok("POST", "/api/v1/routes", { name: "own", service_id: "web", paths: ["/own"] });
  await gateway.ok("POST", "/api/v1/plugins", { name: "own", route_id: "own", config: {} });
  const at = (path: string) =>
    fetch(`http://127.0.0.1:${gateway.httpPort}${path}`, { keepalive: false }).then(
      ({ status }) => status,
      () => 0,
    );
  const own = async () => (await gateway.ok("GET", "/api/v1/plugins/directory")).plugins[0];
  return { gateway, at, own };
}

test.each([1, 2])(
  "clients that go on blocking %d workers do not keep it enabled",
  async (count) => {
    const { at, own } = await startSite(count, {
      access: 'if (seen.path === "/own/hang") for (;;) {}',
    });
    expect(await at("/own")).toBe(200);
    // Each begins again when its worker has ended, until a disabled plugin responds.
    const attackers = Array.from({ length: 8 }, () =>
      eventually(async () => (await at("/own/hang")) === 500),
    );
    const disabled = await eventually(async () => {
      const plugin = await own();
      return plugin.state === "disabled" ? plugin : null;
    });
    await Promise.all(attackers);
    expect(disabled.problem.message).toContain("has blocked a worker");
    // Both may hang at once; none has hung again since.
    expect((await own()).blocked).toBeLessThanOrEqual(count + 1);
    expect(await at("/")).toBe(200);
    expect(await at("/own")).toBe(500);
  },
);

test("one that blocks workers while they start is named and disabled, and all other routes are served", async () => {
  const elsewhere = new PluginFiles();
  cleanups.push(() => elsewhere[Symbol.dispose]());
  const flag = join(elsewhere.path, "flag");
  const { gateway, at, own } = await startSite(1, {
    head: 'import { existsSync } from "node:fs";',
    create: `if (existsSync(${JSON.stringify(flag)})) for (;;) {}`,
    access: 'if (seen.path === "/own/exit") process.exit(0);',
  });
  writeFileSync(flag, "");
  await at("/own/exit");
  await eventually(async () => (await own()).state === "disabled");
  await eventually(async () => (await at("/")) === 200);
  expect(await at("/own")).toBe(500);
  expect((await own()).blocked).toBe(2);
  expect(gateway.stderr).toContain('did not create an instance in 10000 ms in plugin \\"own\\"');
});
