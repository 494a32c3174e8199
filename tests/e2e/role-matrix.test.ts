// The role matrix, which `make test` checks from source, against the executable: a bundler can drop an authorization check.
import { afterAll, beforeAll } from "bun:test";
import { lackOf, needs } from "../support/needs.ts";
import { executable } from "../support/variants.ts";

const VARIABLE = "SLUICE_TEST_BINARY";
const before = process.env[VARIABLE];

beforeAll(() => {
  process.env[VARIABLE] = executable;
});
afterAll(() => {
  if (before === undefined) delete process.env[VARIABLE];
  else process.env[VARIABLE] = before;
});

if (lackOf("executable") === null) await import("../integration/security/role-matrix.test.ts");
else needs("executable").test("the executable enforces the role matrix", () => {});
