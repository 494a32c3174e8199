// Tests of security that name no engine, on Bun's: clients that smuggle, lie about themselves, or leave.
import { afterAll, describe, expect, test } from "bun:test";

const before = process.env["SLUICE_TEST_ENGINE"];
// Read once, when `support/engines.ts` is loaded by the files below.
process.env["SLUICE_TEST_ENGINE"] = "bun";
afterAll(() => {
  if (before === undefined) delete process.env["SLUICE_TEST_ENGINE"];
  else process.env["SLUICE_TEST_ENGINE"] = before;
});

const files = {
  "aborted requests": () => import("../security/aborted-requests.test.ts"),
  "forwarded fields": () => import("../security/forwarded-fields.test.ts"),
  "host matching": () => import("../security/host-matching.test.ts"),
  "identity fields": () => import("../security/identity-fields.test.ts"),
  "log injection": () => import("../security/log-injection.test.ts"),
  "path confusion": () => import("../security/path-confusion.test.ts"),
  "upgrade smuggling": () => import("../security/upgrade-smuggling.test.ts"),
};

for (const [name, load] of Object.entries(files)) describe(name, async () => void (await load()));

test("they run on Bun.serve", async () => {
  const { testedEngine } = await import("../../support/engines.ts");
  expect(testedEngine).toBe("bun");
});
