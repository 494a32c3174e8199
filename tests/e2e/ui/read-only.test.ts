// A gateway with a configuration file, on every page: an admin sees all of it, and no button that the API rejects.
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resources } from "../../../src/ui/api/resources.ts";
import { pagePath } from "../../../src/ui/page-path.ts";
import { type PageEntry, pages } from "../../../src/ui/pages.ts";
import { fillGateway } from "../../support/filled-gateway.ts";
import { needs } from "../../support/needs.ts";
import {
  checkAccessible,
  isQuiet,
  startUi,
  type UiPage,
  type UiScene,
} from "../../support/ui-scene.ts";
import { listen, pressAll } from "../../support/ui-walk.ts";

const { afterAll, beforeAll, test } = needs("executable", "chromium");

const PASSPHRASE = "a passphrase for the walk";
const directory = mkdtempSync(join(tmpdir(), "sluice-read-only-"));
let scene: UiScene;

/** The configuration of a filled gateway, users included, as the file that another gateway starts with. */
async function writeDocument(file: string): Promise<void> {
  const source = await startUi({ workers: 1 });
  try {
    await fillGateway(source.gateway, 9);
    await source.createPeople();
    const path = "/api/v1/export?format=json&secrets=1";
    const secret = { ...(await source.cookieOf("admin")), "x-passphrase": PASSPHRASE };
    await Bun.write(file, await (await source.gateway.api("GET", path, undefined, secret)).text());
  } finally {
    await source.stop();
  }
}

beforeAll(async () => {
  const file = join(directory, "gateway.json");
  await writeDocument(file);
  scene = await startUi({
    workers: 1,
    args: ["--config", file],
    env: { SLUICE_PASSPHRASE: PASSPHRASE },
  });
});
afterAll(async () => {
  await scene?.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** The page, the form of one object, and the form that would create one. */
async function addressesOf({ page }: UiPage, { path }: PageEntry): Promise<string[]> {
  const resource = path === "acme-accounts" ? "acme/accounts" : path;
  if (!Object.hasOwn(resources, resource)) return [pagePath(path)];
  const id = (await page.evaluate(
    `fetch("/api/v1/${resource}").then((r) => r.json()).then((all) => all[0]?.id ?? null)`,
  )) as string | null;
  return [pagePath(path), ...(id === null ? [] : [pagePath(path, id)]), pagePath(path, "new")];
}

/** What is no part of the file, such as the root of the local CA, can be created. */
const OFFERS =
  /^(?!Create the root$)(Save|Create|Delete|Restore|Import|Clone|Enable|Disable|Upload|Revert)\b/;

async function walk(opened: UiPage, entries: readonly PageEntry[]): Promise<string[]> {
  const { page, complaints } = opened;
  const { refused } = listen(page, [401, 403, 409]);
  const wrong: string[] = [];
  for (const entry of entries)
    for (const address of await addressesOf(opened, entry)) {
      await page.goto(`${scene.gateway.admin}${address}`);
      await isQuiet(page);
      const offers = await page
        .locator("main")
        .getByRole("button", { name: OFFERS })
        .allInnerTexts();
      wrong.push(...offers.map((text) => `${address} offers ${text}`));
      const links = page.locator("main").getByRole("link", { name: /^(New|Create|Add) / });
      if ((await links.count()) > 0) wrong.push(`${address} leads to a form that creates`);
      await pressAll(page);
    }
  return [...wrong, ...refused, ...complaints];
}

// A quarter of the pages each.
test.each([0, 1, 2, 3])(
  "no button of a page is rejected because of the configuration file: part %p",
  async (part) => {
    const opened = await scene.openAs("admin");
    await opened.page.getByText("Read-only configuration").waitFor();
    // Sessions and passwords are no part of the file: another test covers what ends the user's own session.
    const walked = pages.filter(({ path }) => path !== "account");
    expect(
      await walk(
        opened,
        walked.filter((_, index) => index % 4 === part),
      ),
    ).toEqual([]);
    await opened.close();
  },
);

test("the page of imports says that they are rejected", async () => {
  const { page, close } = await scene.openAs("admin", { path: "/ui/export-import?tab=import" });
  await page.getByText("Imports are rejected").waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await close();
});
