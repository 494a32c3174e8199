// Plugins that were written for a directory, copied into src/plugins as they are: the gateway has them as built-in ones.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { PluginFiles } from "../../support/own-plugin.ts";
import { ScratchTree } from "../../support/scratch-tree.ts";

const examples = resolve(import.meta.dir, "../../../examples/plugins");
const files = readdirSync(examples).filter((file) => file.endsWith(".ts"));
const names = files.map((file) => file.slice(0, -3));
const textOf = (file: string) => readFileSync(join(examples, file), "utf8");

const tree = new ScratchTree();
const directory = new PluginFiles();
const origin = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: () => new Response("", { headers: { "content-type": "image/png" } }),
});
let gateway: Gateway;

beforeAll(async () => {
  for (const file of files) tree.add(`src/plugins/${file}`, textOf(file));
  const lines = names.map((name) => `  "${name}": () => import("./${name}.ts"),\n`);
  tree.edit("src/plugins/index.ts", [["\n};", `\n${lines.join("")}};`]]);
  directory.write("image-cache.ts", textOf("image-cache.ts"));
  gateway = await startGateway({
    main: join(tree.path, "src/main.ts"),
    args: ["--plugins-dir", directory.path],
  });
});

afterAll(async () => {
  await gateway?.stop();
  await origin.stop(true);
  directory[Symbol.dispose]();
  tree.remove();
});

// The compiler takes seconds of the processor.
test("they pass the type check beside the other plugins", () => tree.checkTypes());

test("they are listed as built-in ones, with orders of their own", async () => {
  const listed: { name: string; source: string; hash: string | null; order: number }[] =
    await gateway.ok("GET", "/api/v1/plugins/schemas");
  for (const name of names)
    expect(listed.find((plugin) => plugin.name === name)).toMatchObject({
      source: "built_in",
      hash: null,
    });
  expect(new Set(listed.map(({ order }) => order)).size).toBe(listed.length);
});

test("the file of a directory cannot replace one", async () => {
  const { plugins } = await gateway.ok("GET", "/api/v1/plugins/directory");
  expect(plugins).toMatchObject([{ name: "image-cache", state: "refused", hash: null }]);
  expect(plugins[0].problem.message).toContain('the gateway has a plugin "image-cache" already');
});

test("they run", async () => {
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "web", paths: ["/"] });
  await gateway.ok("POST", "/api/v1/plugins", {
    name: "image-cache",
    route_id: "all",
    config: { max_age: 60 },
  });
  const get = async (path: string) => {
    const { headers } = await fetch(`http://127.0.0.1:${gateway.httpPort}${path}`);
    return headers.get("cache-control");
  };
  expect(await get("/logo")).toBe("public, max-age=60");
  expect(await get("/app.3f9ac2d1.js")).toBe("public, max-age=31536000, immutable");
});

test("the bundler of the executable finds the kit", async () => {
  const output = join(tree.path, "bundled.js");
  const entry = "src/plugins/image-cache.ts";
  tree.run(process.execPath, "build", entry, "--target=bun", `--outfile=${output}`);
  const bundled: { default: { name: string } } = await import(output);
  expect(bundled.default.name).toBe("image-cache");
});
