// ACME orders that fail, recover, or continue over a restart of the gateway.
import { expect } from "bun:test";
import { type AcmeScene, startAcmeScene, startDnsHook } from "../support/acme-scene.ts";
import { runCommand } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { quietPort } from "../support/quiet-port.ts";
import { executable } from "../support/executable.ts";

const { afterEach, test } = needs("executable", "pebble");

const MINUTE_MS = 60_000;
const gateway = { binary: executable, workers: 2 };

let scene: AcmeScene | null = null;
let hook: ReturnType<typeof startDnsHook> | null = null;

afterEach(async () => {
  await scene?.stop();
  hook?.stop();
  scene = null;
  hook = null;
});

test("a CA that requires an account binding gets it, and the requirement is shown before", async () => {
  const key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
  scene = await startAcmeScene({ gateway, pebble: { eab: { "kid-1": key } } });
  await scene.addAccount("bound");
  await scene.order("eab", { domains: ["eab.test"] });
  const failed = await scene.becomes("eab", "failed");
  expect(failed.last_error).toContain("set eab_key_id and eab_hmac_key");
  const half = { eab_key_id: "kid-1" };
  const refused = await scene.gateway.api("PATCH", "/api/v1/acme/accounts/bound", half);
  expect(await refused.json()).toEqual({ error: "eab_hmac_key: is required with eab_key_id" });
  await scene.gateway.ok("PATCH", "/api/v1/acme/accounts/bound", { ...half, eab_hmac_key: key });
  await scene.becomes("eab", "valid");
});

test("a name that resolves elsewhere fails with a message, and is retried after a change of its domains", async () => {
  scene = await startAcmeScene({ gateway });
  await scene.pebble.setAddress("away.test", ["127.0.0.2"]);
  await scene.order("away", { domains: ["here.test", "away.test"] });
  const failed = await scene.becomes("away", "failed");
  expect(failed.last_error).toMatch(/^away\.test: 127\.0\.0\.1:\d+: the CA could not connect/);
  expect(failed.attempts).toBe(1);
  const pauseMs = Date.parse(failed.next_attempt_at) - Date.now();
  expect(pauseMs).toBeGreaterThan(3 * MINUTE_MS);
  expect(pauseMs).toBeLessThan(7 * MINUTE_MS);
  const { warnings } = await scene.gateway.ok("GET", "/api/v1/admin/status");
  expect(warnings).toContain('certificate "away" could not be issued in 1 attempt');
  await scene.pebble.setAddress("away.test", ["127.0.0.1"]);
  await scene.gateway.ok("PATCH", "/api/v1/certificates/away", { domains: ["here.test"] });
  expect((await scene.becomes("away", "valid")).attempts).toBe(0);
});

test("an order that the CA rejects fails with its message", async () => {
  scene = await startAcmeScene({ gateway });
  await scene.order("refused", { domains: ["under_score.test"] });
  const failed = await scene.becomes("refused", "failed");
  expect(failed.last_error).toMatch(/rejects|does not issue/);
});

test("a CA that is down is retried, and another account's CA issues instead", async () => {
  scene = await startAcmeScene({ gateway });
  await scene.pebble.kill();
  await scene.order("down", { domains: ["down.test"] });
  const failed = await scene.becomes("down", "failed");
  expect(failed.last_error).toMatch(/cannot be reached: the connection is refused/);
  expect(Date.parse(failed.next_attempt_at) - Date.now()).toBeLessThan(2 * MINUTE_MS);
  await scene.pebble.start();
  await scene.gateway.ok("POST", "/api/v1/certificates/down/renew");
  await scene.becomes("down", "valid");
  await scene.addAccount("gone", { directory_url: `https://127.0.0.1:${quietPort()}/dir` });
  const acme_account_ids = ["gone", "pebble"];
  await scene.order("second", { domains: ["second.test"], acme_account_ids });
  await scene.becomes("second", "valid");
});

test("an account that the CA has lost is registered again", async () => {
  scene = await startAcmeScene({ gateway });
  await scene.order("first", { domains: ["first.test"] });
  await scene.becomes("first", "valid");
  await scene.pebble.kill();
  await scene.pebble.start();
  await scene.gateway.ok("POST", "/api/v1/certificates/first/renew");
  await scene.becomes("first", "valid");
});

test("the gateway serves while the CA is slow", async () => {
  const env = { PEBBLE_VA_NOSLEEP: "0", PEBBLE_VA_SLEEPTIME: "6" };
  scene = await startAcmeScene({ gateway, pebble: { env } });
  await scene.order("slow", { domains: ["slow.test", "slower.test", "slowest.test"] });
  await scene.becomes("slow", "ordering");
  const { gateway: running } = scene;
  await running.ok("POST", "/api/v1/routes", { name: "meanwhile", service_id: null });
  await scene.becomes("slow", "valid");
});

const restart = async () => scene?.gateway.restart();
const kill = async () => {
  await scene?.gateway.kill9();
  await scene?.gateway.start();
};
const rotateKey = async () => {
  const words = ["rotate-key", "--data-dir", scene?.gateway.dataDir ?? ""];
  const { code, stderr } = await runCommand(words, { binary: executable });
  expect([code, stderr]).toEqual([0, ""]);
};

test.each([
  { how: "is stopped", disturb: restart },
  { how: "is killed", disturb: kill },
  { how: "gets another secret key", disturb: rotateKey },
  {
    how: "gets another secret key and is killed",
    disturb: async () => {
      await rotateKey();
      // Writes the state of the order again.
      await scene?.gateway.ok("PATCH", "/api/v1/certificates/cut", { tags: ["changed"] });
      await kill();
    },
  },
])("an order continues where it was when the gateway $how", async ({ disturb }) => {
  scene = await startAcmeScene({ gateway });
  hook = startDnsHook(scene.pebble);
  hook.hold();
  await scene.gateway.ok("POST", "/api/v1/dns-providers", {
    name: "hook",
    type: "webhook",
    zones: ["test"],
    config: { url: hook.url },
    propagation_timeout: 0,
  });
  await scene.order("cut", { domains: ["cut.test"], challenge: "dns-01" });
  await eventually(() => (hook?.calls.length ?? 0) > 0);
  await disturb();
  expect((await scene.find("cut")).status).toBe("ordering");
  hook.release();
  await scene.becomes("cut", "valid");
  expect(scene.pebble.output.match(/Added order/g)).toHaveLength(1);
  await kill();
  await scene.becomes("cut", "valid");
});
