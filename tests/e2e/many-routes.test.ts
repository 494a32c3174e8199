// Ten thousand routes in the executable: the right one matches, after creation, after changes and after a restart.
import { expect } from "bun:test";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { QuickConnection } from "../support/quick-http.ts";
import { Random, seedOfRun } from "../support/random.ts";
import { executable } from "../support/executable.ts";

const { afterAll, beforeAll, test } = needs("executable");

const ROUTES = 10_000;
/** Created one by one, when the others exist: a change costs the same with few of them, and 2 ms. */
const CREATED = 1000;
const PROBES = 200;
/** Concurrent creations. */
const CLIENTS = 16;
const SERVICES = 5;

const seed = seedOfRun();
const random = new Random(seed);
const indices = Array.from({ length: ROUTES }, (_, index) => index);

/** The lower half differ in their host, the upper half in the path below one host. */
const isByHost = (index: number) => index < ROUTES / 2;
const hostOf = (index: number) => (isByHost(index) ? `site-${index}.test` : "api.test");
const pathOf = (index: number) => (isByHost(index) ? "/page" : `/part-${index}/page`);
const routeOf = (index: number, service = index % SERVICES) => ({
  name: `route-${index}`,
  service_id: `service-${service}`,
  hosts: [hostOf(index)],
  paths: isByHost(index) ? [] : [`/part-${index}`],
});

let gateway: Gateway;
const origins = Array.from({ length: SERVICES }, (_, index) =>
  Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => {
      const { pathname } = new URL(request.url);
      return new Response(`${index} ${request.headers.get("host")}${pathname}`);
    },
  }),
);

beforeAll(async () => {
  gateway = await startGateway({ binary: executable });
  for (const [index, { port }] of origins.entries())
    await gateway.ok("POST", "/api/v1/services", {
      name: `service-${index}`,
      targets: [{ host: "127.0.0.1", port }],
    });
});
afterAll(async () => {
  await gateway.stop();
  await Promise.all(origins.map((origin) => origin.stop(true)));
});

/** Responses of the routes, each on a fresh connection. */
async function answersOf(some: readonly number[]): Promise<string[]> {
  const answers: string[] = [];
  for (const index of some) {
    const connection = await QuickConnection.open(gateway.httpPort);
    const { status, body } = await connection.get(pathOf(index), hostOf(index));
    answers.push(status === 200 ? body : String(status));
    connection.close();
  }
  return answers;
}

const rightAnswer = (index: number, service = index % SERVICES) =>
  `${service} ${hostOf(index)}${pathOf(index)}`;

const sample = () => Array.from({ length: PROBES }, () => random.pick(indices));

test("all are created and the right one matches", async () => {
  const single = new Set(Array.from({ length: CREATED }, () => random.pick(indices)));
  const others = indices.filter((index) => !single.has(index));
  const routes = others.map((index) => routeOf(index));
  await gateway.ok("POST", "/api/v1/import", { format: 1, routes });
  const left = [...single];
  const create = async () => {
    for (let index = left.pop(); index !== undefined; index = left.pop())
      await gateway.ok("POST", "/api/v1/routes", routeOf(index));
  };
  await Promise.all(Array.from({ length: CLIENTS }, create));
  const some = sample();
  expect(await answersOf(some), `seed ${seed}`).toEqual(some.map((index) => rightAnswer(index)));
});

test("changes apply at once, and the other routes stay unchanged", async () => {
  const [moved, removed] = [new Set(sample().slice(0, 20)), new Set(sample().slice(0, 20))];
  for (const index of removed) moved.delete(index);
  for (const index of moved) {
    const other = (index + 1) % SERVICES;
    await gateway.ok("PUT", `/api/v1/routes/route-${index}`, routeOf(index, other));
    expect(await answersOf([index])).toEqual([rightAnswer(index, other)]);
  }
  for (const index of removed) {
    await gateway.ok("DELETE", `/api/v1/routes/route-${index}`);
    expect(await answersOf([index])).toEqual(["404"]);
  }
  const others = sample().filter((index) => !moved.has(index) && !removed.has(index));
  expect(await answersOf(others)).toEqual(others.map((index) => rightAnswer(index)));
  for (const index of [...moved, ...removed])
    await gateway.ok(removed.has(index) ? "POST" : "PUT", pathFor(index, removed), routeOf(index));
});

const pathFor = (index: number, removed: ReadonlySet<number>) =>
  removed.has(index) ? "/api/v1/routes" : `/api/v1/routes/route-${index}`;

test("all remain after a restart", async () => {
  await gateway.restart();
  expect(await gateway.ok("GET", "/api/v1/routes")).toHaveLength(ROUTES);
  const some = sample();
  expect(await answersOf(some), `seed ${seed}`).toEqual(some.map((index) => rightAnswer(index)));
});

test("30,000 more in one import on four workers interrupt no connection", async () => {
  const origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request, server) =>
      server.upgrade(request) ? undefined : new Response(request.headers.get("host")),
    websocket: { message: (socket, text) => void socket.send(text) },
  });
  const four = await startGateway({ binary: executable, workers: 4 });
  const sockets: WebSocket[] = [];
  try {
    await four.ok("POST", "/api/v1/services", {
      name: "app",
      targets: [{ host: "127.0.0.1", port: origin.port }],
    });
    await four.ok("POST", "/api/v1/routes", {
      name: "all",
      service_id: "app",
      hosts: ["localhost"],
    });
    let closed = 0;
    for (let socket = 0; socket < 8; socket++) {
      const client = new WebSocket(`ws://localhost:${four.httpPort}/`);
      client.onclose = () => closed++;
      sockets.push(client);
      await new Promise((resolve) => (client.onopen = resolve));
    }
    const routes = Array.from({ length: 30_000 }, (_, index) => ({
      name: `one-${index}`,
      service_id: "app",
      hosts: [`one-${index}.test`],
    }));
    let isDone = false;
    const importing = four.ok("POST", "/api/v1/import", { format: 1, routes }).finally(() => {
      isDone = true;
    });
    let [healthy, served] = [0, 0];
    while (!isDone) {
      if ((await fetch(`${four.admin}/healthz`)).ok) healthy++;
      const { status } = await fetch(`http://localhost:${four.httpPort}/`);
      if (status === 200) served++;
    }
    await importing;
    expect([healthy > 10, served]).toEqual([true, healthy]);
    expect(closed).toBe(0);
    for (const client of sockets) {
      const answered = new Promise((resolve) => (client.onmessage = ({ data }) => resolve(data)));
      client.send("still here");
      expect(await answered).toBe("still here");
    }
    expect(four.stderr).not.toContain("worker stopped");
    const connection = await QuickConnection.open(four.httpPort);
    expect((await connection.get("/", "one-29999.test")).body).toBe("one-29999.test");
    connection.close();
  } finally {
    for (const client of sockets) {
      client.onclose = null;
      client.close();
    }
    await four.stop();
    await origin.stop(true);
  }
});
