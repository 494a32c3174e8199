// A collection that was added to a copy of the sources has a list and a form in the browser.
import { afterAll, expect } from "bun:test";
import { join } from "node:path";
import { addContacts } from "../../support/added-collection.ts";
import { needs } from "../../support/needs.ts";
import { ScratchTree } from "../../support/scratch-tree.ts";
import { startUi, type UiScene } from "../../support/ui-scene.ts";

const on = needs("chromium");
const tree = new ScratchTree();
let scene: UiScene;

on.beforeAll(async () => {
  addContacts(tree);
  tree.run(process.execPath, "scripts/build-ui.ts");
  scene = await startUi({ main: join(tree.path, "src/main.ts") });
});

afterAll(async () => {
  await scene?.stop();
  tree.remove();
});

on.test(
  "a new collection is listed, created and edited in forms that follow from its definition",
  async () => {
    const { gateway } = scene;
    await scene.createPeople();
    const { page, complaints } = await scene.openAs("admin", { path: "/ui/contacts" });
    await page.getByText("No contacts yet").waitFor();
    await page.getByRole("link", { name: "New contact" }).first().click();
    await page.getByRole("textbox", { name: "Name" }).fill("Ann");
    await page.getByRole("textbox", { name: "Phone" }).fill("030 1");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "Ann" }).waitFor();
    await page.goto(`${gateway.admin}/ui/contacts`);
    await page.getByText("030 1").waitFor();
    expect(complaints).toEqual([]);
  },
);
