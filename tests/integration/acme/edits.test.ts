// Orders whose certificate, account or DNS provider changes while they run.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { eventually } from "../../support/poll.ts";
import { AcmeWorld, options } from "./scene.ts";

let world: AcmeWorld;

beforeEach(async () => {
  world = await AcmeWorld.start();
});
afterEach(() => world.stop());

const refused = { status: 403, type: "rejectedIdentifier", detail: "no" };

/** Orders a certificate and stops midway: the returned function lets the CA respond. */
async function orderHalf(name: string, fields: object = {}): Promise<() => void> {
  const gate = Promise.withResolvers<void>();
  world.authority.gate = gate.promise;
  await world.order(name, fields);
  await eventually(() => world.authority.orders.length === 1);
  return () => {
    world.authority.gate = Promise.resolve();
    gate.resolve();
  };
}

const change = (name: string, patch: object) =>
  world.control.certificates.patch(name, patch, options);

test("the failure of an order for former names does not delay the new order", async () => {
  const release = await orderHalf("shop");
  world.authority.refusals.push(refused);
  await change("shop", { domains: ["other.test"] });
  release();
  const view = await world.becomes("shop", "valid");
  expect(view).toMatchObject({ attempts: 0, last_error: null, domains: ["other.test"] });
});

test("a certificate that left ACME is not reported as renewed", async () => {
  const release = await orderHalf("shop");
  world.authority.refusals.push(refused);
  await change("shop", { source: "self_signed" });
  release();
  await world.order("next");
  await world.becomes("next", "valid");
  expect(world.find("shop")).toMatchObject({ status: "valid", attempts: 0, last_error: null });
});

test("a disabled one stops its order, and enabling it orders again", async () => {
  const release = await orderHalf("shop");
  await change("shop", { enabled: false });
  release();
  await eventually(() => world.find("shop").status === "pending");
  expect(world.find("shop")).toMatchObject({ certificate: null, next_attempt_at: null });
  await change("shop", { enabled: true });
  await world.becomes("shop", "valid");
});

test("a changed key type does not continue the order", async () => {
  const gate = Promise.withResolvers<void>();
  world.authority.bodyGate = gate.promise;
  await world.order("shop");
  await eventually(() => world.authority.orders.length === 1);
  await change("shop", { key_type: "rsa" });
  world.authority.bodyGate = null;
  gate.resolve();
  await world.becomes("shop", "valid");
  const { certificate } = world.find("shop");
  const { X509Certificate } = await import("node:crypto");
  expect(new X509Certificate(certificate ?? "").publicKey.asymmetricKeyType).toBe("rsa");
});

test("other changes leave an order alone", async () => {
  const release = await orderHalf("shop");
  await change("shop", { description: "the shop", tags: ["a"] });
  release();
  await world.becomes("shop", "valid");
  expect(world.authority.orders).toHaveLength(1);
});

test("a changed account retries a failed order at once", async () => {
  const release = await orderHalf("shop");
  world.authority.refusals.push(refused);
  await world.control.acmeAccounts.patch("scripted", { email: "me@example.com" }, options);
  release();
  await world.becomes("shop", "valid");
  expect(world.authority.orders).toHaveLength(2);
});

test("one deleted during account registration does not delay the others", async () => {
  const gate = Promise.withResolvers<void>();
  world.authority.accountGate = gate.promise;
  for (const name of ["one", "two", "three"]) await world.order(name);
  await eventually(() => world.authority.accounts.length === 1);
  await world.control.certificates.remove("one", { ...options, cascade: false });
  gate.resolve();
  await Promise.all([world.becomes("two", "valid"), world.becomes("three", "valid")]);
});
