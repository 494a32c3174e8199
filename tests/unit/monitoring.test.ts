// The dashboard and the alert rules against the tables of metrics in the docs.
import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { alertRules } from "../../scripts/monitoring/alert-rules.ts";
import { dashboard, metricsIn, metricsOf, rulesFile } from "../../scripts/monitoring/files.ts";

const root = resolve(import.meta.dir, "../..");
const read = (path: string) => Bun.file(`${root}/${path}`).text();
const metrics = metricsIn(await read("docs/metrics.md"));

interface Shown {
  readonly id: number;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: {
    readonly h: number;
    readonly w: number;
    readonly x: number;
    readonly y: number;
  };
  readonly targets?: readonly { readonly expr: string }[];
}

const { panels } = dashboard(metrics) as { readonly panels: readonly Shown[] };

test("the files are those that `make monitoring` writes", async () => {
  const stored = JSON.parse(await read("examples/monitoring/grafana-dashboard.json"));
  expect(stored).toEqual(JSON.parse(JSON.stringify(dashboard(metrics))));
  expect(await read("examples/monitoring/prometheus-rules.yaml")).toBe(rulesFile());
});

describe("the dashboard", () => {
  const exprs = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

  test("shows every metric of the docs, and no other", () => {
    const shown = new Set(exprs.flatMap(metricsOf));
    expect([...shown].sort()).toEqual(metrics.map(({ name }) => name).sort());
  });

  test("explains each panel", () => {
    const bare = panels.filter(
      ({ targets, description = "" }) => targets && /: $/m.test(description),
    );
    expect(bare.map(({ title }) => title)).toEqual([]);
  });

  test("has panels beside and below each other, none over another", () => {
    const taken = new Map<string, string>();
    for (const { title, gridPos } of panels)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect([x < 24, taken.get(`${x} ${y}`), title]).toEqual([true, undefined, title]);
          taken.set(`${x} ${y}`, title);
        }
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  });
});

test("the alert rules read metrics of the docs, and have names of their own", () => {
  const known = new Set(metrics.map(({ name }) => name));
  const unknown = alertRules
    .flatMap(({ expr }) => metricsOf(expr))
    .filter((name) => !known.has(name));
  expect(unknown).toEqual([]);
  expect(new Set(alertRules.map(({ name }) => name)).size).toBe(alertRules.length);
});
