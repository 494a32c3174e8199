// Tests of HTTP/2 that name no engine, on our own: requests, frames of responses, limits and floods, GOAWAY, WebSockets.
import { afterAll, describe, expect, test } from "bun:test";

const before = process.env["SLUICE_TEST_ENGINE"];
// Read once, when `support/engines.ts` is loaded by the files below.
process.env["SLUICE_TEST_ENGINE"] = "sluice";
afterAll(() => {
  if (before === undefined) delete process.env["SLUICE_TEST_ENGINE"];
  else process.env["SLUICE_TEST_ENGINE"] = before;
});

const files = {
  requests: () => import("../full-engine/requests.test.ts"),
  "frames of responses": () => import("../full-engine/wire.test.ts"),
  "limits and floods": () => import("../full-engine/limits.test.ts"),
  "ends of connections": () => import("../full-engine/drain.test.ts"),
};

for (const [name, load] of Object.entries(files)) describe(name, async () => void (await load()));

test("they run on our own engine", async () => {
  const { grpcEngine } = await import("../../support/engines.ts");
  expect(grpcEngine).toBe("sluice");
});
