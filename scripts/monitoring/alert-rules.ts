// Alert rules for Prometheus: an expression, the limit beyond which it fires, and what to do then; knows no file.

export interface AlertRule {
  readonly name: string;
  /** What is compared; it has a value also while all is well. */
  readonly expr: string;
  readonly limit: string;
  readonly for: string;
  readonly severity: "warning" | "critical";
  readonly summary: string;
  readonly description: string;
}

const errorsOf = (labels: string) =>
  `sum by (instance, service) (rate(sluice_requests_total${labels}[5m]))`;

const decisionsOf = (labels: string) =>
  `sum by (instance, plugin) (rate(sluice_plugin_decisions_total${labels}[5m]))`;

export const alertRules: readonly AlertRule[] = [
  {
    name: "SluiceDown",
    expr: 'up{job=~"sluice.*"}',
    limit: "== 0",
    for: "1m",
    severity: "critical",
    summary: "Prometheus cannot scrape {{ $labels.instance }}",
    description: "The gateway does not run, or its management address is not reachable.",
  },
  {
    name: "SluiceServiceDown",
    expr: "max by (instance, service) (sluice_target_up)",
    limit: "== 0",
    for: "1m",
    severity: "critical",
    summary: "No target of {{ $labels.service }} is healthy",
    description:
      "GET /api/v1/services/{{ $labels.service }}/health names the last error of each target.",
  },
  {
    name: "SluiceTargetDown",
    expr: "sluice_target_up",
    limit: "== 0",
    for: "5m",
    severity: "warning",
    summary: "{{ $labels.target }} of {{ $labels.service }} is unhealthy",
    description: "GET /api/v1/services/{{ $labels.service }}/health names its last error.",
  },
  {
    name: "SluiceErrors",
    expr: `(${errorsOf('{code=~"5.."}')} or 0 * ${errorsOf("")}) / ${errorsOf("")}`,
    limit: "> 0.05",
    for: "5m",
    severity: "critical",
    summary: "{{ $value | humanizePercentage }} of the responses of {{ $labels.service }} are 5xx",
    description: "GET /api/v1/requests lists recent requests, each with the reason of its failure.",
  },
  {
    name: "SluiceSlow",
    expr: "histogram_quantile(0.95, sum by (le, instance, service) (rate(sluice_request_duration_seconds_bucket[10m])))",
    limit: "> 5",
    for: "10m",
    severity: "warning",
    summary:
      "5 % of the requests of {{ $labels.service }} take longer than {{ $value | humanizeDuration }}",
    description: "Compare sluice_upstream_duration_seconds and sluice_gateway_overhead_seconds.",
  },
  {
    name: "SluiceOverload",
    expr: "sluice_overload",
    limit: "== 1",
    for: "1m",
    severity: "critical",
    summary: "{{ $labels.instance }} rejects requests because of {{ $labels.what }}",
    description:
      "Memory, or files and sockets, are short: raise the limits of the machine or of the process.",
  },
  {
    name: "SluiceShedRequests",
    expr: "sum by (instance, reason) (increase(sluice_shed_requests_total[5m]))",
    limit: "> 0",
    for: "5m",
    severity: "warning",
    summary: "{{ $labels.instance }} rejects requests ({{ $labels.reason }})",
    description:
      "The limits in settings.limits, or the pressure on memory and descriptors, reject requests.",
  },
  {
    name: "SluiceOpenFiles",
    expr: "sluice_process_open_fds / sluice_process_max_fds",
    limit: "> 0.8",
    for: "10m",
    severity: "warning",
    summary:
      "{{ $labels.instance }} uses {{ $value | humanizePercentage }} of its files and sockets",
    description: "Raise LimitNOFILE of the unit.",
  },
  {
    name: "SluiceCertificateExpires",
    expr: "(sluice_certificate_expiry_timestamp_seconds - time()) / 86400",
    limit: "< 7",
    for: "1h",
    severity: "critical",
    summary: "The certificate {{ $labels.certificate }} expires in {{ $value | humanize }} days",
    description: "last_error of the certificate says why it was not renewed.",
  },
  {
    name: "SluiceCertificateFails",
    expr: "sluice_acme_failed_attempts",
    limit: "> 2",
    for: "1h",
    severity: "warning",
    summary: "The certificate {{ $labels.certificate }} cannot be issued",
    description: "last_error of the certificate says why.",
  },
  {
    name: "SluiceConfigurationNotServed",
    expr: "sluice_config_errors",
    limit: "> 0",
    for: "2m",
    severity: "critical",
    summary: "{{ $value }} workers of {{ $labels.instance }} do not serve the current revision",
    description: "The log of the gateway says why a worker cannot.",
  },
  {
    name: "SluiceWorkerRestarts",
    expr: "sum by (instance) (increase(sluice_worker_restarts_total[15m]))",
    limit: "> 0",
    for: "0m",
    severity: "warning",
    summary: "Workers of {{ $labels.instance }} were started again",
    description: "A worker ended unexpectedly: the log of the gateway has the reason.",
  },
  {
    name: "SluicePluginErrors",
    // The series of errors begins with the first of them.
    expr: `(${decisionsOf('{decision="error"}')} or 0 * ${decisionsOf("")})`,
    limit: "> 0",
    for: "5m",
    severity: "warning",
    summary: "The plugin {{ $labels.plugin }} fails",
    description:
      "on_error of the instance decides whether its requests pass; the log has the reason.",
  },
  {
    name: "SluiceCircuitOpen",
    expr: "sluice_circuit_state",
    limit: "== 2",
    for: "1m",
    severity: "warning",
    summary: "The circuit breaker {{ $labels.plugin }} is open",
    description: "Requests fail at once until a probe of the targets succeeds.",
  },
  {
    name: "SluiceLogsLost",
    expr: "sum by (instance, plugin) (increase(sluice_plugin_dropped_total[10m]))",
    limit: "> 0",
    for: "0m",
    severity: "warning",
    summary: "{{ $labels.plugin }} loses log records or spans",
    description: "Its queue is full, or the receiver fails.",
  },
  {
    name: "SluiceCountersDown",
    expr: "sluice_counters_up",
    limit: "== 0",
    for: "2m",
    severity: "warning",
    summary: "{{ $labels.instance }} does not reach the server of shared counters",
    description: "Limits are counted for each node until it is back.",
  },
  {
    name: "SluiceFleetDatabaseDown",
    expr: "sluice_fleet_database_up",
    limit: "== 0",
    for: "2m",
    severity: "warning",
    summary: "{{ $labels.instance }} does not reach the database of the fleet",
    description: "The node serves, but the configuration cannot be changed through it.",
  },
  {
    name: "SluiceFleetLag",
    expr: "sluice_fleet_lag_seconds",
    limit: "> 30",
    for: "1m",
    severity: "critical",
    summary:
      "{{ $labels.instance }} has not served the last change for {{ $value | humanizeDuration }}",
    description: "sluice fleet status and GET /api/v1/nodes say why.",
  },
  {
    name: "SluiceFleetNodes",
    expr: 'max by (state) (sluice_fleet_nodes{state=~"away|refused|outdated|diverged"})',
    limit: "> 0",
    for: "5m",
    severity: "warning",
    summary: "{{ $value }} nodes of the fleet are {{ $labels.state }}",
    description: "sluice fleet status and GET /api/v1/nodes name them.",
  },
];
