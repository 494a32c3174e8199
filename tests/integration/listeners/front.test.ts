// Restrictions of connections: which clients are allowed and counted.
import { expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { curl } from "../../support/curl.ts";
import { freePort } from "../../support/data-plane.ts";
import { startGateway } from "../../support/gateway.ts";
import { needs } from "../../support/needs.ts";
import { eventually } from "../../support/poll.ts";
import { echoed, GET, hold, mirrored, talk, useListeners } from "./world.ts";

const { api, listener } = useListeners();

test("the client's own address reaches targets, rules and forwarding headers", async () => {
  const port = await listener("addresses", {
    max_connections: 100,
    trusted_proxies: ["127.0.0.8"],
  });
  const get = GET.replace("\r\n\r\n", "\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n");
  const stranger = mirrored(await talk(port, [get], "127.0.0.9"));
  expect(stranger).toMatchObject({ "x-real-ip": "127.0.0.9", "x-forwarded-for": "127.0.0.9" });
  const proxy = mirrored(await talk(port, [get], "127.0.0.8"));
  expect(proxy).toMatchObject({
    "x-real-ip": "203.0.113.7",
    "x-forwarded-for": "203.0.113.7, 127.0.0.8",
    "x-forwarded-port": String(port),
  });
  await api.create("/routes", {
    name: "near",
    client_cidrs: ["127.0.0.9"],
    priority: 5,
    maintenance: { retry_after: 1, html: "closed" },
  });
  expect(await talk(port, [GET], "127.0.0.9")).toContain("closed");
  expect(await talk(port, [GET], "127.0.0.8")).not.toContain("closed");
  await api.call("DELETE /routes/near");
});

test("one above max_connections is closed at once, over all workers, and logged once", async () => {
  const port = await listener("few", { max_connections: 4 });
  const open = await Promise.all(Array.from({ length: 4 }, () => hold(port)));
  expect(open.every((socket) => socket !== null)).toBe(true);
  for (let ask = 0; ask < 20; ask++) expect(await talk(port, [GET])).toBe("");
  const lines = () =>
    api.gateway.stderr
      .split("\n")
      .filter((line) => line.includes('"few"') && line.includes("too many"));
  await eventually(() => lines().length > 0);
  // Twenty in much less than a second, at most once in each worker and second.
  expect(lines().length).toBeLessThan(10);
  open[0]?.destroy();
  await eventually(async () => (await talk(port, [GET])).startsWith("HTTP/1.1 200"));
  await api.call("PATCH /listeners/few", { body: { max_connections: 5 } });
  const more = await eventually(() => hold(port));
  for (const socket of [...open, more]) socket?.destroy();
});

test("max_connections_per_address counts each address separately, over all workers", async () => {
  const port = await listener("each", { max_connections_per_address: 3 });
  const open: (Socket | null)[] = [];
  for (const from of ["127.0.0.1", "127.0.0.2"])
    for (let count = 0; count < 3; count++) open.push(await hold(port, from));
  expect(open.every((socket) => socket !== null)).toBe(true);
  for (let ask = 0; ask < 8; ask++) expect(await talk(port, [GET])).toBe("");
  expect(await talk(port, [GET], "127.0.0.3")).toStartWith("HTTP/1.1 200");
  open[0]?.destroy();
  await eventually(async () => (await talk(port, [GET])).startsWith("HTTP/1.1 200"));
  for (const socket of open) socket?.destroy();
});

test("every kind of disconnect releases the connection's slot", async () => {
  const limits = { max_connections: 20, max_connections_per_address: 20 };
  const ports = [
    await listener("gone", limits),
    await listener("gone tls", { ...limits, protocol: "https", strict_sni: true }),
  ];
  const ways: ((socket: Socket) => void)[] = [
    (socket) => socket.destroy(),
    (socket) => socket.resetAndDestroy(),
    (socket) => socket.end(),
    (socket) => socket.end(GET),
    (socket) => socket.end(GET.slice(0, 20)),
    (socket) => socket.write(GET, () => socket.resetAndDestroy()),
    (socket) => socket.write("\x16\x03\x01\x01", () => socket.destroy()),
  ];
  for (let round = 0; round < 12; round++)
    await Promise.all(
      ways.flatMap((leave) =>
        ports.map(
          (port) =>
            new Promise<void>((resolve) => {
              const socket = connect({ port, host: "127.0.0.1" }, () => leave(socket));
              socket.on("error", () => {});
              socket.on("data", () => {});
              socket.on("close", () => resolve());
            }),
        ),
      ),
    );
  const open = await eventually(async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => hold(ports[0] ?? 0)));
    if (all.every((socket) => socket !== null)) return all;
    for (const socket of all) socket?.destroy();
    return null;
  });
  expect(await talk(ports[0] ?? 0, [GET])).toBe("");
  for (const socket of open) socket?.destroy();
});

