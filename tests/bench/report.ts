// Turns measurements into tables of text and into docs/benchmarks.md; measures nothing.
import { describeCommit, describeMachine } from "./machine.ts";
import type { ManyTargetsResult } from "./many-targets.ts";
import { type Measurement, medianRatio } from "./measure.ts";
import { type BenchOptions, PROTOCOLS, type ProxyName } from "./options.ts";
import type { StreamsResult } from "./streams.ts";
import {
  find,
  judge,
  judgeFaults,
  judgeGuarded,
  judgeLimits,
  judgeManyTargets,
  judgeObservation,
} from "./targets.ts";

export interface Run {
  readonly options: BenchOptions;
  readonly versions: readonly string[];
  readonly idleBytes: ReadonlyMap<ProxyName, number>;
  readonly measurements: readonly Measurement[];
  /** Null when it was not measured. */
  readonly manyTargets: ManyTargetsResult | null;
  /** Metrics, recent requests and ids against none; null when it was not measured. */
  readonly observation: ManyTargetsResult | null;
  /** A rate limit against none; null when it was not measured. */
  readonly limits: ManyTargetsResult | null;
  /** Plugins that guard a route against none; null when it was not measured. */
  readonly guarded: ManyTargetsResult | null;
  /** Null when it was not measured. */
  readonly streams: readonly StreamsResult[] | null;
  /** Proxies that could not take part, with the reason. */
  readonly skipped: readonly string[];
}

/** Rows of cells; the first row is the head. */
export type Table = readonly (readonly string[])[];

/** The rows of one protocol: every body, every proxy, and the ratios to nginx and to what Bun costs in the same run. */
function measurementTable(run: Run, protocol: Measurement["protocol"]): Table {
  const head = ["body", "proxy", "requests/s", "p50 ms", "p99 ms", "CPU µs/request"];
  const peers = (["nginx", "bare"] as const).filter((name) => run.options.proxies.includes(name));
  const rows = run.measurements
    .filter((one) => one.protocol === protocol)
    .map((one) => {
      // A proxy that fails requests is fast: its figures are no result.
      if (one.errors > 0)
        return [
          one.size,
          one.proxy,
          `${one.errors} errors`,
          ...[...head.slice(3), ...peers].fill("–"),
        ];
      const ratios = peers.map((name) => {
        const peer = find(run.measurements, one, name);
        return peer === undefined || peer.errors > 0 ? "–" : medianRatio(one, peer).toFixed(2);
      });
      return [
        one.size,
        one.proxy,
        one.requestsPerSecond.toFixed(0),
        one.p50Ms.toFixed(2),
        one.p99Ms.toFixed(2),
        one.cpuUsPerRequest.toFixed(1),
        ...ratios,
      ];
    });
  return [[...head, ...peers.map((name) => `x ${name}`)], ...rows];
}

function memoryTable(run: Run): Table {
  const rows = [...run.idleBytes].map(([proxy, idle]) => {
    const loaded = run.measurements.filter((one) => one.proxy === proxy);
    return [proxy, megabytes(idle), megabytes(Math.max(...loaded.map((one) => one.loadedBytes)))];
  });
  return [["proxy", "idle MB", "under load MB (highest)"], ...rows];
}

function targetTable(run: Run): Table {
  const verdicts = [
    ...judge(run.measurements),
    judgeFaults(run.measurements),
    judgeManyTargets(run.manyTargets),
    judgeObservation(run.observation),
    judgeLimits(run.limits),
    judgeGuarded(run.guarded),
  ];
  const rows = verdicts.map((one) => [one.target, one.atMost, one.measured, one.verdict]);
  return [["target", "at most", "measured", "verdict"], ...rows];
}

/** Decimal megabytes, the way memory is bought. */
export function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

/** Everything of a run, for a terminal. */
export function toText(run: Run): string {
  const parts = run.options.protocols.flatMap((protocol) => [
    `\n${PROTOCOLS[protocol]}`,
    alignColumns(measurementTable(run, protocol)),
  ]);
  const targets = alignColumns(targetTable(run));
  return [
    ...parts,
    "\nResident memory",
    alignColumns(memoryTable(run)),
    "\nTargets",
    targets,
    ...run.skipped,
  ].join("\n");
}

