// traffic-split on a real data plane: who gets how much, who stays where, who may choose.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { CounterTable } from "../../../src/shared-memory/counter-table.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";

const scenes: PluginScene[] = [];
afterEach(async () => {
  for (const scene of scenes.splice(0)) await scene.stop();
});

const servers: Bun.Server<undefined>[] = [];
/** Returns the name of the service and the request it received. */
const serving = (name: string) => {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) =>
      Response.json({ name, headers: Object.fromEntries(request.headers), url: request.url }),
  });
  servers.push(server);
  return { name, targets: [{ port: server.port ?? 0 }] };
};
let services: { name: string; targets: { port: number }[] }[] = [];
beforeAll(() => {
  services = ["web", "a", "b", "c"].map(serving);
});
afterAll(async () => {
  for (const server of servers) await server.stop(true);
});

async function split(config: object, sketch: Parameters<typeof pluginScene>[0] = {}) {
  const scene = await pluginScene({
    services,
    counters: CounterTable.create({ keys: 100, workers: 1 }),
    plugins: [{ name: "traffic-split", config: config as never }],
    ...sketch,
  });
  scenes.push(scene);
  const ask = async (path = "/", headers: Record<string, string> = {}) => {
    const { body, headers: fields, status } = await scene.get(path, headers);
    const seen = JSON.parse(body) as { name: string; headers: Record<string, string> };
    return { ...seen, cookie: fields.get("set-cookie"), status };
  };
  const often = async (times: number, path = "/", headers = {}) => {
    const names: string[] = [];
    for (let index = 0; index < times; index++) names.push((await ask(path, headers)).name);
    return names;
  };
  return { scene, ask, often };
}

const counted = (names: readonly string[]) =>
  Object.fromEntries(
    [...new Set(names)].sort().map((name) => [name, names.filter((each) => each === name).length]),
  );
const to = (...weights: [string, number][]) =>
  weights.map(([service_id, weight]) => ({ service_id, weight }));

describe("weights", () => {
  test.each([
    [
      [
        ["a", 95],
        ["b", 5],
      ],
      100,
      { a: 95, b: 5 },
    ],
    [
      [
        ["a", 1],
        ["b", 1],
      ],
      10,
      { a: 5, b: 5 },
    ],
    [
      [
        ["a", 5],
        ["b", 3],
        ["c", 2],
      ],
      50,
      { a: 25, b: 15, c: 10 },
    ],
    [
      [
        ["a", 1],
        ["b", 0],
      ],
      20,
      { a: 20 },
    ],
    [
      [
        ["a", 1_000_000],
        ["b", 1_000_000],
      ],
      20,
      { a: 10, b: 10 },
    ],
  ] as [[string, number][], number, Record<string, number>][])(
    "%p are exact over %d requests",
    async (weights, times, wanted) => {
      const { often } = await split({ rules: [{ targets: to(...weights) }] });
      expect(counted(await often(times))).toEqual(wanted);
    },
  );

  test("are evenly interleaved", async () => {
    const { often } = await split({ rules: [{ targets: to(["a", 3], ["b", 1]) }] });
    const names = await often(16);
    for (let at = 0; at < 16; at += 4)
      expect(counted(names.slice(at, at + 4))).toEqual({ a: 3, b: 1 });
  });

  test("that are all 0 use the service of the route", async () => {
    const { often } = await split({ rules: [{ targets: to(["a", 0]) }] });
    expect(counted(await often(3))).toEqual({ web: 3 });
  });

  test("of a deleted service go to the others, in their proportion", async () => {
    const { scene, often } = await split({
      rules: [{ targets: to(["a", 2], ["b", 1], ["c", 1]) }],
    });
    await scene.apply({ removedServices: ["a"] });
    expect(counted(await often(20))).toEqual({ b: 10, c: 10 });
    await scene.apply({ services: services.filter(({ name }) => name === "a") });
    expect(counted(await often(20))).toEqual({ a: 10, b: 5, c: 5 });
    await scene.apply({ removedServices: ["a", "b", "c"] });
    expect(counted(await often(3))).toEqual({ web: 3 });
  });
});

