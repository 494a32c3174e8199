// Plugins of a directory beside the built-in ones: forms, validation, errors with file and line, and replacement by a change.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { PluginFiles, pluginSource } from "../../support/own-plugin.ts";
import { eventually } from "../../support/poll.ts";
import { SteadyLoad } from "../../support/steady-load.ts";

const files = new PluginFiles();
const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") });
let gateway: Gateway;
let url = "";

const get = (path: string) => fetch(`${url}${path}`);
const word = async () => (await get("/")).headers.get("x-own");
/** The state of one plugin, after the gateway has looked at the files. */
const looked = async (name: string) => {
  const { plugins } = await gateway.ok("POST", "/api/v1/plugins/directory");
  return plugins.find((plugin: { name: string }) => plugin.name === name);
};

beforeAll(async () => {
  files.write("own.ts", pluginSource("own"));
  files.write("broken.ts", 'import "@sluice/plugin";\nexport default {\n  name: ,\n};\n');
  files.write("cors.ts", pluginSource("cors"));
  files.write("wrong.ts", pluginSource("other"));
  files.write("picture.png", "");
  files.write("open/x.ts", "export const x = 1;");
  chmodSync(join(files.path, "open"), 0o777);
  files.write("own.test.ts", "throw new Error('not a plugin');");
  gateway = await startGateway({ args: ["--plugins-dir", files.path] });
  url = `http://127.0.0.1:${gateway.httpPort}`;
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  const { id } = await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: id, paths: ["/"] });
  await gateway.ok("POST", "/api/v1/plugins", { name: "own", label: "mine", config: {} });
});

afterAll(async () => {
  await gateway.stop();
  await origin.stop(true);
  files[Symbol.dispose]();
});

describe("a plugin of the directory", () => {
  test("is described as a built-in one, with the hash of its code", async () => {
    const shown = await gateway.ok("GET", "/api/v1/plugins/schemas/own");
    expect(shown).toMatchObject({ source: "directory", defaults: { word: "none" }, order: 500 });
    expect(shown.schema.properties.word).toMatchObject({ type: "string", maxLength: 8 });
    expect(shown.hash).toMatch(/^[0-9a-f]{64}$/);
    const builtIn = await gateway.ok("GET", "/api/v1/plugins/schemas/cors");
    expect(builtIn).toMatchObject({ source: "built_in", hash: null });
  });

  test("runs", async () => {
    expect(await word()).toBe("one none");
    const refused = await get("/refused");
    expect(refused.status).toBe(403);
    expect(await refused.text()).toContain("refused by a file");
  });

  test.each([
    { config: { word: 7 }, error: "config.word: must be a string" },
    { config: { word: "much too long" }, error: "config.word: must have at most 8 characters" },
    { config: { word: "bad" }, error: "config.word: must not be bad" },
    { config: { nonsense: 1 }, error: "config.nonsense: is not a known field" },
  ])("refuses $config with the field", async ({ config, error }) => {
    const { plugins } = await gateway.ok("GET", "/api/v1/plugins/directory");
    expect(plugins.find(({ name }: { name: string }) => name === "own").problem).toBeNull();
    const scope = { route_id: (await gateway.ok("GET", "/api/v1/routes"))[0].id };
    const response = await gateway.api("POST", "/api/v1/plugins", {
      name: "own",
      ...scope,
      config,
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error });
  });

  test("keeps its secrets as a built-in one does", async () => {
    const [{ id }] = await gateway.ok("GET", "/api/v1/plugins");
    await gateway.ok("PATCH", `/api/v1/plugins/${id}`, { config: { key: "dont-show-me" } });
    const exported = await (await gateway.api("GET", "/api/v1/export")).text();
    const shown = JSON.stringify(await gateway.ok("GET", `/api/v1/plugins/${id}`));
    expect(shown + exported + gateway.stderr).not.toContain("dont-show-me");
  });
});

