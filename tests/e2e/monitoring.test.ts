// The dashboard and the alert rules in a real Prometheus that scrapes a real gateway: every query has a result, every alert fires.
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AlertRule, alertRules } from "../../scripts/monitoring/alert-rules.ts";
import { metricsOf, variables } from "../../scripts/monitoring/files.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { startOrigin } from "../support/origin.ts";
import { eventually } from "../support/poll.ts";
import { Prometheus } from "../support/prometheus.ts";
import { quietPort } from "../support/quiet-port.ts";

const rules = await Bun.file("examples/monitoring/prometheus-rules.yaml").text();
const { panels } = (await Bun.file("examples/monitoring/grafana-dashboard.json").json()) as {
  panels: readonly { targets?: readonly { expr: string }[] }[];
};

/** As Grafana does, with everything selected. */
const filled = (expr: string) =>
  expr.replaceAll(/\$(instance|service|route)\b/g, ".*").replaceAll("$__rate_interval", "20s");

/** Families in a scrape, by the names that queries have. */
const namesIn = (text: string): ReadonlySet<string> =>
  new Set([...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name = ""]) => name));

/** What the scene shows once its traffic was counted. */
const SHOWN = [
  ...["sluice_upstream_duration_seconds", "sluice_stream_duration_seconds"],
  ...["sluice_cache_requests_total", "sluice_mirror_requests_total", "sluice_circuit_state"],
  ...["sluice_target_up", "sluice_certificate_expiry_timestamp_seconds"],
];

async function fill(gateway: Gateway, port: number, streamPort: number): Promise<void> {
  const post = (path: string, body: object) => gateway.ok("POST", `/api/v1${path}`, body);
  const target = { host: "127.0.0.1", port };
  await post("/services", { name: "shop", targets: [target] });
  await post("/services", { name: "db", protocol: "tcp", targets: [target] });
  await post("/routes", { name: "shop", service_id: "shop", paths: ["/shop"] });
  const stream = { name: "db", service_id: "db", listen_address: "127.0.0.1" };
  await post("/stream-routes", { ...stream, listen_port: streamPort });
  await post("/certificates", { name: "own", source: "self_signed", domains: ["a.test"] });
  const of = { route_id: "shop" };
  const plugins: readonly (readonly [string, object])[] = [
    ["response-cache", { ttl_default: 60 }],
    ["circuit-breaker", {}],
    ["mirror", { url: `http://127.0.0.1:${port}` }],
    ["access-log", { sinks: [{ http: { url: `http://127.0.0.1:${port}` } }] }],
  ];
  for (const [name, config] of plugins)
    await post("/plugins", { name, label: name, config, ...of });
}

needs("prometheus").test(
  "every query of the dashboard and of the rules has a result",
  async () => {
    const origin = startOrigin();
    const gateway = await startGateway({ workers: 2 });
    const streamPort = quietPort();
    await fill(gateway, origin.port, streamPort);
    const prometheus = await Prometheus.start([new URL(gateway.admin).host], rules);
    try {
      let count = 0;
      const send = async () => {
        const { httpPort } = gateway;
        // A hit and a miss of the cache, a request without a route, and a connection.
        const urls = [`${httpPort}/shop`, `${httpPort}/shop/${count++}`, `${httpPort}/none`];
        for (const url of [...urls, `${streamPort}/`])
          await (
            await fetch(`http://127.0.0.1:${url}`, { headers: { connection: "close" } })
          ).text();
      };
      const known = await eventually(async () => {
        await send();
        const names = namesIn(await (await gateway.api("GET", "/metrics")).text());
        return SHOWN.every((name) => names.has(name)) ? names : null;
      });
      const queries = [
        ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => filled(expr))),
        ...alertRules.map(({ expr }) => expr),
        ...variables.flatMap(({ query }) =>
          typeof query === "string"
            ? []
            : [filled(query.query.replace(/^label_values\((.*), \w+\)$/, "$1"))],
        ),
      ];
      expect(queries.length).toBeGreaterThan(80);
      // A gateway shows the metrics of a fleet, of ACME and of some plugins only where they are used.
      const present = queries.filter((expr) => metricsOf(expr).every((name) => known.has(name)));
      expect(present.length).toBeGreaterThan(65);
      // Rates need two scrapes with traffic between them.
      for (const expr of present)
        await eventually(
          async () => {
            const [first] = await prometheus.query(expr);
            if (first !== undefined && first.value[1] !== "NaN") return true;
            await send();
            throw new Error(`no result: ${expr}`);
          },
          { intervalMs: 200 },
        );
      // The others are at least valid.
      for (const expr of queries) await prometheus.query(expr);
      await eventually(async () =>
        [...(await prometheus.rules()).values()].every((health) => health === "ok"),
      );
      expect([...(await prometheus.rules()).keys()]).toEqual(alertRules.map(({ name }) => name));
      // Nothing is wrong with this gateway.
      expect(await prometheus.query("ALERTS")).toEqual([]);
      await origin.stop();
    } finally {
      await prometheus.stop();
      await gateway.stop();
      await origin.stop();
    }
  },
  180_000,
);

