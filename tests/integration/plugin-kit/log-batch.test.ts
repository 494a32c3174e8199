// Plugins with `logBatch`: called once for each request, with the facts of that request. On a real data plane.
import { afterEach, describe, expect, test } from "bun:test";
import { type AnyPlugin, definePlugin, httpScopes } from "../../../src/pdk/definition.ts";
import { Type as t } from "@sinclair/typebox";
import { config } from "../../../src/pdk/fields.ts";
import { type PluginScene, pluginScene } from "../../support/plugin-scene.ts";
import { eventually } from "../../support/poll.ts";

interface LogEntry {
  readonly tag: string;
  readonly path: string;
  readonly id: string;
  readonly asked: string | null;
  readonly client: string;
  readonly status: number | undefined;
  readonly bytesOut: number | undefined;
  readonly upstreamStatus: number | null | undefined;
  readonly hasTarget: boolean;
  readonly address: string | null;
  readonly route: string | null;
  readonly groups: readonly string[];
  readonly reasons: readonly string[];
  readonly isRemembered: boolean;
  /** Milliseconds from when the client began to when it came. */
  readonly afterMs: number;
}

let logged: (LogEntry | "closed")[] = [];
const requestsLogged = () => logged.filter((each) => each !== "closed");

/** Records its calls, and leaves marks on the request. */
const laterPlugin = (name: string, allowsMultiple: boolean): AnyPlugin =>
  definePlugin({
    name,
    summary: "Records its calls",
    description: "",
    group: "observability",
    order: 1,
    phases: ["log"],
    scopes: httpScopes,
    allowsMultiple,
    config: config({
      tag: t.String({ default: "", description: "Written down with each" }),
      throws: t.Boolean({ default: false, description: "Whether it fails" }),
    }),
    example: {},
    onError: "open",
    create(own) {
      const key = {};
      return {
        logBatch(context) {
          const { result } = context;
          logged.push({
            tag: own.tag,
            path: context.path,
            id: context.id,
            asked: context.header("x-asked"),
            client: context.clientAddress(),
            status: result?.status,
            bytesOut: result?.bytesOut,
            upstreamStatus: result?.upstreamStatus,
            hasTarget: result?.targetId !== null,
            address: result?.upstream?.address ?? null,
            route: context.route?.name ?? null,
            groups: [...context.groups],
            reasons: [...context.reasons],
            isRemembered: context.memory.get(key) !== undefined,
            afterMs: context.startedAt - Number(context.header("x-asked-at")),
          });
          context.note("seen");
          context.authenticate(null, { groups: ["seen"] });
          context.memory.set(key, true);
          if (own.throws) throw new Error("on demand");
        },
        close: () => void logged.push("closed"),
      };
    },
  });

/** One that acts before the end, so that the chain has a request handler. */
const marks: AnyPlugin = definePlugin({
  name: "marks",
  summary: "Notes a reason",
  description: "",
  group: "access",
  order: 5,
  phases: ["access"],
  scopes: httpScopes,
  config: config({}),
  example: {},
  onError: "open",
  create: () => ({
    access(context) {
      context.note(`marked${context.path}`);
      return undefined;
    },
  }),
});

/** Sends a copy of each request on before the request itself. */
const copies: AnyPlugin = definePlugin({
  name: "copies",
  summary: "Sends copies",
  description: "",
  group: "traffic",
  order: 5,
  phases: ["request"],
  scopes: httpScopes,
  config: config({}),
  example: {},
  onError: "open",
  create: () => ({
    async request(context) {
      await context.refetch({ method: context.method, maxBytes: 1000 });
      return undefined;
    },
  }),
});

/** Logs the end of requests it has seen. */
const inner: AnyPlugin = definePlugin({
  name: "inner",
  summary: "Records what it has seen and what it logs",
  description: "",
  group: "observability",
  order: 1,
  phases: ["request", "log"],
  scopes: httpScopes,
  config: config({}),
  example: {},
  onError: "open",
  create: () => ({
    request: () => undefined,
    logBatch: (context) => void ends.push(`${context.path} ${context.result?.status}`),
  }),
});
let ends: string[] = [];

let scene: PluginScene | null = null;
afterEach(async () => {
  await scene?.stop();
  scene = null;
});

async function start(
  plugins: readonly {
    name: string;
    label?: string;
    routeId?: string;
    config?: object;
    when?: object;
  }[],
) {
  logged = [];
  ends = [];
  scene = await pluginScene({
    ownPlugins: [laterPlugin("later", true), laterPlugin("single", false), marks, copies, inner],
    plugins: plugins as never,
    routes: [{ name: "numbers", service_id: "web", paths: ["/n/"] }],
    answer(request) {
      const number = Number(new URL(request.url).pathname.slice(3));
      return new Response("x".repeat(number), { status: number % 2 === 0 ? 200 : 418 });
    },
  });
  return scene;
}

/** Waits until there are so many, and no more. */
async function heardOf(count: number): Promise<void> {
  await eventually(() => (logged.length < count ? undefined : true));
  expect(logged).toHaveLength(count);
}

