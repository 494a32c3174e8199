// cors on a real data plane: allowed origins, CORS headers, headers of the service.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import cors from "../../../src/plugins/cors.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";

const APP = "https://app.example.com";
let scene: PluginScene;
beforeAll(async () => {
  scene = await pluginScene({
    plugins: [{ name: "cors", config: { origins: [APP] } }],
    answer: () =>
      new Response("ok", {
        headers: {
          "Access-Control-Allow-Origin": "*",
          "Access-Control-Allow-Credentials": "true",
          Vary: "Accept",
        },
      }),
  });
});
afterAll(() => scene.stop());

const configure = (config: object) =>
  scene.apply({ plugins: [{ name: "cors", config: config as Record<string, unknown> }] });
const preflight = (headers: Record<string, string> = {}, path = "/") =>
  scene.send("OPTIONS", path, {
    headers: { Origin: APP, "Access-Control-Request-Method": "PUT", ...headers },
  });
const allowed = ({ headers }: { headers: Headers }) => headers.get("access-control-allow-origin");

describe("with the defaults and one origin", () => {
  beforeAll(() => configure({ origins: [APP] }));

  test("a preflight gets 204 and all permissions, and does not reach the service", async () => {
    const answer = await preflight({ "Access-Control-Request-Headers": "x-a, Content-Type" });
    expect(answer.status).toBe(204);
    expect(answer.seen).toBeNull();
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "access-control-allow-origin": APP,
      "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
      "access-control-allow-headers": "x-a, Content-Type",
      "access-control-max-age": "600",
      vary: "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
    });
    expect(answer.headers.has("access-control-allow-credentials")).toBe(false);
    expect(answer.headers.has("access-control-allow-private-network")).toBe(false);
  });

  test("another origin gets 204 without permission", async () => {
    const answer = await preflight({ Origin: "https://evil.example" });
    expect(answer.status).toBe(204);
    expect(allowed(answer)).toBeNull();
    expect(answer.headers.get("vary")).toStartWith("Origin");
  });

  test("its responses are readable, and the service's own CORS fields are removed", async () => {
    const own = await scene.get("/", { Origin: APP });
    expect(allowed(own)).toBe(APP);
    expect(own.headers.has("access-control-allow-credentials")).toBe(false);
    expect(own.headers.get("vary")).toBe("Accept, Origin");
    const other = await scene.get("/", { Origin: "https://evil.example" });
    expect(other.status).toBe(200);
    expect(allowed(other)).toBeNull();
    const none = await scene.get("/");
    expect(allowed(none)).toBeNull();
    expect(none.headers.get("vary")).toBe("Accept, Origin");
  });

  test.each([
    "https://app.example.com.evil.example",
    "https://app.example.com:8443",
    "http://app.example.com",
    "https://APP.example.com",
    "null",
    "",
    "~",
    "*",
  ])("%p is not that origin", async (origin) => {
    expect(allowed(await scene.get("/", { Origin: origin }))).toBeNull();
  });

  test("a plain OPTIONS reaches the service", async () => {
    expect((await scene.send("OPTIONS", "/", { headers: { Origin: APP } })).seen?.method).toBe(
      "OPTIONS",
    );
  });

  test("an error page of the gateway is readable too", async () => {
    await scene.apply({ plugins: [{ name: "key-auth" }] });
    const answer = await scene.get("/", { Origin: APP });
    expect(answer.status).toBe(401);
    expect(allowed(answer)).toBe(APP);
    await scene.apply({ removedPlugins: ["key-auth"] });
  });
});

test("invalid field names are not reflected", async () => {
  await configure({ origins: ["*"] });
  const answer = await preflight({ "Access-Control-Request-Headers": "x a, <b>" });
  expect(answer.status).toBe(204);
  expect(answer.headers.has("access-control-allow-headers")).toBe(false);
});

test("every page may read when the origin is *, and one response fits all", async () => {
  await configure({ origins: ["*"], expose_headers: ["X-Total", "X-Page"] });
  const answer = await scene.get("/", { Origin: "https://any.example" });
  expect(allowed(answer)).toBe("*");
  expect(answer.headers.get("access-control-expose-headers")).toBe("X-Total, X-Page");
  expect(answer.headers.get("vary")).toBe("Accept");
});