/** Series with which each alert fires, and one with which it does not, over two hours. */
const firing: Readonly<Record<string, readonly [series: string, bad: string, good: string]>> = {
  SluiceDown: ['up{job="sluice"}', "0x120", "1x120"],
  SluiceServiceDown: ['sluice_target_up{service="a",target="b"}', "0x120", "1x120"],
  SluiceTargetDown: ['sluice_target_up{service="a",target="b"}', "0x120", "1x120"],
  SluiceErrors: ['sluice_requests_total{service="a",code="502"}', "0+60x120", "60x120"],
  SluiceSlow: ['sluice_request_duration_seconds_bucket{service="a",le="1"}', "0x120", "0+60x120"],
  SluiceOverload: ['sluice_overload{what="memory"}', "1x120", "0x120"],
  SluiceShedRequests: ['sluice_shed_requests_total{reason="memory"}', "0+9x120", "9x120"],
  SluiceOpenFiles: ["sluice_process_open_fds", "90x120", "10x120"],
  SluiceCertificateExpires: [
    "sluice_certificate_expiry_timestamp_seconds",
    "90000x120",
    "9000000x120",
  ],
  SluiceCertificateFails: ["sluice_acme_failed_attempts", "3x120", "2x120"],
  SluiceConfigurationNotServed: ["sluice_config_errors", "1x120", "0x120"],
  SluiceWorkerRestarts: ["sluice_worker_restarts_total", "0+1x120", "1x120"],
  SluicePluginErrors: [
    'sluice_plugin_decisions_total{plugin="a",decision="error"}',
    "0+1x120",
    "1x120",
  ],
  SluiceCircuitOpen: ['sluice_circuit_state{plugin="a"}', "2x120", "0x120"],
  SluiceLogsLost: ['sluice_plugin_dropped_total{plugin="a"}', "0+1x120", "1x120"],
  SluiceCountersDown: ["sluice_counters_up", "0x120", "1x120"],
  SluiceFleetDatabaseDown: ["sluice_fleet_database_up", "0x120", "1x120"],
  SluiceFleetLag: ["sluice_fleet_lag_seconds", "31x120", "30x120"],
  SluiceFleetNodes: ['sluice_fleet_nodes{state="away"}', "1x120", "0x120"],
};

/** Series beside them that an expression divides by. */
const beside = [
  { series: "sluice_process_max_fds", values: "100x120" },
  { series: 'sluice_requests_total{service="a",code="200"}', values: "0+60x120" },
  { series: 'sluice_request_duration_seconds_bucket{service="a",le="50"}', values: "0+60x120" },
  { series: 'sluice_request_duration_seconds_bucket{service="a",le="+Inf"}', values: "0+60x120" },
];

/** For promtool: the alerts at the end are exactly those named. */
function testOf(rule: AlertRule, isFiring: boolean): object {
  const [series, bad, good] = firing[rule.name] ?? ["", "", ""];
  const labels = series.includes("{") ? series : `${series}{}`;
  return {
    interval: "1m",
    name: `${rule.name} ${isFiring}`,
    input_series: [{ series: labels, values: isFiring ? bad : good }, ...beside],
    promql_expr_test: [
      {
        expr: `count(ALERTS{alertname="${rule.name}",alertstate="firing"}) or vector(0)`,
        eval_time: "110m",
        exp_samples: [{ labels: "{}", value: isFiring ? 1 : 0 }],
      },
    ],
  };
}

needs("promtool").test("each alert fires when something is wrong, and only then", async () => {
  const directory = mkdtempSync(join(tmpdir(), "sluice-alerts-"));
  try {
    expect(Object.keys(firing)).toEqual(alertRules.map(({ name }) => name));
    await Bun.write(join(directory, "rules.yaml"), rules);
    const tests = alertRules.flatMap((rule) => [testOf(rule, true), testOf(rule, false)]);
    const file = { rule_files: ["rules.yaml"], evaluation_interval: "1m", tests };
    await Bun.write(join(directory, "test.yaml"), JSON.stringify(file));
    for (const words of [
      ["check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"],
      ["test", "rules", "test.yaml"],
    ]) {
      const child = Bun.spawn(["promtool", ...words], {
        cwd: directory,
        stdout: "pipe",
        stderr: "pipe",
      });
      const output =
        (await new Response(child.stdout).text()) + (await new Response(child.stderr).text());
      expect([words[0], await child.exited, output]).toEqual([words[0] ?? "", 0, output]);
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
});
