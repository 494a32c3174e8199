// Instances of plugins: defaults, names resolved to ids, secrets encrypted, kept, replaced, removed and never shown.
import { describe, expect, test } from "bun:test";
import { as, pluginWorld, type PluginWorld, refusal } from "./plugin-fixture.ts";
import { options } from "./fixture.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests read configurations of every shape
type Config = any;

const storedOf = ({ control }: PluginWorld, id: string): Config =>
  control.changes.config.plugins.get(id)?.config;

/** The stored configuration with secrets in the clear. */
function openedOf(world: PluginWorld, id: string): Config {
  const text = JSON.stringify(storedOf(world, id), (_, value) =>
    typeof value?.sealed === "string" ? world.box.open(value.sealed) : value,
  );
  return JSON.parse(text);
}

async function make(world: PluginWorld, config: object, fields: object = {}) {
  const { view } = await world.control.plugins.create(
    { name: "sample", config, ...fields },
    options,
  );
  return view;
}

const defaults = {
  limit: 5,
  session: { key: null },
  extra: null,
  accounts: [],
  keys: [],
  headers: {},
  backend: null,
  only: [],
  free: null,
};

describe("a configuration", () => {
  test("is stored with all of its defaults", async () => {
    const world = pluginWorld();
    const view = await make(world, {}, { label: "one" });
    expect(view.config).toEqual(defaults);
    expect(storedOf(world, view.id)).toEqual(defaults);
    expect(world.control.plugins.get("one").view).toEqual(view);
  });

  test("names services and consumers; their ids are stored", async () => {
    const world = pluginWorld();
    const { control } = world;
    const service = (await control.resources.services.create({ name: "s" }, options)).view;
    const consumer = (await control.resources.consumers.create({ username: "c" }, options)).view;
    const route = (await control.resources.routes.create({ name: "r" }, options)).view;
    const view = await make(
      world,
      { backend: "s", only: ["c", consumer.id] },
      { consumer_id: "c", route_id: "r" },
    );
    expect(view).toMatchObject({
      consumer_id: consumer.id,
      route_id: route.id,
      service_id: null,
      config: { backend: service.id, only: [consumer.id, consumer.id] },
    });
  });

  test.each([
    ["an unknown plugin", { name: "none" }, 'name: plugin "none" does not exist'],
    ["a wrong number", { config: { limit: 11 } }, "config.limit: must be an integer from 1 to 10"],
    ["an unknown field", { config: { nope: 1 } }, "config.nope: is not a known field"],
    ["a list", { config: [] }, "config: must be an object"],
    [
      "an unknown service",
      { config: { backend: "s" } },
      'config.backend: service "s" does not exist',
    ],
    [
      "an unknown consumer",
      { config: { only: ["x"] } },
      'config.only[0]: consumer "x" does not exist',
    ],
    ["an unknown route", { route_id: "r" }, 'route_id: route "r" does not exist'],
    ["a secret that is a number", { config: { token: 5 } }, "config.token: must be a string"],
    [
      "a secret that is sealed already",
      { config: { token: { sealed: "sealed:1:00000000:AAAA" } } },
      'config.token: must be a text or {"$secret": "name"}',
    ],
    [
      "a secret that is an object",
      { config: { token: { sealed: "x" } } },
      'config.token: must be a text or {"$secret": "name"}',
    ],
    [
      "a reference with more in it",
      { config: { token: { $secret: "x", y: 1 } } },
      'config.token: must be a text or {"$secret": "name"}',
    ],
    [
      "a reference to nothing",
      { config: { token: { $secret: "x" } } },
      'config.token: there is no secret "x"',
    ],
    [
      "a sealed text where anything goes, which would need a key at the next start",
      { config: { free: [{ sealed: "sealed:1:00000000:AAAA" }] } },
      'config.free[0]: must be a text or {"$secret": "name"}',
    ],
    [
      "a sealed text in its condition",
      { when: { header: { sealed_x: "sealed:1:00000000:AAAA" } } },
      'when.header.sealed_x: must be a text or {"$secret": "name"}',
    ],
    ["a required secret that is not there", { name: "strict" }, "config.key: is required"],
  ])("with %s is rejected", async (_, fields, message) => {
    const { control } = pluginWorld();
    const write = control.plugins.create({ name: "sample", ...fields }, options);
    expect(await refusal(write)).toBe(`400 ${message}`);
  });
});

