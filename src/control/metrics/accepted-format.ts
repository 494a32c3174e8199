// Which of the formats a scraper likes best; knows no metric.
import { negotiate } from "../../http/accept.ts";
import type { MetricsFormat } from "./text-format.ts";

const OPENMETRICS = "application/openmetrics-text";

/** OpenMetrics only for whoever asks for it by name, and likes nothing else better. */
export function acceptedFormat(accept: string): MetricsFormat {
  if (!accept.toLowerCase().includes(OPENMETRICS)) return "prometheus";
  const chosen = negotiate(accept, [OPENMETRICS, "text/plain"]);
  return chosen === OPENMETRICS ? "openmetrics" : "prometheus";
}
