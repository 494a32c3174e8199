// access-policy on a real data plane: who is allowed, denied or challenged, before and after authentication.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hashToken } from "../../../src/crypto/token.ts";
import accessPolicy from "../../../src/plugins/access-policy.ts";
import type { AnyPlugin } from "../../../src/pdk/definition.ts";
import { definePlugin, httpScopes } from "../../../src/pdk/definition.ts";
import { config } from "../../../src/pdk/fields.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";

/** Keeps what was noted about the last request. */
let noted: readonly string[] = [];
const notes: AnyPlugin = definePlugin({
  name: "notes",
  summary: "Keeps reasons",
  description: "",
  group: "observability",
  order: 1,
  phases: ["log"],
  scopes: httpScopes,
  config: config({}),
  example: {},
  onError: "open",
  create: () => ({
    log(context) {
      noted = [...context.reasons];
    },
  }),
});

let scene: PluginScene;
beforeAll(async () => {
  scene = await pluginScene({
    ownPlugins: [notes],
    plugins: [{ name: "notes" }, { name: "access-policy" }],
    settings: { trusted_proxies: ["127.0.0.1"] },
    consumers: [
      { username: "alice", groups: ["staff"] },
      { username: "bob", groups: ["partners"] },
      { username: "guest", groups: ["guests"] },
    ],
    credentials: [
      { type: "key", consumerId: "alice", hash: hashToken("of alice") },
      { type: "key", consumerId: "bob", hash: hashToken("of bob") },
    ],
  });
});
afterAll(() => scene.stop());

const configure = (config: Record<string, unknown>, more: PolicyOptions = {}) =>
  scene.apply({ plugins: [{ name: "access-policy", ...more, config }] });
interface PolicyOptions {
  readonly consumerId?: string;
  readonly label?: string;
}
const withLogin = (config: Record<string, unknown> = {}) =>
  scene.apply({ plugins: [{ name: "key-auth", config }] });
const withoutLogin = () => scene.apply({ removedPlugins: ["key-auth"] });

const alice = { "X-API-Key": "of alice" };
const bob = { "X-API-Key": "of bob" };
const stranger = { "X-API-Key": "of nobody" };
const lan = { "X-Forwarded-For": "192.168.1.7" };

async function ask(headers: Record<string, string> = {}, path = "/") {
  const answer = await scene.get(path, headers);
  const who = answer.seen?.headers["x-consumer-username"] ?? null;
  return { status: answer.status, who, noted: noted.filter((each) => each.startsWith("policy.")) };
}

test("requests pass without rules", async () => {
  await configure({});
  expect(await ask()).toEqual({ status: 200, who: null, noted: [] });
});

describe("from home or with a login", () => {
  beforeAll(async () => {
    await withLogin({ anonymous_consumer: "guest" });
    await configure({
      rules: [{ name: "home", when: { cidr: ["192.168.0.0/16"] }, action: "allow" }],
      default: "challenge",
    });
  });
  afterAll(withoutLogin);

  test.each([
    ["from home", lan, 200, null, "policy.allow:home"],
    ["from home with a key that is none", { ...lan, ...stranger }, 200, null, "policy.allow:home"],
    ["from elsewhere with a key", alice, 200, "alice", "policy.challenge:default"],
    [
      "from elsewhere without a key, although there is an anonymous consumer",
      {},
      401,
      null,
      "policy.challenge:default",
    ],
    ["from elsewhere with a key that is none", stranger, 401, null, "policy.challenge:default"],
  ])("%s", async (_, headers, status, who, reason) => {
    expect(await ask(headers as Record<string, string>)).toEqual({ status, who, noted: [reason] });
  });

  test("a rejection has a challenge", async () => {
    const { headers } = await scene.get("/");
    expect(headers.get("www-authenticate")).toBe('ApiKey realm="sluice"');
  });

  test("preflight requests are not challenged", async () => {
    const headers = { Origin: "https://a.example", "Access-Control-Request-Method": "PUT" };
    expect((await scene.send("OPTIONS", "/", { headers })).status).toBe(200);
    expect((await scene.send("OPTIONS", "/")).status).toBe(401);
  });
});

test("without an authentication plugin, a challenge rejects", async () => {
  await configure({ default: "challenge" });
  const answer = await scene.get("/");
  expect(answer.status).toBe(401);
  expect(answer.headers.get("www-authenticate")).toBe('Sluice realm="sluice"');
  expect(noted).toContain("policy.unknown_client");
});

