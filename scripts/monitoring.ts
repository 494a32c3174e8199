// Writes examples/monitoring: a dashboard for Grafana and alert rules for Prometheus; run it with `make monitoring`.
import { resolve } from "node:path";
import { dashboard, metricsIn, rulesFile } from "./monitoring/files.ts";

const root = resolve(import.meta.dir, "..");
const metrics = metricsIn(await Bun.file(`${root}/docs/metrics.md`).text());
const folder = `${root}/examples/monitoring`;
await Bun.write(
  `${folder}/grafana-dashboard.json`,
  `${JSON.stringify(dashboard(metrics), null, 2)}\n`,
);
await Bun.write(`${folder}/prometheus-rules.yaml`, rulesFile());
