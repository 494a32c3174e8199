// What targets are told about clients by authentication plugins: clients cannot write it themselves where the plugin does not run.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
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
  scene = await pluginScene({});
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
  name.toLowerCase().replaceAll("-", "_"),
];

describe.each(plugins)("$name with $fields", ({ name, config, fields }) => {
  test.each(skipped)("is not run because $why: nobody can speak for it", async (skip) => {
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

test("the session cookie of oidc stays behind where a condition keeps the plugin from running", async () => {
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