test("the first rule that matches decides, and no other is evaluated", async () => {
  await configure({
    rules: [
      { when: { method: ["POST"] }, action: "continue" },
      { when: { path: ["/open"] }, action: "allow" },
      { name: "all others", action: "deny" },
      { name: "never", action: "allow" },
    ],
  });
  expect((await scene.send("POST", "/")).status).toBe(200);
  expect(noted).toContain("policy.continue:rule-1");
  expect(await ask({}, "/open/x")).toEqual({
    status: 200,
    who: null,
    noted: ["policy.allow:rule-2"],
  });
  expect(await ask({}, "/")).toEqual({ status: 403, who: null, noted: ["policy.deny:all others"] });
});

test.each([
  ["/über", "/%C3%BCber/x"],
  ["/%c3%bcber", "/%C3%BCber"],
  ["=/a b", "/a%20b"],
  ["/a/../private", "/private"],
  ["/caf\u00e9 %2f", "/caf%C3%A9%20/"],
])("a rule for %p matches %p in every spelling", async (path, requested) => {
  await configure({ rules: [{ when: { path: [path] }, action: "deny" }] });
  expect((await scene.get(requested)).status).toBe(403);
  expect((await scene.get("/other")).status).toBe(200);
});

describe("a rejection", () => {
  test("is the gateway's page, with the configured status", async () => {
    await configure({ default: "deny", deny_status: 404 });
    const answer = await scene.get("/", { Accept: "application/json" });
    expect(answer.status).toBe(404);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(noted).toContain("policy.deny:default");
    expect(answer.seen).toBeNull();
  });
  test.each([
    ["<h1>no</h1>", "text/html; charset=utf-8"],
    ["no", "text/plain; charset=utf-8"],
  ])("has its own body %s", async (body, type) => {
    await configure({ default: "deny", deny_body: body });
    const answer = await scene.get("/");
    expect(answer).toMatchObject({ status: 403, body });
    expect(answer.headers.get("content-type")).toBe(type);
    expect(answer.headers.get("cache-control")).toBe("no-store");
  });
});

describe("rules on the client's identity are evaluated after authentication", () => {
  beforeAll(() => withLogin());
  afterAll(withoutLogin);
  const rules = [
    { name: "blocked", when: { cidr: ["203.0.113.0/24"] }, action: "deny" },
    { name: "health", when: { path: ["=/health"] }, action: "allow" },
    { name: "staff", when: { group: ["staff"] }, action: "allow" },
    { name: "bob reads", when: { consumer: ["bob"], method: ["GET"] }, action: "continue" },
    { name: "late home", when: { cidr: ["192.168.0.0/16"] }, action: "allow" },
  ];
  beforeAll(() => configure({ rules, default: "deny" }));
  test.each([
    [
      "before it, for every client",
      { ...alice, "X-Forwarded-For": "203.0.113.9" },
      "/",
      403,
      "policy.deny:blocked",
    ],
    ["before it, without a key", {}, "/health", 200, "policy.allow:health"],
    ["by group", alice, "/", 200, "policy.allow:staff"],
    ["by name", bob, "/", 200, "policy.continue:bob reads"],
  ])("%s", async (_, headers, path, status, reason) => {
    const answer = await ask(headers as Record<string, string>, path);
    expect(answer).toMatchObject({ status, noted: [reason] });
  });
  test("rules after them do not allow clients that authentication rejects", async () => {
    expect(await ask(lan)).toMatchObject({ status: 401, noted: [] });
  });
  test("and the default applies to the others", async () => {
    const answer = await scene.send("POST", "/", { headers: bob });
    expect(answer.status).toBe(403);
    expect(noted).toContain("policy.deny:default");
  });
  test("also when a rule excludes an identity", async () => {
    await configure({ rules: [{ when: { not: { group: ["staff"] } }, action: "deny" }] });
    expect((await ask(alice)).status).toBe(200);
    expect((await ask(bob)).status).toBe(403);
  });
  test("and a challenge among them rejects the anonymous consumer", async () => {
    await withLogin({ anonymous_consumer: "guest" });
    await configure({
      rules: [
        { when: { consumer: ["alice"] }, action: "allow" },
        { when: { path: ["/private"] }, action: "challenge" },
      ],
    });
    expect((await ask({}, "/")).who).toBe("guest");
    expect((await ask({}, "/private")).status).toBe(401);
    expect((await ask(bob, "/private")).status).toBe(200);
  });
});

