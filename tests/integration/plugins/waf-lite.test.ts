// waf-lite on a real data plane: attacks in all the clothes they wear, and ordinary requests that must pass.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { reasonsProbe } from "../../support/probe-plugin.ts";
import { wafAttacks, wafOrdinary } from "./waf-lite-corpus.ts";

let scene: PluginScene;
let reasons: readonly string[] = [];
/** Sees what was noted. */
const probe = reasonsProbe((noted) => {
  reasons = noted;
});

beforeAll(async () => {
  scene = await pluginScene({
    ownPlugins: [probe],
    plugins: [{ name: "waf-lite" }, { name: "probe" }],
  });
});
afterAll(() => scene.stop());

const configure = (config: Record<string, unknown>) =>
  scene.apply({ plugins: [{ name: "waf-lite", config }] });

describe("attacks", () => {
  beforeAll(() => configure({ mode: "block" }));
  test.each(wafAttacks.map((each) => [each.rule, each] as const))(
    "%s: %j",
    async (rule, attack) => {
      const answer = await scene.get(attack.target ?? "/", attack.headers);
      expect([answer.status, reasons]).toEqual([403, [`waf.${rule}`]]);
      expect(answer.seen).toBeNull();
      expect(answer.body).not.toContain(rule);
    },
  );
});

describe("ordinary requests pass", () => {
  beforeAll(() => configure({ mode: "block" }));
  test.each(wafOrdinary.map((each) => [each] as const))("%s", async (target) => {
    const answer = await scene.get(target, {
      "User-Agent":
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
      Referer: `https://cloud.example.com${target}`,
      Cookie: `oc_sessionPassphrase=a%2Bb%2Fc%3D; nc_sameSiteCookielax=true; _ga=GA1.2.1.1; prefs={"a":"b"}`,
    });
    expect([answer.status, reasons]).toEqual([200, []]);
  });
});

test("by default requests pass, and all matches are noted once", async () => {
  await configure({});
  const target = "/?a=%3Cscript%3Ealert(1)%3C/script%3E&b=%27+or+1=1--+";
  const answer = await scene.get(target, { "X-Api-Version": "${jndi:ldap://x/a}" });
  expect([answer.status, answer.seen?.target]).toEqual([200, target]);
  expect([...reasons].sort()).toEqual([
    "waf.log-lookup",
    "waf.script-call",
    "waf.script-tag",
    "waf.sql-tautology",
  ]);
});

describe("the checks of Nginx Proxy Manager", () => {
  beforeAll(() => configure({ mode: "block", rulesets: ["block-exploits"] }));
  test.each([
    ["/?q=union+all+select(1)", "", 403],
    ["/?q=1&f=concat(1)", "", 403],
    ["/?u=http://a.test/x", "", 403],
    ["/?u=http%3A%2F%2Fa.test%2Fx", "", 200],
    ["/?u=https://a.test/x", "", 200],
    ["/?f=../x", "", 403],
    ["/?f=/a/b", "", 403],
    ["/?f=/etc/passwd", "", 200],
    ["/?x=%3Cscript%3E", "", 403],
    ["/?x=%3CSCRIPT%3E", "", 200],
    ["/?GLOBALS[a]=1", "", 403],
    ["/?base64_decode(a)", "", 403],
    ["/?q=viagra", "", 403],
    ["/?q=viagras", "", 200],
    ["/.env", "", 200],
    ["/union/select(", "", 200],
    ["/", "libwww-perl/6", 403],
    ["/", "sqlmap/1.0", 200],
  ])("%s of %j: %d", async (target, agent, status) => {
    const answer = await scene.get(target, agent === "" ? {} : { "User-Agent": agent });
    expect(answer.status).toBe(status);
  });
});

test("status, rule sets and exclusions are configurable", async () => {
  const status = async (target: string) => (await scene.get(target)).status;
  await configure({ mode: "block", status: 404, rulesets: ["xss"] });
  expect(await status("/?a=<script>")).toBe(404);
  expect(await status("/?a=1+union+select+2")).toBe(200);
  await configure({ mode: "block", exclude: ["script-tag", "/wp-admin/"] });
  expect(await status("/?a=<script>")).toBe(200);
  expect(await status("/?a=1+union+select+2")).toBe(403);
  expect(await status("/wp-admin?a=1+union+select+2")).toBe(200);
  expect(await status("/wp-admin/x?a=1+union+select+2")).toBe(200);
  expect(await status("/wp-administrator?a=1+union+select+2")).toBe(403);
});

const post = (body: BodyInit, headers: Readonly<Record<string, string>>) =>
  scene.send("POST", "/", { body, headers });
const FORM = { "Content-Type": "application/x-www-form-urlencoded" };
const JSON_TYPE = { "Content-Type": "application/json; charset=utf-8" };

describe("bodies", () => {
  test("are inspected only when configured", async () => {
    await configure({ mode: "block" });
    expect((await post("a=1+union+select+2", FORM)).status).toBe(200);
  });

  test.each([
    ["a=1&b=1+union+select+2", FORM, "sql-union"],
    ['{"a":"\\u003cscript\\u003e"}', JSON_TYPE, "script-tag"],
    ['{"a":"..\\/..\\/etc\\/passwd"}', JSON_TYPE, "climbing"],
    ['{"__proto__":{"isAdmin":true}}', JSON_TYPE, "invoked-function"],
    ["<a>${jndi:ldap://x}</a>", { "Content-Type": "text/xml" }, "log-lookup"],
  ])("%s", async (body, headers, rule) => {
    await configure({ mode: "block", inspect_body: true });
    expect((await post(body, headers)).status).toBe(403);
    expect(reasons).toEqual([`waf.${rule}`]);
  });

  test.each(["identity", "Identity", " IDENTITY "])("are plain with %p", async (coding) => {
    await configure({ mode: "block", inspect_body: true });
    const headers = { ...FORM, "Content-Encoding": coding };
    expect((await post("a=1+union+select+2", headers)).status).toBe(403);
  });

  test("of ordinary clients go upstream unchanged", async () => {
    await configure({ mode: "block", inspect_body: true });
    for (const body of ["user=O'Brien&comment=it's+fine+or+not", "q=select+a+colour+from+the+list"])
      expect((await post(body, FORM)).seen?.body).toBe(body);
    const document = '{"title":"Union & select","path":"../a","price":"$5 {each}"}';
    expect((await post(document, JSON_TYPE)).seen?.body).toBe(document);
    const form = new FormData();
    form.set("file", new Blob(["hello"]), "a.txt");
    expect((await scene.send("POST", "/", { body: form })).status).toBe(200);
  });

  test("that are too long or compressed are noted and pass whole, others that are not text just pass", async () => {
    await configure({ mode: "block", inspect_body: true, max_body: 20 });
    const attack = "a=1+union+select+234";
    expect((await post(attack, FORM)).status).toBe(403);
    const answer = await post(`${attack}5`, FORM);
    expect([answer.status, answer.seen?.body]).toEqual([200, `${attack}5`]);
    expect(reasons).toEqual(["waf.body-not-inspected"]);
    expect((await post(attack, { ...FORM, "Content-Encoding": "gzip" })).status).toBe(200);
    expect(reasons).toEqual(["waf.body-not-inspected"]);
    expect((await post(attack, { "Content-Type": "image/png" })).status).toBe(200);
    expect(reasons).toEqual([]);
  });
});