const range = (count: number) => Array.from({ length: count }, (_, at) => at);

describe.each([
  ["alone", [{ name: "later" }]],
  ["behind a plugin that acts before the end", [{ name: "later" }, { name: "marks" }]],
])("%s", (_, plugins) => {
  test("every request is logged once, with its own facts", async () => {
    const { get, plane, originPort } = await start(plugins);
    const ids: (string | null)[] = [];
    const lengths: number[] = [];
    // Some at once, and some after the others.
    const ask = async (lane: number) => {
      for (let number = lane; number < 300; number += 10) {
        const path = number % 3 === 0 ? `/elsewhere/${number}` : `/n/${number}`;
        const { headers, body } = await get(path, {
          "x-asked": `number ${number}`,
          "x-asked-at": String(Date.now()),
        });
        ids[number] = headers.get("x-request-id");
        lengths[number] = Buffer.byteLength(body);
      }
    };
    await Promise.all(range(10).map(ask));
    await heardOf(300);
    const isMarked = plugins.length > 1;
    for (const number of range(300)) {
      const asked = `number ${number}`;
      const found = requestsLogged().filter((each) => each.asked === asked);
      expect(found).toHaveLength(1);
      const { afterMs, ...facts } = found[0] as LogEntry;
      const isRouted = number % 3 !== 0;
      const path = isRouted ? `/n/${number}` : `/elsewhere/${number}`;
      const status = isRouted ? (number % 2 === 0 ? 200 : 418) : 404;
      const reasons = isMarked ? [`marked${path}`] : [];
      expect(facts).toEqual({
        tag: "",
        path,
        id: ids[number] ?? "",
        asked,
        client: "127.0.0.1",
        status,
        bytesOut: lengths[number] ?? 0,
        upstreamStatus: isRouted ? status : null,
        hasTarget: isRouted,
        address: isRouted ? `127.0.0.1:${originPort}` : null,
        route: isRouted ? "numbers" : null,
        groups: [],
        reasons,
        isRemembered: false,
      });
      // Rounded, by a clock that is compared with that of the system once a second.
      expect(afterMs).toBeGreaterThanOrEqual(-3);
      expect(afterMs).toBeLessThan(60_000);
    }
    expect((await fetch(`${plane.url}/n/2`)).status).toBe(200);
  });

  test("a change right after the request does not lose the entry", async () => {
    const { get, apply } = await start(plugins);
    await get("/n/2");
    await apply({ removedPlugins: ["later"] });
    await heardOf(2);
    expect(logged[0]).toMatchObject({ path: "/n/2" });
    expect(logged[1]).toBe("closed");
    await get("/n/4");
    expect(logged).toHaveLength(2);
  });

  test("nor does a stop right after the request", async () => {
    const { get, stop } = await start(plugins);
    scene = null;
    await get("/n/2");
    await stop();
    expect(logged).toMatchObject([{ path: "/n/2" }, "closed"]);
  });
});

test("one that fails stops neither the others nor the next request", async () => {
  const { get } = await start([
    { name: "later", label: "a", config: { tag: "a", throws: true } },
    { name: "later", label: "b", config: { tag: "b" } },
  ]);
  for (const number of range(70)) await get(`/n/${number}`);
  await heardOf(140);
  for (const number of range(70)) {
    const found = requestsLogged().filter(({ path }) => path === `/n/${number}`);
    expect(found.map(({ tag }) => tag).sort()).toEqual(["a", "b"]);
  }
});

test("a copy is logged only by plugins that saw it", async () => {
  const { get, requests } = await start([{ name: "later" }, { name: "copies" }, { name: "inner" }]);
  await get("/n/2");
  await heardOf(1);
  expect(requests).toHaveLength(2);
  expect(ends).toEqual(["/n/2 200", "/n/2 200"]);
});

test("a condition applies to each request separately", async () => {
  const { get } = await start([{ name: "later", when: { header: { "x-on": "1" } } }]);
  for (const number of range(40)) await get(`/n/${number}`, { "x-on": String(number % 10) });
  await heardOf(4);
  expect(requestsLogged().map(({ path }) => path)).toEqual(["/n/1", "/n/11", "/n/21", "/n/31"]);
});

test.each([
  ["later", ["everywhere", "here"]],
  ["single", ["here"]],
])("instances of %s log the requests of their scope", async (name, here) => {
  const { get } = await start([
    { name, label: "everywhere", config: { tag: "everywhere" } },
    { name, label: "here", routeId: "numbers", config: { tag: "here" } },
  ]);
  for (const number of range(40)) await get(number % 2 === 0 ? `/n/${number}` : `/off/${number}`);
  await heardOf(20 + 20 * here.length);
  const tagsOf = (isRouted: boolean) =>
    new Set(
      requestsLogged()
        .filter(({ path }) => path.startsWith("/n/") === isRouted)
        .map(({ tag }) => tag),
    );
  expect([...tagsOf(true)].sort()).toEqual(here);
  expect([...tagsOf(false)]).toEqual(["everywhere"]);
});
