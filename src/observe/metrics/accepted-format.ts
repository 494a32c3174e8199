// Negotiates the metrics format with a scraper; knows no metric.
import { negotiate } from "../../http/accept.ts";
import type { MetricsFormat } from "./text-format.ts";

const OPENMETRICS = "application/openmetrics-text";

/** OpenMetrics only for a client that names it and prefers no other format. */
export function acceptedFormat(accept: string): MetricsFormat {
  if (!accept.toLowerCase().includes(OPENMETRICS)) return "prometheus";
  const chosen = negotiate(accept, [OPENMETRICS, "text/plain"]);
  return chosen === OPENMETRICS ? "openmetrics" : "prometheus";
}
