// Runs the tests of the product's promises, which `make test` runs from source, against the executable.
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

if (lackOf("executable") === null) {
  await import("../integration/promise/headline.test.ts");
  await import("../integration/promise/crash.test.ts");
  await import("../integration/promise/graceful-stop.test.ts");
} else needs("executable").test("the executable keeps the product's promises", () => {});
