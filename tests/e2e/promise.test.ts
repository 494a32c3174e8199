// Runs the tests of the product's promises, which `make test` runs from source, against the executable.
import { lackOf, needs, testExecutable } from "../support/needs.ts";

testExecutable();

if (lackOf("executable") === null) {
  await import("../integration/promise/headline.test.ts");
  await import("../integration/promise/crash.test.ts");
  await import("../integration/promise/graceful-stop.test.ts");
} else needs("executable").test("the executable keeps the product's promises", () => {});
