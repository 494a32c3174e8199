// The panels of the Grafana dashboard: what each shows, and its queries; knows no JSON of Grafana.

export interface Panel {
  readonly title: string;
  /** Unit in Grafana: `s`, `bytes`, `reqps`. Default: a plain number. */
  readonly unit?: string;
  /** `stat`: one number. Default: over time. */
  readonly type?: "stat";
  readonly queries: readonly Query[];
}

export interface Query {
  readonly expr: string;
  /** With labels: `{{service}}`. */
  readonly legend: string;
}

export interface Section {
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** The variables of the dashboard. Routes and services are labels of traffic only. */
export const INSTANCE = 'instance=~"$instance"';
export const TRAFFIC = `${INSTANCE},service=~"$service",route=~"$route"`;

/** Per second, in the interval that suits the scrapes. */
const rate = (metric: string, labels: string) => `rate(${metric}{${labels}}[$__rate_interval])`;

const quantiles = (metric: string, labels: string): Query[] =>
  ["0.5", "0.95", "0.99"].map((share) => ({
    expr: `histogram_quantile(${share}, sum by (le) (${rate(`${metric}_bucket`, labels)}))`,
    legend: `${Number(share) * 100} %`,
  }));

const one = (title: string, expr: string, { legend = "", unit = "" } = {}): Panel => ({
  title,
  queries: [{ expr, legend }],
  ...(unit === "" ? {} : { unit }),
});

const stat = (title: string, expr: string, unit = ""): Panel => ({
  ...one(title, expr, { unit }),
  type: "stat",
});

const errors = `(sum(${rate("sluice_requests_total", `${TRAFFIC},code=~"5.."`)}) or vector(0))`;
const all = `sum(${rate("sluice_requests_total", TRAFFIC)})`;

export const sections: readonly Section[] = [
  {
    title: "Overview",
    panels: [
      stat("Requests", all, "reqps"),
      stat("Share of 5xx", `${errors} / ${all}`, "percentunit"),
      stat("In flight", `sum(sluice_requests_in_flight{${INSTANCE}})`),
      stat(
        "Targets down",
        `count(sluice_target_up{${INSTANCE},service=~"$service"} == 0) or vector(0)`,
      ),
      stat(
        "First certificate expires in",
        `min(sluice_certificate_expiry_timestamp_seconds{${INSTANCE}}) - time()`,
        "s",
      ),
      stat("Revision", `max(sluice_config_revision{${INSTANCE}})`),
    ],
  },
  {
    title: "Traffic",
    panels: [
      one("Requests by service", `sum by (service) (${rate("sluice_requests_total", TRAFFIC)})`, {
        legend: "{{service}}",
        unit: "reqps",
      }),
      one("Requests by status", `sum by (code) (${rate("sluice_requests_total", TRAFFIC)})`, {
        legend: "{{code}}",
        unit: "reqps",
      }),
      {
        title: "Duration",
        unit: "s",
        queries: quantiles("sluice_request_duration_seconds", TRAFFIC),
      },
      {
        title: "Time with targets",
        unit: "s",
        queries: quantiles("sluice_upstream_duration_seconds", TRAFFIC),
      },
      {
        title: "Time in the gateway",
        unit: "s",
        queries: quantiles("sluice_gateway_overhead_seconds", TRAFFIC),
      },
      {
        title: "Bodies",
        unit: "Bps",
        queries: [
          { expr: `sum(${rate("sluice_request_body_bytes_total", TRAFFIC)})`, legend: "requests" },
          {
            expr: `sum(${rate("sluice_response_body_bytes_total", TRAFFIC)})`,
            legend: "responses",
          },
        ],
      },
      {
        title: "Retries and aborted responses",
        unit: "reqps",
        queries: [
          { expr: `sum(${rate("sluice_retries_total", TRAFFIC)})`, legend: "retries" },
          { expr: `sum(${rate("sluice_aborted_responses_total", TRAFFIC)})`, legend: "aborted" },
        ],
      },
      one(
        "Busiest routes",
        `topk(10, sum by (route) (${rate("sluice_requests_total", TRAFFIC)}))`,
        { legend: "{{route}}", unit: "reqps" },
      ),
    ],
  },
  {
    title: "Targets",
    panels: [
      one(
        "Healthy targets",
        `sum by (service) (sluice_target_up{${INSTANCE},service=~"$service"})`,
        {
          legend: "{{service}}",
        },
      ),
    ],
  },
  {
    title: "Streams",
    panels: [
      {
        title: "Duration of connections",
        unit: "s",
        queries: quantiles("sluice_stream_duration_seconds", INSTANCE),
      },
    ],
  },
  {
    title: "Cache",
    panels: [
      one(
        "Share of requests served from the cache",
        `sum by (plugin) (${rate("sluice_cache_requests_total", `${INSTANCE},status=~"hit|stale|revalidated"`)})` +
          ` / sum by (plugin) (${rate("sluice_cache_requests_total", INSTANCE)})`,
        { legend: "{{plugin}}", unit: "percentunit" },
      ),
    ],
  },
  {
    title: "Process",
    panels: [
      one("CPU", rate("sluice_process_cpu_seconds_total", INSTANCE), {
        legend: "{{instance}}",
        unit: "short",
      }),
      one("Memory", `sluice_process_resident_memory_bytes{${INSTANCE}}`, {
        legend: "{{instance}}",
        unit: "bytes",
      }),
      one(
        "Share of open files",
        `sluice_process_open_fds{${INSTANCE}} / sluice_process_max_fds{${INSTANCE}}`,
        { legend: "{{instance}}", unit: "percentunit" },
      ),
      one("Uptime", `time() - sluice_process_start_time_seconds{${INSTANCE}}`, {
        legend: "{{instance}}",
        unit: "s",
      }),
    ],
  },
  {
    title: "Fleet",
    panels: [
      {
        title: "Time to append a change",
        unit: "s",
        queries: quantiles("sluice_fleet_append_seconds", INSTANCE),
      },
      {
        title: "Time until all nodes serve a change",
        unit: "s",
        queries: quantiles("sluice_fleet_ack_seconds", INSTANCE),
      },
      one(
        "Requests by node",
        `sum by (node) (sum by (instance) (${rate("sluice_requests_total", INSTANCE)})` +
          " * on (instance) group_left (node) sluice_node_info)",
        { legend: "{{node}}", unit: "reqps" },
      ),
    ],
  },
];
