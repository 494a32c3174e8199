// Renewal at a real CA on a clock that the test sets; without workers, which this test does not need.
import { expect } from "bun:test";
import { X509Certificate } from "node:crypto";
import { AcmeWorld, DAY_MS } from "../integration/acme/scene.ts";
import { needs } from "../support/needs.ts";
import { Pebble } from "../support/pebble.ts";
import { eventually } from "../support/poll.ts";
import { quietPort } from "../support/quiet-port.ts";

const { afterEach, beforeEach, test } = needs("pebble");

let world: AcmeWorld;
let pebble: Pebble;

beforeEach(async () => {
  const env = { PEBBLE_VA_ALWAYS_VALID: "1" };
  pebble = new Pebble({ httpPort: quietPort(), tlsPort: quietPort(), badNonces: 15, env });
  await pebble.start();
  world = await AcmeWorld.start();
  // The CA's clock continues while the test's stands still: issued certificates must be valid by both.
  world.now += 60_000;
  const at = { directory_url: pebble.directoryUrl, ca_certificates: pebble.trusted };
  await world.addAccount("pebble", at);
});
afterEach(async () => {
  await world?.stop();
  await pebble?.stop();
});

test("the gateway renews a certificate once when a third of its lifetime remains", async () => {
  await world.order("shop", { acme_account_ids: ["pebble"] });
  const first = await world.becomes("shop", "valid");
  const [begin, end] = [Date.parse(first.not_before ?? ""), Date.parse(first.not_after ?? "")];
  const due = end - (end - begin) / 3;
  world.pass(due - world.now - DAY_MS);
  expect(world.find("shop")).toMatchObject({
    status: "valid",
    next_attempt_at: new Date(due).toISOString(),
  });
  world.pass(2 * DAY_MS);
  const second = await eventually(() => {
    const view = world.find("shop");
    return view.fingerprint !== first.fingerprint && view.status === "valid" ? view : null;
  });
  const key = ({ certificate }: typeof first) => new X509Certificate(certificate ?? "").publicKey;
  expect(key(second).equals(key(first))).toBe(false);
  // The CA's clock stands still, so the new certificate looks as old: the gateway does not renew it again and again.
  world.pass(60_000);
  expect(world.find("shop")).toMatchObject({
    status: "valid",
    fingerprint: second.fingerprint,
  });
});
