// A directory of configuration files: each owns what it names, and what people made stays.
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
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

test("targets of a service in its document, as in the API", async () => {
  const text = (...ports: number[]) =>
    `services: [{ name: own, targets: [${ports.map((port) => `{ host: 127.0.0.1, port: ${port} }`).join(", ")}] }]
routes: [{ name: own, service_id: own, hosts: [own.test] }]\n`;
  put("own.yaml", text(origin.port ?? 0, 9));
  await eventually(async () => (await visit("own.test")) === "here");
  put("own.yaml", text(origin.port ?? 0));
  const portsNow = async () => {
    const targets: { port: number }[] = await gateway.ok("GET", "/api/v1/services/own/targets");
    return targets.map(({ port }) => port).join();
  };
  await eventually(async () => (await portsNow()) === String(origin.port));
  put("own.yaml", "services: [{ name: own, targets: 3 }]\n");
  await eventually(async () =>
    (await site("own.yaml"))?.problems.includes("services[0].targets: must be a list of objects"),
  );
  rmSync(join(directory, "own.yaml"));
  await eventually(async () => (await visit("own.test")) === 404);
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
  expect(await said("broken.yaml")).not.toContain("x.test");
  expect(await said("settings.json")).toBe(
    "settings: is not a list that a file of the directory may hold",
  );
  expect(await said("wrong.yaml")).toContain('service_id: service "nobody" does not exist');
  expect(await said("wrong.yaml")).toContain("line 1");
  expect((await said("double.yaml")) + (await said("other.yaml"))).toContain(
    'application "other" is in double.yaml, too',
  );
  for (const name of ["broken.yaml", "wrong.yaml", "double.yaml", "settings.json"])
    rmSync(join(directory, name));
  await eventually(async () => (await visit("other.test")) === "here");
});

const CANARY = "c4n4ry-hush";

test("what is no regular file of the directory is never opened, and no content is shown", async () => {
  const outside = mkdtempSync(join(tmpdir(), "sluice-outside-"));
  const at = (name: string) => join(directory, name);
  writeFileSync(join(outside, "secret.yaml"), `${CANARY}: x\n`);
  for (const target of [join(outside, "secret.yaml"), "/dev/zero", outside, "/etc/shadow"])
    symlinkSync(target, at(`link-${target.split("/").at(-1)}.yaml`));
  symlinkSync("real.data", at("inside.yaml"));
  writeFileSync(at("real.data"), application("inside", "inside.test"));
  symlinkSync("nowhere", at("dangling.yaml"));
  mkdirSync(at("folder.yaml"));
  Bun.spawnSync(["mkfifo", "-m", "644", at("pipe.yaml")]);
  const socket = Bun.listen({ unix: at("socket.yaml"), socket: { data: () => undefined } });
  const wrong = {
    "key.yaml": `${CANARY}: [{}]\n`,
    "key.json": `{"${CANARY}": []}`,
    "shadow.yaml": `root:*${CANARY}:19000:0:99999:7:::\nbin:!:1\n`,
    "twice.yaml": `${CANARY}: 1\n${CANARY}: 2\n`,
    "alias.yaml": `a: *${CANARY}\n`,
    "tag.yaml": `a: !${CANARY} b\n`,
    "token.json": `{"services": ${CANARY}}`,
    "twice.json": `{"${CANARY}": 1, "${CANARY}": 2}`,
    "large.yaml": `#${CANARY}${"x".repeat(8_388_608)}`,
  };
  for (const [name, text] of Object.entries(wrong)) put(name, text);
  const readable = application("border", "border.test");
  put("border.yaml", readable + "#".repeat(8_388_608 - readable.length));
  await eventually(async () => (await visit("inside.test")) === "here");
  await eventually(async () => (await visit("border.test")) === "here");
  const said = async (name: string) => (await site(name))?.problems.join(" | ") ?? "";
  const out = "is a link that leads out of the directory";
  for (const [name, words] of [
    ["link-secret.yaml.yaml", out],
    ["link-zero.yaml", out],
    [`link-${outside.split("/").at(-1)}.yaml`, out],
    ["link-shadow.yaml", out],
    ["dangling.yaml", "cannot be read: ENOENT"],
    ["folder.yaml", "is not a file"],
    ["pipe.yaml", "is not a file"],
    ["socket.yaml", "is not a file"],
    ["large.yaml", "is larger than 8 MB"],
    ["key.yaml", "line 1: this is not a list that a file"],
    ["token.json", "is not valid YAML or JSON"],
  ] as const) {
    await eventually(async () => (await said(name)) !== "");
    expect([name, await said(name)]).toEqual([name, expect.stringContaining(words)]);
  }
  for (const name of Object.keys(wrong)) expect(await said(name)).not.toBe("");
  const shown = await gateway.ok("GET", "/api/v1/discovery");
  expect(JSON.stringify(shown)).not.toContain(CANARY);
  expect(JSON.stringify(gateway.log)).not.toContain(CANARY);
  const names = [...Object.keys(wrong), "pipe.yaml", "folder.yaml", "dangling.yaml"];
  socket.stop(true);
  for (const name of [...names, "inside.yaml", "real.data", "border.yaml", "socket.yaml"])
    rmSync(at(name), { recursive: true, force: true });
  for (const name of ["secret.yaml", "zero", outside.split("/").at(-1), "shadow"])
    rmSync(at(`link-${name}.yaml`));
  rmSync(outside, { recursive: true });
  await eventually(async () => (await visit("inside.test")) === 404);
});

test("a file that others may write is refused until its mode and owner are right", async () => {
  put("open.yaml", application("open", "open.test"));
  await eventually(async () => (await visit("open.test")) === "here");
  const path = join(directory, "open.yaml");
  const says = (words: string) =>
    eventually(async () => (await site("open.yaml"))?.problems.join("").includes(words) === true);
  chmodSync(path, 0o664);
  await says("other users can write to it: remove the right with chmod go-w");
  chmodSync(path, 0o644);
  await eventually(async () => (await site("open.yaml"))?.served === true);
  if (process.getuid?.() === 0) {
    chownSync(path, 4711, 4711);
    await says("belongs to the user 4711");
    chownSync(path, 0, 0);
    await eventually(async () => (await site("open.yaml"))?.served === true);
  }
  chmodSync(directory, 0o777);
  await eventually(async () => {
    const sources = await gateway.ok("GET", "/api/v1/discovery");
    const { problem } = sources.find(({ name }: { name: string }) => name === "files");
    return problem?.includes("other users can write to it") === true;
  });
  // What was served stays.
  expect(await visit("open.test")).toBe("here");
  chmodSync(directory, 0o700);
  rmSync(path);
  await eventually(async () => (await visit("open.test")) === 404);
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
