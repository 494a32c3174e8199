// The Grafana dashboard and the rules of Prometheus as files, from panels, rules and the tables of docs/metrics.md.
import { alertRules } from "./alert-rules.ts";
import { INSTANCE, type Panel, type Query, type Section, sections, TRAFFIC } from "./panels.ts";

export interface DescribedMetric {
  readonly name: string;
  readonly labels: readonly string[];
  readonly meaning: string;
}

/** The rows of the tables in docs/metrics.md. */
export function metricsIn(page: string): DescribedMetric[] {
  const rows = page.matchAll(/^\| (`sluice_[^|]*) \|([^|]*)\|([^|]*)\|$/gm);
  return [...rows].flatMap(([, names = "", labels = "", meaning = ""]) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, name = ""]) => ({
      name,
      labels: [...labels.replaceAll(/ or .*/g, "").matchAll(/[\w]+/g)].map(([label]) => label),
      meaning: meaning.trim().replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1"),
    })),
  );
}

/** The metrics that a query reads. */
export const metricsOf = (expr: string): string[] =>
  [...expr.matchAll(/\bsluice_\w+/g)].map(([name]) => name.replace(/_bucket$/, ""));

/** The sections, and one with a panel for every other metric. */
export function wholeSections(metrics: readonly DescribedMetric[]): readonly Section[] {
  const used = new Set(sections.flatMap(({ panels }) => panels).flatMap(namesIn));
  const rest = metrics.filter(({ name }) => !used.has(name)).map(panelOf);
  return [...sections, { title: "All other metrics", panels: rest }];
}

const namesIn = ({ queries }: Panel) => queries.flatMap(({ expr }) => metricsOf(expr));

function panelOf({ name, labels }: DescribedMetric): Panel {
  const isTraffic = ["route", "service"].every((label) => labels.includes(label));
  const selected = isTraffic ? TRAFFIC : INSTANCE;
  const by = labels.length === 0 ? ["instance"] : labels;
  const isCounter = name.endsWith("_total");
  const value = isCounter ? `rate(${name}{${selected}}[$__rate_interval])` : `${name}{${selected}}`;
  const unit = /_bytes(_total)?$/.test(name) ? (isCounter ? "Bps" : "bytes") : unitOf(name);
  const query: Query = {
    expr: isCounter ? `sum by (${by.join(", ")}) (${value})` : value,
    legend: by.map((label) => `{{${label}}}`).join(" "),
  };
  return { title: name, queries: [query], ...(unit === "" ? {} : { unit }) };
}

const unitOf = (name: string) =>
  name.endsWith("_timestamp_seconds") ? "" : name.endsWith("_seconds") ? "s" : "";

const source = { type: "prometheus", uid: "${datasource}" };
const WIDTH = 24;

/** A dashboard of Grafana 10 or newer. */
export function dashboard(metrics: readonly DescribedMetric[]): object {
  const meanings = new Map(metrics.map(({ name, meaning }) => [name, meaning]));
  const panels: object[] = [];
  let y = 0;
  for (const section of wholeSections(metrics)) {
    const own = { h: 1, w: WIDTH, x: 0, y };
    const row = { id: panels.length + 1, type: "row", title: section.title, collapsed: false };
    panels.push({ ...row, gridPos: own, panels: [] });
    y += 1;
    let x = 0;
    let height = 0;
    for (const panel of section.panels) {
      const [w, h] = panel.type === "stat" ? [4, 4] : [8, 7];
      if (x + w > WIDTH) [x, y] = [0, y + height];
      panels.push(shown(panel, { id: panels.length + 1, gridPos: { h, w, x, y }, meanings }));
      x += w;
      height = h;
    }
    y += height;
  }
  return {
    title: "Sluice",
    uid: "sluice-gateway",
    description: "Traffic, targets, caches and the process of Sluice gateways",
    tags: ["sluice", "gateway"],
    schemaVersion: 39,
    version: 1,
    editable: true,
    refresh: "30s",
    time: { from: "now-1h", to: "now" },
    timezone: "browser",
    templating: { list: variables },
    annotations: { list: [changes] },
    panels,
  };
}

function shown(
  { title, type, unit = "short", queries }: Panel,
  place: {
    readonly id: number;
    readonly gridPos: object;
    readonly meanings: ReadonlyMap<string, string>;
  },
): object {
  const names = [...new Set(queries.flatMap(({ expr }) => metricsOf(expr)))];
  const description = names
    .map((name) => `${name}: ${place.meanings.get(name) ?? ""}`)
    .join("\n\n");
  return {
    id: place.id,
    type: type ?? "timeseries",
    title,
    description,
    datasource: source,
    gridPos: place.gridPos,
    fieldConfig: { defaults: { unit }, overrides: [] },
    options:
      type === "stat" ? { reduceOptions: { calcs: ["lastNotNull"] }, graphMode: "area" } : {},
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode(65 + index),
      datasource: source,
      expr,
      legendFormat: legend,
    })),
  };
}

const variable = (name: string, query: string) => ({
  name,
  type: "query",
  datasource: source,
  definition: query,
  query: { query, refId: name },
  refresh: 2,
  sort: 1,
  multi: true,
  includeAll: true,
  allValue: ".*",
  current: { text: "All", value: "$__all" },
});

/** Their queries, for the tests as well. */
export const variables = [
  { name: "datasource", type: "datasource", query: "prometheus", label: "Data source" },
  variable("instance", "label_values(sluice_build_info, instance)"),
  variable("service", 'label_values(sluice_requests_total{instance=~"$instance"}, service)'),
  variable(
    "route",
    'label_values(sluice_requests_total{instance=~"$instance",service=~"$service"}, route)',
  ),
];

const changes = {
  name: "Configuration changes",
  datasource: source,
  enable: true,
  iconColor: "blue",
  expr: 'changes(sluice_config_revision{instance=~"$instance"}[$__rate_interval]) > 0',
  titleFormat: "Configuration changed",
};

/** Rules of Prometheus as YAML. */
export function rulesFile(): string {
  const rules = alertRules.map((rule) => ({
    alert: rule.name,
    expr: `${rule.expr} ${rule.limit}`,
    for: rule.for,
    labels: { severity: rule.severity },
    annotations: { summary: rule.summary, description: rule.description },
  }));
  const groups = [{ name: "sluice", rules }];
  return `# Alert rules for Sluice; written by \`make monitoring\`.\n${Bun.YAML.stringify({ groups }, null, 2)}\n`;
}
