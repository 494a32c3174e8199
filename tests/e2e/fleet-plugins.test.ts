// Plugins of a directory in a fleet: each node runs its own files, and a node without a plugin says which one it lacks.
import { expect } from "bun:test";
import { TestFleet } from "../support/fleet.ts";
import type { Gateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { PluginFiles, pluginSource } from "../support/own-plugin.ts";
import { eventually } from "../support/poll.ts";

const { test } = needs("executable", "postgres");

const hashOn = async (node: Gateway) =>
  (await node.ok("GET", "/api/v1/plugins/directory")).plugins[0]?.hash;

/** What the list of nodes says of n1, n2, … */
const pluginsOn = async (node: Gateway) =>
  (await node.ok("GET", "/api/v1/nodes")).map(
    ({ plugins, warnings }: { plugins: unknown; warnings: unknown }) => ({ plugins, warnings }),
  );

test("a node that lacks a plugin of the configuration is refused with its name, and goes on with the file", async () => {
  using one = new PluginFiles();
  using two = new PluginFiles();
  one.write("own.ts", pluginSource("own"));
  const directories: Readonly<Record<string, string>> = { n1: one.path, n2: two.path };
  const fleet = await TestFleet.start(2, {
    node: (name) => ({ name, args: ["--plugins-dir", directories[name] ?? ""] }),
  });
  try {
    const [first, second] = fleet.nodes as [Gateway, Gateway];
    await first.ok("POST", "/api/v1/plugins", { name: "own", config: {} });
    const refused = await eventually(async () => {
      const node = await first.ok("GET", "/api/v1/nodes/n2");
      return node.state === "refused" ? node : null;
    });
    expect(refused.error).toContain('there is no plugin "own"');
    expect(await pluginsOn(first)).toEqual([
      { plugins: [{ name: "own", hash: await hashOn(first) }], warnings: [] },
      { plugins: [], warnings: ['lacks plugin "own" of n1'] },
    ]);
    two.write("own.ts", pluginSource("own", { word: "two" }));
    await eventually(async () => (await first.ok("GET", "/api/v1/nodes/n2")).state === "serving");
    expect(await second.ok("GET", "/api/v1/plugins")).toHaveLength(1);
    expect(await hashOn(second)).toMatch(/^[0-9a-f]{64}$/);
    expect(await hashOn(second)).not.toBe(await hashOn(first));
    const differing = [
      {
        plugins: [{ name: "own", hash: await hashOn(first) }],
        warnings: ['plugin "own" has other code than on n2'],
      },
      {
        plugins: [{ name: "own", hash: await hashOn(second) }],
        warnings: ['plugin "own" has other code than on n1'],
      },
    ];
    for (const node of fleet.nodes)
      await eventually(async () => Bun.deepEquals(await pluginsOn(node), differing));
    // A reload on one node changes nothing but the time of the instance on the others.
    one.write("own.ts", pluginSource("own", { word: "newer" }));
    const { plugins } = await first.ok("POST", "/api/v1/plugins/directory");
    expect(plugins[0]).toMatchObject({ state: "loaded", reloads: 1, problem: null });
    await eventually(async () => (await first.ok("GET", "/api/v1/nodes/n2")).state === "serving");
    // With the same files nothing is left to say.
    two.write("own.ts", pluginSource("own", { word: "newer" }));
    const same = { plugins: [{ name: "own", hash: plugins[0].hash }], warnings: [] };
    for (const node of fleet.nodes)
      await eventually(async () => Bun.deepEquals(await pluginsOn(node), [same, same]));
    expect(await first.ok("GET", "/api/v1/nodes/n2")).toMatchObject(same);
  } finally {
    await fleet.stop();
  }
});

test("a setting for all nodes loads the files of each", async () => {
  using files = new PluginFiles();
  files.write("own.ts", pluginSource("own"));
  const fleet = await TestFleet.start(2);
  try {
    const [first, second] = fleet.nodes as [Gateway, Gateway];
    await first.ok("PATCH", "/api/v1/settings", { plugins_directory: files.path });
    await eventually(async () => typeof (await hashOn(first)) === "string");
    await first.ok("POST", "/api/v1/plugins", { name: "own", config: {} });
    await eventually(async () => (await second.ok("GET", "/api/v1/plugins")).length === 1);
    await eventually(async () => (await hashOn(second)) === (await hashOn(first)));
    await eventually(async () => (await first.ok("GET", "/api/v1/nodes/n2")).state === "serving");
  } finally {
    await fleet.stop();
  }
});
