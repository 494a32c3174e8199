// bot-detection on a real data plane: who is refused by its name, and what stays out of it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { aiCrawlers } from "../../../src/plugins/bot-detection/ai-crawlers.ts";
import { scanners } from "../../../src/plugins/bot-detection/scanners.ts";
import { pluginScene, type PluginScene } from "../../support/plugin-scene.ts";
import { eventually } from "../../support/poll.ts";
import { exchange } from "../../support/raw-exchange.ts";

let scene: PluginScene;
beforeAll(async () => {
  scene = await pluginScene({ plugins: [{ name: "bot-detection" }] });
});
afterAll(() => scene.stop());

const configure = (config: Record<string, unknown>) =>
  scene.apply({ plugins: [{ name: "bot-detection", config }] });
const as = async (name: string) => (await scene.get("/", { "User-Agent": name })).status;

const people = [
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile/15E148 Safari/604.1",
  "curl/8.5.0",
  "Go-http-client/2.0",
  "python-requests/2.32",
  "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
  "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
];

describe("by default", () => {
  beforeAll(() => configure({}));
  test.each(people)("%s passes", async (name) => expect(await as(name)).toBe(200));
  test.each([...aiCrawlers, ...scanners])("%s is refused", async (name) => {
    expect(await as(`Mozilla/5.0 (compatible; ${name.toLowerCase()}/1.0)`)).toBe(403);
  });
  test("a User-Agent is optional", async () => {
    const { answers } = await exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n", {
      port: scene.plane.port,
    });
    expect(answers[0]?.status).toBe(200);
  });
});

test("lists may be empty", async () => {
  await configure({ presets: ["scanners"] });
  expect(await as("GPTBot/1.2")).toBe(200);
  expect(await as("sqlmap/1.8")).toBe(403);
  await configure({ presets: [] });
  expect(await as("sqlmap/1.8")).toBe(200);
});

test("custom expressions are added, and those that allow win", async () => {
  await configure({ deny: ["^curl/", "evil"], allow: ["^curl/8\\.5", "GPTBot"], status: 429 });
  expect(await as("curl/7.0")).toBe(429);
  expect(await as("an EVIL bot")).toBe(429);
  expect(await as("curl/8.5.0")).toBe(200);
  expect(await as("GPTBot/1.2")).toBe(200);
  expect(await as("a curl/7.0")).toBe(200);
});

test("clients without a User-Agent can be refused", async () => {
  await configure({ missing_ua: "deny" });
  for (const line of ["", "User-Agent:\r\n", "User-Agent:  \r\n"]) {
    const { answers } = await exchange(`GET / HTTP/1.1\r\nHost: h\r\n${line}\r\n`, {
      port: scene.plane.port,
    });
    expect(answers[0]?.status).toBe(403);
  }
  expect(await as("curl/8.5.0")).toBe(200);
});

test("rejections can be delayed, and release everything on disconnect", async () => {
  await configure({ tarpit_ms: 600_000 });
  const gone = new AbortController();
  const headers = { "User-Agent": "sqlmap" };
  const request = fetch(scene.plane.url, { headers, signal: gone.signal });
  const waiting = () => scene.plane.board.get(0, "active_requests");
  await eventually(() => waiting() > 0);
  expect(await as("curl/8.5.0")).toBe(200);
  gone.abort();
  await expect(request).rejects.toThrow();
  await eventually(() => waiting() === 0);
  await configure({ tarpit_ms: 20 });
  expect(await as("sqlmap")).toBe(403);
});
