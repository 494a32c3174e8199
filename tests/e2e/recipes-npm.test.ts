// Applications of npm, set up as docs/recipes.md describes. They are installed once into dist/applications.
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Application, npmPackage, startApplication } from "../support/application.ts";
import { needs } from "../support/needs.ts";
import { startNameProxy, visit, webSocket } from "../support/public-names.ts";
import {
  blocksOf,
  followRecipe,
  type RecipeGateway,
  startRecipeGateway,
} from "../support/recipes.ts";

// Versions for the Node of Debian 12.
const [nodeRed, verdaccio] = await Promise.all([
  npmPackage("node-red", "4.0.9"),
  npmPackage("verdaccio", "5.15.4"),
]);
const both = needs("executable", "curl");
const scratch = mkdtempSync(join(tmpdir(), "sluice-recipes-npm-"));
const stops: (() => unknown)[] = [() => rmSync(scratch, { recursive: true, force: true })];
let scene: RecipeGateway;

both.beforeAll(async () => {
  scene = await startRecipeGateway();
  stops.push(() => scene.gateway.stop());
}, 60_000);
both.afterAll(async () => {
  for (const stop of stops.toReversed()) await stop();
});

const get = (url: string, args: readonly string[] = []) => visit(scene.gateway, url, args);

async function serve(heading: string, upstream: string, starting: Promise<Application>) {
  const application = await starting;
  stops.push(() => application.stop());
  await followRecipe(heading, scene, { [upstream]: application.url });
  return application;
}

both.describe("Node-RED", () => {
  const { test, beforeAll } = needs("executable", "curl", "node", nodeRed);
  beforeAll(async () => {
    await serve(
      "Node-RED",
      "http://10.0.0.18:1880",
      startApplication({
        command: ({ port, directory }) => [
          ...["node", join(nodeRed.folder, "red.js"), "--userDir", directory],
          ...["--port", String(port), "-D", "uiHost=127.0.0.1", "-D", "telemetry.enabled=false"],
        ],
      }),
    );
  });
  const url = "https://flows.example.com";

  test("has its editor", async () => {
    const { status, text } = await get(`${url}/`);
    expect([status, text()]).toEqual([200, expect.stringContaining("<title>Node-RED")]);
  });

  test("tells the editor of a deployed flow over its WebSocket, and serves it", async () => {
    const socket = await webSocket(scene.gateway, "wss://flows.example.com/comms");
    const isDeployed = new Promise<void>((done) => {
      socket.onmessage = ({ data }) => {
        if (String(data).includes("runtime-deploy")) done();
      };
    });
    socket.send(JSON.stringify({ subscribe: "notification/#" }));
    const flows = [
      { id: "t", type: "tab", label: "Flow" },
      { id: "i", type: "http in", z: "t", url: "/hello", method: "get", wires: [["m"]] },
      { id: "m", type: "template", z: "t", template: "hello", field: "payload", wires: [["o"]] },
      { id: "o", type: "http response", z: "t", wires: [] },
    ];
    const deployed = await get(`${url}/flows`, [
      ...["-H", "Content-Type: application/json", "--data", JSON.stringify(flows)],
    ]);
    expect(deployed.status).toBe(204);
    await isDeployed;
    const { status, text } = await get(`${url}/hello`);
    expect([status, text()]).toEqual([200, "hello"]);
    socket.close();
  });
});

both.describe("Verdaccio", () => {
  const { test, beforeAll } = needs("executable", "curl", "node", verdaccio);
  const home = join(scratch, "project");
  let proxy: Awaited<ReturnType<typeof startNameProxy>>;
  beforeAll(async () => {
    await serve(
      "Verdaccio",
      "http://10.0.0.19:4873",
      startApplication({
        command: ({ port, directory }) => [
          ...["node", join(verdaccio.folder, "bin/verdaccio")],
          ...["--config", join(directory, "config.yaml"), "--listen", `127.0.0.1:${port}`],
        ],
        files: ({ directory }) => ({
          "config.yaml": [
            `storage: ${directory}/storage`,
            `auth: { htpasswd: { file: ${directory}/htpasswd } }`,
            "packages: { '**': { access: $all, publish: $authenticated } }",
            blocksOf("Verdaccio", "yaml"),
          ].join("\n"),
        }),
      }),
    );
    proxy = await startNameProxy(scene.gateway);
    stops.push(() => proxy.stop());
  });
  const registry = "https://npm.example.com/";

  /** Runs npm against the registry, by its public name. */
  async function npm(args: readonly string[], token = ""): Promise<string> {
    const config = [
      `registry=${registry}`,
      `https-proxy=${proxy.url}`,
      "strict-ssl=false",
      "audit=false",
      "fund=false",
      "update-notifier=false",
      ...(token === "" ? [] : [`//npm.example.com/:_authToken=${token}`]),
    ];
    await Bun.write(join(scratch, "npmrc"), `${config.join("\n")}\n`);
    const child = Bun.spawn(["npm", ...args, "--userconfig", join(scratch, "npmrc")], {
      cwd: home,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: scratch,
        npm_config_cache: join(scratch, "cache"),
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [out, errors] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    if ((await child.exited) !== 0) throw new Error(`npm ${args.join(" ")}: ${errors}`);
    return out;
  }

  test("a package of 12 MB is published and installed by npm, from its public address", async () => {
    const created = await get(`${registry}-/user/org.couchdb.user:you`, [
      ...["-X", "PUT", "-H", "Content-Type: application/json"],
      ...["--data", JSON.stringify({ name: "you", password: "a long password" })],
    ]);
    const { token } = JSON.parse(created.text()) as { token: string };
    const large = Buffer.alloc(12_000_000);
    for (let at = 0; at < large.length; at += 50_000)
      crypto.getRandomValues(large.subarray(at, at + 50_000));
    await Bun.write(
      join(home, "package.json"),
      JSON.stringify({ name: "recipe", version: "1.0.0" }),
    );
    await Bun.write(join(home, "large.bin"), large);
    await npm(["publish"], token);
    const { dist } = JSON.parse((await get(`${registry}recipe/1.0.0`)).text());
    expect(dist.tarball).toBe("https://npm.example.com/recipe/-/recipe-1.0.0.tgz");
    await npm(["install", "--prefix", join(scratch, "user"), "--ignore-scripts", "recipe@1.0.0"]);
    const installed = await Bun.file(join(scratch, "user/node_modules/recipe/large.bin")).bytes();
    expect(Buffer.from(installed).equals(large)).toBe(true);
  });
});
