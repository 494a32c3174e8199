// acl on a real data plane: which groups are allowed, and what the target receives.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hashToken } from "../../../src/crypto/token.ts";
import { authScopes, definePlugin } from "../../../src/pdk/definition.ts";
import { config } from "../../../src/pdk/fields.ts";
import acl from "../../../src/plugins/acl.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";

/** Authenticates every client that claims so, as a provider with users of its own does. */
const provider = definePlugin({
  name: "provider",
  summary: "",
  description: "",
  group: "authentication",
  order: 8000,
  phases: ["auth"],
  scopes: authScopes,
  config: config({}),
  example: {},
  onError: "closed",
  create: () => ({
    auth(context) {
      const groups = context.header("x-test-groups");
      if (groups !== null) context.authenticate(null, { groups: groups.split("|") });
      return undefined;
    },
  }),
});

let scene: PluginScene;

beforeAll(async () => {
  scene = await pluginScene({
    ownPlugins: [provider],
    consumers: [
      { username: "alice", groups: ["staff", "cooks"] },
      { username: "bob", groups: ["guests"] },
      { username: "carol" },
      { username: "anyone", groups: ["public"] },
    ],
    credentials: ["alice", "bob", "carol"].map((name) => ({
      type: "key" as const,
      consumerId: name,
      hash: hashToken(name),
    })),
  });
});
afterAll(() => scene.stop());

const use = (own: Record<string, unknown>, anonymous: string | null = null) =>
  scene.apply({
    removedPlugins: ["provider"],
    plugins: [
      { name: "key-auth", config: { anonymous_consumer: anonymous } },
      { name: "acl", config: own },
    ],
  });
const statusOf = async (key: string) =>
  (await scene.get("/", key === "" ? {} : { "X-API-Key": key })).status;

describe("a list of groups", () => {
  test("that are allowed denies all others", async () => {
    await use({ allow: ["staff", "owners"] });
    expect(await statusOf("alice")).toBe(200);
    expect(await statusOf("bob")).toBe(403);
    expect(await statusOf("carol")).toBe(403);
    expect(await statusOf("")).toBe(401);
  });

  test("that are denied allows all others", async () => {
    await use({ deny: ["guests"] });
    expect(await statusOf("alice")).toBe(200);
    expect(await statusOf("bob")).toBe(403);
    expect(await statusOf("carol")).toBe(200);
  });

  test("is compared exactly", async () => {
    await use({ allow: ["Staff", "cook"] });
    expect(await statusOf("alice")).toBe(403);
  });

  test("checks the groups of the anonymous consumer", async () => {
    await use({ allow: ["public"] }, "anyone");
    expect(await statusOf("")).toBe(200);
    expect(await statusOf("bob")).toBe(403);
    await use({ allow: ["staff"] }, "anyone");
    expect(await statusOf("")).toBe(403);
    await use({ deny: ["public"] }, "anyone");
    expect(await statusOf("")).toBe(403);
  });
});

test("without authentication no client is allowed, also with a deny list", async () => {
  for (const own of [{ allow: ["staff"] }, { deny: ["guests"] }]) {
    await scene.apply({ removedPlugins: ["key-auth"], plugins: [{ name: "acl", config: own }] });
    const { status, body, seen } = await scene.get("/", { "X-Consumer-Groups": "staff" });
    expect(status).toBe(403);
    expect(body).not.toContain("staff");
    expect(seen).toBeNull();
  }
});

describe("the target", () => {
  test("receives the groups only when configured", async () => {
    const lie = { "X-API-Key": "alice", "X-Consumer-Groups": "owners" };
    await use({ allow: ["staff"] });
    expect((await scene.get("/", lie)).seen?.headers).not.toHaveProperty("x-consumer-groups");
    await use({ allow: ["staff"], hide_groups_header: false });
    expect((await scene.get("/", lie)).seen?.headers["x-consumer-groups"]).toBe("staff, cooks");
    await use({ deny: ["x"], hide_groups_header: false });
    const { seen } = await scene.get("/", { ...lie, "X-API-Key": "carol" });
    expect(seen?.headers).not.toHaveProperty("x-consumer-groups");
  });

  test("receives external groups as far as representable, and they count", async () => {
    await scene.apply({
      removedPlugins: ["key-auth"],
      plugins: [
        { name: "provider" },
        { name: "acl", config: { allow: ["a b", "x"], hide_groups_header: false } },
      ],
    });
    const { status, seen } = await scene.get("/", { "X-Test-Groups": "a b|evil, admins|x" });
    expect(status).toBe(200);
    expect(seen?.headers["x-consumer-groups"]).toBe("x");
    expect((await scene.get("/", { "X-Test-Groups": "evil, x" })).status).toBe(403);
    await scene.apply({ plugins: [{ name: "acl", config: { deny: ["guests"] } }] });
    expect((await scene.get("/", { "X-Test-Groups": "others" })).status).toBe(200);
    expect((await scene.get("/", { "X-Test-Groups": "guests" })).status).toBe(403);
  });
});

test.each([
  ["neither", {}, [""]],
  ["both", { allow: ["a"], deny: ["b"] }, ["deny"]],
  ["allow alone", { allow: ["a"] }, []],
  ["deny alone", { deny: ["b"] }, []],
])("allow or deny is needed, not both: %s", (_, lists, paths) => {
  const check = acl.check as unknown as (config: object) => readonly { path: string }[];
  expect(check({ allow: [], deny: [], ...lists }).map(({ path }) => path)).toEqual(paths);
});
