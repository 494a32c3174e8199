// The order of plugins, their scopes, the effects of their responses and failures, on a real data plane.
import { afterEach, describe, expect, test } from "bun:test";
import type { PluginSketch } from "../../support/data-plane.ts";
import { type PluginScene, pluginScene } from "../../support/plugin-scene.ts";
import { eventually } from "../../support/poll.ts";
import { probePlugin, Trail } from "../../support/probe-plugin.ts";

let scene: PluginScene | null = null;
afterEach(async () => {
  await scene?.stop();
  scene = null;
});

const trail = new Trail();
const probes = [
  probePlugin(trail, "first", { order: 30 }),
  probePlugin(trail, "second", { order: 20 }),
  probePlugin(trail, "third", { order: 10 }),
  probePlugin(trail, "open", { order: 25, onError: "open" }),
  probePlugin(trail, "many", { order: 5, allowsMultiple: true }),
];

async function start(plugins: readonly PluginSketch[], more: object = {}): Promise<PluginScene> {
  trail.take();
  scene = await pluginScene({ ownPlugins: probes, plugins, ...more });
  return scene;
}

describe("the order", () => {
  test("is by phase, then by priority; the response passes in reverse order", async () => {
    const { get } = await start([{ name: "third" }, { name: "first" }, { name: "second" }]);
    const { status, headers } = await get("/");
    expect(status).toBe(200);
    expect(headers.get("x-seen-by")).toBe("third, second, first");
    expect(trail.take()).toEqual([
      ...["pre_auth", "auth", "access", "request"].flatMap((phase) =>
        ["first", "second", "third"].map((name) => `${name}.${phase}`),
      ),
      ...["third", "second", "first"].map((name) => `${name}.response upstream 200`),
      ...["first", "second", "third"].map((name) => `${name}.log 200`),
    ]);
  });

  test("is that of the instance where it has a priority", async () => {
    const { get } = await start([
      { name: "first", priority: -1 },
      { name: "second" },
      { name: "third", priority: 99 },
    ]);
    await get("/");
    expect(trail.take().slice(0, 3)).toEqual([
      "third.pre_auth",
      "second.pre_auth",
      "first.pre_auth",
    ]);
  });

  test("is the same with slow plugins", async () => {
    const { get } = await start([
      { name: "first", config: { slow: true } },
      { name: "second" },
      { name: "third", config: { slow: true } },
    ]);
    expect((await get("/")).status).toBe(200);
    expect(trail.take().slice(0, 4)).toEqual([
      "first.pre_auth",
      "second.pre_auth",
      "third.pre_auth",
      "first.auth",
    ]);
  });
});

