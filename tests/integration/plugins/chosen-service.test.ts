// The plugins of a service run for the requests that traffic-split sends to it, and those of the route's own service do not.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { hashPassword } from "../../../src/crypto/password.ts";
import { hashToken } from "../../../src/crypto/token.ts";
import { CounterTable } from "../../../src/shared-memory/counter-table.ts";
import type { PluginSketch } from "../../support/data-plane.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { eventually } from "../../support/poll.ts";

const scenes: PluginScene[] = [];
afterEach(async () => {
  for (const scene of scenes.splice(0)) await scene.stop();
});

const servers: Bun.Server<undefined>[] = [];
const requests: { service: string; headers: Headers }[] = [];
let services: { name: string; targets: { port: number }[] }[] = [];
beforeAll(() => {
  services = ["web", "a", "b"].map((name) => {
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: (request) => {
        requests.push({ service: name, headers: request.headers });
        return new Response(name);
      },
    });
    servers.push(server);
    return { name, targets: [{ port: server.port ?? 0 }] };
  });
});
afterAll(async () => {
  for (const server of servers) await server.stop(true);
});

/** A route to `web`, whose requests name the service that they want. */
async function start(
  plugins: readonly PluginSketch[],
  sketch: Partial<Parameters<typeof pluginScene>[0]> = {},
) {
  requests.length = 0;
  const scene = await pluginScene({
    services,
    counters: CounterTable.create({ keys: 100, workers: 1 }),
    ...sketch,
    plugins: [{ ...split(["web", "a", "b"]), routeId: "all" }, ...plugins],
  });
  scenes.push(scene);
  return {
    scene,
    ask: async (service: string, headers: Record<string, string> = {}) => {
      const answer = await scene.get("/", { "X-Sluice-Split": service, ...headers });
      return { ...answer, seen: requests.at(-1)?.headers ?? null };
    },
  };
}

const split = (names: readonly string[]): PluginSketch => ({
  name: "traffic-split",
  label: `split ${names.join(" ")}`,
  config: { rules: [{ targets: names.map((service_id) => ({ service_id })) }] },
});

const transform = (serviceId: string, more: Partial<PluginSketch> = {}): PluginSketch => ({
  name: "transform",
  label: `transform ${serviceId}`,
  serviceId,
  config: {
    request: { headers: { add: { "X-Of": serviceId } } },
    response: { headers: { set: { "X-Answer-Of": serviceId } } },
  },
  ...more,
});

test.each(["web", "a", "b"])(
  "traffic to %s has its own transform, and no other",
  async (service) => {
    const { ask } = await start(["web", "a"].map((name) => transform(name)));
    const { body, headers, seen } = await ask(service);
    expect(body).toBe(service);
    expect(seen?.get("x-of") ?? null).toBe(service === "b" ? null : service);
    expect(headers.get("x-answer-of")).toBe(service === "b" ? null : service);
  },
);

test("plugins of the route and global ones run once, in order", async () => {
  const named = (label: string, place: Partial<PluginSketch>): PluginSketch => ({
    name: "transform",
    label,
    config: { request: { headers: { add: { "X-Of": label } } } },
    ...place,
  });
  const { ask } = await start([
    named("everything", { priority: 9000 }),
    named("route", { routeId: "all", priority: 4500 }),
    named("a", { serviceId: "a", priority: 8000 }),
    named("late", { priority: 10 }),
  ]);
  expect((await ask("a")).seen?.get("x-of")).toBe("everything, a, route, late");
  expect((await ask("b")).seen?.get("x-of")).toBe("everything, route, late");
});