const full = {
  token: "s-token",
  session: { key: "s-key" },
  extra: { pin: "s-pin" },
  accounts: [
    { username: "a", password: "s-a" },
    { username: "b", password: "s-b" },
  ],
  keys: ["s-1", "s-2"],
  headers: { "x-one": "s-h1" },
};

describe("secrets", () => {
  test("are encrypted, and not in any response", async () => {
    const world = pluginWorld();
    const view = await make(world, full, { label: "x" });
    expect(JSON.stringify(view)).not.toContain("s-");
    expect(JSON.stringify(view)).not.toContain("sealed");
    expect(view.config).toEqual({
      ...defaults,
      extra: {},
      session: {},
      accounts: [
        { username: "a", level: true },
        { username: "b", level: true },
      ],
      keys: [null, null],
    });
    expect(JSON.stringify(storedOf(world, view.id))).not.toContain('"s-');
    expect(openedOf(world, view.id)).toMatchObject(full);
    expect(world.control.plugins.list([]).view).toEqual([view]);
  });

  test("stay when what was read is sent back, and when they are sent again; then nothing changes", async () => {
    const world = pluginWorld();
    const { plugins, changes } = world.control;
    const view = await make(world, full);
    const { revision } = changes;
    const stored = storedOf(world, view.id);
    await plugins.replace(view.id, view, options);
    await plugins.replace(view.id, { name: "sample", config: full }, options);
    await plugins.patch(view.id, { config: { token: "s-token" } }, options);
    await plugins.patch(view.id, { config: view.config }, options);
    expect(changes.revision).toBe(revision);
    expect(storedOf(world, view.id)).toBe(stored);
  });

  test("stay when a write does not mention them", async () => {
    const world = pluginWorld();
    const { id } = await make(world, full);
    await world.control.plugins.replace(id, { name: "sample", config: { limit: 7 } }, options);
    // A removed object loses its secrets.
    expect(openedOf(world, id)).toEqual({
      ...defaults,
      limit: 7,
      token: "s-token",
      session: { key: "s-key" },
      headers: { "x-one": "s-h1" },
    });
  });

  test("in lists belong to the item with the same name", async () => {
    const world = pluginWorld();
    const { id } = await make(world, full);
    const accounts = [{ username: "c", password: "s-c" }, { username: "b" }, { username: "a" }];
    await world.control.plugins.patch(id, { config: { accounts } }, options);
    expect(openedOf(world, id).accounts).toEqual([
      { username: "c", password: "s-c", level: true },
      { username: "b", password: "s-b", level: true },
      { username: "a", password: "s-a", level: true },
    ]);
    const stranger = { config: { accounts: [{ username: "d" }] } };
    expect(await refusal(world.control.plugins.patch(id, stranger, options))).toBe(
      "400 config.accounts[0].password: is required",
    );
    await world.control.plugins.patch(id, { config: { keys: [null, "s-3", "s-4"] } }, options);
    expect(openedOf(world, id).keys).toEqual(["s-1", "s-3", "s-4"]);
  });

  test("are replaced one by one, and removed by null", async () => {
    const world = pluginWorld();
    const { id } = await make(world, full);
    const { plugins } = world.control;
    const patch = (config: object) => plugins.patch(id, { config }, options);
    await patch({ token: "s-new", session: { key: null }, headers: { "x-two": "s-h2" } });
    expect(openedOf(world, id)).toMatchObject({
      token: "s-new",
      session: { key: null },
      extra: { pin: "s-pin" },
      headers: { "x-one": "s-h1", "x-two": "s-h2" },
    });
    await patch({ token: null, extra: null, headers: { "x-one": null }, limit: null });
    const { token, extra, headers } = openedOf(world, id);
    expect([token, extra, headers]).toEqual([undefined, null, { "x-two": "s-h2" }]);
    await plugins.replace(id, { name: "sample", config: { session: { key: "s-k" } } }, options);
    expect(openedOf(world, id).session).toEqual({ key: "s-k" });
    await patch({ session: null });
    expect(openedOf(world, id).session).toEqual({ key: null });
  });

  test("may be references; the name is shown, kept and replaced", async () => {
    const world = pluginWorld();
    const { plugins } = world.control;
    const { secrets } = world.control.resources;
    for (const name of ["one", "two"]) await secrets.create({ name, value: "s-v" }, options);
    const view = await make(world, { token: { $secret: "one" }, keys: [{ $secret: "two" }] });
    expect(view.config).toMatchObject({ token: { $secret: "one" }, keys: [{ $secret: "two" }] });
    const { revision } = world.control.changes;
    await plugins.replace(view.id, view, options);
    await plugins.replace(view.id, { name: "sample", config: { keys: [null] } }, options);
    expect(world.control.changes.revision).toBe(revision);
    await plugins.patch(view.id, { config: { token: { $secret: "two" } } }, options);
    expect(storedOf(world, view.id).token).toEqual({ $secret: "two" });
    expect(await refusal(secrets.remove("two", { ...options, cascade: false }))).toBe(
      '409 secret "two" is used by plugin "sample"',
    );
    await plugins.patch(view.id, { config: { token: "s-own" } }, options);
    expect(openedOf(world, view.id).token).toBe("s-own");
  });

  test("are not passed to another plugin", async () => {
    const world = pluginWorld();
    const { id } = await make(world, { token: "s-token" });
    await world.control.resources.routes.create({ name: "r" }, options);
    const other = { name: "strict", route_id: "r" };
    const { plugins } = world.control;
    expect(await refusal(plugins.replace(id, other, options))).toBe("400 config.key: is required");
    await plugins.replace(id, { ...other, config: { key: "s-key" } }, options);
    expect(openedOf(world, id)).toEqual({ key: "s-key" });
  });

  test("are in no audit entry, log line, event or error", async () => {
    const world = pluginWorld();
    const { control, steps, logged } = world;
    const { id } = await make(world, full, { label: "x" });
    await control.plugins.patch(id, { config: { token: "s-new" } }, options);
    const wrong = { config: { token: "s-wrong", limit: 99, accounts: [{ password: "s-w" }] } };
    const message = await refusal(control.plugins.patch(id, wrong, options));
    await control.plugins.remove(id, { ...options, cascade: false });
    const audit = JSON.stringify(steps.commits.map((commit) => (commit as Config).audit));
    expect(audit).toContain('"token":"***"');
    const said = audit + logged.join() + message;
    expect(said).not.toMatch(/"s-|s-wrong|s-w"|sealed/);
  });
});

