// The first minutes with the executable in a browser: the first administrator, the dashboard, a first service.
import { expect } from "bun:test";
import {
  checkAccessible,
  emailOf,
  isQuiet,
  screenshots,
  useUi,
  UI_PASSWORD,
} from "../../support/ui-scene.ts";

const { scene, test } = useUi();

test("the document forbids inline scripts and scripts of other origins", async () => {
  const { headers } = await scene.gateway.api("GET", "/");
  expect(headers.get("content-security-policy")).toBe(
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'",
  );
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("referrer-policy")).toBe("no-referrer");
});

test("an empty gateway leads to the first administrator, the dashboard and a first service", async () => {
  const { page, complaints, close } = await scene.open();
  await page.getByRole("heading", { name: "Create the first administrator" }).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "first-run");

  await page.getByLabel("Name").fill("Root");
  await page.getByLabel("E-mail address").fill(emailOf("admin"));
  await page.locator('input[type="password"]').fill("short");
  await page.getByRole("button", { name: "Create administrator" }).click();
  await page.getByText("At least 10 characters").nth(1).waitFor();
  await page.locator('input[type="password"]').fill(UI_PASSWORD);
  await page.getByRole("button", { name: "Create administrator" }).click();

  // Straight to the most common task.
  await page.waitForURL("**/ui/applications/new");
  await isQuiet(page);
  expect(complaints).toEqual([]);
  await page.getByRole("link", { name: "Dashboard", exact: true }).click();
  await page.getByRole("heading", { name: "Dashboard" }).waitFor();
  await isQuiet(page);
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "dashboard");

  await page.getByRole("link", { name: "Services", exact: true }).click();
  await page.getByRole("link", { name: "Create the first service" }).click();
  await page.getByRole("heading", { name: "New service" }).waitFor();
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("web");
  await page.getByRole("textbox", { name: "Host", exact: true }).fill("127.0.0.1");
  await page.getByLabel("Port").fill("3000");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Service web created").waitFor();
  await page.getByText(/Live on \d+ workers?, revision \d+/).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  expect(complaints).toEqual([]);
  await close();
});
