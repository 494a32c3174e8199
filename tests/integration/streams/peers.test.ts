// Peers of TCP streams that vanish: a client that stops reading, a target that is killed; other streams are not affected.
import { afterAll, expect, test } from "bun:test";
import { connect, createServer, type Server, type Socket } from "node:net";
import { freePort } from "../../support/data-plane.ts";
import { untilListening } from "../../support/listening.ts";
import { eventually } from "../../support/poll.ts";
import { quietPort } from "../../support/quiet-port.ts";
import { useGateway } from "../api/client.ts";

const api = useGateway();
const servers: Server[] = [];
const children: Bun.Subprocess[] = [];
afterAll(() => {
  for (const server of servers) server.close();
  for (const child of children) child.kill("SIGKILL");
});

let count = 0;
async function route(ports: number[], fields: object = {}) {
  const name = `peers ${++count}`;
  const targets = ports.map((port) => ({ host: "127.0.0.1", port }));
  await api.create("/services", { name, protocol: "tcp", targets });
  return await api.create("/stream-routes", {
    name,
    listen_address: "127.0.0.1",
    listen_port: freePort(),
    service_id: name,
    ...fields,
  });
}

/** A target in a process of its own, which echoes with its name before it. */
async function echoProcess(name: string): Promise<{ port: number; child: Bun.Subprocess }> {
  const port = quietPort();
  const program = `Bun.listen({ hostname: "127.0.0.1", port: ${port}, socket: {
    data(socket, chunk) { socket.write("${name}:" + chunk); } } });`;
  const child = Bun.spawn([process.execPath, "-e", program], { stdin: "ignore" });
  children.push(child);
  await untilListening(port);
  return { port, child };
}

const say = (socket: Socket, text: string) =>
  new Promise<string>((resolve) => {
    socket.once("data", (data) => resolve(String(data)));
    socket.once("close", () => resolve("closed"));
    socket.write(text);
  });

test("a client that stops reading is disconnected after idle_timeout, and its target as well", async () => {
  let sent = 0;
  let isClosed = false;
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("close", () => (isClosed = true));
    const chunk = Buffer.alloc(65_536);
    const send = () => {
      while (socket.writable && socket.write(chunk)) sent += chunk.length;
    };
    socket.on("drain", send);
    send();
  });
  servers.push(server);
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const { id, listen_port: port } = await route([(server.address() as { port: number }).port], {
    idle_timeout: 2,
  });
  // As one whose network is gone: it neither reads nor closes.
  const client = connect({ port, host: "127.0.0.1" });
  client.on("error", () => {});
  client.pause();
  await eventually(() => sent > 0);
  await eventually(() => isClosed);
  expect((await api.call(`GET /stream-routes/${id}/connections`)).body).toEqual([]);
  client.destroy();
});

test("when a target is killed its clients are closed, those of others are not, and new ones go elsewhere", async () => {
  const [one, two] = [await echoProcess("one"), await echoProcess("two")];
  const { listen_port: port } = await route([one.port, two.port]);
  const sockets = Array.from({ length: 8 }, () => connect({ port, host: "127.0.0.1" }));
  for (const socket of sockets) socket.on("error", () => {});
  const first = await Promise.all(sockets.map((socket) => say(socket, "x")));
  expect(new Set(first)).toEqual(new Set(["one:x", "two:x"]));
  const closed = new Set<Socket>();
  for (const socket of sockets) socket.on("close", () => closed.add(socket));
  one.child.kill("SIGKILL");
  const lost = sockets.filter((_, index) => first[index] === "one:x");
  await eventually(() => lost.every((socket) => closed.has(socket)));
  expect(closed.size).toBe(lost.length);
  for (const socket of sockets)
    if (!closed.has(socket)) expect(await say(socket, "y")).toBe("two:y");
  for (let ask = 0; ask < 10; ask++) {
    const socket = connect({ port, host: "127.0.0.1" });
    expect(await say(socket, "z")).toBe("two:z");
    socket.destroy();
  }
  for (const socket of sockets) socket.destroy();
});