describe("a client without access", () => {
  const credentials = [
    { type: "key" as const, id: "k", consumerId: "alice", hash: hashToken("good") },
  ];
  const consumers = [{ username: "alice" }, { username: "bob" }];

  test.each<[string, PluginSketch, Record<string, string>, number]>([
    ["has no key", { name: "key-auth" }, {}, 401],
    ["has a wrong key", { name: "key-auth" }, { "X-API-Key": "bad" }, 401],
    [
      "comes from elsewhere",
      { name: "ip-restriction", config: { allow: ["10.0.0.0/8"] } },
      {},
      403,
    ],
    [
      "sends a bad agent",
      { name: "bot-detection", config: { deny: ["curl"] } },
      { "User-Agent": "curl" },
      403,
    ],
    ["gives no password", { name: "basic-auth" }, {}, 401],
    [
      "gives a wrong password",
      { name: "basic-auth" },
      { Authorization: `Basic ${btoa("alice:no")}` },
      401,
    ],
  ])("and %s does not reach it through the split", async (_, plugin, headers, status) => {
    const hash = await hashPassword("secret");
    const { ask } = await start([{ ...plugin, serviceId: "a" }], {
      consumers,
      credentials: [
        ...credentials,
        { type: "basic", id: "p", consumerId: "alice", identifier: "alice", hash },
      ],
    });
    expect((await ask("web", headers)).status).toBe(200);
    const refused = await ask("a", headers);
    expect(refused.status).toBe(status);
    expect(requests.map(({ service }) => service)).toEqual(["web"]);
  });

  test("with access reaches it, identified, with the plugins for this consumer of that service", async () => {
    const hash = await hashPassword("secret");
    const { ask } = await start(
      [
        { name: "basic-auth", serviceId: "a" },
        {
          ...transform("a"),
          label: "for alice",
          consumerId: "alice",
          config: { request: { headers: { set: { "X-For": "alice" } } } },
        },
      ],
      {
        consumers,
        credentials: [{ type: "basic", id: "p", consumerId: "alice", identifier: "alice", hash }],
      },
    );
    const { status, seen } = await ask("a", { Authorization: `Basic ${btoa("alice:secret")}` });
    expect(status).toBe(200);
    expect(seen?.get("x-consumer-username")).toBe("alice");
    expect(seen?.get("x-for")).toBe("alice");
    expect(seen?.has("authorization")).toBe(false);
  });

  test("plugins of the route's own service run before the choice", async () => {
    const { ask } = await start([{ name: "key-auth", serviceId: "web" }], {
      consumers,
      credentials,
    });
    expect((await ask("a")).status).toBe(401);
    expect((await ask("a", { "X-API-Key": "good" })).status).toBe(200);
  });
});

test("a concurrency slot of the route's own service is released", async () => {
  const limit = (serviceId: string): PluginSketch => ({
    name: "concurrency-limit",
    label: `limit ${serviceId}`,
    serviceId,
    config: { max: 1, key: "service" },
  });
  const { ask } = await start([limit("web"), limit("a")]);
  for (const service of ["a", "b", "a", "b", "web"])
    await eventually(async () => (await ask(service)).status === 200);
});

test("CORS follows the chosen service", async () => {
  const cors = (serviceId: string, origin: string): PluginSketch => ({
    name: "cors",
    label: `cors ${serviceId}`,
    serviceId,
    config: { origins: [origin] },
  });
  const { ask } = await start([cors("web", "https://web.example"), cors("a", "https://a.example")]);
  const allowed = async (service: string, origin: string) =>
    (await ask(service, { Origin: origin })).headers.get("access-control-allow-origin");
  expect(await allowed("web", "https://web.example")).toBe("https://web.example");
  expect(await allowed("web", "https://a.example")).toBeNull();
  expect(await allowed("a", "https://a.example")).toBe("https://a.example");
  expect(await allowed("a", "https://web.example")).toBeNull();
});

test("services that forward requests to each other do not loop", async () => {
  const { scene } = await start([], {});
  await scene.apply({
    removedPlugins: ["split web a b"],
    plugins: [
      { ...split(["a"]), serviceId: "web" },
      { ...split(["web"]), serviceId: "a" },
      transform("web"),
      transform("a"),
    ],
  });
  const answer = await scene.get("/");
  expect([answer.status, answer.body]).toEqual([200, "web"]);
  expect(requests.at(-1)?.headers.get("x-of")).toBe("web");
});

test("a WebSocket has the transform of the chosen service", async () => {
  const { scene } = await start([transform("web"), transform("a")]);
  const headers = { "X-Sluice-Split": "a" };
  const socket = new WebSocket(scene.plane.webSocketUrl, { headers } as unknown as string[]);
  await new Promise((resolve) => {
    socket.onclose = resolve;
  });
  expect(requests.at(-1)?.service).toBe("a");
  expect(requests.at(-1)?.headers.get("x-of")).toBe("a");
});
