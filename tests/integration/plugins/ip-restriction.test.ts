// ip-restriction on a real data plane: which addresses are allowed, over HTTP.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";

let scene: PluginScene;
beforeAll(async () => {
  scene = await pluginScene({
    plugins: [{ name: "ip-restriction" }],
    settings: { trusted_proxies: ["127.0.0.1"] },
  });
});
afterAll(() => scene.stop());

const configure = (config: Record<string, unknown>) =>
  scene.apply({ plugins: [{ name: "ip-restriction", config }] });
const from = async (address: string) =>
  (await scene.get("/", address === "" ? {} : { "X-Forwarded-For": address })).status;

describe.each([
  ["nothing", {}, { "": 200, "8.8.8.8": 200 }],
  [
    "a list",
    { allow: ["10.0.0.0/8", "2001:db8::/32"] },
    {
      "10.255.255.255": 200,
      "11.0.0.0": 403,
      "9.255.255.255": 403,
      "2001:db8:ffff::1": 200,
      "2001:db9::": 403,
      "::ffff:10.1.1.1": 200,
      "": 403,
    },
  ],
  [
    "single addresses",
    { allow: ["192.0.2.7", "::1"] },
    { "192.0.2.7": 200, "192.0.2.8": 403, "::1": 200, "::2": 403 },
  ],
  [
    "who is denied",
    { deny: ["192.0.2.0/24"] },
    { "192.0.2.7": 403, "::ffff:192.0.2.7": 403, "8.8.8.8": 200 },
  ],
  [
    "both: deny wins",
    { allow: ["10.0.0.0/8"], deny: ["10.1.0.0/16"] },
    { "10.2.0.1": 200, "10.1.0.1": 403 },
  ],
])("with %s", (_, config, expected) => {
  test.each(Object.entries(expected) as [string, number][])(
    "%p gets %d",
    async (address, status) => {
      await configure(config);
      expect(await from(address)).toBe(status);
    },
  );
});

test("a rejection has the configured status and text, without HTML", async () => {
  await configure({ deny: ["0.0.0.0/0"], status: 451, message: "the <b>law</b> says no" });
  const page = await scene.get("/", { Accept: "text/html" });
  expect(page.status).toBe(451);
  expect(page.body).toContain("The &lt;b&gt;law&lt;/b&gt; says no");
  expect(page.seen).toBeNull();
  const problem = JSON.parse((await scene.get("/", { Accept: "application/json" })).body);
  expect(problem).toMatchObject({ status: 451, detail: "the <b>law</b> says no" });
});

test("address headers of untrusted clients do not count", async () => {
  await configure({ allow: ["10.0.0.0/8"] });
  await scene.apply({ settings: { trusted_proxies: [] } });
  for (const name of [
    "X-Forwarded-For",
    "X-Real-IP",
    "Forwarded",
    "X_Forwarded_For",
    "True-Client-IP",
  ])
    expect((await scene.get("/", { [name]: "10.0.0.1" })).status).toBe(403);
  expect((await scene.get("/", { Forwarded: "for=10.0.0.1" })).status).toBe(403);
});
