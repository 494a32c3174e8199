// crowdsec with the real local API of CrowdSec: decisions arrive in all workers, with one request at a time for the whole process.
import { expect } from "bun:test";
import { CrowdSec, statusesFrom, statusFrom } from "../support/crowdsec.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { readMetrics } from "../support/metrics-text.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";

const { test, beforeAll, afterAll } = needs("executable", "crowdsec");

const WORKERS = 4;
let crowdsec: CrowdSec;
let gateway: Gateway;
let key = "";
const origin = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") });

beforeAll(async () => {
  crowdsec = await CrowdSec.create();
  gateway = await startGateway({ workers: WORKERS, binary: executable });
  const targets = [{ host: "127.0.0.1", port: origin.port }];
  await gateway.ok("PATCH", "/api/v1/settings", { trusted_proxies: ["127.0.0.1"] });
  await gateway.ok("POST", "/api/v1/services", { name: "web", targets });
  await gateway.ok("POST", "/api/v1/routes", { name: "all", service_id: "web" });
  key = await crowdsec.cscli("bouncers", "add", "sluice", "-o", "raw");
  await gateway.ok("POST", "/api/v1/plugins", {
    name: "crowdsec",
    label: "bouncer",
    config: { url: crowdsec.url, api_key: key, poll_interval: 0.25 },
  });
});
afterAll(async () => {
  await gateway?.stop();
  await crowdsec?.stop();
  await origin.stop(true);
});

const status = (address: string) => statusFrom(gateway.httpPort, address);
const statuses = (address: string) => statusesFrom(gateway.httpPort, address, WORKERS);
const within = (seconds: number, address: string, wanted: number) =>
  eventually(
    async () => {
      const found = await statuses(address);
      return found.size === 1 && found.has(wanted);
    },
    { deadlineMs: seconds * 1000, intervalMs: 50 },
  );
const figure = async (name: string) =>
  readMetrics(await (await gateway.api("GET", "/metrics")).text(), "prometheus").sum(
    `sluice_crowdsec_${name}`,
    { plugin: "bouncer" },
  );

test("a decision is in force within 2 seconds, and its deletion too", async () => {
  expect(await statuses("192.0.2.7")).toEqual(new Set([200]));
  await crowdsec.cscli("decisions", "add", "--ip", "192.0.2.7", "--duration", "1h");
  await within(2, "192.0.2.7", 403);
  expect(await status("192.0.2.8")).toBe(200);
  await crowdsec.cscli("decisions", "delete", "--ip", "192.0.2.7");
  await within(2, "192.0.2.7", 200);
});

test("networks, IPv6 and captchas deny, and a shorter decision holds when the longer one is deleted", async () => {
  const add = (...words: string[]) => crowdsec.cscli("decisions", "add", ...words);
  await add("--range", "198.51.100.0/24", "--type", "captcha");
  await add("--ip", "2001:db8::7", "--duration", "1h");
  await add("--ip", "192.0.2.9", "--duration", "1h", "--reason", "short");
  await add("--ip", "192.0.2.9", "--duration", "9h", "--reason", "long");
  for (const address of ["198.51.100.200", "2001:db8::7", "192.0.2.9"])
    await within(20, address, 403);
  expect(await status("198.51.101.1")).toBe(200);
  const requests = await figure("requests_total");
  await crowdsec.cscli("decisions", "delete", "--scenario", "long");
  await eventually(async () => (await figure("requests_total")) > requests + 2);
  expect(await statuses("192.0.2.9")).toEqual(new Set([403]));
});

test("a decision ends by itself while the local API is away, and others stay", async () => {
  await crowdsec.cscli("decisions", "add", "--ip", "192.0.2.20", "--duration", "8s");
  await within(20, "192.0.2.20", 403);
  await crowdsec.halt();
  await eventually(async () => (await figure("up")) === 0);
  await within(20, "192.0.2.20", 200);
  expect(await statuses("2001:db8::7")).toEqual(new Set([403]));
  expect(gateway.stderr).toContain("the connection was refused");
  await crowdsec.start();
  await eventually(async () => (await figure("up")) === 1);
  await crowdsec.cscli("decisions", "add", "--ip", "192.0.2.21");
  await within(20, "192.0.2.21", 403);
});

test("the key is in no response and no log", async () => {
  const { config } = (await gateway.ok("GET", "/api/v1/plugins"))[0];
  expect(config).not.toHaveProperty("api_key");
  const list = JSON.parse(await crowdsec.cscli("bouncers", "list", "-o", "json"));
  expect(list).toHaveLength(1);
  expect(key.length).toBeGreaterThan(16);
  expect(gateway.stderr).not.toContain(key);
});
