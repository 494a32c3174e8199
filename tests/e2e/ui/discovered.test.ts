// Containers in the browser: turned on in the settings, found, marked, and read-only.
import { expect } from "bun:test";
import { DockerApi } from "../../support/docker-api.ts";
import { checkAccessible, isQuiet, screenshots, useUi } from "../../support/ui-scene.ts";

const { afterAll, beforeAll, scene, test } = useUi();

let docker: DockerApi;

beforeAll(async () => {
  docker = new DockerApi();
  await scene.createPeople();
});
afterAll(async () => {
  await docker?.stop();
});

test("an admin turns discovery on; containers are served, marked and read-only, and problems are sentences", async () => {
  const { page, complaints, close } = await scene.openAs("admin", { path: "/ui/discovered" });
  await page.getByText("Discovery is off").waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByRole("link", { name: "Turn it on in the gateway settings" }).click();
  await page.getByRole("button", { name: /^Discovery/ }).click();
  await page.getByRole("textbox", { name: "Endpoint" }).fill(docker.endpoint);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText(/saved/).first().waitFor();

  const labels = { "sluice.enable": "true" };
  docker.run(
    { name: "wiki", ports: [3000], labels: { ...labels, "sluice.host": "wiki.test" } },
    { name: "odd", ports: [1, 2], labels: { ...labels, "sluice.host": "odd.test" } },
  );
  await page.goto(`${scene.gateway.admin}/ui/discovered`);
  await page.getByText("wiki.test").waitFor();
  await page.getByText(/it exposes the ports 1, 2/).waitFor();
  await page.getByText("2 containers, 1 served").waitFor();
  await isQuiet(page);
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "discovered");

  await page.getByRole("link", { name: "application wiki" }).click();
  await page.getByText("Managed by docker").waitFor();
  expect(await page.getByRole("button", { name: /^(Save|Delete)$/ }).count()).toBe(0);
  expect(await page.getByRole("textbox", { name: "Name", exact: true }).isDisabled()).toBeTrue();
  await page.goto(`${scene.gateway.admin}/ui/routes`);
  const row = page.getByRole("row").filter({ hasText: "wiki" });
  await row.getByText("docker", { exact: true }).waitFor();
  expect(await row.getByRole("switch").count()).toBe(0);
  expect(complaints).toEqual([]);
  await close();
});