/** The part of docs/benchmarks.md that a run of the comparison writes. */
export function toMarkdown(run: Run): string {
  const { rounds, seconds } = run.options;
  const parts = run.options.protocols.map(
    (protocol) =>
      `### ${titleCase(PROTOCOLS[protocol])}\n\n${toTable(measurementTable(run, protocol))}`,
  );
  return `## Comparison with other proxies

${[
  ...describeMachine(),
  ...run.versions,
  `Date: ${new Date().toISOString().slice(0, 10)}, commit ${describeCommit()}`,
]
  .map((line) => `- ${line}`)
  .join("\n")}

### Targets

${toTable(targetTable(run))}
${run.skipped.map((line) => `\n${line}\n`).join("")}
${parts.join("\n\n")}

### Resident memory

${toTable(memoryTable(run))}

### Method

The origin, an nginx that serves static files, and the load generator run on core 1; the proxy under test runs on core 0
(\`taskset\`), with one worker: \`worker_processes 1\`, \`nbthread 1\`, \`GOMAXPROCS=1\`, \`--workers 1\`. nginx keeps up
to 512 connections to the origin and sets X-Forwarded-For; \`nginx\` has its default proxy buffers, \`nginx-64k\` has
\`proxy_buffers 16 64k\`. HAProxy has \`http-reuse always\` and \`option forwardfor\`, Caddy \`reverse_proxy\` and nothing
else. Access logs are off, except that Sluice keeps its list of recent requests. Ciphers are what each program and
OpenSSL agree on by default.

\`bare\` is the least that a proxy on Bun can do (\`tests/bench/bare-proxy.ts\`): Bun.serve and Bun.connect, no routes, no
timeouts, no counts. What Sluice costs beyond it is Sluice's own; what it costs beyond nginx is what Bun costs.

Each proxy is first checked to respond with the same bytes for every body, and warmed up for 10 s. Then, for each body and
protocol, each proxy in turn serves the number of requests that it serves in about ${seconds} s, ${rounds} times, in alternating
order. The load is \`h2load\` with a fixed number of requests (\`-n\`): HTTP/1.1 with 48 connections, HTTP/2 with 16 connections of
8 streams; each request carries eleven headers such as a browser sends. A row with failed requests is not a result and shows
none. Where heads vary, the load is \`wrk\`, for as many seconds: each request has a path, a cookie and an id of its own, each
response an ETag, so that no copy of a head that was seen before helps.

CPU is user and system time of all threads and processes of the proxy, from \`/proc\`, divided by the number of completed
requests: it is steadier than requests per second, which the load generator's core can limit. Figures are medians over the
rounds, and a ratio is the median of the ratios of the rounds; memory is the highest. Memory is the sum of the resident memory
of all processes of the proxy, so that pages which nginx's two processes share count twice.

Eight targets are eight addresses of the same origin, each asked once a second whether it works, and passive checks are on;
the one target that they are measured against has neither. Both gateways take turns, as the proxies do.

What metrics, the list of recent requests and ids of requests cost is measured against a copy of the source in which nothing
is counted and no clock is read for it, with \`retention.requests\` 0 and \`requests.ids\` off; both run from source, in turn.
`;
}

function titleCase(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** A Markdown table whose first row is the head. */
export function toTable(rows: Table): string {
  const [head = [], ...rest] = rows;
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rest.map(line)].join("\n");
}

/** Pads each column to its widest cell. */
export function alignColumns(rows: Table): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** A figure, with its bound. */
export interface FigureRow {
  readonly what: string;
  readonly measured: number;
  /** Infinity: no bound, for comparison. */
  readonly atMost: number;
  readonly unit: string;
}

export function toRows(rows: readonly FigureRow[]): Table {
  const show = (value: number, unit: string) =>
    Number.isInteger(value) ? `${value} ${unit}`.trim() : `${value.toPrecision(2)} ${unit}`.trim();
  return [
    ["what", "at most", "measured", "verdict"],
    ...rows.map(({ what, measured, atMost, unit }) => [
      what,
      Number.isFinite(atMost) ? show(atMost, unit) : "–",
      show(measured, unit),
      Number.isFinite(atMost) ? (measured <= atMost ? "reached" : "missed") : "–",
    ]),
  ];
}
