// Gateways without --plugins-dir, and directories for settings.plugins_directory; ends them after each test.
import { afterEach } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanupsOf } from "./cleanups.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { PluginFiles } from "./own-plugin.ts";

/** For one test file. */
export function usePluginSetting() {
  const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") });
  const cleanups = cleanupsOf(afterEach);

  function newFiles(): PluginFiles {
    const files = new PluginFiles();
    cleanups.push(() => files[Symbol.dispose]());
    return files;
  }

  async function start(options: Parameters<typeof startGateway>[0] = {}): Promise<Gateway> {
    const gateway = await startGateway({ workers: 1, ...options });
    cleanups.push(() => gateway.stop());
    return gateway;
  }

  const set = (gateway: Gateway, plugins_directory: string | null) =>
    gateway.ok("PATCH", "/api/v1/settings", { plugins_directory });
  /** The view, after the gateway has looked at the files. */
  const looked = (gateway: Gateway) => gateway.ok("POST", "/api/v1/plugins/directory");
  const view = (gateway: Gateway) => gateway.ok("GET", "/api/v1/plugins/directory");

  async function serveSite(gateway: Gateway): Promise<() => Promise<string | null>> {
    const targets = [{ host: "127.0.0.1", port: origin.port }];
    await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
    await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "web", paths: ["/"] });
    return async () => (await fetch(`http://127.0.0.1:${gateway.httpPort}/`)).headers.get("x-own");
  }

  /** An empty one. */
  function newDirectory(): string {
    const path = mkdtempSync(join(tmpdir(), "sluice-setting-"));
    cleanups.push(() => rmSync(path, { recursive: true, force: true }));
    return path;
  }

  return { origin, newFiles, newDirectory, start, set, looked, view, serveSite };
}
