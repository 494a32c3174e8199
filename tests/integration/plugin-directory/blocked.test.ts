// A plugin of a directory that blocks or exhausts its worker: the gateway names it, goes on, and disables it the second time.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { PluginFiles, pluginSource } from "../../support/own-plugin.ts";
import { eventually } from "../../support/poll.ts";

const files = new PluginFiles();
const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") });
let gateway: Gateway;
let url = "";

const own = async () => (await gateway.ok("GET", "/api/v1/plugins/directory")).plugins[0];
const isReady = async () => (await gateway.api("GET", "/readyz")).status === 200;

const hanging = `
  if (seen.path === "/hang") for (;;) {}
  if (seen.path === "/float") void Promise.reject(new Error("nothing waits for me"));
  if (seen.path === "/never") return new Promise<undefined>(() => {});
`;

beforeAll(async () => {
  files.write(
    "own.ts",
    pluginSource("own", { access: hanging, members: "handlerTimeoutMs: 200," }),
  );
  gateway = await startGateway({ args: ["--plugins-dir", files.path] });
  url = `http://127.0.0.1:${gateway.httpPort}`;
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  const { id } = await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: id, paths: ["/"] });
  await gateway.ok("POST", "/api/v1/plugins", { name: "own", config: {} });
});

afterAll(async () => {
  await gateway.stop();
  await origin.stop(true);
  files[Symbol.dispose]();
});

test("a promise that never settles fails after handlerTimeoutMs", async () => {
  const response = await fetch(`${url}/never`);
  expect(response.status).toBe(500);
  await eventually(() => gateway.stderr.includes("access: no result within 200 ms"));
});

test("a rejection that nothing waits for is logged with its line, and ends no worker", async () => {
  expect((await fetch(`${url}/float`)).status).toBe(200);
  await eventually(() => gateway.stderr.includes("nothing waits for me (own.ts:"));
  expect(gateway.stderr).not.toContain("worker stopped");
});

test("a plugin that blocks while it is prepared is refused at the cost of no worker", async () => {
  const { hash } = await own();
  const text = pluginSource("own", { create: "for (;;) {}" });
  files.write("own.ts", text);
  const { plugins } = await gateway.ok("POST", "/api/v1/plugins/directory");
  expect(plugins[0]).toMatchObject({ hash, blocked: 0, problem: { phase: "create" } });
  expect(gateway.log.filter(({ message }) => message.startsWith("worker stopped"))).toHaveLength(0);
  files.write(
    "own.ts",
    pluginSource("own", { access: hanging, members: "handlerTimeoutMs: 200," }),
  );
  await eventually(async () => (await own()).problem === null);
  await eventually(isReady);
});

test("a plugin that blocks a worker is named, and disabled the second time", async () => {
  for (const blocked of [1, 2]) {
    fetch(`${url}/hang`).catch(() => undefined);
    await eventually(async () => (await own()).blocked === blocked);
    await eventually(isReady);
  }
  const disabled = await eventually(async () => {
    const plugin = await own();
    return plugin.state === "disabled" ? plugin : null;
  });
  expect(disabled.problem.message).toContain("it has blocked a worker 2 times");
  expect(gateway.stderr).toContain('shows no sign of life in plugin \\"own\\"');
  // As on_error says: closed.
  await eventually(async () => (await fetch(url)).status === 500);
  const { warnings } = await gateway.ok("GET", "/api/v1/admin/status");
  expect(warnings.join()).toContain("of the plugins directory not served");
  expect(JSON.stringify(await gateway.ok("GET", "/api/v1/audit?action=disable"))).toContain(
    disabled.hash,
  );
});

test("a changed file enables it again", async () => {
  files.write("own.ts", pluginSource("own", { word: "better" }));
  const { plugins } = await gateway.ok("POST", "/api/v1/plugins/directory");
  expect(plugins[0]).toMatchObject({ state: "loaded", blocked: 0, problem: null });
  expect((await fetch(url)).headers.get("x-own")).toBe("better none");
});

test("a plugin that fails or blocks in a transform of a body is named", async () => {
  const transform = `if (seen.length >= 0) return {
    access() {},
    response(context, response) {
      response.transformBody({ push(chunk) { if (context.path === "/body") for (;;) {} if (context.path === "/broken") throw new Error("not this body"); return chunk; }, end: () => null });
    },
  };`;
  files.write(
    "own.ts",
    pluginSource("own", { head: "const seen: string[] = [];", create: transform }),
  );
  await gateway.ok("POST", "/api/v1/plugins/directory");
  expect(await (await fetch(url)).text()).toBe("ok");
  await fetch(`${url}/broken`).catch(() => undefined);
  await eventually(() => gateway.stderr.includes("response: not this body (own.ts:"));
  fetch(`${url}/body`).catch(() => undefined);
  await eventually(async () => (await own()).blocked === 1);
  await eventually(isReady);
});
