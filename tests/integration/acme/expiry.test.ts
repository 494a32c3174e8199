// Expiry warnings, with a clock that the test moves.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { Authority } from "../../support/authority.ts";
import { AcmeWorld, DAY_MS, options } from "./scene.ts";

let world: AcmeWorld;

beforeEach(async () => {
  world = await AcmeWorld.start();
});
afterEach(async () => {
  await world?.stop();
});

const told = () =>
  world.events.filter(({ kind }) => kind === "certificate").map(({ data }) => data["what"]);

async function upload(name: string, until: number) {
  const authority = await Authority.create("somebody");
  const { cert, key } = await authority.sign({ names: [`${name}.test`], until });
  const body = { name, certificate: cert, private_key: key };
  return await world.control.certificates.create(body, options);
}

test("an uploaded certificate is reported 30, 14, 7, 3 and 1 days before expiry, and at it", async () => {
  // Half a day beside the thresholds: expiry times have no fractions of a second, the test clock has.
  await upload("own", 39.5);
  const passed: [number, unknown][] = [];
  for (let day = 0; day <= 41; day++) {
    const before = told().length;
    world.pass(day === 0 ? 0 : DAY_MS);
    // Two checks in a day report once.
    world.pass(0);
    for (const what of told().slice(before)) passed.push([40 - day, what]);
  }
  expect(passed).toEqual([
    [30, "expiring"],
    [14, "expiring"],
    [7, "expiring"],
    [3, "expiring"],
    [1, "expiring"],
    [0, "expired"],
  ]);
  const [warning] = world.control.acme.engine.warnings();
  expect(warning).toMatch(/^certificate "own" expired on \d{4}-\d\d-\d\d$/);
  expect(world.find("own").status).toBe("expired");
});

test("a restart does not repeat it", async () => {
  await upload("own", 20);
  world.pass(0);
  expect(told()).toEqual(["expiring"]);
  await world.restart();
  world.pass(0);
  expect(told()).toEqual(["expiring"]);
  expect(world.control.acme.engine.warnings()).toEqual([
    expect.stringMatching(/^certificate "own" expires in (19|20) days, on /),
  ]);
});

test("one that renews automatically is reported only when that fails", async () => {
  await world.order("shop");
  await world.becomes("shop", "valid");
  expect(told()).toEqual(["issued"]);
  const refusal = { status: 403, type: "rejectedIdentifier" };
  world.authority.refusals.push(...Array.from({ length: 100 }, () => refusal));
  world.pass(61 * DAY_MS);
  expect(told()).toEqual(["issued"]);
  world.pass(16 * DAY_MS);
  expect(told()).toEqual(["issued", "expiring"]);
});

test("a disabled one is not reported", async () => {
  await upload("own", 20);
  await world.control.certificates.patch("own", { enabled: false }, options);
  const before = told().length;
  world.pass(10 * DAY_MS);
  expect(told()).toHaveLength(before);
  expect(world.control.acme.engine.warnings()).toEqual([]);
});