test.each([
  { name: "broken", phase: "bundle", file: "broken.ts", line: 3, message: "Unexpected ," },
  { name: "wrong", phase: "definition", file: "wrong.ts", line: null, message: '"wrong"' },
  { name: "cors", phase: "definition", file: "cors.ts", line: null, message: "already" },
])("$name is refused at the start, and the others run", async (wanted) => {
  const { plugins } = await gateway.ok("GET", "/api/v1/plugins/directory");
  const { state, hash, problem } = plugins.find(
    ({ name }: { name: string }) => name === wanted.name,
  );
  expect({ state, hash }).toEqual({ state: "refused", hash: null });
  expect(problem).toMatchObject({ phase: wanted.phase, file: wanted.file, line: wanted.line });
  expect(problem.message).toContain(wanted.message);
  const { warnings } = await gateway.ok("GET", "/api/v1/admin/status");
  expect(warnings.join()).toContain("of the plugins directory not served: see Plugins");
});

describe("a changed file", () => {
  test("is live before the reply, without a failed request, and closes no connection", async () => {
    const load = new SteadyLoad({
      port: gateway.httpPort,
      path: "/",
      expected: "ok",
      fresh: 2,
      kept: 2,
    });
    const before = (await gateway.ok("GET", "/api/v1/plugins/directory")).reloads;
    for (let round = 1; round <= 5; round++) {
      files.write("own.ts", pluginSource("own", { word: `round${round}` }));
      expect((await looked("own")).problem).toBeNull();
      // All workers: connections are distributed over them.
      for (let i = 0; i < 10; i++) {
        const response = await fetch(url, { headers: { connection: "close" } });
        expect(response.headers.get("x-own")).toBe(`round${round} none`);
      }
    }
    await eventually(() => load.answered > 100);
    const { failures, askedAgain, sentElsewhere } = await load.stop();
    expect({ failures, askedAgain, sentElsewhere }).toEqual({
      failures: [],
      askedAgain: 0,
      sentElsewhere: 0,
    });
    const { reloads } = await gateway.ok("GET", "/api/v1/plugins/directory");
    expect(reloads).toBe(before + 5);
  });

  test("is found without a request", async () => {
    files.write("own.ts", pluginSource("own", { word: "found" }));
    await eventually(async () => (await word()) === "found none");
  });

  test("is in the history and the audit log with its hash", async () => {
    const { hash } = await looked("own");
    const revisions = await gateway.ok("GET", "/api/v1/revisions");
    expect(JSON.stringify(revisions)).toContain(`load plugin \\"own\\" (sha256 ${hash})`);
    const audit = await gateway.ok("GET", "/api/v1/audit?kind=plugin_file");
    expect(JSON.stringify(audit)).toContain(hash);
  });

  test.each([
    {
      why: "it does not compile",
      source: { access: "const x = ;" },
      problem: { phase: "bundle", file: "own.ts", line: 28 },
      says: "Unexpected ;",
    },
    {
      why: "it imports what no text can hold",
      source: { head: 'import image from "./picture.png"; if (image === "x") throw image;' },
      problem: { phase: "read", file: "picture.png" },
      says: "only code, JSON, YAML, TOML and text can be imported",
    },
    {
      why: "it imports what others can write to",
      source: { head: 'import { x } from "./open/x.ts"; void x;' },
      problem: { phase: "read", file: "open/x.ts" },
      says: "open: other users can write to it",
    },
    {
      why: "it throws at the top",
      source: { head: 'const a = 1;\nif (a) throw new Error("at the top");' },
      problem: { phase: "import", file: "own.ts", line: 2 },
      says: "at the top",
    },
    {
      why: "an import is missing",
      source: { head: 'import { x } from "./nothing.ts"; x();' },
      problem: { phase: "bundle", file: "own.ts", line: 1 },
      says: "./nothing.ts",
    },
    {
      why: "no worker can create an instance",
      source: { create: 'throw new Error("not here");' },
      problem: { phase: "serve", file: "own.ts" },
      says: 'plugin own "mine": create: not here (own.ts:23:',
    },
    {
      why: "an instance does not fit",
      source: { members: 'check: () => [{ path: "word", message: "is never right" }],' },
      problem: { phase: "serve", file: "own.ts" },
      says: 'plugin "mine": config.word: is never right',
    },
    {
      why: "it wants what only the main thread could run",
      source: { members: "metrics: []," },
      problem: { phase: "definition", file: "own.ts" },
      says: "metrics: a plugin from a directory has no metrics of its own",
    },
  ])("is refused when $why, and the old code goes on", async ({ source, problem, says }) => {
    files.write("own.ts", pluginSource("own", { word: "good" }));
    const { hash } = await looked("own");
    files.write("own.ts", pluginSource("own", { word: "never", ...source }));
    const after = await looked("own");
    expect(after).toMatchObject({ hash, state: "loaded", problem });
    expect(after.problem.message).toContain(says);
    expect(await word()).toBe("good none");
    expect(await (await get("/refused")).text()).toContain("refused by a file");
  });
});