test("the first matching rule decides, and without one nothing changes", async () => {
  const { often } = await split({
    rules: [
      { when: { path: ["/beta"] }, targets: to(["a", 1]) },
      { when: { header: { "x-group": "b" } }, targets: to(["b", 1]) },
      { when: { path: ["/beta", "/more"] }, targets: to(["c", 1]) },
    ],
  });
  expect(await often(1, "/beta/x", { "X-Group": "b" })).toEqual(["a"]);
  expect(await often(1, "/other", { "X-Group": "b" })).toEqual(["b"]);
  expect(await often(1, "/more")).toEqual(["c"]);
  expect(await often(1, "/other")).toEqual(["web"]);
});

describe("a client", () => {
  const rules = [{ targets: to(["a", 1], ["b", 1], ["c", 0]) }];

  test("stays on its service, by an opaque cookie that does not go upstream", async () => {
    const { scene, ask, often } = await split({ rules, sticky: {} });
    const first = await ask();
    expect(first.cookie).toMatch(
      /^sluice_split=[\w-]{22}; Path=\/; Max-Age=86400; HttpOnly; SameSite=Lax$/,
    );
    const cookie = first.cookie?.split(";")[0] ?? "";
    const again = await ask("/", { Cookie: `x=1; ${cookie}; y=2` });
    expect([again.name, again.cookie, again.headers["cookie"]]).toEqual([
      first.name,
      null,
      "x=1; y=2",
    ]);
    expect(counted(await often(5, "/", { Cookie: cookie }))).toEqual({ [first.name]: 5 });
    // Its service has no sticky clients any more.
    const targets = to([first.name, 0], ["c", 1]);
    await scene.apply({
      plugins: [{ name: "traffic-split", config: { rules: [{ targets }], sticky: {} } }],
    });
    const moved = await ask("/", { Cookie: cookie });
    expect([moved.name, moved.cookie === null]).toEqual(["c", false]);
  });

  test("with a forged cookie is assigned again", async () => {
    const { ask } = await split({ rules, sticky: { cookie: "s", ttl: 60 } });
    for (const value of ["a", "b", "", "__proto__", "x".repeat(500)]) {
      const { status, cookie } = await ask("/", { Cookie: `s=${value}` });
      expect(status).toBe(200);
      expect(cookie).toMatch(/^s=[\w-]{22}; Path=\/; Max-Age=60;/);
    }
  });

  test("gets no cookie unless sticky is set", async () => {
    const { ask } = await split({ rules });
    expect((await ask()).cookie).toBeNull();
  });

  test("may choose with a header field, which does not go upstream", async () => {
    const { ask, often } = await split({ rules });
    expect(counted(await often(4, "/", { "X-Sluice-Split": "c" }))).toEqual({ c: 4 });
    expect((await ask("/", { "X-Sluice-Split": "c" })).headers).not.toHaveProperty(
      "x-sluice-split",
    );
    // Not of the rule, or nothing at all.
    expect(counted(await often(4, "/", { "X-Sluice-Split": "web" }))).toEqual({ a: 2, b: 2 });
  });

  test("may choose only by the configured field, and not at all with null", async () => {
    const { often } = await split({ rules, force_header: "X-Want" });
    expect(await often(1, "/", { "X-Want": "c" })).toEqual(["c"]);
    const none = await split({ rules, force_header: null });
    expect(counted(await none.often(4, "/", { "X-Sluice-Split": "c" }))).toEqual({ a: 2, b: 2 });
  });
});

test("a WebSocket goes to the chosen service", async () => {
  const reached: string[] = [];
  const echo = (name: string) => {
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request, own) {
        reached.push(name);
        return own.upgrade(request) ? undefined : new Response("no");
      },
      websocket: { message() {} },
    });
    return { server, service: { name, targets: [{ port: server.port ?? 0 }] } };
  };
  const [web, other] = [echo("web"), echo("other")];
  const { scene } = await split(
    { rules: [{ targets: to(["other", 1]) }] },
    { services: [web.service, other.service] },
  );
  const socket = new WebSocket(scene.plane.webSocketUrl);
  await new Promise((resolve) => {
    socket.onopen = resolve;
  });
  expect(reached).toEqual(["other"]);
  socket.close();
  await web.server.stop(true);
  await other.server.stop(true);
});
