// A gateway that starts without plugins that its instances need: it opens nothing that they protected, and serves everything else.
import { expect, test } from "bun:test";
import { freePort } from "../../support/data-plane.ts";
import { pluginSource } from "../../support/own-plugin.ts";
import { usePluginSetting } from "../../support/plugin-setting.ts";
import { eventually } from "../../support/poll.ts";

const { origin, newFiles, newDirectory, start, set, looked, view, serveSite } = usePluginSetting();

/** A gateway that has loaded the plugin "own", and no instance of it. */
async function startWithPlugin() {
  const files = newFiles();
  files.write("own.ts", pluginSource("own"));
  const dataDir = newDirectory();
  const gateway = await start({ dataDir });
  await set(gateway, files.path);
  await eventually(async () => (await view(gateway)).plugins[0]?.state === "loaded");
  return { files, dataDir, gateway };
}

test("instances of plugins that are not there reject, and everything else is served", async () => {
  const { files, dataDir, gateway } = await startWithPlugin();
  await serveSite(gateway);
  await gateway.ok("POST", "/api/v1/routes", {
    ...{ name: "closed", service_id: "web", paths: ["/closed"] },
  });
  // Neither its condition nor its behavior on errors nor its priority may open the route.
  const { id } = await gateway.ok("POST", "/api/v1/plugins", {
    ...{ name: "own", route_id: "closed", config: { key: "dont-show-me" } },
    ...{ on_error: "open", priority: -1_000_000, when: { method: ["DELETE"] } },
  });
  await gateway.ok("POST", "/api/v1/plugins", {
    ...{ name: "redirect", route_id: "closed", priority: 1_000_000 },
    config: { to: "https://example.com/" },
  });
  await gateway.stop();
  files.remove("own.ts");

  const next = await start({ dataDir });
  const at = async (path: string) => {
    const url = `http://127.0.0.1:${next.httpPort}${path}`;
    return (await fetch(url, { redirect: "manual" })).status;
  };
  expect(await at("/")).toBe(200);
  expect(await at("/closed")).toBe(503);
  expect((await view(next)).plugins).toMatchObject([
    { name: "own", state: "refused", hash: null, problem: { phase: "read" } },
  ]);
  const { warnings } = await next.ok("GET", "/api/v1/admin/status");
  expect(warnings.join()).toContain("of the plugins directory not served");
  expect((await next.api("GET", "/api/v1/plugins/schemas/own")).status).toBe(404);
  const shown = JSON.stringify(await next.ok("GET", `/api/v1/plugins/${id}`));
  expect(shown).not.toContain("sealed");
  // Without its schema nothing could tell what is a secret.
  const changes = [
    await next.api("PATCH", `/api/v1/plugins/${id}`, { on_error: "closed" }),
    await next.api("POST", "/api/v1/plugins", { name: "own", config: { key: "plain" } }),
  ];
  for (const response of changes) {
    expect(response.status).toBe(400);
    expect((await response.json()).error).toContain('plugin "own" is not loaded');
  }
  // Any other change goes on.
  await next.ok("PATCH", "/api/v1/routes/all", { paths: ["/", "/more"] });
  expect(await at("/closed")).toBe(503);
  // The file comes late, and cannot be loaded at first.
  files.write("own.ts", pluginSource("own", { head: "throw 1;" }));
  await looked(next);
  expect(await at("/closed")).toBe(503);
  files.write("own.ts", pluginSource("own"));
  expect((await looked(next)).plugins).toMatchObject([{ state: "loaded", reloads: 0 }]);
  expect(await at("/closed")).toBe(308);
});

test("an editor deletes no instance of a missing plugin, and its consumers are rejected", async () => {
  const { files, dataDir, gateway } = await startWithPlugin();
  await serveSite(gateway);
  const { id: consumer } = await gateway.ok("POST", "/api/v1/consumers", { username: "ann" });
  await gateway.ok("POST", `/api/v1/consumers/${consumer}/credentials`, {
    ...{ type: "key", secret: "the-key-of-ann-0123456789" },
  });
  await gateway.ok("POST", "/api/v1/plugins", {
    ...{ name: "key-auth", config: { anonymous_consumer: null } },
  });
  const { id } = await gateway.ok("POST", "/api/v1/plugins", {
    ...{ name: "own", consumer_id: consumer, config: {} },
  });
  await gateway.stop();
  files.remove("own.ts");
  const next = await start({ dataDir });
  const url = `http://127.0.0.1:${next.httpPort}/`;
  expect((await fetch(url)).status).toBe(401);
  const asAnn = { headers: { "x-api-key": "the-key-of-ann-0123456789" } };
  expect((await fetch(url, asAnn)).status).toBe(503);
  const { token } = await next.ok("POST", "/api/v1/tokens", { name: "e", role: "editor" });
  await next.ok("POST", "/api/v1/users", {
    ...{ name: "Admin", email: "admin@example.com", role: "admin" },
    password: "correct horse battery staple",
  });
  const authorization = `Bearer ${token}`;
  const path = `/api/v1/plugins/${id}`;
  const refused = await next.api("DELETE", path, undefined, { authorization });
  expect(refused.status).toBe(403);
  expect((await fetch(url, asAnn)).status).toBe(503);
});

test("a missing plugin that is global rejects streams too", async () => {
  const { files, dataDir, gateway } = await startWithPlugin();
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "raw", protocol: "tcp", targets });
  const port = freePort();
  await gateway.ok("POST", "/api/v1/stream-routes", {
    ...{ name: "raw", service_id: "raw", listen_address: "127.0.0.1", listen_port: port },
  });
  await gateway.ok("POST", "/api/v1/plugins", { name: "own", config: {} });
  const isServed = () =>
    fetch(`http://127.0.0.1:${port}/`, { keepalive: false }).then(
      () => true,
      () => false,
    );
  expect(await isServed()).toBe(true);
  await gateway.stop();
  files.remove("own.ts");
  const next = await start({ dataDir });
  expect((await fetch(`http://127.0.0.1:${next.httpPort}/`)).status).toBe(503);
  expect(await isServed()).toBe(false);
  files.write("own.ts", pluginSource("own"));
  await looked(next);
  expect(await isServed()).toBe(true);
});
