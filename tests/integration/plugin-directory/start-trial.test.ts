// A stored plugin that cannot be created at the start: its instance rejects, and everything else is served.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cleanupsOf } from "../../support/cleanups.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { PluginFiles, pluginSource } from "../../support/own-plugin.ts";
import { eventually } from "../../support/poll.ts";

const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") });
const cleanups = cleanupsOf(afterEach);

/** What a changed file does for the instances with such words. */
const creating = (statements: string) => pluginSource("own", { create: statements });
const looping = `if (own.word === "a") for (;;) {}`;

/** A gateway with one worker, a route `/a` and `/b` with an instance each, and `/`; and its plugin. */
async function startSite() {
  const files = new PluginFiles();
  files.write("own.ts", pluginSource("own"));
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-trial-"));
  cleanups.push(() => rmSync(dataDir, { recursive: true }));
  const gateway = await startGateway({
    ...{ workers: 1, dataDir, deadlineMs: 40_000 },
    args: ["--plugins-dir", files.path],
  });
  cleanups.push(() => files[Symbol.dispose]());
  cleanups.push(() => gateway.stop());
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "web", paths: ["/"] });
  for (const word of ["a", "b"]) {
    await gateway.ok("POST", "/api/v1/routes", {
      ...{ name: word, service_id: "web", paths: [`/${word}`] },
    });
    await gateway.ok("POST", "/api/v1/plugins", {
      ...{ name: "own", route_id: word, config: { word } },
    });
  }
  return { gateway, files };
}

async function statuses(gateway: Gateway): Promise<number[]> {
  const url = `http://127.0.0.1:${gateway.httpPort}`;
  const responses = await Promise.all(["/", "/a", "/b"].map((path) => fetch(url + path)));
  return responses.map(({ status }) => status);
}

const own = async (gateway: Gateway) =>
  (await gateway.ok("GET", "/api/v1/plugins/directory")).plugins[0];

test.each([
  { way: "loops", create: looping, why: "create has not finished after" },
  {
    way: "ends its thread",
    create: `if (own.word === "a") process.exit(0);`,
    why: "create has ended its thread",
  },
  { way: "throws", create: `if (own.word === "a") throw new Error("not a");`, why: "not a" },
])("an instance whose create $way at the start rejects until the file is mended", async (row) => {
  const { gateway, files } = await startSite();
  expect(await statuses(gateway)).toEqual([200, 200, 200]);
  await gateway.stop();
  files.write("own.ts", creating(row.create));
  const from = gateway.logSize;
  await gateway.start();
  expect(await statuses(gateway)).toEqual([200, 503, 200]);
  const { id } = (await gateway.ok("GET", "/api/v1/plugins")).find(
    ({ config }: { config: { word: string } }) => config.word === "a",
  );
  const { state, problem } = await own(gateway);
  expect(state).toBe("loaded");
  expect(problem).toMatchObject({ phase: "create", file: "own.ts" });
  expect(problem.message).toContain(row.why);
  expect(problem.message).toContain(id);
  const log = gateway.logBetween(from, gateway.logSize);
  expect(log).toContain(row.why);
  expect(log).not.toContain("worker stopped");
  // Changes that do not concern it go on.
  await gateway.ok("PATCH", "/api/v1/routes/all", { paths: ["/", "/more"] });
  expect(await statuses(gateway)).toEqual([200, 503, 200]);
  // A mended file that is changed is served, and nothing is left of the problem.
  files.write("own.ts", pluginSource("own", { word: "mended" }));
  await gateway.ok("POST", "/api/v1/plugins/directory");
  expect(await own(gateway)).toMatchObject({ state: "loaded", problem: null });
  expect(await statuses(gateway)).toEqual([200, 200, 200]);
});

test("a changed configuration serves the instance again as well", async () => {
  const { gateway, files } = await startSite();
  await gateway.stop();
  files.write("own.ts", creating(looping));
  await gateway.start();
  expect(await statuses(gateway)).toEqual([200, 503, 200]);
  const { id } = (await gateway.ok("GET", "/api/v1/plugins")).find(
    ({ config }: { config: { word: string } }) => config.word === "a",
  );
  const same = await gateway.api("PATCH", `/api/v1/plugins/${id}`, { priority: 7 });
  expect(same.status).toBe(400);
  await gateway.ok("PATCH", `/api/v1/plugins/${id}`, { config: { word: "c" } });
  expect(await statuses(gateway)).toEqual([200, 200, 200]);
  await eventually(async () => (await own(gateway)).problem === null);
});
