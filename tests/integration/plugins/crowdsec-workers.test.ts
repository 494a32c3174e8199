// crowdsec on a real gateway with four workers: one request at a time for all of them, a secret that stays inside, and metrics.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { statusesFrom, statusFrom } from "../../support/crowdsec.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { LocalApi } from "../../support/local-api.ts";
import { readMetrics } from "../../support/metrics-text.ts";
import { eventually } from "../../support/poll.ts";

const WORKERS = 4;
const api = new LocalApi();
let gateway: Gateway;
let id = "";
const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") });

beforeAll(async () => {
  gateway = await startGateway({ workers: WORKERS });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("PATCH", "/api/v1/settings", { trusted_proxies: ["127.0.0.1"] });
  await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "web" });
  const plugin = await gateway.ok("POST", "/api/v1/plugins", {
    name: "crowdsec",
    label: "bouncer",
    config: { url: api.url, api_key: "key-of-the-bouncer", poll_interval: 0.2 },
  });
  id = plugin.id;
});
afterAll(async () => {
  await gateway.stop();
  await api.stop();
  await origin.stop(true);
});

const statuses = (address: string) => statusesFrom(gateway.httpPort, address, WORKERS);
const metrics = async () =>
  readMetrics(await (await gateway.api("GET", "/metrics")).text(), "prometheus");

test("all workers deny after one request for the changes", async () => {
  expect(await statuses("192.0.2.7")).toEqual(new Set([200]));
  api.changes = { added: [{ id: 7, value: "192.0.2.7" }] };
  await eventually(async () => {
    const found = await statuses("192.0.2.7");
    return found.size === 1 && found.has(403);
  });
  const before = api.asked.length;
  const { sum } = await metrics();
  const shown = sum("sluice_crowdsec_requests_total", { plugin: "bouncer" });
  // Each is counted when it has ended.
  expect(shown).toBeGreaterThanOrEqual(before - 1);
  expect(shown).toBeLessThanOrEqual(api.asked.length);
  expect(sum("sluice_crowdsec_entries", { plugin: "bouncer" })).toBe(1);
  expect(api.asked.filter(({ startup }) => startup)).toHaveLength(1);
});

test("the reason is in the list of requests", async () => {
  await statusFrom(gateway.httpPort, "192.0.2.7");
  const found = await eventually(async () => {
    const requests = await gateway.ok("GET", "/api/v1/requests?status=403");
    return requests.find((each: object) => JSON.stringify(each).includes("192.0.2.7"));
  });
  expect(JSON.stringify(found)).toContain("crowdsec.ban");
});

test("the key is write-only, and stays with a change of other settings", async () => {
  const { config } = await gateway.ok("GET", `/api/v1/plugins/${id}`);
  expect(JSON.stringify(config)).not.toContain("key-of-the-bouncer");
  await gateway.ok("PATCH", `/api/v1/plugins/${id}`, { config: { status: 418 } });
  await eventually(async () => {
    const found = await statuses("192.0.2.7");
    return found.size === 1 && found.has(200);
  });
  expect(new Set(api.asked.map(({ key }) => key))).toEqual(new Set(["key-of-the-bouncer"]));
  const bad = await gateway.api("PATCH", `/api/v1/plugins/${id}`, { config: { api_key: "a\nb" } });
  expect(bad.status).toBe(400);
  expect(await bad.text()).toContain("config.api_key");
});
