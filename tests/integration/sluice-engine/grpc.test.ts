// Tests of gRPC on our own engine.
import { afterAll, describe, expect, test } from "bun:test";

const before = process.env["SLUICE_TEST_ENGINE"];
// Read once, when `support/engines.ts` is loaded by the files below.
process.env["SLUICE_TEST_ENGINE"] = "sluice";
afterAll(() => {
  if (before === undefined) delete process.env["SLUICE_TEST_ENGINE"];
  else process.env["SLUICE_TEST_ENGINE"] = before;
});

const files = {
  calls: () => import("../grpc/calls.test.ts"),
  changes: () => import("../grpc/changes.test.ts"),
  observation: () => import("../grpc/observation.test.ts"),
  plugins: () => import("../grpc/plugins.test.ts"),
  refusals: () => import("../grpc/refusals.test.ts"),
  targets: () => import("../grpc/targets.test.ts"),
};

for (const [name, load] of Object.entries(files)) describe(name, async () => void (await load()));

test("they run on our own engine", async () => {
  const { grpcEngine } = await import("../../support/engines.ts");
  expect(grpcEngine).toBe("sluice");
});