describe("scopes of instances", () => {
  const consumers = [{ username: "alice" }, { username: "bob" }];
  const first = { name: "first" };
  const services = [{ name: "web" }, { name: "other" }];

  async function places(plugins: readonly PluginSketch[]) {
    const started = await start([], { consumers });
    await started.apply({
      services: services.map(({ name }) => ({ name, targets: [{ port: started.originPort }] })),
      routes: [
        { name: "all", service_id: "web" },
        { name: "r1", service_id: "web", paths: ["/r1"] },
        { name: "r2", service_id: "other", paths: ["/r2"] },
      ],
      plugins,
    });
    const tags = async (path: string) => {
      trail.take();
      await started.get(path);
      return trail.take().filter((step) => step.endsWith(".access"));
    };
    return { all: await tags("/"), r1: await tags("/r1"), r2: await tags("/r2") };
  }

  test("global: everywhere", async () => {
    const step = ["first(g).access"];
    expect(await places([{ ...first, config: { tag: "g" } }])).toEqual({
      all: step,
      r1: step,
      r2: step,
    });
  });

  test("service: for all its routes", async () => {
    expect(await places([{ ...first, serviceId: "other", config: { tag: "s" } }])).toEqual({
      all: [],
      r1: [],
      r2: ["first(s).access"],
    });
  });

  test("route: only there", async () => {
    expect(await places([{ ...first, routeId: "r1", config: { tag: "r" } }])).toEqual({
      all: [],
      r1: ["first(r).access"],
      r2: [],
    });
  });

  test("of several instances the one of the most specific scope runs", async () => {
    const at = (tag: string, ids: object): PluginSketch => ({
      ...first,
      label: tag,
      config: { tag },
      ...ids,
    });
    const found = await places([
      at("g", {}),
      at("s", { serviceId: "web" }),
      at("r", { routeId: "r1" }),
    ]);
    expect(found).toEqual({
      all: ["first(s).access"],
      r1: ["first(r).access"],
      r2: ["first(g).access"],
    });
  });

  test("of a plugin that allows several all run", async () => {
    const many = (label: string, ids: object): PluginSketch => ({
      name: "many",
      label,
      config: { tag: label },
      ...ids,
    });
    const found = await places([many("a", {}), many("b", {}), many("c", { routeId: "r1" })]);
    expect(found.all).toEqual(["many(a).access", "many(b).access"]);
    expect(found.r1).toEqual(["many(a).access", "many(b).access", "many(c).access"]);
  });

  test.each([
    ["consumer", { consumerId: "alice" }, { all: "c", r1: "c", r2: "c" }],
    [
      "consumer and service",
      { consumerId: "alice", serviceId: "web" },
      { all: "c", r1: "c", r2: "g" },
    ],
    ["consumer and route", { consumerId: "alice", routeId: "r1" }, { all: "g", r1: "c", r2: "g" }],
    ["another consumer", { consumerId: "bob" }, { all: "g", r1: "g", r2: "g" }],
  ])("%s: from the access phase on, once the client is known", async (_, ids, expected) => {
    const found = await places([
      { name: "second", config: { consumer: "alice" } },
      { ...first, label: "g", config: { tag: "g" } },
      { ...first, label: "c", config: { tag: "c" }, ...ids },
    ]);
    const of = (steps: string[]) => steps.filter((step) => step.startsWith("first"));
    expect(of(found.all)).toEqual([`first(${expected.all}).access`]);
    expect(of(found.r1)).toEqual([`first(${expected.r1}).access`]);
    expect(of(found.r2)).toEqual([`first(${expected.r2}).access`]);
  });

  test("the most specific of those with a consumer wins too", async () => {
    const found = await places([
      { name: "second", config: { consumer: "alice" } },
      { ...first, label: "r", config: { tag: "r" }, routeId: "r1" },
      { ...first, label: "c", config: { tag: "c" }, consumerId: "alice" },
      { ...first, label: "cs", config: { tag: "cs" }, consumerId: "alice", serviceId: "web" },
      { ...first, label: "cr", config: { tag: "cr" }, consumerId: "alice", routeId: "r1" },
    ]);
    const of = (steps: string[]) => steps.filter((step) => step.startsWith("first"));
    expect(of(found.r1)).toEqual(["first(cr).access"]);
    expect(of(found.all)).toEqual(["first(cs).access"]);
    expect(of(found.r2)).toEqual(["first(c).access"]);
  });

  test("a request without a route runs the global ones", async () => {
    const started = await start([{ name: "first" }, { name: "second", serviceId: "web" }], {
      routes: [{ name: "all", service_id: "web", hosts: ["elsewhere.example"] }],
    });
    expect((await started.get("/")).status).toBe(404);
    expect(trail.take()).toEqual([
      "first.pre_auth",
      "first.auth",
      "first.access",
      "first.request",
      "first.response gateway 404",
      "first.log 404",
    ]);
  });
});

describe("a condition", () => {
  test("disables all phases of an instance for requests that do not match", async () => {
    const { get } = await start([
      { name: "first", when: { header: { "x-on": "1" }, not: { path: ["/never"] } } },
    ]);
    await get("/");
    expect(trail.take()).toEqual([]);
    await get("/", { "X-On": "1" });
    expect(trail.take().length).toBe(6);
    await get("/never/x", { "X-On": "1" });
    expect(trail.take()).toEqual([]);
  });
});

