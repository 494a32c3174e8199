// Size of everything that a browser loads before it shows the first page, as measured by the build of the executable.
import { expect } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { needs } from "../../support/needs.ts";

const { test } = needs("executable");

// The build itself fails above the limit; this test checks the last build.
test("stays under 300 KB compressed", () => {
  const sizes = resolve(import.meta.dir, "../../../dist/ui/sizes.json");
  const { first_load: firstLoad } = JSON.parse(readFileSync(sizes, "utf8")) as {
    first_load: number;
  };
  expect(firstLoad).toBeGreaterThan(50_000);
  expect(firstLoad).toBeLessThan(300_000);
});
