// The place of a plugin in the execution order, in words.
import { expect, test } from "bun:test";
import { defaultPlace, orderKey, placeOf } from "../../../src/ui/pages/plugins/plugin-order.ts";
import type { PluginSchema } from "../../../src/ui/pages/plugins/plugin-values.ts";

const schema = (name: string, order: number, phases: readonly string[]) =>
  [name, { name, order, phases } as unknown as PluginSchema] as const;
const schemas = new Map([
  schema("ip-restriction", 900, ["pre_auth"]),
  schema("key-auth", 800, ["auth"]),
  schema("rate-limit", 500, ["access"]),
  schema("cors", 700, ["access", "response"]),
  schema("compress", 100, ["response"]),
  schema("page-cache", 200, ["response"]),
]);

type Instance = Parameters<typeof placeOf>[0];
const instance = (name: string, fields: object = {}) =>
  ({
    name,
    label: null,
    enabled: true,
    priority: null,
    route_id: null,
    service_id: null,
    consumer_id: null,
    stream_route_id: null,
    ...fields,
  }) as unknown as Instance;

const all = [
  instance("rate-limit", { label: "ten a second" }),
  instance("key-auth", { route_id: "shop" }),
  instance("ip-restriction"),
  instance("cors", { enabled: false }),
  instance("page-cache"),
  instance("compress"),
];
const [limit, keys, networks, , cache, compress] = all as [
  ...[Instance, Instance, Instance, Instance],
  ...[Instance, Instance],
];

test.each([
  [networks, "1st of 5", "the first phase"],
  [keys, "2nd of 5, after ip-restriction", "a phase later"],
  [limit, "3rd of 5, after key-auth", "disabled ones do not run"],
  [compress, "4th of 5, after ten a second", "responses pass in reverse order"],
  [cache, "5th of 5, after compress", "the last one"],
  [instance("cors"), "3rd of 6, after key-auth", "by priority in one phase"],
  [instance("cors", { priority: 1 }), "4th of 6, after ten a second", "an instance overrides it"],
  [instance("cors", { route_id: "blog" }), "2nd of 5, after ip-restriction", "of another route"],
  [instance("geo", { stream_route_id: "db" }), "alone", "stream routes run no HTTP plugin"],
])("case %#", (plugin, place) => expect(placeOf(plugin, all, schemas)).toBe(place));

test("sorting a list follows the same order", () => {
  const names = all.toSorted((a, b) => orderKey(a, schemas) - orderKey(b, schemas));
  expect(names.map(({ name }) => name)).toEqual([
    ...["ip-restriction", "key-auth", "cors", "rate-limit", "compress", "page-cache"],
  ]);
});

test("the description names the neighbors in the first phase", () => {
  const text = (name: string) => defaultPlace(schemas.get(name) as PluginSchema, schemas);
  expect(text("cors")).toBe("Runs before rate-limit");
  expect(text("page-cache")).toBe("Runs after compress");
  expect(text("key-auth")).toBe("Runs alone in its phase");
});
