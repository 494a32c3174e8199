// Stream routes in the browser: creation, live connections, closing one, and a port in use.
import { expect } from "bun:test";
import { connect, type Socket } from "node:net";
import { quietPort } from "../../support/quiet-port.ts";
import { checkAccessible, screenshots, useUi } from "../../support/ui-scene.ts";

const { afterAll, beforeAll, scene, test } = useUi();

let origin: Bun.TCPSocketListener<undefined>;
const port = quietPort();
const clients: Socket[] = [];

beforeAll(async () => {
  origin = Bun.listen<undefined>({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: (socket, bytes) => void socket.write(bytes) },
  });
  await scene.gateway.ok("POST", "/api/v1/services", {
    name: "echo",
    protocol: "tcp",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
  await scene.createPeople();
});

afterAll(async () => {
  for (const client of clients) client.destroy();
  origin?.stop(true);
});

/** Connects, sends, and waits until all of it has come back. */
async function talk(bytes: number): Promise<{ socket: Socket; closed: Promise<void> }> {
  const socket = connect(port, "127.0.0.1");
  clients.push(socket);
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await new Promise<void>((resolve, reject) => {
    let seen = 0;
    socket.on("data", (part) => {
      seen += part.length;
      if (seen === bytes) resolve();
    });
    socket.on("error", reject);
    socket.write(Buffer.alloc(bytes));
  });
  return { socket, closed };
}

test("a port in use is shown at its field, a free one is accepted", async () => {
  const { page, complaints, close } = await scene.openAs("editor", {
    path: "/ui/stream-routes/new",
    expects: [409],
  });
  await page.getByRole("button", { name: "All settings" }).click();
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("echo");
  await page.getByRole("combobox", { name: "Service" }).click();
  await page.getByRole("option", { name: "echo" }).click();
  await page.getByRole("textbox", { name: "Address", exact: true }).fill("127.0.0.1");
  const field = page.getByRole("textbox", { name: "Port", exact: true });
  await field.fill(String(origin.port));
  await page.getByRole("button", { name: "Create" }).click();
  await field.and(page.locator("[aria-invalid=true]")).waitFor();
  await page.getByText(/already in use/).waitFor();
  await field.fill(String(port));
  expect(await checkAccessible(page)).toEqual([]);
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Stream route echo created").waitFor();
  await page.getByText("No connections.").waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test("the page lists connections with their bytes, and closes one of them", async () => {
  const first = await talk(2000);
  const second = await talk(1500);
  const { page, complaints, close } = await scene.openAs("editor", { path: "/ui/stream-routes" });
  await page.getByRole("link", { name: "echo", exact: true }).first().click();
  await page.getByText("2 connections, oldest first.").waitFor();
  const rowOf = (socket: Socket) =>
    page.getByRole("row", { name: new RegExp(`127\\.0\\.0\\.1:${socket.localPort} `) });
  await rowOf(first.socket).getByText("2.0 kB").nth(1).waitFor();
  await rowOf(second.socket).getByText("1.5 kB").nth(1).waitFor();
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "stream-route");

  second.socket.write(Buffer.alloc(1000));
  await rowOf(second.socket).getByText("2.5 kB").nth(1).waitFor();

  await rowOf(first.socket)
    .getByRole("button", { name: /^Close the connection/ })
    .click();
  await page.getByRole("button", { name: "Close connection" }).click();
  await first.closed;
  await page.getByText("1 connection, oldest first.").waitFor();
  expect(await rowOf(first.socket).count()).toBe(0);
  expect(second.socket.destroyed).toBe(false);
  expect(complaints).toEqual([]);
  await close();
});

test("a viewer sees connections and cannot close them", async () => {
  const { page, complaints, close } = await scene.openAs("viewer", { path: "/ui/stream-routes" });
  await page.getByRole("link", { name: "echo", exact: true }).first().click();
  await page.getByText("1 connection, oldest first.").waitFor();
  expect(await page.getByRole("button", { name: /^Close the connection/ }).count()).toBe(0);
  expect(complaints).toEqual([]);
  await close();
});

test("one form makes the ports and the server behind them, or nothing", async () => {
  const { page, complaints, close } = await scene.openAs("editor", {
    path: "/ui/stream-routes/new",
    expects: [409],
  });
  await page.getByRole("combobox", { name: "Program" }).click();
  await page.getByRole("option", { name: "DNS" }).click();
  expect(await page.getByRole("textbox", { name: "Name" }).inputValue()).toBe("dns");
  await page.getByRole("textbox", { name: "Server", exact: true }).fill("127.0.0.1");
  await page.getByRole("textbox", { name: "Address" }).fill("127.0.0.1");
  expect(await checkAccessible(page)).toEqual([]);
  await screenshots(page, "new-stream");
  const ports = page.getByRole("textbox", { name: "Port", exact: true });
  await ports.nth(0).fill(String(quietPort()));
  await ports.nth(1).fill(String(origin.port));
  await page.getByRole("button", { name: "Create" }).click();
  await ports.nth(1).and(page.locator("[aria-invalid=true]")).waitFor();
  const names = async (kind: string): Promise<string[]> => {
    const cookie = await scene.cookieOf("editor");
    const listed = await scene.gateway.api("GET", `/api/v1/${kind}`, undefined, cookie);
    const all = (await listed.json()) as { name: string }[];
    return all.map(({ name }) => name).filter((name) => name.startsWith("dns"));
  };
  expect([await names("services"), await names("stream-routes")]).toEqual([[], []]);
  const second = quietPort();
  await ports.nth(1).fill(String(second));
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Stream dns created").waitFor();
  expect(await names("services")).toEqual(["dns", `dns tcp ${second}`]);
  expect(complaints).toEqual([]);
  await close();
});
