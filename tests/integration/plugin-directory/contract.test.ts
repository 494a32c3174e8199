// Plugins of users do not change with the gateway: those written for the first contract of @sluice/plugin load and run.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { PluginFiles } from "../../support/own-plugin.ts";

const files = new PluginFiles();
const fixture = join(import.meta.dir, "../../fixtures/plugins/contract-1/everything.ts");
let worker: string | null = null;
const origin = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch(request) {
    worker = request.headers.get("x-worker");
    return new Response("ok");
  },
});
let gateway: Gateway;

beforeAll(async () => {
  files.write("everything.ts", readFileSync(fixture, "utf8"));
  gateway = await startGateway({ args: ["--plugins-dir", files.path] });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  const { id } = await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: id, paths: ["/"] });
  const config = {
    refused: ["/refused", "~/private/.*"],
    networks: ["127.0.0.0/8"],
    password: "x",
  };
  await gateway.ok("POST", "/api/v1/plugins", { name: "everything", config });
});
afterAll(async () => {
  await gateway.stop();
  await origin.stop(true);
  files[Symbol.dispose]();
});

test("a plugin of the first contract runs", async () => {
  const get = (path: string) => fetch(`http://127.0.0.1:${gateway.httpPort}${path}`);
  for (const path of ["/refused", "/private/a"]) expect((await get(path)).status).toBe(403);
  expect(await (await get("/?hello=1")).text()).toBe("hello");
  const { status, headers } = await get("/a");
  expect(status).toBe(200);
  expect(headers.get("x-contract")).toBe("/a");
  expect(headers.get("vary")).toContain("x-contract");
  expect(worker).toMatch(/^\d$/);
  expect((await get("/a")).status).toBe(200);
  expect((await get("/a")).status).toBe(429);
});

test("its settings are checked", async () => {
  const [{ id }] = await gateway.ok("GET", "/api/v1/plugins");
  for (const [config, error] of [
    [{ fixed: "2" }, "config.fixed: must not be 2"],
    [{ networks: ["nonsense"] }, "config.networks[0]: must be"],
    [{ pattern: "(a+)+$" }, "config.pattern: must match in linear time"],
    [{ other: "nowhere" }, 'config.other: service "nowhere" does not exist'],
    [{ value: "${nonsense}" }, "config.value: "],
  ] as const) {
    const response = await gateway.api("PATCH", `/api/v1/plugins/${id}`, { config });
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error: string }).error).toStartWith(error);
  }
});
