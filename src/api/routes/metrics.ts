// The endpoint for metrics scrapes: selects the format; knows no metric.
import { acceptedFormat, metricsTypes } from "../../observe/metrics/text-format.ts";
import type { Metrics } from "../../observe/metrics/metrics.ts";
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
        const format = acceptedFormat(headers.get("accept") ?? "");
        return new Response(metrics.write(format), {
          headers: { "content-type": metricsTypes[format], vary: "accept" },
        });
      },
    },
  ];
}

const text = { schema: { type: "string" } };

const description = {
  summary: "Get metrics for Prometheus",
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
