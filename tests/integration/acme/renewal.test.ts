// When certificates are renewed and retried, with a clock that the test moves.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { eventually } from "../../support/poll.ts";
import { AcmeWorld, DAY_MS, HOUR_MS, options } from "./scene.ts";

let world: AcmeWorld;

beforeEach(async () => {
  world = await AcmeWorld.start();
});
afterEach(async () => {
  await world?.stop();
});

const timeAt = (ms: number) => new Date(world.now + ms).toISOString();

describe("without renewal information (ARI)", () => {
  test("a certificate is renewed when a third of its life is left, and not before", async () => {
    await world.order("shop");
    const first = await world.becomes("shop", "valid");
    expect(Date.parse(first.next_attempt_at ?? "") - world.now).toBeCloseTo(60 * DAY_MS, -4);
    world.pass(59 * DAY_MS);
    expect(world.find("shop").status).toBe("valid");
    expect(world.authority.orders).toHaveLength(1);
    world.pass(1.01 * DAY_MS);
    expect(world.find("shop").status).toBe("renewing");
    const second = await world.becomes("shop", "valid");
    expect(second.fingerprint).not.toBe(first.fingerprint);
    expect(world.authority.orders).toHaveLength(2);
  });

  test("a short-lived one is renewed at half of its life", async () => {
    world.authority.lifeDays = 6;
    await world.order("short");
    await world.becomes("short", "valid");
    world.pass(2.9 * DAY_MS);
    expect(world.authority.orders).toHaveLength(1);
    world.pass(0.2 * DAY_MS);
    await eventually(() => world.authority.orders.length === 2);
  });

  test("a renewal that came due while the gateway was down runs at its start", async () => {
    await world.order("shop");
    await world.becomes("shop", "valid");
    world.now += 70 * DAY_MS;
    await world.restart();
    await eventually(() => world.authority.orders.length === 2);
    await world.becomes("shop", "valid");
  });
});

describe("a CA with renewal information (RFC 9773)", () => {
  test("is polled for what it has issued, and obeyed", async () => {
    world.authority.renewal = { start: timeAt(10 * DAY_MS), end: timeAt(12 * DAY_MS) };
    await world.order("shop");
    await eventually(() => world.find("shop").renewal_window !== null);
    const view = world.find("shop");
    expect(view.renewal_window).toEqual(world.authority.renewal);
    const at = Date.parse(view.next_attempt_at ?? "") - world.now;
    expect(at).toBeGreaterThanOrEqual(10 * DAY_MS);
    expect(at).toBeLessThanOrEqual(12 * DAY_MS);
    const { serialNumber } = new X509Certificate(view.certificate ?? "");
    const serial = Buffer.from(serialNumber, "hex").toString("base64url");
    expect(world.authority.asked[0]?.split(".")[1]).toBe(serial);
    world.pass(12 * DAY_MS);
    await eventually(() => world.authority.orders.length === 2);
    await world.becomes("shop", "valid");
    expect(world.authority.orders[1]?.["replaces"]).toBe(world.authority.asked[0]);
  });

  test("is polled after Retry-After, and a window in the past means now", async () => {
    world.authority.renewal = { start: timeAt(50 * DAY_MS), end: timeAt(51 * DAY_MS) };
    world.authority.renewalRetryAfter = "7200";
    await world.order("shop");
    await eventually(() => world.find("shop").renewal_window !== null);
    const drawn = world.find("shop").next_attempt_at;
    world.pass(1 * HOUR_MS);
    world.pass(1.5 * HOUR_MS);
    await eventually(() => world.authority.asked.length === 2);
    expect(world.find("shop").next_attempt_at).toBe(drawn);
    world.authority.renewal = { start: timeAt(-2 * DAY_MS), end: timeAt(-1 * DAY_MS) };
    world.pass(2 * DAY_MS);
    await eventually(() => world.authority.orders.length === 2);
  });

  test("causes no endless renewals when it always suggests now", async () => {
    world.authority.renewal = { start: timeAt(-2 * DAY_MS), end: timeAt(-1 * DAY_MS) };
    await world.order("shop");
    await eventually(() => world.find("shop").renewal_window !== null);
    for (let hour = 0; hour < 23; hour++) world.pass(HOUR_MS);
    expect(world.authority.orders).toHaveLength(1);
    world.pass(2 * HOUR_MS);
    await eventually(() => world.authority.orders.length === 2);
  });

  test("may send an invalid response", async () => {
    world.authority.renewal = { start: "soon", end: "later" };
    await world.order("shop");
    await eventually(() => world.authority.asked.length === 1);
    const view = await world.becomes("shop", "valid");
    expect(view.renewal_window).toBeNull();
    expect(Date.parse(view.next_attempt_at ?? "") - world.now).toBeCloseTo(60 * DAY_MS, -4);
  });
});

test("a CA whose clock is far behind causes no endless renewals", async () => {
  world.authority.behindMs = 80 * DAY_MS;
  await world.order("shop");
  await world.becomes("shop", "valid");
  for (let hour = 0; hour < 20; hour++) world.pass(HOUR_MS);
  expect(Date.parse(world.find("shop").next_attempt_at ?? "")).toBeGreaterThan(world.now);
  expect(world.authority.orders).toHaveLength(1);
  world.pass(5 * HOUR_MS);
  await eventually(() => world.authority.orders.length === 2);
});

test("a certificate without one of the names is rejected, and the retry waits", async () => {
  world.authority.forgotten = "b.test";
  await world.order("shop", { domains: ["a.test", "b.test"] });
  const failed = await world.becomes("shop", "failed");
  expect(failed.last_error).toContain("the issued certificate lacks the name b.test");
  world.pass(60_000);
  expect(world.authority.orders).toHaveLength(1);
});

