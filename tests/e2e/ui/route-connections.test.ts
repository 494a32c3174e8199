// The open WebSockets of a route in the browser: the list on its page, and the end of one of them.
import { expect } from "bun:test";
import { needs } from "../../support/needs.ts";
import { eventually } from "../../support/poll.ts";
import { checkAccessible, screenshots, startUi, type UiScene } from "../../support/ui-scene.ts";

const { afterAll, beforeAll, test } = needs("executable", "chromium");

let scene: UiScene;
let origin: Bun.Server<undefined>;
const clients: WebSocket[] = [];

beforeAll(async () => {
  scene = await startUi();
  origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request, server) => (server.upgrade(request) ? undefined : new Response("no")),
    websocket: { message: (socket, text) => void socket.send(text) },
  });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await scene.gateway.ok("POST", "/api/v1/services", { name: "chat", targets });
  await scene.gateway.ok("POST", "/api/v1/routes", { name: "chat", service_id: "chat" });
  await scene.createPeople();
});

afterAll(async () => {
  for (const client of clients) client.close();
  await scene?.stop();
  await origin?.stop(true);
});

async function talk() {
  const socket = new WebSocket(`ws://127.0.0.1:${scene.gateway.httpPort}/`);
  clients.push(socket);
  const codes: number[] = [];
  socket.onclose = ({ code }) => codes.push(code);
  const echoed = new Promise<void>((resolve) => (socket.onmessage = () => resolve()));
  socket.onopen = () => socket.send("hello");
  await echoed;
  return codes;
}

test("an editor sees WebSockets on the page of their route, and ends one", async () => {
  const ends = [await talk(), await talk()];
  const { page, complaints, close } = await scene.openAs("editor", { path: "/ui/routes" });
  await page.getByRole("link", { name: "chat", exact: true }).first().click();
  await page.getByText("2 WebSockets, oldest first.").waitFor();
  await page.getByRole("cell", { name: "websocket" }).first().waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "route-connections");
  await page
    .getByRole("button", { name: /^Close the connection/ })
    .first()
    .click();
  await page.getByRole("button", { name: "Close connection" }).click();
  await page.getByText("1 WebSocket, oldest first.").waitFor();
  await eventually(() => ends[0]?.[0] === 1001);
  expect(ends[1]).toEqual([]);
  expect(complaints).toEqual([]);
  await close();
});

test("a viewer sees them and cannot end them; without any there is no list", async () => {
  const { page, complaints, close } = await scene.openAs("viewer", { path: "/ui/routes" });
  await page.getByRole("link", { name: "chat", exact: true }).first().click();
  await page.getByText("1 WebSocket, oldest first.").waitFor();
  expect(await page.getByRole("button", { name: /^Close the connection/ }).count()).toBe(0);
  for (const client of clients) client.close();
  await page.getByText("1 WebSocket, oldest first.").waitFor({ state: "detached" });
  expect(complaints).toEqual([]);
  await close();
});
