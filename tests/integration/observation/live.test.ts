// Requests as they end over real connections: filters, a reader that does not read, five hundred readers, who is allowed.
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { type EventClient, openEvents } from "../../support/event-client.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { type Origin, startOrigin } from "../../support/origin.ts";
import { eventually } from "../../support/poll.ts";

let gateway: Gateway;
let origin: Origin;
const clients: EventClient[] = [];
const sockets: Socket[] = [];

beforeAll(async () => {
  gateway = await startGateway({ workers: 2 });
  origin = startOrigin();
  await gateway.ok("POST", "/api/v1/services", {
    name: "shop",
    targets: [{ host: "127.0.0.1", port: origin.port }],
  });
  await gateway.ok("POST", "/api/v1/routes", { name: "a", service_id: "shop", paths: ["/a"] });
});
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(async () => {
  await gateway?.stop();
  await origin?.stop();
});

const send = async (path: string) => {
  const response = await fetch(`http://127.0.0.1:${gateway.httpPort}${path}`);
  await response.text();
};

async function watch(query = "") {
  const client = await openEvents(`${gateway.admin}/api/v1/requests/stream${query}`);
  clients.push(client);
  if (client.status === 200) await eventually(() => client.text.includes("retry"));
  return client;
}

test("the stream reports finished requests as the list does, filtered", async () => {
  const [all, missing] = await Promise.all([watch(), watch("?status=404&q=wanted")]);
  await send("/a/one?token=canary");
  await send("/nothing");
  await send("/wanted");
  const events = await all!.receives(3);
  expect(events.map(({ kind, data }) => [kind, data.path, data.status])).toEqual([
    ["request", "/a/one?token=***", 200],
    ["request", "/nothing", 404],
    ["request", "/wanted", 404],
  ]);
  expect(all!.text).not.toContain("canary");
  expect(await gateway.ok("GET", `/api/v1/requests/${events[0]?.data.id}`)).toEqual(
    events[0]?.data,
  );
  const [only] = await missing!.receives(1);
  expect(only?.data.path).toBe("/wanted");
  expect(missing!.events.length).toBe(1);
});

test("an invalid filter and an unknown parameter are refused", async () => {
  expect((await watch("?status=abc")).status).toBe(400);
  expect((await watch("?limit=5")).status).toBe(400);
});

/** A reader on a socket of its own: `fetch` opens no more than 256, and always reads. */
async function rawReader(query: string) {
  const socket = connect({ port: Number(new URL(gateway.admin).port), host: "127.0.0.1" });
  sockets.push(socket);
  const reader = { socket, text: "" };
  socket.on("data", (chunk) => {
    reader.text += chunk.toString("latin1");
  });
  socket.write(`GET /api/v1/requests/stream${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await eventually(() => reader.text.includes("retry"), { intervalMs: 50 });
  return reader;
}

test("500 readers receive everything", async () => {
  const all = await Promise.all(Array.from({ length: 500 }, () => rawReader("?q=to-all")));
  for (let sent = 0; sent < 3; sent++) await send(`/a/to-all?n=${sent}`);
  for (const reader of all)
    await eventually(() => [0, 1, 2].every((n) => reader.text.includes(`/a/to-all?n=${n}"`)));
});

test("a reader that does not read receives the number of missed ones and delays no others", async () => {
  const quick = await watch("?q=flood");
  const slow = await rawReader("?q=flood");
  slow.socket.pause();
  const path = `/a/flood?${"x".repeat(200)}`;
  let sent = 0;
  const isDropped = () => slow.text.includes("event: dropped");
  // What the two systems between hold back for a reader is theirs to choose: send until it is full.
  for (let round = 0; round < 40; round++) {
    for (let batch = 0; batch < 10; batch++) {
      await Promise.all(Array.from({ length: 40 }, () => send(path)));
      sent += 40;
    }
  }
  slow.socket.resume();
  await eventually(isDropped);
  const told = (text: string) => ({
    requests: text.split("event: request\n").length - 1,
    dropped: [...text.matchAll(/event: dropped\ndata: \{"count":(\d+)\}/g)].reduce(
      (sum, [, count]) => sum + Number(count),
      0,
    ),
  });
  await eventually(() => {
    const { requests, dropped } = told(slow.text);
    return requests + dropped === sent;
  });
  const toldToQuick = () => quick.events.filter(({ kind }) => kind === "request").length;
  const dropsOfQuick = () =>
    quick.events
      .filter(({ kind }) => kind === "dropped")
      .reduce((sum, { data }) => sum + data.count, 0);
  await eventually(() => toldToQuick() + dropsOfQuick() >= sent);
  expect(toldToQuick() + dropsOfQuick()).toBe(sent);
  expect(toldToQuick()).toBeGreaterThan(told(slow.text).requests);
});

describe("access", () => {
  test("a viewer may, by token in the query too; without credentials not", async () => {
    const root = {
      email: "root@a.example",
      name: "R",
      role: "admin",
      password: "correct horse battery",
    };
    await gateway.ok("POST", "/api/v1/users", root);
    expect((await watch()).status).toBe(401);
    const login = await gateway.api("POST", "/api/v1/auth/login", signInOf(root));
    const cookie = login.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    const made = await gateway.api(
      "POST",
      "/api/v1/tokens",
      { name: "watcher", role: "viewer" },
      { cookie },
    );
    const { token } = (await made.json()) as { token: string };
    const viewer = await watch(`?access_token=${token}`);
    expect(viewer.status).toBe(200);
    await send("/a/seen-by-viewer");
    await viewer.receives(1);
    const refused = await fetch(`${gateway.admin}/api/v1/requests?access_token=${token}`);
    expect(refused.status).toBe(401);
  });
});

const signInOf = ({ email, password }: { email: string; password: string }) => ({
  email,
  password,
});