test("an error in a handler is logged with phase, file and line, and on_error decides", async () => {
  files.write("own.ts", pluginSource("own", { access: 'throw new Error("no luck");' }));
  await looked("own");
  expect((await get("/")).status).toBe(500);
  const [{ id }] = await gateway.ok("GET", "/api/v1/plugins");
  await gateway.ok("PATCH", `/api/v1/plugins/${id}`, { on_error: "open" });
  expect((await get("/")).status).toBe(200);
  await eventually(() => gateway.stderr.includes("access: no luck (own.ts:"));
});

test("a folder with an index is one plugin, and a changed file in it reloads it", async () => {
  files.write("folder/word.ts", 'export const word: string = "first";\n');
  files.write(
    "folder/index.ts",
    pluginSource("folder", { head: 'import { word } from "./word.ts";', word: '" + word + "' }),
  );
  expect(await looked("folder")).toMatchObject({ state: "loaded", problem: null });
  const { id } = await gateway.ok("POST", "/api/v1/plugins", { name: "folder", config: {} });
  expect(await word()).toBe("first none");
  files.write("folder/word.ts", 'export const word: string = "second";\n');
  await looked("folder");
  expect(await word()).toBe("second none");
  await gateway.ok("DELETE", `/api/v1/plugins/${id}`);
});

test("a plugin that was not there at the start has metrics", async () => {
  files.write("late.ts", pluginSource("late"));
  await looked("late");
  const { id } = await gateway.ok("POST", "/api/v1/plugins", { name: "late", config: {} });
  await get("/refused");
  await eventually(async () =>
    /sluice_plugin_decisions_total\{plugin="late",decision="reject"\} 1/.test(
      await (await gateway.api("GET", "/metrics")).text(),
    ),
  );
  await gateway.ok("DELETE", `/api/v1/plugins/${id}`);
});

test("a removed file serves on while an instance uses it, and is gone after that", async () => {
  files.write("brief.ts", pluginSource("brief", { word: "brief" }));
  await looked("brief");
  const { id } = await gateway.ok("POST", "/api/v1/plugins", { name: "brief", config: {} });
  files.remove("brief.ts");
  const { state, problem } = await looked("brief");
  expect(state).toBe("removed");
  expect(problem.message).toContain("the file is gone");
  expect(await word()).toBe("brief none");
  await gateway.ok("DELETE", `/api/v1/plugins/${id}`);
  await eventually(async () => (await looked("brief")) === undefined);
  expect((await gateway.api("GET", "/api/v1/plugins/schemas/brief")).status).toBe(404);
});

test("viewers see which plugin fails, and not the message of its error", async () => {
  files.write("own.ts", pluginSource("own", { head: 'throw new Error("for few eyes");' }));
  expect((await looked("own")).problem.message).toContain("for few eyes");
  // The first user ends the access without authentication: this test is the last one.
  const { token: asViewer } = await gateway.ok("POST", "/api/v1/tokens", {
    name: "eyes",
    role: "viewer",
  });
  await gateway.ok("POST", "/api/v1/users", {
    name: "Admin",
    email: "admin@example.com",
    password: "correct horse battery staple",
    role: "admin",
  });
  const read = (method: string) =>
    gateway.api(method, "/api/v1/plugins/directory", undefined, {
      authorization: `Bearer ${asViewer}`,
    });
  const text = await (await read("GET")).text();
  expect(text).toContain('"state":"loaded"');
  expect(text).not.toContain("for few eyes");
  expect((await read("POST")).status).toBe(403);
  expect((await gateway.api("GET", "/api/v1/plugins/directory")).status).toBe(401);
});
