// Routes in shared memory: every field is read as written, defaults take no space, and versions are isolated.
import { describe, expect, test } from "bun:test";
import { RouteRecords } from "../../../src/dataplane/route-index.ts";
import { decode } from "../../../src/model/decode.ts";
import { type Route, routeInput } from "../../../src/model/route.ts";
import { decodeRoute, encodeRoute, isRecordOf } from "../../../src/snapshot/route-records.ts";
import { RouteStore } from "../../../src/supervisor/route-store.ts";
import { routeOf } from "../router/sample-routes.ts";

const defaults = decode(routeInput, {});

const full: Partial<Route> = {
  name: 'a "quoted" name, ünïcode \u2028 😀',
  service_id: "s",
  hosts: ["a.test", "*.b.test"],
  paths: [{ type: "regex", value: "^/x\\d" }],
  grpc_methods: [{ service: "a.B", method: "" }],
  grpc_idle_timeout: 1000,
  grpc_max_message_bytes: 4_194_304,
  methods: ["GET"],
  headers: [{ name: "a", op: "present", value: "" }],
  query: [{ name: "a", op: "equals", value: "1" }],
  cookies: [{ name: "a", op: "absent", value: "" }],
  client_cidrs: ["10.0.0.0/8"],
  protocols: ["https"],
  listener_ids: ["l"],
  priority: -5,
  strip_path: true,
  path_rewrite: { regex: "a", to: "b" },
  preserve_host: false,
  https_redirect: 301,
  timeouts: { ...defaults.timeouts, read_timeout: 5 },
  maintenance: { retry_after: 1, html: "<p>", bypass_cidrs: [] },
  websocket: false,
  tags: ["t"],
  description: "d",
};

describe("a record", () => {
  test("of a route with every field returns every field", () => {
    const route = routeOf({ id: "r", ...full });
    expect(decodeRoute(encodeRoute(route, defaults), defaults)).toEqual(route);
  });

  test.each(Object.entries(full))("returns %s when only that is set", (name, value) => {
    const route = routeOf({ id: "r", [name]: value });
    const text = encodeRoute(route, defaults);
    expect(decodeRoute(text, defaults)).toEqual(route);
    expect(text).toContain(`"${name}"`);
  });

  test("contains no field with its default", () => {
    const route = routeOf({ id: "r", hosts: ["a.test"] });
    const at = "2026-01-01T00:00:00.000Z";
    const text = encodeRoute(route, defaults);
    expect(JSON.parse(text)).toEqual({
      id: "r",
      hosts: ["a.test"],
      created_at: at,
      updated_at: at,
    });
    // Two schemes in another order are not the default.
    const turned = routeOf({ id: "r", protocols: ["http", "http"] });
    expect(decodeRoute(encodeRoute(turned, defaults), defaults)).toEqual(turned);
  });

  test("is found by its own id only", () => {
    const text = encodeRoute(routeOf({ id: "ab" }), defaults);
    expect(["ab", "a", "abc", ""].map((id) => isRecordOf(text, id))).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});

describe("the store of routes", () => {
  const routes = (count: number, description: string) =>
    Array.from({ length: count }, (_, index) => routeOf({ id: `r${index}`, description }));

  test("gives each version its own routes, and drops rolled back ones", async () => {
    const store = new RouteStore();
    const first = await store.write({ upserts: routes(50, "first"), removals: [] });
    store.commit();
    await store.write({ upserts: routes(20, "undone"), removals: ["r40"] });
    store.rollback();
    expect(store.whole().upserts).toHaveLength(50);
    const second = await store.write({ upserts: routes(10, "second"), removals: ["r30"] });
    store.commit();
    expect(second.removals).toEqual(["r30"]);
    const old = new RouteRecords(first.table!, null);
    const now = new RouteRecords(second.table!, old);
    expect(old.byId("r5").description).toBe("first");
    expect(old.byId("r30").description).toBe("first");
    expect(now.byId("r5").description).toBe("second");
    expect(now.byId("r15").description).toBe("first");
    expect(() => now.byId("r30")).toThrow("r30");
    const whole = store.whole();
    const all = new RouteRecords(whole.table!, null);
    const ids = whole.upserts.map((position) => all.at(position).id);
    expect(ids.sort()).toEqual(
      routes(50, "")
        .map(({ id }) => id)
        .filter((id) => id !== "r30")
        .sort(),
    );
  });

  test("leaves the records of workers readable while memory is reallocated", async () => {
    const store = new RouteStore();
    const first = await store.write({ upserts: routes(500, "x".repeat(100)), removals: [] });
    store.commit();
    for (let change = 0; change < 30; change++) {
      await store.write({ upserts: routes(500, `${change}`), removals: [] });
      store.commit();
    }
    expect(store.whole().table!.records.epoch).toBeGreaterThan(first.table!.records.epoch);
    expect(new RouteRecords(first.table!, null).byId("r7").description).toBe("x".repeat(100));
    expect(new RouteRecords(store.whole().table!, null).byId("r7").description).toBe("29");
  });

  test("sends the memory only to readers that do not have it", async () => {
    const store = new RouteStore();
    const bufferOf = async (upserts: Route[]) =>
      (await store.write({ upserts, removals: [] })).table!.records.buffer;
    const first = await bufferOf(routes(50, "first"));
    expect(first).toBe(store.whole().table!.records.buffer);
    store.rollback();
    // Readers of the committed version have no memory yet.
    expect(await bufferOf(routes(50, "first"))).not.toBeNull();
    store.commit();
    expect(await bufferOf(routes(1, "small"))).toBeNull();
    store.commit();
    expect(await bufferOf(routes(2_000, "large"))).not.toBeNull();
    store.rollback();
    // The memory has moved, and readers of the committed version never got it.
    expect(await bufferOf(routes(1, "small"))).not.toBeNull();
    store.commit();
    expect(await bufferOf(routes(1, "small"))).toBeNull();
  });

  test("writes nothing without a change", async () => {
    const store = new RouteStore();
    const change = await store.write({ upserts: [], removals: [] });
    expect(change).toEqual({ table: null, upserts: [], removals: [] });
  });
});
