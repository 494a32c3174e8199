// Rules of HTTP caching, a row each, with one, two and four workers that share a store.
import { afterAll, beforeAll, describe, test } from "bun:test";
import { type RowScene, startRowScene } from "./row-scene.ts";
import type { Section } from "./row.ts";
import { conditions } from "./rows/conditions.ts";
import { directives } from "./rows/directives.ts";
import { freshness } from "./rows/freshness.ts";
import { heuristics } from "./rows/heuristics.ts";
import { invalidation } from "./rows/invalidation.ts";
import { ranges } from "./rows/ranges.ts";
import { safety } from "./rows/safety.ts";
import { status } from "./rows/status.ts";
import { storing } from "./rows/storing.ts";
import { targeted } from "./rows/targeted.ts";
import { validation } from "./rows/validation.ts";
import { vary } from "./rows/vary.ts";

const SECTIONS: readonly Section[] = [
  ...storing,
  ...safety,
  ...vary,
  ...freshness,
  ...heuristics,
  ...validation,
  ...conditions,
  ...ranges,
  ...invalidation,
  ...directives,
  ...targeted,
  ...status,
];

describe.each([1, 2, 4])("%i workers", (workers) => {
  let scene: RowScene;
  beforeAll(async () => {
    scene = await startRowScene(SECTIONS, workers);
  });
  afterAll(() => scene.stop());
  for (const section of SECTIONS)
    describe(section.rule, () => {
      for (const row of section.must ?? []) test(row[0], () => scene.run(section, row));
      for (const row of section.better ?? [])
        test(`better: ${row[0]}`, () => scene.run(section, row));
    });
});
