// Identity headers that authentication plugins set: clients cannot forge them where the plugin does not run.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hashToken } from "../../../src/crypto/token.ts";
import { exchange } from "../../support/raw-exchange.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";

const NOWHERE = "http://127.0.0.1:9";
const JWK = {
  kty: "OKP",
  crv: "Ed25519",
  x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
};

let scene: PluginScene;

beforeAll(async () => {
  scene = await pluginScene({
    consumers: [{ username: "alice" }],
    credentials: [
      { type: "key", consumerId: "alice", identifier: "k1", hash: hashToken("of alice") },
    ],
  });
});
afterAll(() => scene.stop());

const plugins = [
  {
    name: "oidc",
    config: { issuer: "https://id.example.com", client_id: "app" },
    fields: ["X-Auth-User", "X-Auth-Subject", "X-Auth-Name", "X-Auth-Groups"],
  },
  {
    name: "forward-auth",
    config: { url: NOWHERE, preset: "authelia" },
    fields: ["Remote-User", "Remote-Groups", "Remote-Name", "Remote-Email"],
  },
  {
    name: "forward-auth",
    config: { url: NOWHERE, response_headers_to_upstream: ["X-Who"] },
    fields: ["X-Who"],
  },
  {
    name: "jwt",
    config: { jwks: { keys: [JWK] }, claims_to_headers: { sub: "X-User-Id" } },
    fields: ["X-User-Id"],
  },
  {
    name: "jwt",
    config: { jwks: { keys: [JWK] }, claims_to_headers: { sub: "X_User_Id" } },
    fields: ["X_User_Id"],
  },
];

const skipped = [
  {
    why: "its condition does not hold",
    when: { path: ["/private"] },
    others: [],
  },
  {
    why: "a policy lets the request in without it",
    when: null,
    others: [{ name: "access-policy", config: { default: "allow" } }],
  },
  {
    why: "its condition asks for the consumer, whom nobody knows yet",
    when: { consumer: ["nobody"] },
    others: [],
  },
];

/** Every way to write a field that an application may take for it. */
const disguises = (name: string) => [
  name,
  name.toLowerCase(),
  name.toUpperCase(),
  name.replaceAll("-", "_"),
  name.replaceAll("_", "-"),
  name.toLowerCase().replaceAll("-", "_"),
  ...[..."!#$%&'*+.`|~"].map((byte) => name.replaceAll("-", byte)),
];

describe.each(plugins)("$name with $fields", ({ name, config, fields }) => {
  test.each(skipped)("is not run because $why: clients cannot forge them", async (skip) => {
    const { when, others } = skip;
    await scene.apply({
      plugins: [{ name, config, ...(when === null ? {} : { when }) }, ...others],
    });
    const before = scene.requests.length;
    const lines = fields.flatMap(disguises).map((field) => `${field}: admin\r\n`);
    const { outcome } = await exchange(
      `GET /open HTTP/1.1\r\nHost: a.test\r\nX-Own: mine\r\n${lines.join("")}Connection: close, ${fields.join(", ")}\r\n\r\n`,
      { port: scene.plane.port },
    );
    expect(outcome).toBe("200");
    const seen = scene.requests[before]?.headers ?? {};
    expect(seen["x-own"]).toBe("mine");
    expect(Object.entries(seen).filter(([, value]) => value.includes("admin"))).toEqual([]);
  });
});

test("the session cookie of oidc is removed where a condition disables the plugin", async () => {
  await scene.apply({
    plugins: [
      {
        name: "oidc",
        config: { issuer: "https://id.example.com", client_id: "app" },
        when: { path: ["/private"] },
      },
    ],
  });
  const { seen } = await scene.get("/open", {
    Cookie: "a=1; __Host-sluice_app=sealed; sluice_app.0=sealed; b=2",
  });
  expect(seen?.headers["cookie"]).toBe("a=1; b=2");
});

describe("identity headers that another plugin changes", () => {
  const spoofed = {
    "X-API-Key": "of alice",
    "X-Consumer-Username": "admin",
    "X-Consumer-Custom-Id": "admin",
    "X-Consumer-Groups": "admin",
  };

  /** What the target gets of the client's identity. */
  async function told(headers: Record<string, unknown>): Promise<Record<string, string>> {
    await scene.apply({
      removedPlugins: ["oidc", "access-policy"],
      plugins: [
        { name: "key-auth", config: {} },
        { name: "transform", config: { request: { headers } } },
      ],
    });
    const { status, seen } = await scene.get("/", spoofed);
    expect(status).toBe(200);
    const own = Object.entries(seen?.headers ?? {}).filter(([name]) => name.startsWith("x-c"));
    return Object.fromEntries(own);
  }

  test("are sent once where they are set again", async () => {
    expect(await told({ set: { "X-Consumer-Username": "the ${consumer.username}" } })).toEqual({
      "x-consumer-id": "alice",
      "x-consumer-username": "the alice",
      "x-credential-identifier": "k1",
    });
  });

  test("are not sent where they are removed", async () => {
    expect(await told({ remove: ["X-Consumer-ID", "X-Credential-Identifier"] })).toEqual({
      "x-consumer-username": "alice",
    });
  });

  test("are sent under their new name alone", async () => {
    expect(await told({ rename: { "X-Consumer-Username": "X-Called" } })).toEqual({
      "x-called": "alice",
      "x-consumer-id": "alice",
      "x-credential-identifier": "k1",
    });
  });

  test("are appended to, but never to the client's own", async () => {
    const add = { "X-Consumer-Username": "more", "X-Consumer-Custom-Id": "more" };
    expect(await told({ add })).toEqual({
      "x-consumer-id": "alice",
      "x-consumer-username": "alice, more",
      "x-consumer-custom-id": "more",
      "x-credential-identifier": "k1",
    });
  });

  test("are invisible to templates and conditions on the request", async () => {
    const set = { "X-Claims": "-${request.header.X-Consumer-Groups}-" };
    expect(await told({ set })).toMatchObject({ "x-claims": "--" });
    const config = {
      rules: [{ when: { header: { "X-Consumer-Groups": "admin" } }, action: "deny" }],
    };
    await scene.apply({ plugins: [{ name: "access-policy", config }] });
    expect((await scene.get("/", spoofed)).status).toBe(200);
  });
});