test("uploads, downloads and WebSockets pass as without the front", async () => {
  const bytes = Buffer.alloc(3_000_000, "0123456789");
  const echo = Bun.serve<undefined>({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request, server) =>
      server.upgrade(request) ? undefined : new Response(await request.bytes()),
    websocket: { message: (socket, message) => void socket.send(message) },
  });
  await api.create("/services", {
    name: "echo",
    targets: [{ host: "127.0.0.1", port: echo.port }],
  });
  await api.create("/routes", { name: "echo", service_id: "echo", paths: ["/echo"] });
  const plain = await listener("echo", { max_connections: 100 });
  const secure = await listener("echo tls", { max_connections: 100, protocol: "https" });
  for (const url of [`http://127.0.0.1:${plain}`, `https://127.0.0.1:${secure}`]) {
    const answer = await fetch(`${url}/echo`, {
      method: "POST",
      body: bytes,
      tls: { rejectUnauthorized: false },
    });
    expect(Bun.hash(await answer.bytes())).toBe(Bun.hash(bytes));
    const socket = new WebSocket(`${url.replace("http", "ws")}/echo`, {
      tls: { rejectUnauthorized: false },
    } as unknown as string[]);
    expect(await echoed(socket, "hello")).toBe("hello");
  }
  echo.stop(true);
});

needs("curl").test("HTTP/2 passes as without the front", async () => {
  const secure = await listener("echo over h2", { max_connections: 100, protocol: "https" });
  const { version, status } = await curl(`https://127.0.0.1:${secure}/`, ["--http2"]);
  expect([version, status]).toEqual(["2", 200]);
});

test("a client that half-closes receives the rest of the response", async () => {
  const port = await listener("half", { max_connections: 100 });
  const answer = await new Promise<string>((resolve) => {
    let text = "";
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    socket.on("data", (data) => {
      text += String(data);
      socket.end();
    });
    socket.on("close", () => resolve(text));
    socket.on("error", () => {});
    socket.write("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
  });
  expect(answer).toStartWith("HTTP/1.1 200");
});

test("another engine and back under traffic loses no request", async () => {
  const port = await listener("swapped", { max_header_bytes: 16_384 });
  const failed: string[] = [];
  let [asked, isOver] = [0, false];
  const get = () => fetch(`http://127.0.0.1:${port}/`);
  const client = async () => {
    while (!isOver) {
      try {
        // As browsers do it: once more when the connection that was kept is closed at that moment (RFC 9110 section 9.2.2).
        const response = await get().catch(get);
        await response.arrayBuffer();
        if (response.status !== 200) failed.push(String(response.status));
        asked++;
      } catch (error) {
        failed.push((error as { code?: string }).code ?? String(error));
      }
    }
  };
  const clients = Array.from({ length: 8 }, client);
  for (let round = 0; round < 6; round++) {
    const body = { engine: round % 2 === 0 ? "sluice" : "bun" };
    expect((await api.call("PATCH /listeners/swapped", { body })).status).toBe(200);
    const enough = asked + 100;
    await eventually(() => asked >= enough);
  }
  isOver = true;
  await Promise.all(clients);
  expect(failed).toEqual([]);
});

test("a gateway that stops completes requests and disconnects clients, in front too", async () => {
  const world = await startGateway({ workers: 1 });
  const slow = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch() {
      await Bun.sleep(300);
      return new Response("late");
    },
  });
  const port = freePort();
  for (const [path, body] of [
    ["services", { name: "slow", targets: [{ host: "127.0.0.1", port: slow.port }] }],
    ["routes", { name: "slow", service_id: "slow" }],
    ["listeners", { name: "ending", address: "127.0.0.1", port, max_connections: 9 }],
  ] as const)
    await fetch(`${world.admin}/api/v1/${path}`, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    });
  const answers = [0, 1, 2].map(() => fetch(`http://127.0.0.1:${port}/`).then((one) => one.text()));
  await eventually(() => slow.pendingRequests === 3);
  const ended = world.stop();
  expect(await Promise.all(answers)).toEqual(["late", "late", "late"]);
  await ended;
  slow.stop(true);
});