describe("instances", () => {
  test("are found by what they are attached to, by label and by plugin", async () => {
    const world = pluginWorld();
    const { plugins } = world.control;
    const { services, consumers } = world.control.resources;
    await services.create({ name: "s" }, options);
    await consumers.create({ username: "c" }, options);
    const on = await make(world, {}, { service_id: "s", label: "on-s" });
    const both = await make(world, {}, { service_id: "s", consumer_id: "c" });
    const all = await make(world, {});
    const ids = (name: string, value: string) =>
      plugins.list([[name, value]]).view.map(({ id }) => id);
    expect(ids("service_id", "s")).toEqual([on.id, both.id]);
    expect(ids("consumer_id", "c")).toEqual([both.id]);
    expect(ids("name", "sample")).toEqual([on.id, both.id, all.id]);
    expect(ids("name", "on-s")).toEqual([on.id]);
    expect(ids("q", "ON-")).toEqual([on.id]);
    // The name of the plugin is the name of no instance.
    expect(() => plugins.get("sample")).toThrow('plugin "sample" does not exist');
  });

  test("are deleted with what they are attached to, and protect what they reference", async () => {
    const world = pluginWorld();
    const { plugins } = world.control;
    const { services, consumers, routes } = world.control.resources;
    for (const name of ["s", "named"]) await services.create({ name }, options);
    await consumers.create({ username: "c" }, options);
    await routes.create({ name: "r" }, options);
    await make(world, { backend: "named" }, { service_id: "s", label: "first" });
    await make(world, {}, { consumer_id: "c", route_id: "r", label: "second" });
    const remove = { ...options, cascade: false };
    expect(await refusal(services.remove("named", remove))).toBe(
      '409 service "named" is used by plugin "first"',
    );
    expect((await services.remove("s", remove)).removed).toEqual(['plugin "first"']);
    expect((await consumers.remove("c", remove)).removed).toEqual(['plugin "second"']);
    await make(world, { backend: "named" }, { label: "third" });
    const cascade = { ...options, cascade: true };
    expect((await services.remove("named", cascade)).removed).toEqual(['plugin "third"']);
    expect(plugins.list([]).view).toEqual([]);
  });

  test("of a plugin that needs an admin are written and deleted by admins only, in every way", async () => {
    const world = pluginWorld();
    const { plugins } = world.control;
    const { routes } = world.control.resources;
    await routes.create({ name: "r" }, options);
    const body = { name: "guarded", label: "g", route_id: "r" };
    const message = "only an admin may write or delete an instance of guarded";
    expect(await refusal(plugins.create(body, as("editor")))).toBe(`403 ${message}`);
    expect(await refusal(plugins.create(body, { ...as("editor"), dryRun: true }))).toBe(
      `403 ${message}`,
    );
    const { view } = await plugins.create(body, as("admin"));
    const tries = [
      plugins.patch("g", { enabled: false }, as("editor")),
      plugins.replace("g", { name: "sample" }, as("editor")),
      plugins.remove("g", { ...as("editor"), cascade: false }),
      routes.remove("r", { ...as("editor"), cascade: false }),
    ];
    for (const one of tries) expect(await refusal(one)).toStartWith("403 ");
    const other = await make(world, {});
    const change = plugins.replace(other.id, { name: "guarded" }, as("editor"));
    expect(await refusal(change)).toBe(`403 ${message}`);
    await plugins.patch(other.id, { enabled: false }, as("editor"));
    await plugins.remove("g", { ...as("admin"), cascade: false });
    expect(plugins.list([]).view.map(({ id }) => id)).not.toContain(view.id);
  });

  test("of one plugin in one scope clash, unless the plugin allows several", async () => {
    const world = pluginWorld();
    await make(world, {}, { label: "a" });
    const again = world.control.plugins.create({ name: "sample" }, options);
    expect(await refusal(again)).toBe('409 name: sample exists already in this scope: plugin "a"');
    const label = world.control.plugins.create({ name: "guarded", label: "a" }, options);
    expect(await refusal(label)).toBe('409 label: plugin "a" exists already');
    for (const _ of [1, 2]) await world.control.plugins.create({ name: "guarded" }, options);
  });
});

test("plugins are described by name, with defaults and the kinds of texts", () => {
  const { plugins } = pluginWorld().control;
  expect(plugins.descriptions().map(({ name }) => name)).toEqual(["guarded", "sample", "strict"]);
  expect(plugins.description("sample")).toMatchObject({ defaults, needs_admin: false });
  const { schema } = JSON.parse(JSON.stringify(plugins.description("strict")));
  expect(schema).toMatchObject({
    type: "object",
    required: ["key"],
    properties: { key: { type: "string", writeOnly: true, "x-kind": "secret" } },
  });
  expect(() => plugins.description("none")).toThrow('plugin "none" does not exist');
});
