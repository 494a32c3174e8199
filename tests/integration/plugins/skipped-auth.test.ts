// Authentication plugins hide credentials from targets also when authentication is skipped or the client is anonymous; others go upstream.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hashToken } from "../../../src/crypto/token.ts";
import { createKey } from "./issuer.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";

let scene: PluginScene;
const users = [{ username: "inline", password_hash: await Bun.password.hash("x") }];
const jwks = { keys: [(await createKey("RS256", "r1")).jwk] };
const letsAllIn = { name: "access-policy", config: { default: "allow" } };

beforeAll(async () => {
  scene = await pluginScene({
    consumers: [{ username: "alice" }, { username: "guest" }],
    credentials: [
      { type: "key", consumerId: "alice", hash: hashToken("of alice") },
      { type: "basic", consumerId: "alice", identifier: "alice" },
      { type: "jwt", consumerId: "alice", identifier: "app", algorithm: "HS256", secret: "s" },
    ],
  });
});
afterAll(() => scene.stop());

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const token = (iss: string) => `Bearer ${encoded({ alg: "HS256" })}.${encoded({ iss })}.c2ln`;
const basic = (name: string, password = "x") =>
  `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`;

let last: string | null = null;
async function use(name: string, config: Record<string, unknown> = {}): Promise<void> {
  const removedPlugins = last === null || last === name ? [] : [last];
  last = name;
  await scene.apply({ removedPlugins, plugins: [letsAllIn, { name, config }] });
}

async function authorization(value: string): Promise<string | undefined> {
  const { status, seen } = await scene.get("/", { Authorization: value });
  expect(status).toBe(200);
  return seen?.headers["authorization"];
}

test("keys, in fields, queries and cookies, and under names that applications read alike", async () => {
  await use("key-auth", { query_names: ["key"], cookie_names: ["key"] });
  const { seen } = await scene.get("/x?key=of+alice&a=1", {
    "X-API-Key": "of alice",
    x_api_key: "of alice",
    Cookie: "a=1; key=of alice",
  });
  expect(seen?.target).toBe("/x?a=1");
  expect(JSON.stringify(seen?.headers)).not.toContain("of alice");
  expect(seen?.headers["cookie"]).toBe("a=1");
  expect(seen?.headers["x-consumer-username"]).toBeUndefined();
});

describe("basic-auth", () => {
  test("removes the password of its own users", async () => {
    await use("basic-auth", { users });
    expect(await authorization(basic("inline"))).toBeUndefined();
    expect(await authorization(basic("alice"))).toBeUndefined();
  });

  test("keeps those of the application's users", async () => {
    expect(await authorization(basic("somebody"))).toBe(basic("somebody"));
    expect(await authorization("Bearer own")).toBe("Bearer own");
    expect(await authorization("Basic !")).toBe("Basic !");
  });

  test("keeps all when configured", async () => {
    await use("basic-auth", { users, hide_credentials: false });
    expect(await authorization(basic("inline"))).toBe(basic("inline"));
  });

  test("keeps all where its condition does not match", async () => {
    const when = { path: ["/elsewhere"] };
    await scene.apply({ plugins: [{ name: "basic-auth", config: { users }, when }] });
    expect(await authorization(basic("inline"))).toBe(basic("inline"));
  });
});

describe("jwt", () => {
  const issuer = ["https://id.test"];

  test("removes tokens of its issuers and of consumers' keys, valid or not", async () => {
    await use("jwt", { issuer, jwks, algorithms: ["HS256"] });
    expect(await authorization(token("https://id.test"))).toBeUndefined();
    expect(await authorization(token("app"))).toBeUndefined();
  });

  test("keeps those of others", async () => {
    expect(await authorization(token("the application"))).toBe(token("the application"));
    expect(await authorization("Bearer opaque")).toBe("Bearer opaque");
    expect(await authorization(basic("inline"))).toBe(basic("inline"));
  });

  test("removes all where any issuer is accepted", async () => {
    await use("jwt", { jwks });
    expect(await authorization(token("whoever"))).toBeUndefined();
    expect(await authorization("Bearer opaque")).toBe("Bearer opaque");
  });

  test("removes tokens in its own fields and parameters", async () => {
    await use("jwt", { jwks, header_names: ["X-Token"], query_names: ["t"] });
    const { seen } = await scene.get("/?t=a.b.c", { "X-Token": "a.b.c" });
    expect([seen?.target, seen?.headers["x-token"]]).toEqual(["/", undefined]);
  });
});

test("oidc removes tokens of its provider", async () => {
  const issuer = "http://127.0.0.1:9";
  await use("oidc", { issuer, client_id: "gateway" });
  expect(await authorization(token(issuer))).toBeUndefined();
  expect(await authorization(token("app"))).toBe(token("app"));
  expect(await authorization("Bearer opaque")).toBe("Bearer opaque");
});

test("hmac-auth removes signatures", async () => {
  await use("hmac-auth");
  const { status, seen } = await scene.get("/", { Signature: "a", "Signature-Input": "b" });
  expect(status).toBe(200);
  expect(Object.keys(seen?.headers ?? {})).not.toContain("signature");
  expect(Object.keys(seen?.headers ?? {})).not.toContain("signature-input");
});

test("ldap-auth removes every password, because only the directory knows its users", async () => {
  await use("ldap-auth", { url: "ldap://127.0.0.1:9", bind_dn: "uid=${username},dc=x" });
  expect(await authorization(basic("somebody"))).toBeUndefined();
  expect(await authorization("Bearer own")).toBe("Bearer own");
});

test("forward-auth removes Authorization only when configured", async () => {
  const url = "http://127.0.0.1:9";
  await use("forward-auth", { url, hide_credentials: true });
  expect(await authorization(basic("somebody"))).toBeUndefined();
  await use("forward-auth", { url });
  expect(await authorization(basic("somebody"))).toBe(basic("somebody"));
});

describe("the anonymous consumer", () => {
  test("removes invalid keys", async () => {
    await use("key-auth", { anonymous_consumer: "guest" });
    await scene.apply({ removedPlugins: ["access-policy"] });
    const { status, seen } = await scene.get("/", { "X-API-Key": "of alice once" });
    expect([status, seen?.headers["x-consumer-username"]]).toEqual([200, "guest"]);
    expect(seen?.headers["x-api-key"]).toBeUndefined();
  });

  test("removes passwords of known users, and keeps others", async () => {
    await scene.apply({
      removedPlugins: ["key-auth"],
      plugins: [{ name: "basic-auth", config: { users, anonymous_consumer: "guest" } }],
    });
    const { status, seen } = await scene.get("/", { Authorization: basic("inline", "wrong") });
    expect([status, seen?.headers["x-consumer-username"]]).toEqual([200, "guest"]);
    expect(seen?.headers["authorization"]).toBeUndefined();
    expect(await authorization(basic("somebody"))).toBe(basic("somebody"));
  });
});
