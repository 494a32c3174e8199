// Accounts at CAs: staging, timeouts and order metrics, with a scripted CA.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { newAccountKey } from "../../../src/acme/accounts.ts";
import { CaClient } from "../../../src/acme/ca-client.ts";
import { AcmeFailure } from "../../../src/acme/failure.ts";
import { acmeAccountRecord } from "../../../src/model/acme-account.ts";
import { decode } from "../../../src/model/decode.ts";
import { ScriptedAuthority } from "../../support/scripted-authority.ts";
import { AcmeWorld, DAY_MS, options } from "./scene.ts";

let world: AcmeWorld;

beforeEach(async () => {
  world = await AcmeWorld.start();
});
afterEach(() => world.stop());

describe("a staging account", () => {
  test("uses the staging directory, and orders anew when it leaves staging", async () => {
    const trial = await ScriptedAuthority.start(() => world.now, "trial");
    try {
      const fields = {
        staging: true,
        staging_directory_url: trial.directoryUrl,
        ca_certificates: world.authority.trusted + trial.trusted,
      };
      await world.control.acmeAccounts.patch("scripted", fields, options);
      await world.order("shop");
      const first = await world.becomes("shop", "valid");
      expect([trial.orders.length, world.authority.orders.length]).toEqual([1, 0]);
      // Nothing else about the account makes a difference.
      await world.control.acmeAccounts.patch("scripted", { description: "x" }, options);
      expect(world.find("shop").status).toBe("valid");
      await world.control.acmeAccounts.patch("scripted", { staging: false }, options);
      const second = await world.becomes("shop", "valid");
      expect([trial.orders.length, world.authority.orders.length]).toEqual([1, 1]);
      expect(second.fingerprint).not.toBe(first.fingerprint);
      // Another CA cannot replace (RFC 9773) what a staging CA has issued.
      expect(world.authority.orders[0]).not.toHaveProperty("replaces");
      await world.control.acmeAccounts.patch("scripted", { staging: true }, options);
      world.pass(DAY_MS);
      expect(world.find("shop")).toMatchObject({
        status: "valid",
        fingerprint: second.fingerprint,
      });
      expect(trial.orders).toHaveLength(1);
    } finally {
      await trial.stop();
    }
  });

  test("needs a known directory", async () => {
    await expect(world.addAccount("own", { staging: true })).rejects.toThrow(
      "staging_directory_url: is required: no staging directory of this CA is known",
    );
    const known = {
      staging: true,
      directory_url: "https://acme-v02.api.letsencrypt.org/directory",
    };
    await expect(world.addAccount("known", known)).resolves.toMatchObject({
      view: { staging: true },
    });
  });
});

test("a changed e-mail address reaches the CA before the next order", async () => {
  await world.order("one");
  await world.becomes("one", "valid");
  expect(world.authority.accounts.some((sent) => "contact" in sent)).toBe(false);
  await world.control.acmeAccounts.patch("scripted", { email: "new@example.com" }, options);
  await world.order("two");
  await world.becomes("two", "valid");
  const told = world.authority.accounts.filter((sent) => "contact" in sent);
  expect(told).toEqual([{ contact: ["mailto:new@example.com"] }]);
});

test("only the CA that issued a certificate receives its revocation", async () => {
  const other = await ScriptedAuthority.start(() => world.now, "other");
  try {
    const fields = { directory_url: other.directoryUrl, ca_certificates: other.trusted };
    await world.addAccount("other", fields);
    await world.order("shop", { acme_account_ids: ["other"] });
    await world.becomes("shop", "valid");
    await world.control.certificates.patch("shop", { acme_account_ids: [] }, options);
    const revoke = () =>
      world.control.acme.revoke(world.control.certificates.find("shop"), {}, options.by);
    await world.control.acmeAccounts.remove("other", { ...options, cascade: false });
    const host = new URL(other.directoryUrl).host;
    await expect(revoke()).rejects.toThrow(`there is no ACME account at its issuer ${host}`);
    await world.addAccount("again", fields);
    await world.control.acmeAccounts.remove("scripted", { ...options, cascade: false });
    await revoke();
    expect([world.authority.revoked.length, other.revoked.length]).toEqual([0, 1]);
    await world.becomes("shop", "valid");
  } finally {
    await other.stop();
  }
});

test("no certificate is revoked while changes are paused", async () => {
  await world.order("shop");
  await world.becomes("shop", "valid");
  const { control, authority } = world;
  const revoke = () => control.acme.revoke(control.certificates.find("shop"), {}, options.by);
  await control.changes.turns.pause("another process takes over");
  await expect(revoke()).rejects.toThrow("another process takes over");
  expect(authority.revoked).toEqual([]);
  control.changes.turns.resume();
  await revoke();
  expect(authority.revoked).toHaveLength(1);
});

test("orders are counted by account and outcome", async () => {
  const lines = () =>
    world.control.observation.metrics
      .write("prometheus")
      .split("\n")
      .filter((line) => line.startsWith("sluice_acme_"));
  expect(lines()).toEqual([]);
  world.authority.refusals.push({ status: 403, type: "rejectedIdentifier", detail: "no" });
  await world.order("shop");
  await world.becomes("shop", "failed");
  expect(lines()).toContain('sluice_acme_orders_total{account="scripted",result="failed"} 1');
  expect(lines()).toContain('sluice_acme_failed_attempts{certificate="shop"} 1');
  world.pass(DAY_MS);
  await world.becomes("shop", "valid");
  expect(lines()).toContain('sluice_acme_orders_total{account="scripted",result="issued"} 1');
  expect(lines()).toContain('sluice_acme_failed_attempts{certificate="shop"} 0');
});

describe("an unresponsive CA", () => {
  test.each([
    { why: "from the beginning", holdsAt: "new-order" as const },
    { why: "to its end", holdsAt: "body" as const },
  ])("$why times out and counts as unavailable", async ({ holdsAt }) => {
    const { authority } = world;
    const held = Promise.withResolvers<void>();
    const known = new Map();
    const record = decode(acmeAccountRecord, {
      name: "slow",
      directory_url: authority.directoryUrl,
      terms_agreed: true,
      ca_certificates: authority.trusted,
    });
    const account = { ...record, id: "a", created_at: "", updated_at: "" };
    const parts = {
      known,
      fetch,
      now: Date.now,
      signal: new AbortController().signal,
      timeoutMs: 300,
    };
    const opened = await CaClient.open({ account, key: newAccountKey(), eabKey: null }, parts);
    if (holdsAt === "body") authority.bodyGate = held.promise;
    else authority.gate = held.promise;
    const failure = await opened
      .newOrder(["shop.test"], { profile: null, replaces: null })
      .catch((error: unknown) => error);
    held.resolve();
    expect(failure).toBeInstanceOf(AcmeFailure);
    expect((failure as AcmeFailure).message).toEndWith(
      "cannot be reached: it did not respond in time",
    );
    expect((failure as AcmeFailure).isOutage).toBe(true);
  });
});
