// Tests of promises that name no engine, on Bun's: bodies of any size, targets that fail, and stops.
import { afterAll, describe, expect, test } from "bun:test";

const before = process.env["SLUICE_TEST_ENGINE"];
// Read once, when `support/engines.ts` is loaded by the files below.
process.env["SLUICE_TEST_ENGINE"] = "bun";
afterAll(() => {
  if (before === undefined) delete process.env["SLUICE_TEST_ENGINE"];
  else process.env["SLUICE_TEST_ENGINE"] = before;
});

const files = {
  "big bodies": () => import("../promise/big-bodies.test.ts"),
  buffering: () => import("../promise/collecting.test.ts"),
  "failing targets": () => import("../promise/failing-targets.test.ts"),
  "a graceful stop": () => import("../promise/graceful-stop.test.ts"),
  "idle times": () => import("../promise/idle-times.test.ts"),
};

for (const [name, load] of Object.entries(files)) describe(name, async () => void (await load()));

test("they run on Bun.serve", async () => {
  const { testedEngine } = await import("../../support/engines.ts");
  expect(testedEngine).toBe("bun");
});
