// Sends batches over HTTP: as JSON lists, to Loki and to OpenTelemetry collectors; knows no line format.
import type { Callout } from "../../pdk/kit.ts";
import { type Entry, type Sink, SinkError } from "./queue.ts";

export interface HttpSinkOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly callout: Callout;
  /** Builds the body of a request. */
  readonly bodyOf: (entries: readonly Entry[]) => string;
}

const TIMEOUT_MS = 10_000;
/** Of a response whose body is ignored. */
const MAX_ANSWER = 65_536;

/** Retryable statuses. */
const mayRetry = (status: number) => status === 408 || status === 429 || status >= 500;

export class HttpSink implements Sink {
  readonly #options: HttpSinkOptions;

  constructor(options: HttpSinkOptions) {
    this.#options = options;
  }

  async send(entries: readonly Entry[]): Promise<void> {
    const { url, headers, callout, bodyOf } = this.#options;
    const { status, headers: responseHeaders } = await callout({
      url,
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: bodyOf(entries),
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_ANSWER,
    });
    if (status >= 200 && status < 300) return;
    throw new SinkError(`the log server responded ${status}`, {
      mayRetry: mayRetry(status),
      retryAfterMs: retryAfter(responseHeaders.get("retry-after")),
    });
  }

  close(): void {}
}

/** RFC 9110 section 10.2.3; ignores dates, because clocks differ. */
const retryAfter = (value: string | null) =>
  value !== null && /^\d{1,5}$/.test(value) ? Number(value) * 1000 : null;

/** With this path when the URL has none. */
export function withPath(url: string, path: string): string {
  const parsed = new URL(url);
  if (parsed.pathname === "/") parsed.pathname = path;
  return parsed.href;
}

/** JSON lines are embedded, others become strings. */
export const listBody =
  (isJson: boolean) =>
  (entries: readonly Entry[]): string =>
    `[${entries.map(({ line }) => (isJson ? line : JSON.stringify(line))).join(",")}]`;

/** As a string, because it exceeds the exact range of numbers. */
const nanoseconds = (ms: number) => `${ms}000000`;

/** Body of `POST /loki/api/v1/push`. */
export function lokiBody(labels: Readonly<Record<string, string>>) {
  const stream = JSON.stringify(labels);
  return (entries: readonly Entry[]): string => {
    const values = entries.map(({ at, line }) => `["${nanoseconds(at)}",${JSON.stringify(line)}]`);
    return `{"streams":[{"stream":${stream},"values":[${values.join(",")}]}]}`;
  };
}

const attribute = (key: string, value: string) =>
  `{"key":${JSON.stringify(key)},"value":{"stringValue":${JSON.stringify(value)}}}`;

/** Body of an `ExportLogsServiceRequest`. */
export function otlpBody(attributes: Readonly<Record<string, string>>) {
  const resource = Object.entries({ "service.name": "sluice", ...attributes })
    .map(([key, value]) => attribute(key, value))
    .join(",");
  return (entries: readonly Entry[]): string =>
    `{"resourceLogs":[{"resource":{"attributes":[${resource}]},"scopeLogs":[{"scope":{"name":"sluice"},"logRecords":[${entries.map(otlpRecord).join(",")}]}]}]}`;
}

function otlpRecord({ at, line, status, trace }: Entry): string {
  // SeverityNumber INFO, WARN and ERROR of the OTLP enumeration.
  const [level, name] = status >= 500 ? [17, "ERROR"] : status >= 400 ? [13, "WARN"] : [9, "INFO"];
  const code =
    status === 0 ? "" : `{"key":"http.response.status_code","value":{"intValue":"${status}"}}`;
  const ids = trace === null ? "" : `,"traceId":"${trace.traceId}","spanId":"${trace.spanId}"`;
  return `{"timeUnixNano":"${nanoseconds(at)}","severityNumber":${level},"severityText":"${name}","body":{"stringValue":${JSON.stringify(line)}},"attributes":[${code}]${ids}}`;
}
