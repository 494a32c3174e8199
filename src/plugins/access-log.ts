// access-log: logs requests and stream connections to files, log servers and collectors.
import { compileCondition, compileStreamCondition } from "../pdk/condition.ts";
import type { RequestContext, ResponseDraft } from "../pdk/context.ts";
import { definePlugin, httpScopes, type PluginHandlers } from "../pdk/definition.ts";
import { parseTraceParent } from "../pdk/http.ts";
import type { KitDialer, PluginKit } from "../pdk/kit.ts";
import { FileSink } from "./access-log/file-sink.ts";
import { type Format, formatOf, needsResponse, textOf } from "./access-log/format.ts";
import { HttpSink, listBody, lokiBody, otlpBody, withPath } from "./access-log/http-sinks.ts";
import { Queue, type QueueOptions, type Sink } from "./access-log/queue.ts";
import { Redaction } from "./access-log/redaction.ts";
import {
  type Config,
  type LineConfig,
  problemsOf,
  schema,
  type SinkConfig,
} from "./access-log/settings.ts";
import {
  addressOf,
  counted,
  lineFraming,
  syslogMessage,
  TcpSink,
  UdpSink,
} from "./access-log/socket-sinks.ts";
import { StdoutSink } from "./access-log/stdout-sink.ts";
import { type Subject, streamSubject } from "./access-log/subject.ts";
import { PendingEntries, PendingLines } from "./access-log/pending-records.ts";

export default definePlugin({
  name: "access-log",
  summary:
    "Writes an access log of requests and stream connections to files, log servers and collectors",
  description: `Each record is one line. The format \`json\` has time, id, client, method, host, target, status, body sizes, durations, route,
service, upstream target, attempts, consumer, reasons, User-Agent and Referer, and the headers that \`include\` names. \`clf\` and
\`combined\` are the formats of Apache and nginx; their protocol version is always HTTP/1.1, because the server does not report it.
A \`template\` may use the variables of all templates and \`\${time}\`, \`\${status}\`, \`\${bytes_in}\`, \`\${bytes_out}\`, \`\${duration_ms}\`,
\`\${first_byte_ms}\`, \`\${upstream.status}\`, \`\${grpc.status}\`, \`\${upstream.address}\`, \`\${upstream.duration_ms}\`, \`\${target.id}\`, \`\${attempts}\`,
\`\${reasons}\`, \`\${kind}\` and \`\${response.header.<name>}\`; missing values are a dash. A record is always one line: control
characters, quotes and bidirectional control characters are escaped.

Each worker queues records for each sink and sends them in batches: a slow or unreachable sink delays no request and no other
sink. The gateway retries a failed batch, with doubling delays, for up to \`max_retry_time\`; when a queue is full, it drops new
records. It counts dropped records in \`sluice_plugin_dropped_total\` and logs their number once a minute. Queued records are lost
when the gateway is killed; when it stops, it sends them once. A batch whose acknowledgment is lost is sent twice; records in
flight on a TCP connection that breaks may be lost, because syslog has no acknowledgments.

All workers write whole lines to the same file. When the file is full, one of them renames it to \`access-20270131T120000000-0.log\`
(UTC) and deletes the oldest files beyond \`keep\`. The gateway creates the file again when another program has renamed or deleted it.
Files have the mode 0600; symbolic and hard links are refused. On standard output, lines longer than 4096 bytes may be interleaved
when the reader is slow.

A request is logged when it matches all \`filters\`; for "failed or slow", use two instances. Stream connections have no status: a
filter on the status or on a property of HTTP excludes them. \`redact\` applies to headers, variables and Referer; with an \`ip\`
other than \`full\`, headers such as X-Forwarded-For are not logged. Secrets in paths cannot be recognized.`,
  group: "observability",
  order: 9900,
  phases: ["connect", "response", "log"],
  scopes: [...httpScopes, "stream_route"],
  allowsMultiple: true,
  config: schema,
  example: {
    sinks: [{ stdout: { format: "combined" } }, { udp: { address: "127.0.0.1:5514" } }],
    filters: { status: ["5xx", "429"], sample: 0.5 },
    redact: { query: ["token"], ip: "mask" },
  },
  onError: "open",
  ignoresPath: true,
  check: problemsOf,
  async create(own, kit) {
    const redaction = new Redaction(own.redact, () => kit.deriveKey("addresses"));
    const groups = await openAll(own, { redaction, kit });
    return handlersOf(own, groups, kit);
  },
});