test("an expression must match the whole origin", async () => {
  await configure({ origins: ["~https://[a-z]+\\.example\\.com"], credentials: true });
  const own = await scene.get("/", { Origin: "https://shop.example.com" });
  expect(allowed(own)).toBe("https://shop.example.com");
  expect(own.headers.get("access-control-allow-credentials")).toBe("true");
  for (const origin of ["https://shop.example.com.evil.example", "xhttps://shop.example.com"])
    expect(allowed(await scene.get("/", { Origin: origin }))).toBeNull();
});

describe("an origin with a wildcard", () => {
  beforeAll(() =>
    configure({
      origins: ["https://*.example.com", "http://*.lan:8080"],
      credentials: true,
      methods: ["*"],
      allow_headers: ["*"],
    }),
  );

  test.each([
    "https://a.example.com",
    "https://a.b.c.example.com",
    "https://xn--mnchen-3ya.example.com",
    "http://nas.lan:8080",
  ])("matches %s", async (origin) => {
    const answer = await scene.get("/", { Origin: origin });
    expect(allowed(answer)).toBe(origin);
    expect(answer.headers.get("access-control-allow-credentials")).toBe("true");
    expect(answer.headers.get("vary")).toBe("Accept, Origin");
  });

  test.each([
    "https://example.com",
    "https://.example.com",
    "https://a..example.com",
    "https://aexample.com",
    "https://a.example.com.evil.test",
    "https://a.exampleXcom",
    "https://evil.test/.example.com",
    "https://evil.test#.example.com",
    "https://evil.test?.example.com",
    "https://evil.test@.example.com",
    "https://evil.test\\.example.com",
    "https://a.example.com:8443",
    "http://a.example.com",
    "xhttps://a.example.com",
    "http://nas.lan",
    "http://nas.lan:80801",
    "https://*.example.com",
    `https://${"a.".repeat(300)}example.com`,
  ])("does not match %s", async (origin) => {
    const answer = await scene.get("/", { Origin: origin });
    expect(allowed(answer)).toBeNull();
    expect(answer.headers.has("access-control-allow-credentials")).toBe(false);
  });

  test("names the requested method and fields: with credentials * is a plain name", async () => {
    const answer = await preflight({
      Origin: "https://a.example.com",
      "Access-Control-Request-Headers": "x-a",
    });
    expect(answer.headers.get("access-control-allow-methods")).toBe("PUT");
    expect(answer.headers.get("access-control-allow-headers")).toBe("x-a");
  });
});

test("methods, fields, max age and private networks are sent as configured", async () => {
  await configure({
    origins: [APP],
    methods: ["QUERY"],
    allow_headers: ["X-One", "X-Two"],
    max_age: 0,
    private_network: true,
  });
  const plain = await preflight({ "Access-Control-Request-Headers": "x-other" });
  expect(plain.headers.get("access-control-allow-methods")).toBe("QUERY");
  expect(plain.headers.get("access-control-allow-headers")).toBe("X-One, X-Two");
  expect(plain.headers.get("access-control-max-age")).toBe("0");
  expect(plain.headers.has("access-control-allow-private-network")).toBe(false);
  const asked = await preflight({ "Access-Control-Request-Private-Network": "true" });
  expect(asked.headers.get("access-control-allow-private-network")).toBe("true");
  expect(asked.headers.get("vary")).toContain("Access-Control-Request-Private-Network");
});

test("with preflight_continue the service responds, and the gateway sets the permissions", async () => {
  await configure({ origins: [APP], preflight_continue: true });
  const answer = await preflight();
  expect(answer.seen?.method).toBe("OPTIONS");
  expect(answer.status).toBe(200);
  expect(answer.headers.get("access-control-allow-methods")).toContain("PUT");
  expect(allowed(answer)).toBe(APP);
});

test.each([
  [{ origins: ["*"], credentials: true }, "credentials"],
  [{ origins: [APP, "https://A.example"] }, "origins[1]"],
  [{ origins: ["https://a.example/"] }, "origins[0]"],
  [{ origins: ["https://a.example:443"] }, "origins[0]"],
  [{ origins: ["a.example"] }, "origins[0]"],
  [{ methods: ["GE T"] }, "methods[0]"],
])("%j is refused when it is written", (config, path) => {
  const whole = { origins: [], methods: ["GET"], credentials: false, ...config };
  expect(cors.check?.(whole as never).map((problem) => problem.path)).toEqual([path]);
});

test.each([
  "https://a.example",
  "http://a.example:8080",
  "null",
  "moz-extension://abc",
  "http://[::1]:1",
])("%s may be an origin", (origin) => {
  expect(cors.check?.({ origins: [origin], methods: [], credentials: true } as never)).toEqual([]);
});