describe("a response of a plugin", () => {
  test("ends the request; only plugins outside of it see the response, and all log", async () => {
    const { get } = await start([
      { name: "first" },
      { name: "second", config: { rejects: ["access"] } },
      { name: "third" },
    ]);
    const { status, headers, body, seen } = await get("/");
    expect(seen).toBeNull();
    expect(status).toBe(403);
    expect(body).toContain("403 Forbidden: no");
    expect(headers.get("x-seen-by")).toBe("first");
    const steps = trail.take();
    expect(steps).not.toContain("third.access");
    expect(steps.slice(-4)).toEqual([
      "first.response gateway 403",
      "first.log 403",
      "second.log 403",
      "third.log 403",
    ]);
  });

  test("may be a custom one", async () => {
    const { get, send } = await start([{ name: "second", config: { replies: ["pre_auth"] } }]);
    const { status, body, headers } = await get("/");
    expect({ status, body }).toEqual({ status: 202, body: "own answer" });
    expect(headers.get("x-seen-by")).toBeNull();
    expect((await send("HEAD", "/")).body).toBe("");
  });
});

describe("a failing plugin", () => {
  test.each(["pre_auth", "auth", "access", "request"])(
    "refuses the request where it fails closed: %s",
    async (phase) => {
      for (const slow of [false, true]) {
        const { get, plane } = await start([{ name: "first", config: { throws: [phase], slow } }]);
        const { status, body, seen } = await get("/");
        expect(status).toBe(500);
        expect(body).not.toContain("on demand");
        expect(seen).toBeNull();
        expect(plane.log.some(({ message }) => message === "a plugin failed")).toBe(true);
        await scene?.stop();
        scene = null;
      }
    },
  );

  test("is skipped where it fails open, or where the instance is set to", async () => {
    const { get, apply } = await start([{ name: "open", config: { throws: ["access"] } }]);
    expect((await get("/")).status).toBe(200);
    await apply({
      plugins: [{ name: "open", config: { throws: ["access"] }, onError: "closed" }],
    });
    expect((await get("/")).status).toBe(500);
  });

  test("in a later phase is logged and changes nothing", async () => {
    const { get } = await start([
      { name: "first", config: { throws: ["response", "log"] } },
      { name: "second" },
    ]);
    const { status, headers } = await get("/");
    expect(status).toBe(200);
    expect(headers.get("x-seen-by")).toBe("second");
    expect(trail.take()).toContain("second.log 200");
  });
});

describe("instances", () => {
  test("survive unrelated changes, and are closed on their own", async () => {
    const { apply, get } = await start([{ name: "first", config: { tag: "1" } }]);
    await apply({ routes: [{ name: "new", service_id: "web", paths: ["/new"] }] });
    await apply({ plugins: [{ name: "second" }] });
    expect(trail.take()).toEqual([]);
    await apply({ plugins: [{ name: "first", config: { tag: "2" } }] });
    expect(trail.take()).toEqual(["first(1).close"]);
    await get("/");
    expect(trail.take()[0]).toBe("first(2).pre_auth");
    await apply({ removedPlugins: ["first"] });
    expect(trail.take()).toEqual(["first(2).close"]);
  });

  test("of the version that a request began with serve it to its end", async () => {
    let release: (() => void) | null = null;
    const started = await start([{ name: "first", config: { tag: "old" } }], {
      answer: () =>
        new Promise<Response>((resolve) => {
          release = () => resolve(new Response("late"));
        }),
    });
    const pending = started.get("/");
    await eventually(() => release !== null);
    await started.apply({ plugins: [{ name: "first", config: { tag: "new" } }] });
    (release as (() => void) | null)?.();
    expect((await pending).headers.get("x-seen-by")).toBe("first(old)");
  });
});
