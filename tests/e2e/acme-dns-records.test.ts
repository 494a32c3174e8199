// DNS records for dns-01: who may write them, and that none remains when the gateway stops during validation.
import { expect } from "bun:test";
import { type AcmeScene, startAcmeScene, startDnsHook } from "../support/acme-scene.ts";
import { needs } from "../support/needs.ts";
import { eventually } from "../support/poll.ts";
import { executable } from "../support/executable.ts";

const { afterEach, beforeEach, test } = needs("executable", "pebble");

const gateway = { binary: executable, workers: 2 };

let scene: AcmeScene;
let hook: ReturnType<typeof startDnsHook>;

beforeEach(async () => {
  scene = await startAcmeScene({ gateway, pebble: { hasResolver: true } });
  hook = startDnsHook(scene.pebble);
});
afterEach(async () => {
  await scene.stop();
  await hook.stop();
});

const addProvider = (zones: string[]) =>
  scene.gateway.ok("POST", "/api/v1/dns-providers", {
    name: "hook",
    type: "webhook",
    zones,
    config: { url: hook.url },
    propagation_timeout: 0,
  });

/** Resolves when the CA validates the record: its query waits until the resolver is released. */
async function orderAndHold(name: string): Promise<void> {
  scene.pebble.resolver.hold();
  await scene.order(name, { domains: [`${name}.test`], challenge: "dns-01" });
  await eventually(() => scene.pebble.resolver.waiting > 0);
  expect(hook.left).toHaveLength(1);
}

test("a stop deletes the record, and the next start adds it again", async () => {
  await addProvider(["test"]);
  await orderAndHold("cut");
  await scene.gateway.restart();
  await eventually(() => hook.left.length === 1);
  scene.pebble.resolver.release();
  await scene.becomes("cut", "valid");
  expect(hook.left).toEqual([]);
  const words = hook.calls.map((call) => call.split(" ")[0]);
  expect(words).toEqual(["/present", "/cleanup", "/present", "/cleanup"]);
});

test("a certificate that is deleted during validation leaves no record", async () => {
  await addProvider(["test"]);
  await orderAndHold("cut");
  await scene.gateway.ok("DELETE", "/api/v1/certificates/cut");
  await eventually(() => hook.left.length === 0);
});

test("a record is deleted that the provider added but reported as failed", async () => {
  const left = new Set<string>();
  const broken = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { fqdn, value } = (await request.json()) as { fqdn: string; value: string };
      if (new URL(request.url).pathname === "/cleanup") {
        left.delete(`${fqdn} ${value}`);
        return new Response("{}");
      }
      left.add(`${fqdn} ${value}`);
      return new Response("later", { status: 500 });
    },
  });
  try {
    await scene.gateway.ok("POST", "/api/v1/dns-providers", {
      name: "broken",
      type: "webhook",
      zones: ["broken.test"],
      config: { url: `http://127.0.0.1:${broken.port}` },
    });
    await scene.order("broken", { domains: ["broken.test"], challenge: "dns-01" });
    const { last_error } = await scene.becomes("broken", "failed");
    expect(last_error).toContain("the webhook has an internal error (status 500");
    expect([...left]).toEqual([]);
  } finally {
    await broken.stop(true);
  }
});

test("a chosen provider writes only to its own zone", async () => {
  const { id } = await addProvider(["other.test"]);
  const fields = { challenge: "dns-01", dns_provider_id: id };
  await scene.order("here", { domains: ["here.other.test"], ...fields });
  await scene.order("away", { domains: ["away.test"], ...fields });
  const failed = await scene.becomes("away", "failed");
  expect(failed.last_error).toBe(
    'DNS provider "hook" may not write the zone of _acme-challenge.away.test: its zones are other.test',
  );
  await scene.becomes("here", "valid");
  expect(hook.calls.some((call) => call.includes("away"))).toBe(false);
});