/** A sink with its queue. */
type Outlet =
  | { readonly queue: Queue<Uint8Array>; readonly lines: PendingLines }
  | { readonly queue: Queue; readonly entries: PendingEntries; readonly isTraced: boolean };

/** Sinks with the same line format. */
interface Group {
  readonly format: Format;
  readonly outlets: Outlet[];
}

interface Parts {
  readonly redaction: Redaction;
  readonly kit: PluginKit;
}

async function openAll(own: Config, { redaction, kit }: Parts): Promise<Group[]> {
  const groups = new Map<string, Group>();
  const settings = { ...queueSettings(own.queue), kit };
  try {
    for (const each of own.sinks) {
      const { name, lines, sink } = await openSink(each, kit);
      const key = `${lines.format} ${lines.template}`;
      const group = groups.get(key) ?? {
        format: formatOf(lines, redaction, own.include),
        outlets: [],
      };
      groups.set(key, group);
      group.outlets.push(outletOf(sink, { name, ...settings }, each.otlp !== undefined));
    }
    return [...groups.values()];
  } catch (error) {
    await closeAll([...groups.values()]);
    throw error;
  }
}

function outletOf(
  sink: Opened["sink"],
  settings: Omit<QueueOptions<never>, "sink" | "waiting">,
  isTraced: boolean,
): Outlet {
  if (sink instanceof FileSink) {
    const waiting = new PendingLines();
    return { queue: new Queue({ ...settings, sink, waiting }), lines: waiting };
  }
  const waiting = new PendingEntries();
  return { queue: new Queue({ ...settings, sink, waiting }), entries: waiting, isTraced };
}

const closeAll = (groups: readonly Group[]) =>
  Promise.all(groups.flatMap(({ outlets }) => outlets.map(({ queue }) => queue.close())));

/** Adds the record to the queues of all groups. */
function writeTo({ format, outlets }: Group, subject: Subject): void {
  const { context, result } = subject;
  let line: string | null = null;
  for (const outlet of outlets) {
    if (!outlet.queue.hasRoom()) continue;
    if ("lines" in outlet) outlet.lines.add(subject, format);
    else {
      line ??= textOf(subject, format);
      const trace = outlet.isTraced ? parseTraceParent(context.header("traceparent")) : null;
      outlet.entries.add({ line, at: context.startedAt, status: result.status, trace });
    }
    outlet.queue.added();
  }
}

const queueSettings = (queue: Config["queue"]) => ({
  maxBatch: queue.max_batch_size,
  maxDelayMs: queue.max_coalescing_delay * 1000,
  maxEntries: queue.max_entries,
  retry: {
    firstMs: queue.initial_retry_delay * 1000,
    longestMs: queue.max_retry_delay * 1000,
    totalMs: queue.max_retry_time * 1000,
  },
});

interface Opened {
  readonly name: string;
  readonly lines: LineConfig;
  readonly sink: Sink | FileSink;
}

