// The pages while the gateway is away: a bar says so, no state is green, and everything is right again by itself.
import { expect } from "bun:test";
import { checkAccessible, follow, screenshots, useUi } from "../../support/ui-scene.ts";

const { beforeAll, test, scene } = useUi();

beforeAll(() => scene.createPeople());

test("a gateway that is away, and comes back", async () => {
  const { page, complaints, close } = await scene.openAs("admin", { path: "/ui/listeners" });
  await page.getByRole("link", { name: "http", exact: true }).first().waitFor();
  await scene.gateway.kill9();
  const bar = page.getByRole("alert").filter({ hasText: "Gateway unreachable, last seen" });
  await bar.waitFor();
  await page.getByText("Offline").waitFor();
  const greens = await page.evaluate(
    `[...document.querySelectorAll("[data-stale] .status-mark")]
      .map((mark) => getComputedStyle(mark).backgroundColor)
      .filter((color) => { const [r, g, b] = color.match(/\\d+/g).map(Number); return g > r + 30 && g > b - 30; })`,
  );
  expect(greens).toEqual([]);
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "unreachable");
  // A page that was never opened waits, instead of failing.
  await page.getByRole("link", { name: "Alerts", exact: true }).click();
  await scene.gateway.start(["--admin", new URL(scene.gateway.admin).host]);
  await page.getByRole("heading", { name: "Alerts", exact: true }).waitFor();
  await bar.waitFor({ state: "detached" });
  await follow(page, "/ui/listeners");
  await page.getByRole("link", { name: "http", exact: true }).first().waitFor();
  expect(complaints.filter((line) => !line.includes("net::ERR_"))).toEqual([]);
  await close();
});
