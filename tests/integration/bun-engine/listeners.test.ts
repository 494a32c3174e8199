// Tests of listeners with TLS that name no engine, on Bun's: hosts, HTTP/3 and ACME.
import { afterAll, describe, expect, test } from "bun:test";

const before = process.env["SLUICE_TEST_ENGINE"];
// Read once, when `support/engines.ts` is loaded by the files below.
process.env["SLUICE_TEST_ENGINE"] = "bun";
afterAll(() => {
  if (before === undefined) delete process.env["SLUICE_TEST_ENGINE"];
  else process.env["SLUICE_TEST_ENGINE"] = before;
});

const files = {
  "HTTP/3 beside": () => import("../listeners/http3.test.ts"),
  "listeners by host": () => import("../listeners/hosts.test.ts"),
  "ACME challenges": () => import("../acme/challenges.test.ts"),
  "certificates on demand": () => import("../acme/on-demand.test.ts"),
  "the local CA": () => import("../acme/local-ca.test.ts"),
  "conformance of HTTPS listeners": () => import("../conformance/https-listeners.test.ts"),
};

for (const [name, load] of Object.entries(files)) describe(name, async () => void (await load()));

test("they run on Bun.serve", async () => {
  const { testedEngine } = await import("../../support/engines.ts");
  expect(testedEngine).toBe("bun");
});
