// Writes metrics as Prometheus text (0.0.4) and as OpenMetrics text (1.0.0); knows no metric.
import { negotiate } from "../../http/accept.ts";

export type MetricsFormat = "prometheus" | "openmetrics";

export const metricsTypes: Readonly<Record<MetricsFormat, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

const OPENMETRICS = "application/openmetrics-text";

/** OpenMetrics only for a client that names it and prefers no other format. */
export function acceptedFormat(accept: string): MetricsFormat {
  if (!accept.toLowerCase().includes(OPENMETRICS)) return "prometheus";
  const chosen = negotiate(accept, [OPENMETRICS, "text/plain"]);
  return chosen === OPENMETRICS ? "openmetrics" : "prometheus";
}

export type Labels = Readonly<Record<string, string>>;

/** One histogram with cumulative buckets. */
export interface HistogramSample {
  readonly labels: Labels;
  /** Upper bounds in seconds, ascending, without infinity, and cumulative counts. */
  readonly buckets: readonly (readonly [number, number])[];
  readonly count: number;
  /** Seconds. */
  readonly sum: number;
}

interface About {
  /** Without `_total`, which the format adds to counters. */
  readonly name: string;
  readonly help: string;
}

/** A metric with its samples; omitted without samples. */
export type Metric = About &
  (
    | {
        readonly type: "counter" | "gauge";
        readonly samples: Iterable<{ readonly labels: Labels; readonly value: number }>;
      }
    | { readonly type: "histogram"; readonly samples: Iterable<HistogramSample> }
  );

export function writeMetrics(metrics: Iterable<Metric>, format: MetricsFormat): string {
  const lines: string[] = [];
  for (const metric of metrics) {
    const samples = linesOf(metric, format);
    if (samples.length === 0) continue;
    const { type } = metric;
    // HELP and TYPE name the family in OpenMetrics, the samples in the older format.
    const name =
      type === "counter" && format === "prometheus" ? `${metric.name}_total` : metric.name;
    lines.push(`# HELP ${name} ${escapeHelp(metric.help, format)}`, `# TYPE ${name} ${type}`);
    for (const line of samples) lines.push(line);
  }
  if (format === "openmetrics") lines.push("# EOF");
  return `${lines.join("\n")}\n`;
}

function linesOf(metric: Metric, format: MetricsFormat): string[] {
  const { name, type } = metric;
  if (type === "histogram")
    return [...metric.samples].flatMap((sample) => histogramLines(name, sample, format));
  const full = type === "counter" ? `${name}_total` : name;
  return Array.from(
    metric.samples,
    ({ labels, value }) => `${full}${inBraces(labelsText(labels))} ${numberText(value)}`,
  );
}

function histogramLines(
  name: string,
  { labels, buckets, count, sum }: HistogramSample,
  format: MetricsFormat,
): string[] {
  const own = labelsText(labels);
  const before = own === "" ? "" : `${own},`;
  const lines = buckets.map(
    ([bound, below]) => `${name}_bucket{${before}le="${boundText(bound, format)}"} ${below}`,
  );
  const braces = inBraces(own);
  return [
    ...lines,
    `${name}_bucket{${before}le="+Inf"} ${count}`,
    `${name}_sum${braces} ${numberText(sum)}`,
    `${name}_count${braces} ${count}`,
  ];
}

function labelsText(labels: Labels): string {
  let text = "";
  for (const name in labels)
    text += `${text === "" ? "" : ","}${name}="${escapeLabel(labels[name] ?? "")}"`;
  return text;
}

const inBraces = (labels: string) => (labels === "" ? "" : `{${labels}}`);

function numberText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}

/** OpenMetrics requires a point or an exponent in every bound. */
function boundText(bound: number, format: MetricsFormat): string {
  const text = String(bound);
  return format === "openmetrics" && /^\d+$/.test(text) ? `${text}.0` : text;
}

/** Label values come from users: a newline must not start a new line. */
function escapeLabel(value: string): string {
  return /["\\\n]/.test(value)
    ? value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")
    : value;
}

function escapeHelp(text: string, format: MetricsFormat): string {
  const escaped = text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  return format === "openmetrics" ? escaped.replaceAll('"', '\\"') : escaped;
}
