// What a browser loads before it shows the first page, as the build measured it.
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

const sizes = resolve(import.meta.dir, "../../../dist/ui/sizes.json");

// The build itself refuses more; here is said what was built last, if anything was.
test.if(existsSync(sizes))("stays under 350 KB compressed", () => {
  const { first_load: firstLoad } = JSON.parse(readFileSync(sizes, "utf8")) as {
    first_load: number;
  };
  expect(firstLoad).toBeGreaterThan(50_000);
  expect(firstLoad).toBeLessThan(350_000);
});
