// Who may do what, as `make test` asks the sources, once more asked of the executable: a bundler can lose a guard.
import { afterAll, beforeAll } from "bun:test";
import { executable, requireExecutable } from "../support/variants.ts";

const VARIABLE = "SLUICE_TEST_BINARY";
const before = process.env[VARIABLE];

beforeAll(() => {
  requireExecutable();
  process.env[VARIABLE] = executable;
});
afterAll(() => {
  if (before === undefined) delete process.env[VARIABLE];
  else process.env[VARIABLE] = before;
});

await import("../integration/security/role-matrix.test.ts");
