// The endpoint that is scraped: chooses the format; knows no metric.
import { negotiate } from "../../http/accept.ts";
import { type MetricsFormat, metricsTypes } from "../../control/metrics/text-format.ts";
import type { Metrics } from "../../control/metrics/metrics.ts";
import { errorResponses } from "../description.ts";
import type { Endpoint } from "../endpoint.ts";

export function metricsEndpoints(metrics: Metrics): Endpoint[] {
  return [
    {
      method: "GET",
      path: "/metrics",
      takesBody: false,
      description,
      answer: ({ headers }) => {
        const format = formatFor(headers.get("accept") ?? "");
        return new Response(metrics.write(format), {
          headers: { "content-type": metricsTypes[format], vary: "accept" },
        });
      },
    },
  ];
}

const OPENMETRICS = "application/openmetrics-text";

/** OpenMetrics only for whoever asks for it by name, and likes nothing else better. */
function formatFor(accept: string): MetricsFormat {
  if (!accept.toLowerCase().includes(OPENMETRICS)) return "prometheus";
  const chosen = negotiate(accept, [OPENMETRICS, "text/plain"]);
  return chosen === OPENMETRICS ? "openmetrics" : "prometheus";
}

const text = { schema: { type: "string" } };

const description = {
  summary: "Metrics for Prometheus",
  description:
    "In the text format of Prometheus, or as OpenMetrics if Accept asks for `application/openmetrics-text`. Names begin with" +
    " `sluice_`. A scrape costs the workers nothing.",
  tags: ["Status"],
  responses: {
    "200": {
      description: "All metrics",
      content: Object.fromEntries(Object.values(metricsTypes).map((type) => [type, text])),
    },
    ...errorResponses([403, 500]),
  },
};
