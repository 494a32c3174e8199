// The page of the local CA: creates and replaces the root as an admin, explains how devices trust it to everyone else.
import { expect } from "bun:test";
import { checkAccessible, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

beforeAll(async () => {
  await scene.createPeople();
});

test("an admin creates and replaces the root, and a viewer only downloads it", async () => {
  const admin = await scene.openAs("admin", { path: "/ui/certificates" });
  const { page } = admin;
  await page.getByRole("main").getByRole("link", { name: "local CA" }).click();
  await page.getByText("There is no root yet").waitFor();
  await page.getByRole("button", { name: "Create the root" }).click();
  await page.getByRole("region", { name: "Trust" }).waitFor();
  const read = async () =>
    await (await fetch(`${scene.gateway.admin}/api/v1/local-ca/root.pem`)).text();
  const first = await read();
  await page.getByText("sudo sluice trust --url").waitFor();
  await page.getByText("Certificate Trust Settings").waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByRole("button", { name: "Replace the root" }).click();
  await page.getByRole("button", { name: "Replace", exact: true }).click();
  await page.getByText("Root replaced").waitFor();
  expect(await read()).not.toBe(first);
  expect(admin.complaints).toEqual([]);

  const viewer = await scene.openAs("viewer", { path: "/ui/local-ca" });
  await viewer.page.getByRole("region", { name: "Trust" }).waitFor();
  expect(await viewer.page.getByRole("button", { name: "Replace the root" }).count()).toBe(0);
  const download = viewer.page.waitForEvent("download");
  await viewer.page.getByRole("link", { name: "Certificate (DER)" }).click();
  expect((await download).suggestedFilename()).toBe("sluice-local-ca.crt");
  expect(viewer.complaints).toEqual([]);
});
