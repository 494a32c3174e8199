// Listeners in the browser: a port in use, a new listener, and admin-only actions.
import { expect } from "bun:test";
import { quietPort } from "../../support/quiet-port.ts";
import { checkAccessible, screenshots, useUi } from "../../support/ui-scene.ts";

const { beforeAll, scene, test } = useUi();

beforeAll(async () => {
  await scene.createPeople();
});

test("a port in use and a wrong address are shown at their fields, a free port serves at once", async () => {
  const { page, complaints, close } = await scene.openAs("admin", {
    path: "/ui/listeners/new",
    expects: [400, 409],
  });
  const taken = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const port = page.getByRole("textbox", { name: "Port", exact: true });
  const address = page.getByRole("textbox", { name: "Address", exact: true });
  const invalid = page.locator("[aria-invalid=true]");
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("second");
  await address.fill("127.0.0.1");
  await port.fill(String(taken.port));
  await page.getByRole("button", { name: "Create" }).click();
  await port.and(invalid).waitFor();
  await page.getByText(/already in use/).waitFor();
  taken.stop(true);

  await port.fill(String(scene.gateway.httpPort));
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText(/belongs to listener "http"/).waitFor();
  const hosts = page.getByRole("combobox", { name: "Hosts" });
  await hosts.fill("https://shop.test");
  await hosts.press("Enter");
  await page.getByText("https://shop.test is not a host name").waitFor();
  await hosts.press("Backspace");

  const free = quietPort();
  await port.fill(String(free));
  await address.fill("192.0.2.1");
  await page.getByRole("button", { name: "Create" }).click();
  await address.and(invalid).waitFor();
  await page.getByText(/no such address/).waitFor();
  await address.fill("127.0.0.1");
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Listener second created").waitFor();
  await page.getByRole("heading", { name: "second", level: 1 }).waitFor();
  expect((await fetch(`http://127.0.0.1:${free}/`)).status).toBe(404);
  await page.getByRole("combobox", { name: "Protocol" }).click();
  await page.getByRole("option", { name: /^HTTPS/ }).click();
  await page.getByRole("button", { name: /^Client certificates/ }).click();
  await screenshots(page, "listener");
  expect(complaints).toEqual([]);
  await close();
});

test("the largest request head follows the engine of a new listener until it is entered", async () => {
  const { page, complaints, close } = await scene.openAs("admin", { path: "/ui/listeners/new" });
  const bytes = page.getByRole("textbox", { name: "Maximum request head", exact: true });
  const unit = page.getByRole("combobox", { name: "Maximum request head: unit" });
  const shown = async () => [await bytes.inputValue(), await unit.inputValue()];
  const choose = async (engine: RegExp) => {
    await page.getByRole("combobox", { name: "Engine" }).click();
    await page.getByRole("option", { name: engine }).click();
  };
  await page.getByRole("button", { name: /^Limits/ }).click();
  expect(await shown()).toEqual(["32", "KiB"]);
  await choose(/^Bun/);
  expect(await shown()).toEqual(["16", "KiB"]);
  await choose(/^Sluice/);
  expect(await shown()).toEqual(["32", "KiB"]);
  await choose(/^Bun/);
  await bytes.fill("8");
  await choose(/^Sluice/);
  expect(await shown()).toEqual(["8", "KiB"]);
  await bytes.fill("");
  expect(await bytes.getAttribute("placeholder")).toBe("32");

  const port = quietPort();
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("heads");
  await page.getByRole("textbox", { name: "Address", exact: true }).fill("127.0.0.1");
  await page.getByRole("textbox", { name: "Port", exact: true }).fill(String(port));
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Listener heads created").waitFor();
  // What is stored.
  await page.getByRole("heading", { name: "heads", level: 1 }).waitFor();
  await page.getByRole("button", { name: /^Limits/ }).click();
  expect(await shown()).toEqual(["32", "KiB"]);
  expect(complaints).toEqual([]);
  await close();
});
