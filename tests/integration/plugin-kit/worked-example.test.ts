// The example of docs/writing-a-plugin.md, taken from the page, does what the page says.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AnyPlugin } from "../../../src/pdk/definition.ts";
import { type PluginScene, pluginScene } from "../../support/plugin-scene.ts";

const root = join(import.meta.dir, "../../..");
const folder = mkdtempSync(join(tmpdir(), "sluice-example-"));
let scene: PluginScene;

beforeAll(async () => {
  const page = readFileSync(join(root, "docs/writing-a-plugin.md"), "utf8");
  const source = /```ts\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
  const path = join(folder, "example.ts");
  writeFileSync(
    path,
    source
      .replaceAll('"../pdk/', `"${root}/src/pdk/`)
      .replaceAll('"@sinclair/typebox"', `"${root}/node_modules/@sinclair/typebox"`),
  );
  const plugin = ((await import(path)) as { default: AnyPlugin }).default;
  scene = await pluginScene({
    ownPlugins: [plugin],
    plugins: [{ name: plugin.name, config: { ...plugin.example, warn_after: 2 } }],
  });
});
afterAll(async () => {
  await scene.stop();
  rmSync(folder, { recursive: true });
});

describe("the example", () => {
  test("announces the end of the API", async () => {
    const { status, headers } = await scene.get("/v2/items");
    expect(status).toBe(200);
    expect(headers.get("sunset")).toBe("Sun, 31 Jan 2027 00:00:00 GMT");
  });

  test("rejects retired versions, and the response does not pass the plugin itself", async () => {
    const { status, headers, seen } = await scene.get("/v1/items");
    expect(status).toBe(410);
    expect(headers.get("sunset")).toBeNull();
    expect(seen).toBeNull();
  });

  test("logs clients with many requests", async () => {
    await scene.get("/v2/items");
    expect(scene.plane.log.map(({ message }) => message)).toContain("an old API is used heavily");
  });
});