test("an instance for one consumer replaces the general one", async () => {
  await withLogin();
  await configure({ default: "continue" });
  await configure({ default: "deny" }, { consumerId: "bob", label: "for bob" });
  expect((await ask(alice)).status).toBe(200);
  expect((await ask(bob)).status).toBe(403);
  await scene.apply({ removedPlugins: ["for bob"] });
  await withoutLogin();
});

describe("each kind of condition decides", () => {
  const hour = new Date().getUTCHours();
  const clock = (offset: number) => `${String((hour + offset + 24) % 24).padStart(2, "0")}:00`;
  test.each([
    [{ cidr: ["192.168.0.0/16"] }, lan, {}],
    [{ path: ["=/a"] }, {}, { path: "/a" }],
    [{ path: ["~^/[ab]$"] }, {}, { path: "/b" }],
    [{ host: ["*.example.com"] }, { Host: "a.example.com" }, {}],
    [{ header: { "X-A": "1" } }, { "X-A": "1" }, {}],
    [{ query: { a: "~^\\d+$" } }, {}, { path: "/?a=12" }],
    [{ cookie: { c: "*" } }, { Cookie: "c=1" }, {}],
    [{ not: { cidr: ["127.0.0.0/8"] } }, lan, {}],
    [{ ambiguous_path: true }, {}, { path: "/a;x" }],
    [{ path: ["/a"], not: { ambiguous_path: false } }, {}, { path: "/a%2Fb" }],
  ])("%j", async (when, headers, { path = "/" }: { path?: string }) => {
    await configure({ rules: [{ when, action: "deny" }] });
    expect((await ask({}, "/zz")).status).toBe(200);
    expect((await ask(headers as Record<string, string>, path)).status).toBe(403);
  });
  test.each([
    [{ method: ["GET"] }, 403],
    [{ tls_client: false }, 403],
    [{ tls_client: true }, 200],
    [{ country: ["DE"] }, 200],
    [{ asn: [64_500] }, 200],
    [{ time: { after: clock(-2), before: clock(2) } }, 403],
    [{ time: { after: clock(2), before: clock(4) } }, 200],
    [{}, 403],
    [{ not: {} }, 200],
  ])("%j gets %d", async (when, status) => {
    await configure({ rules: [{ when, action: "deny" }] });
    expect((await ask()).status).toBe(status);
  });
});

test.each([
  ["/", false, "plain"],
  ["/a/b.c/~d/", false, "plain"],
  ["/caf%C3%A9%20%40x", false, "escapes that stand for one text"],
  ["/a:b@c=d,e", false, "characters that need no escape"],
  ["/a;x", true, "a parameter"],
  ["/a%3bx", true, "an escaped parameter"],
  ["/a//b", true, "an empty segment"],
  ["/a//", true, "an empty segment at the end"],
  ["/a%2fb", true, "an escaped slash"],
  ["/a%5cb", true, "an escaped backslash"],
  ["/a%252Fb", false, "a percent sign is decoded once"],
])("ambiguous_path: %s is %p (%s)", async (path, isAmbiguous) => {
  await configure({ rules: [{ when: { ambiguous_path: true }, action: "deny" }] });
  expect((await ask({}, path)).status).toBe(isAmbiguous ? 403 : 200);
  await configure({ rules: [{ when: { ambiguous_path: false }, action: "deny" }] });
  expect((await ask({}, path)).status).toBe(isAmbiguous ? 200 : 403);
});

test("an instance for certain consumers is evaluated after authentication", async () => {
  await withLogin();
  const when = { consumer: ["bob"] };
  await scene.apply({ plugins: [{ name: "access-policy", when, config: { default: "deny" } }] });
  expect((await ask(alice)).status).toBe(200);
  expect((await ask(bob)).status).toBe(403);
  await withoutLogin();
});

test("two rules cannot have the same name", () => {
  const rules = [{ name: "a" }, { name: "" }, { name: "" }, { name: "a" }];
  expect(accessPolicy.check?.({ rules } as never)).toEqual([
    { path: "rules[3].name", message: "is already the name of rules[0]" },
  ]);
});
