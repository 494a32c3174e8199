// security-headers on a real data plane: what responses get, over HTTP and HTTPS, and what they lose.
import { afterAll, beforeAll, expect, test } from "bun:test";
import securityHeaders from "../../../src/plugins/security-headers.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";

let scene: PluginScene;
beforeAll(async () => {
  scene = await pluginScene({
    plugins: [{ name: "security-headers" }],
    // Clients from here may send X-Forwarded-Proto.
    settings: { trusted_proxies: ["127.0.0.1"] },
    answer: () =>
      new Response("ok", {
        headers: {
          Server: "old/1.0",
          "X-Powered-By": "x",
          "X-Frame-Options": "DENY",
          "X-Own": "1",
        },
      }),
  });
});
afterAll(() => scene.stop());

const configure = (config: Record<string, unknown>) =>
  scene.apply({ plugins: [{ name: "security-headers", config }] });
const secure = { "X-Forwarded-Proto": "https" };
const HSTS = "strict-transport-security";

test("a response has the default fields and loses revealing ones", async () => {
  await configure({});
  const { headers } = await scene.get("/");
  expect(Object.fromEntries(headers)).toMatchObject({
    "x-frame-options": "SAMEORIGIN",
    "x-content-type-options": "nosniff",
    "referrer-policy": "strict-origin-when-cross-origin",
    "x-own": "1",
  });
  for (const name of [
    "server",
    "x-powered-by",
    HSTS,
    "content-security-policy",
    "permissions-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
  ])
    expect(headers.has(name)).toBe(false);
});

test("Strict-Transport-Security is sent over HTTPS only", async () => {
  await configure({});
  expect((await scene.get("/", secure)).headers.get(HSTS)).toBe("max-age=31536000");
  await configure({ hsts: { max_age: 63_072_000, include_subdomains: true, preload: true } });
  expect((await scene.get("/", secure)).headers.get(HSTS)).toBe(
    "max-age=63072000; includeSubDomains; preload",
  );
  expect((await scene.get("/")).headers.has(HSTS)).toBe(false);
  await configure({ hsts: null });
  expect((await scene.get("/", secure)).headers.has(HSTS)).toBe(false);
});

test("every field can be set, and null leaves it to the service", async () => {
  await configure({
    frame_options: null,
    nosniff: false,
    referrer_policy: "no-referrer",
    csp: "default-src 'self'",
    permissions_policy: "camera=()",
    coop: "same-origin",
    corp: "same-site",
    remove: ["X-Own"],
  });
  const { headers } = await scene.get("/");
  expect(Object.fromEntries(headers)).toMatchObject({
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'self'",
    "permissions-policy": "camera=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-site",
    server: "old/1.0",
  });
  expect(headers.has("x-content-type-options")).toBe(false);
  expect(headers.has("x-own")).toBe(false);
});

test("responses of the gateway have them too", async () => {
  await configure({});
  await scene.apply({ plugins: [{ name: "key-auth" }] });
  const { status, headers } = await scene.get("/");
  expect(status).toBe(401);
  expect(headers.get("x-frame-options")).toBe("SAMEORIGIN");
  await scene.apply({ removedPlugins: ["key-auth"] });
});

test("preload without the lists' requirements is refused when it is written", () => {
  const hsts = { max_age: 31_536_000, include_subdomains: false, preload: true };
  expect(securityHeaders.check?.({ hsts } as never)).toHaveLength(1);
  expect(securityHeaders.check?.({ hsts: { ...hsts, include_subdomains: true } } as never)).toEqual(
    [],
  );
});
