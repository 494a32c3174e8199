// Plugins of a directory in a browser: a form from the file's schema, and why a changed file is not served.
import { expect } from "bun:test";
import { needs } from "../../support/needs.ts";
import { PluginFiles, pluginSource } from "../../support/own-plugin.ts";
import {
  checkAccessible,
  isQuiet,
  screenshots,
  startUi,
  type UiScene,
} from "../../support/ui-scene.ts";

const { afterAll, beforeAll, test } = needs("executable", "chromium");

const files = new PluginFiles();
let scene: UiScene;

beforeAll(async () => {
  files.write("own.ts", pluginSource("own"));
  scene = await startUi({ workers: 1, args: ["--plugins-dir", files.path] });
  await scene.createPeople();
});
afterAll(async () => {
  await scene?.stop();
  files[Symbol.dispose]();
});

test("a plugin of the directory is configured like others, and its file has a state", async () => {
  const { page, complaints } = await scene.openAs("admin", {
    expects: [400],
    path: "/ui/plugins/new?plugin=own",
  });
  await page.getByRole("heading", { name: "New own" }).waitFor();
  const word = page.locator('[data-field="config.word"] input, [data-field="word"] input').first();
  await word.fill("bad");
  await page
    .getByRole("button", { name: /^(Create|Add|Save)/ })
    .first()
    .click();
  await page.getByText("must not be bad").first().waitFor();
  await word.fill("good");
  await page
    .getByRole("button", { name: /^(Create|Add|Save)/ })
    .first()
    .click();
  await page.getByText("Plugin own").first().waitFor();
  await page.goto(`${scene.gateway.admin}/ui/plugins`);
  const section = page.getByRole("region", { name: "Plugins directory" });
  await section.getByText("loaded", { exact: true }).waitFor();
  files.write("own.ts", 'import "@sluice/plugin";\nexport default {\n  name: ,\n};\n');
  await section.getByRole("button", { name: "Load changed files" }).click();
  await section.getByText("own.ts:3: bundle: Unexpected ,").waitFor();
  await isQuiet(page);
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "plugin-directory");
  expect(complaints).toEqual([]);
});
