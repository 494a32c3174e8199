// A directory of configuration files: each owns what it names, and what people made stays.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { eventually } from "../../support/poll.ts";

let gateway: Gateway;
let origin: Bun.Server<undefined>;
const directory = mkdtempSync(join(tmpdir(), "sluice-config-dir-"));

beforeAll(async () => {
  origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("here") });
  gateway = await startGateway({ args: ["--config-dir", directory] });
});
afterAll(async () => {
  await gateway?.stop();
  await origin?.stop(true);
  rmSync(directory, { recursive: true, force: true });
});

const put = (name: string, text: string) => {
  // As editors and configuration tools do: written beside, then renamed.
  writeFileSync(join(directory, `.${name}.tmp`), text);
  renameSync(join(directory, `.${name}.tmp`), join(directory, name));
};

async function visit(host: string) {
  const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/`, { headers: { host } });
  const text = await response.text();
  return response.status === 200 ? text : response.status;
}

interface Site {
  readonly from: string;
  readonly served: boolean;
  readonly problems: readonly string[];
}
const site = async (from: string): Promise<Site | undefined> => {
  const sources = await gateway.ok("GET", "/api/v1/discovery");
  const files = sources.find(({ name }: { name: string }) => name === "files");
  return files.sites.find((one: Site) => one.from === from);
};

const application = (name: string, host: string) =>
  `applications:\n  - name: ${name}\n    domains: [${host}]\n    upstream: http://127.0.0.1:${origin.port}\n    https: { mode: "off" }\n`;

test("a file is served when it appears, follows its changes, and goes with it", async () => {
  put("one.yaml", application("one", "one.test"));
  await eventually(async () => (await visit("one.test")) === "here");
  put("one.yaml", application("one", "moved.test"));
  await eventually(async () => (await visit("moved.test")) === "here");
  expect(await visit("one.test")).toBe(404);
  const patched = await gateway.api("PATCH", "/api/v1/applications/one", { enabled: false });
  expect([patched.status, (await patched.json()).error]).toEqual([
    409,
    'application "one" is managed by files, which would undo the change: make it there; if that is gone for good, an admin can delete it with ?force=1',
  ]);
  rmSync(join(directory, "one.yaml"));
  await eventually(async () => (await visit("moved.test")) === 404);
});

test("services, routes and plugins by name, also with secrets", async () => {
  const text = `
services: [{ name: shop }]
targets: [{ service_id: shop, host: 127.0.0.1, port: ${origin.port} }]
routes: [{ name: shop, service_id: shop, hosts: [shop.test] }]
consumers: [{ username: alice }]
secrets: [{ name: pass, sealed_value: { plain: hush } }]
plugins: [{ name: respond, route_id: shop, config: { status: 418, body: tea } }]
`;
  put("shop.yaml", text);
  await eventually(async () => (await visit("shop.test")) === 418);
  expect(await site("shop.yaml")).toMatchObject({ served: true, problems: [] });
  expect(await gateway.ok("GET", "/api/v1/secrets")).toMatchObject([{ managed_by: "files" }]);
  const { revision } = await gateway.ok("GET", "/api/v1/admin/status");
  // Written again without a change: nothing is made anew.
  put("shop.yaml", `${text}# the same\n`);
  put("other.yaml", application("other", "other.test"));
  await eventually(async () => (await visit("other.test")) === "here");
  expect((await gateway.ok("GET", "/api/v1/admin/status")).revision).toBe(revision + 1);
});

test("what is wrong is a sentence with its line, and the other files go on", async () => {
  put("broken.yaml", "applications:\n  - name: x\n   domains: [x.test]\n");
  put("settings.json", '{"settings": {}}');
  put("wrong.yaml", "routes: [{ name: r, hosts: [r.test], service_id: nobody }]\n");
  put("double.yaml", application("other", "double.test"));
  put("good.yaml", application("good", "good.test"));
  await eventually(async () => (await visit("good.test")) === "here");
  const said = async (name: string) => (await site(name))?.problems.join(" | ") ?? "";
  await eventually(async () => (await said("wrong.yaml")) !== "");
  expect(await said("broken.yaml")).toMatch(/line 3, column \d+/);
  expect(await said("settings.json")).toBe(
    "settings: is not a list that a file of the directory may hold",
  );
  expect(await said("wrong.yaml")).toContain("service_id: service does not exist");
  expect(await said("wrong.yaml")).toContain("line 1");
  expect((await said("double.yaml")) + (await said("other.yaml"))).toContain(
    'application "other" is in double.yaml, too',
  );
  for (const name of ["broken.yaml", "wrong.yaml", "double.yaml", "settings.json"])
    rmSync(join(directory, name));
  await eventually(async () => (await visit("other.test")) === "here");
});

test("what people made is not taken over", async () => {
  await gateway.ok("POST", "/api/v1/services", { name: "mine" });
  put("mine.yaml", "services: [{ name: mine }]\n");
  await eventually(async () => (await site("mine.yaml"))?.problems.length === 1);
  expect((await site("mine.yaml"))?.problems[0]).toContain('service "mine" exists already');
  await gateway.ok("DELETE", "/api/v1/services/mine");
  await eventually(async () => (await site("mine.yaml"))?.served === true);
});

test("without the directory, its objects are gone at the next start", async () => {
  await eventually(async () => (await visit("good.test")) === "here");
  await gateway.restart([]);
  await eventually(async () => (await visit("good.test")) === 404);
  expect(await gateway.ok("GET", "/api/v1/applications")).toEqual([]);
});
