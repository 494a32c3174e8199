// key-auth on a real data plane: accepted keys, identity headers, rejections.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { hashToken } from "../../../src/crypto/token.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";

const HOUR = 3_600_000;
let scene: PluginScene;

beforeAll(async () => {
  scene = await pluginScene({
    plugins: [
      {
        name: "key-auth",
        config: { query_names: ["key"], cookie_names: ["key"], key_in_body: true },
      },
    ],
    consumers: [{ username: "alice", customId: "a-1", groups: ["staff"] }, { username: "guest" }],
    credentials: [
      { type: "key", consumerId: "alice", id: "c1", hash: hashToken("good"), name: "laptop" },
      { type: "key", consumerId: "alice", hash: hashToken("old"), expiresAt: Date.now() - 1 },
      {
        type: "key",
        consumerId: "alice",
        hash: hashToken("new"),
        previous: { hash: hashToken("rotated"), secret: null, until: Date.now() + HOUR },
      },
      {
        type: "key",
        consumerId: "alice",
        hash: hashToken("newer"),
        previous: { hash: hashToken("too late"), secret: null, until: Date.now() - 1 },
      },
      { type: "key", consumerId: "nobody", hash: hashToken("of nobody") },
    ],
  });
});
afterAll(() => scene.stop());

describe("a key", () => {
  test("in a header field authenticates its consumer for the target too", async () => {
    const { status, seen } = await scene.get("/x", { "X-API-Key": "good" });
    expect(status).toBe(200);
    expect(seen?.headers).toMatchObject({
      "x-consumer-id": "alice",
      "x-consumer-username": "alice",
      "x-consumer-custom-id": "a-1",
      "x-credential-identifier": "laptop",
    });
    expect(seen?.headers).not.toHaveProperty("x-api-key");
    expect(seen?.headers).not.toHaveProperty("x-anonymous-consumer");
  });

  test("in the query is removed", async () => {
    const { status, seen } = await scene.get("/x?a=1&key=good&b=%20");
    expect(status).toBe(200);
    expect(seen?.target).toBe("/x?a=1&b=%20");
  });

  test("in a cookie is removed", async () => {
    const { seen } = await scene.get("/x", { Cookie: "a=1; key=good; b=2" });
    expect(seen?.headers["cookie"]).toBe("a=1; b=2");
  });

  test.each([
    ["JSON", "application/json", '{"apikey":"good","more":1}'],
    ["a form", "application/x-www-form-urlencoded", "apikey=good&more=1"],
  ])("in the body as %s, which passes unchanged", async (_, type, body) => {
    const { status, seen } = await scene.send("POST", "/x", {
      headers: { "Content-Type": type },
      body,
    });
    expect(status).toBe(200);
    expect(seen?.body).toBe(body);
    expect(seen?.headers["content-length"]).toBe(String(body.length));
  });

  test("that was rotated is valid until its period ends", async () => {
    expect((await scene.get("/", { "X-API-Key": "rotated" })).status).toBe(200);
    expect((await scene.get("/", { "X-API-Key": "new" })).status).toBe(200);
    expect((await scene.get("/", { "X-API-Key": "too late" })).status).toBe(401);
  });

  test.each([
    ["none", {}],
    ["an unknown one", { "X-API-Key": "bad" }],
    ["an expired one", { "X-API-Key": "old" }],
    ["one of a consumer that is off", { "X-API-Key": "of nobody" }],
    ["an empty one", { "X-API-Key": "" }],
    ["two in one field", { "X-API-Key": "good, good" }],
    ["two in two fields", { "X-API-Key": "good", apikey: "good" }],
  ])("is required: %s is refused with 401", async (_, headers) => {
    const answer = await scene.get("/", headers as Record<string, string>);
    expect(answer.status).toBe(401);
    expect(answer.headers.get("www-authenticate")).toBe('ApiKey realm="sluice"');
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(answer.headers.get("proxy-status")).toStartWith("sluice; error=http_request_denied");
    expect(answer.seen).toBeNull();
  });
});

test("identity headers of clients never reach the target", async () => {
  const { seen } = await scene.get("/", {
    apikey: "good",
    "X-Consumer-Username": "root",
    X_Consumer_Username: "root",
    "X-Consumer-Groups": "admins",
    "X-Anonymous-Consumer": "false",
  });
  expect(seen?.headers["x-consumer-username"]).toBe("alice");
  expect(Object.keys(seen?.headers ?? {})).not.toContain("x_consumer_username");
  expect(seen?.headers).not.toHaveProperty("x-consumer-groups");
  expect(seen?.headers).not.toHaveProperty("x-anonymous-consumer");
});

test("with an anonymous consumer, clients without a key are anonymous", async () => {
  await scene.apply({
    plugins: [
      { name: "key-auth", config: { anonymous_consumer: "guest", hide_credentials: false } },
    ],
  });
  const nobody = await scene.get("/", {});
  expect(nobody.seen?.headers).toMatchObject({
    "x-consumer-username": "guest",
    "x-anonymous-consumer": "true",
  });
  const somebody = await scene.get("/", { apikey: "good" });
  expect(somebody.seen?.headers).toMatchObject({ "x-consumer-username": "alice", apikey: "good" });
});

test("preflight requests pass unless configured otherwise", async () => {
  await scene.apply({ plugins: [{ name: "key-auth" }] });
  const preflight = { Origin: "https://a.example", "Access-Control-Request-Method": "PUT" };
  expect((await scene.send("OPTIONS", "/", { headers: preflight })).status).toBe(200);
  expect((await scene.send("OPTIONS", "/", { headers: {} })).status).toBe(401);
  await scene.apply({ plugins: [{ name: "key-auth", config: { run_on_preflight: true } }] });
  expect((await scene.send("OPTIONS", "/", { headers: preflight })).status).toBe(401);
});