async function openSink(own: SinkConfig, kit: PluginKit): Promise<Opened> {
  const { callout, dialer, worker, logDirectories: directories } = kit;
  const { file, stdout, http, syslog, tcp, udp, loki, otlp } = own;
  if (file !== undefined) {
    const { path, keep, rotate_size: rotateSize } = file;
    const counters = () => kit.counters;
    const sink = await FileSink.open({ path, keep, rotateSize, directories, worker, counters });
    return { name: "file", lines: file, sink };
  }
  if (stdout !== undefined) return { name: "stdout", lines: stdout, sink: new StdoutSink() };
  if (http !== undefined) {
    const bodyOf = listBody(http.format === "json");
    const { url, headers } = http;
    return { name: "http", lines: http, sink: new HttpSink({ url, headers, callout, bodyOf }) };
  }
  if (loki !== undefined) {
    const { headers, labels } = loki;
    const url = withPath(loki.url, "/loki/api/v1/push");
    const bodyOf = lokiBody(labels);
    return { name: "loki", lines: loki, sink: new HttpSink({ url, headers, callout, bodyOf }) };
  }
  if (otlp !== undefined) {
    const { headers } = otlp;
    const url = withPath(otlp.url, "/v1/logs");
    const bodyOf = otlpBody(otlp.resource_attributes);
    return { name: "otlp", lines: otlp, sink: new HttpSink({ url, headers, callout, bodyOf }) };
  }
  if (syslog !== undefined)
    return { name: "syslog", lines: syslog, sink: openSyslog(syslog, dialer) };
  if (tcp !== undefined) {
    const address = addressOf(tcp.address);
    const sink = new TcpSink({ address, framing: lineFraming, dialer, tls: null });
    return { name: "tcp", lines: tcp, sink };
  }
  if (udp !== undefined)
    return {
      name: "udp",
      lines: udp,
      sink: new UdpSink({
        address: addressOf(udp.address),
        framing: ({ line }) => line,
        dialer,
      }),
    };
  throw new Error("a sink of an access log has no destination");
}

function openSyslog(own: NonNullable<SinkConfig["syslog"]>, dialer: KitDialer): Sink {
  const address = addressOf(own.address);
  const message = syslogMessage({ facility: own.facility, appName: own.app_name });
  if (own.transport === "udp") return new UdpSink({ address, framing: message, dialer });
  const tls = own.transport === "tls" ? { ca: own.ca_certificate } : null;
  return new TcpSink({ address, framing: counted(message), dialer, tls });
}

function handlersOf(own: Config, groups: readonly Group[], kit: PluginKit): PluginHandlers {
  const { status, when, sample, min_duration: minDuration } = own.filters;
  const statuses = new Set(status);
  const isOfStatus = (code: number) =>
    statuses.size === 0 ||
    statuses.has(String(code)) ||
    statuses.has(`${Math.floor(code / 100)}xx`);
  const isWanted = compileCondition(when);
  const isWantedStream = compileStreamCondition(when);
  const isSampled = () => sample === 1 || Math.random() < sample;
  const write = (subject: Subject) => {
    const { durationMs, status: code } = subject.result;
    if (durationMs < minDuration || !isOfStatus(code) || !isSampled()) return;
    try {
      for (const group of groups) writeTo(group, subject);
    } catch (error) {
      kit.dropped(1);
      kit.log("warn", "cannot write a record of an access log", { error: String(error) });
    }
  };
  // Memory key of the response headers.
  const key = {};
  const handlers: PluginHandlers = {
    logBatch(context: RequestContext) {
      const { result } = context;
      if (result === null || !isWanted(context)) return;
      const responseHeaders = usesResponseHeaders
        ? (context.memory.get(key) as Headers | undefined)
        : undefined;
      write({ kind: "http", context, result, responseHeaders: responseHeaders ?? null });
    },
    connect: () => undefined,
    disconnect(context, result) {
      if (isWantedStream(context)) write(streamSubject(context, result));
    },
    async close() {
      await closeAll(groups);
    },
  };
  const usesResponseHeaders = own.sinks.some((each) =>
    Object.values(each).some((lines) => needsResponse(lines, own.include)),
  );
  if (!usesResponseHeaders) return handlers;
  return {
    ...handlers,
    response(context: RequestContext, draft: ResponseDraft) {
      context.memory.set(key, draft.headers);
    },
  };
}
