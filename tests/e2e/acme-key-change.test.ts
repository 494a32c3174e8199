// Account key rollover at a real CA (RFC 8555 section 7.3.5), and its recovery from failures.
import { expect } from "bun:test";
import { type AcmeScene, startAcmeScene } from "../support/acme-scene.ts";
import { needs } from "../support/needs.ts";
import { executable } from "../support/executable.ts";

const { afterEach, test } = needs("executable", "pebble");

const gateway = { binary: executable, workers: 2 };
const ACCOUNT = "/api/v1/acme/accounts/pebble";

let scene: AcmeScene | null = null;

afterEach(async () => {
  await scene?.stop();
  scene = null;
});

const accountsMade = ({ pebble }: AcmeScene) =>
  pebble.output.match(/There are now \d+ accounts in memory/g)?.at(-1);

test("the CA has the account's new key, and continues to issue for it", async () => {
  scene = await startAcmeScene({ gateway, pebble: { badNonces: 30 } });
  const { gateway: running, order, becomes } = scene;
  await order("one", { domains: ["one.test"] });
  const one = await becomes("one", "valid");
  const made = accountsMade(scene);
  const before = await running.ok("GET", ACCOUNT);
  const after = await running.ok("POST", `${ACCOUNT}/rotate-key`);
  expect(Object.keys(after)).toEqual(Object.keys(before));
  expect(JSON.stringify(after)).not.toContain("sealed");
  await order("two", { domains: ["two.test"] });
  await becomes("two", "valid");
  // Certificates issued with the former key still belong to the account.
  expect((await running.ok("GET", "/api/v1/certificates/one")).fingerprint).toBe(one.fingerprint);
  await running.ok("POST", "/api/v1/certificates/one/revoke", {});
  expect(accountsMade(scene)).toBe(made);
});

test("with the CA down the key stays, and the rollover completes later", async () => {
  scene = await startAcmeScene({ gateway });
  const { gateway: running, pebble, order, becomes } = scene;
  await order("one", { domains: ["one.test"] });
  await becomes("one", "valid");
  await pebble.kill();
  const failed = await running.api("POST", `${ACCOUNT}/rotate-key`);
  expect(failed.status).toBe(500);
  expect((await failed.json()).error).toContain("cannot be reached");
  await pebble.start();
  await running.ok("POST", `${ACCOUNT}/rotate-key`);
  await order("two", { domains: ["two.test"] });
  await becomes("two", "valid");
});

test("a rollover interrupted after the CA's change does not lock the account out", async () => {
  scene = await startAcmeScene({ gateway });
  const { gateway: running, order, becomes } = scene;
  await order("one", { domains: ["one.test"] });
  await becomes("one", "valid");
  const made = accountsMade(scene);
  await running.ok("POST", `${ACCOUNT}/rotate-key`);
  // The stored state after the CA has changed the key and before the gateway has recorded it.
  const last = (await running.ok("GET", "/api/v1/revisions")).at(-1);
  await running.ok("POST", `/api/v1/revisions/${last.number - 1}/restore`);
  await running.kill9();
  await running.start();
  await order("two", { domains: ["two.test"] });
  await becomes("two", "valid");
  await running.ok("POST", `${ACCOUNT}/rotate-key`);
  await order("three", { domains: ["three.test"] });
  await becomes("three", "valid");
  expect(accountsMade(scene)).toBe(made);
});