test("status reports an added name that failed", async () => {
  await world.order("shop", { domains: ["a.test"] });
  await world.becomes("shop", "valid");
  world.authority.refusals.push({ status: 403, type: "rejectedIdentifier", detail: "no" });
  await world.control.certificates.patch("shop", { domains: ["a.test", "b.test"] }, options);
  await eventually(() => world.find("shop").attempts === 1);
  expect(world.control.acme.engine.warnings()).toEqual([
    'certificate "shop" could not be issued for all of its names in 1 attempt',
  ]);
});

test("a window that ends after the certificate is ignored", async () => {
  const at = (days: number) => new Date(world.now + days * DAY_MS).toISOString();
  world.authority.renewal = { start: at(80), end: at(120) };
  await world.order("shop");
  await eventually(() => world.authority.asked.length === 1);
  const view = await world.becomes("shop", "valid");
  expect(view.renewal_window).toBeNull();
  expect(Date.parse(view.next_attempt_at ?? "") - world.now).toBeCloseTo(60 * DAY_MS, -4);
});

describe("a failed order", () => {
  test("is retried when the CA allows it, not earlier", async () => {
    const headers = { "retry-after": String(5 * 3600) };
    world.authority.refusals.push({ status: 429, type: "rateLimited", detail: "slow", headers });
    await world.order("shop");
    const failed = await world.becomes("shop", "failed");
    expect(failed.last_error).toContain("the CA's rate limit is reached: slow");
    expect(Date.parse(failed.next_attempt_at ?? "") - world.now).toBe(5 * HOUR_MS);
    world.pass(4.9 * HOUR_MS);
    expect(world.authority.orders).toHaveLength(1);
    world.pass(0.2 * HOUR_MS);
    await world.becomes("shop", "valid");
  });

  test("waits for its rate limit despite other changes, not for that of other names", async () => {
    const headers = { "retry-after": String(5 * 3600) };
    world.authority.refusals.push({ status: 429, type: "rateLimited", detail: "slow", headers });
    await world.order("shop");
    const { next_attempt_at } = await world.becomes("shop", "failed");
    await world.control.certificates.patch("shop", { description: "the shop" }, options);
    expect(world.find("shop")).toMatchObject({ status: "failed", attempts: 1, next_attempt_at });
    await world.control.certificates.patch("shop", { domains: ["other.test"] }, options);
    await world.becomes("shop", "valid");
    expect(world.authority.orders).toHaveLength(2);
  });

  test("keeps its place over a restart", async () => {
    world.authority.refusals.push({ status: 403, type: "rejectedIdentifier", detail: "no" });
    await world.order("shop");
    const { attempts, last_error, next_attempt_at } = await world.becomes("shop", "failed");
    await world.restart();
    expect(world.find("shop")).toMatchObject({ attempts, last_error, next_attempt_at });
    expect(world.authority.orders).toHaveLength(1);
  });

  test("waits longer each time", async () => {
    const refusal = { status: 403, type: "rejectedIdentifier" };
    world.authority.refusals.push(...Array.from({ length: 4 }, () => refusal));
    await world.order("shop");
    const pauses: number[] = [];
    for (let attempt = 1; attempt <= 4; attempt++) {
      const view = await eventually(() => {
        const now = world.find("shop");
        return now.attempts === attempt && now.next_attempt_at !== null ? now : null;
      });
      pauses.push(Date.parse(view.next_attempt_at ?? "") - world.now);
      world.pass((pauses.at(-1) ?? 0) + 1);
    }
    await world.becomes("shop", "valid");
    for (const [index, pause] of pauses.entries()) {
      const middle = 5 * 60_000 * 2 ** index;
      expect(pause).toBeGreaterThanOrEqual(middle * 0.8);
      expect(pause).toBeLessThanOrEqual(middle * 1.2);
    }
  });

  test("leaves the current certificate in use, and reports it", async () => {
    await world.order("shop");
    const first = await world.becomes("shop", "valid");
    world.authority.refusals.push({ status: 500, type: "serverInternal" });
    world.pass(61 * DAY_MS);
    await eventually(() => world.find("shop").attempts === 1);
    expect(world.find("shop")).toMatchObject({
      status: "renewing",
      fingerprint: first.fingerprint,
    });
  });
});

test("one certificate never has two orders at a time", async () => {
  const gate = Promise.withResolvers<void>();
  world.authority.gate = gate.promise;
  await world.order("shop");
  await eventually(() => world.authority.orders.length === 1);
  for (let tick = 0; tick < 20; tick++) world.pass(60_000);
  const certificate = world.control.certificates.find("shop");
  world.control.acme.engine.askFor(certificate);
  gate.resolve();
  await world.becomes("shop", "valid");
  expect(world.authority.orders).toHaveLength(1);
});

test("a certificate deleted during its order leaves nothing behind", async () => {
  const gate = Promise.withResolvers<void>();
  world.authority.gate = gate.promise;
  await world.order("shop");
  await eventually(() => world.authority.orders.length === 1);
  await world.control.certificates.remove("shop", { ...options, cascade: false });
  gate.resolve();
  await world.order("other");
  await world.becomes("other", "valid");
  expect(world.control.changes.config.certificates.size).toBe(1);
});

test("the profile of the certificate overrides that of the account", async () => {
  await world.control.acmeAccounts.patch("scripted", { profile: "classic" }, options);
  await world.order("one");
  await world.becomes("one", "valid");
  await world.order("two", { profile: "shortlived" });
  await world.becomes("two", "valid");
  expect(world.authority.orders.map(({ profile }) => profile)).toEqual(["classic", "shortlived"]);
});
