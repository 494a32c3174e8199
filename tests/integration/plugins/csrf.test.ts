// csrf on a real data plane: which requests pages of other origins can make browsers send, in both modes.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";

let scene: PluginScene;
beforeAll(async () => {
  scene = await pluginScene({ plugins: [{ name: "csrf" }] });
});
afterAll(() => scene.stop());

const configure = (config: Record<string, unknown>) =>
  scene.apply({ plugins: [{ name: "csrf", config }] });
const post = async (headers: Record<string, string>) =>
  (await scene.send("POST", "/", { headers: { Host: "app.example", ...headers }, body: "x" }))
    .status;

describe("by origin", () => {
  beforeAll(() =>
    configure({
      allowed_origins: [
        "https://other.example",
        "https://*.own.example",
        "~https://[a-z]+\\.pages\\.example",
      ],
    }),
  );
  test.each([
    [{}, 200],
    [{ "Sec-Fetch-Site": "same-origin" }, 200],
    [{ "Sec-Fetch-Site": "none" }, 200],
    [{ "Sec-Fetch-Site": "cross-site" }, 403],
    [{ "Sec-Fetch-Site": "same-site" }, 403],
    [{ "Sec-Fetch-Site": "" }, 403],
    [{ "Sec-Fetch-Site": "cross-site", Origin: "http://app.example" }, 403],
    [{ "Sec-Fetch-Site": "cross-site", Origin: "https://other.example" }, 200],
    [{ Origin: "http://app.example" }, 200],
    [{ Origin: "http://app.example:80" }, 200],
    [{ Origin: "https://app.example" }, 200],
    [{ Origin: "http://app.example:8080" }, 403],
    [{ Origin: "http://app.example:8080", Host: "app.example:8080" }, 200],
    [{ Origin: "http://evil.example" }, 403],
    [{ Origin: "http://app.example.evil.example" }, 403],
    [{ Origin: "http://app.example@evil.example" }, 403],
    [{ Origin: "null" }, 403],
    [{ Origin: "" }, 403],
    [{ Origin: "file://" }, 403],
    [{ Origin: "https://other.example" }, 200],
    [{ Origin: "https://a.pages.example" }, 200],
    [{ Origin: "https://a.b.own.example" }, 200],
    [{ Origin: "https://own.example" }, 403],
    [{ Origin: "https://a.own.example.evil.example" }, 403],
    [{ Origin: "https://a.pages.example.evil.example" }, 403],
  ])("a POST with %j gets %d", async (headers, status) => {
    expect(await post(headers as Record<string, string>)).toBe(status);
  });

  test.each([
    ["GET", 200],
    ["HEAD", 200],
    ["OPTIONS", 200],
    ["PUT", 403],
    ["PATCH", 403],
    ["DELETE", 403],
  ])("%s of another origin gets %d", async (method, status) => {
    const headers = { Origin: "http://evil.example" };
    expect((await scene.send(method, "/", { headers })).status).toBe(status);
  });

  test("no page of another origin opens a WebSocket", async () => {
    const upgrade = { Upgrade: "websocket", Connection: "Upgrade", "Sec-WebSocket-Version": "13" };
    const { status } = await scene.get("/", { ...upgrade, Origin: "http://evil.example" });
    expect(status).toBe(403);
  });

  test("requests without an origin can be refused", async () => {
    await configure({ missing_origin: "deny" });
    expect(await post({})).toBe(403);
    expect(await post({ "Sec-Fetch-Site": "same-origin" })).toBe(200);
  });
});

test("over HTTPS a page that came over HTTP is another origin", async () => {
  await configure({});
  await scene.apply({ settings: { trusted_proxies: ["127.0.0.1"] } });
  const secure = { "X-Forwarded-Proto": "https", "X-Forwarded-Host": "app.example" };
  expect(await post({ ...secure, Origin: "https://app.example" })).toBe(200);
  expect(await post({ ...secure, Origin: "http://app.example" })).toBe(403);
  await configure({ mode: "double_submit" });
  expect((await scene.get("/", secure)).headers.get("set-cookie")).toEndWith("; Secure");
});

describe("by a double-submitted token", () => {
  const tokenOf = async (headers: Record<string, string> = {}) => {
    const answer = await scene.get("/", headers);
    const cookie = answer.headers.get("set-cookie");
    return cookie === null ? null : (/=([^;]+)/.exec(cookie)?.[1] ?? "");
  };
  beforeAll(() => configure({ mode: "double_submit" }));

  test("a page that sends the value of its cookie passes", async () => {
    const answer = await scene.get("/");
    expect(answer.headers.get("set-cookie")).toMatch(
      /^sluice_csrf=[\w-]{22}\.[\w-]{43}; Path=\/; SameSite=Lax$/,
    );
    expect(answer.headers.get("cache-control")).toBe("private, no-store");
    const token = (await tokenOf()) ?? "";
    const headers = { Cookie: `a=b; sluice_csrf=${token}`, "X-CSRF-Token": token };
    expect(await post(headers)).toBe(200);
    expect(await tokenOf(headers)).toBeNull();
  });

  test("all others do not", async () => {
    const [token = "", other = ""] = [(await tokenOf()) ?? "", (await tokenOf()) ?? ""];
    const cookie = `sluice_csrf=${token}`;
    const forged = "AAAAAAAAAAAAAAAAAAAAAA.AAAA";
    for (const headers of [
      {},
      { Cookie: cookie },
      { "X-CSRF-Token": token },
      { Cookie: cookie, "X-CSRF-Token": other },
      { Cookie: cookie, "X-CSRF-Token": "" },
      { Cookie: "sluice_csrf=", "X-CSRF-Token": "" },
      { Cookie: `sluice_csrf=${forged}`, "X-CSRF-Token": forged },
      { Cookie: "sluice_csrf=.", "X-CSRF-Token": "." },
      { Cookie: `${cookie}.x`, "X-CSRF-Token": `${token}.x` },
      { Cookie: `${cookie}; sluice_csrf=${other}`, "X-CSRF-Token": token },
    ])
      expect(await post(headers as Record<string, string>)).toBe(403);
  });

  test("names are configurable, and an invalid cookie is replaced", async () => {
    await configure({ mode: "double_submit", cookie_name: "c", header_name: "X-C" });
    const token = (await tokenOf({ Cookie: "c=old" })) ?? "";
    expect(await post({ Cookie: `c=${token}`, "X-C": token })).toBe(200);
  });

  test("no page of another origin opens a WebSocket here either", async () => {
    const upgrade = { Upgrade: "websocket", Connection: "Upgrade", "Sec-WebSocket-Version": "13" };
    const { status } = await scene.get("/", { ...upgrade, Origin: "http://evil.example" });
    expect(status).toBe(403);
  });
});
