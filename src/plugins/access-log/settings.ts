// The settings of access logs, and their validation beyond the schema; knows no request.
import { type Static, Type as t } from "@sinclair/typebox";
import { destination } from "../../pdk/destination.ts";
import {
  condition,
  config,
  group,
  headerName,
  integer,
  listOf,
  nullable,
  oneOf,
  secret,
  server,
  url,
} from "../../pdk/fields.ts";
import { isFieldValue, isToken } from "../../pdk/http.ts";
import { templateProblem } from "../../pdk/template.ts";
import { isKnownVariable } from "./variables.ts";

const formats = ["json", "clf", "combined", "template"] as const;

const lines = {
  format: oneOf(formats, {
    default: "json",
    description: "Format of a line; `clf` and `combined` are those of Apache and nginx",
  }),
  template: nullable(
    t.String({
      minLength: 1,
      maxLength: 4096,
      description: "Line with variables such as `${status}`, for the format `template`",
    }),
  ),
};

const sink = <T extends Parameters<typeof t.Object>[0]>(properties: T, description: string) =>
  t.Optional(t.Object(properties, { additionalProperties: false, description }));

const address = server({
  minLength: 3,
  maxLength: 300,
  pattern: "^(?:\\[[0-9A-Fa-f:.]{2,45}\\]|[A-Za-z0-9._-]{1,253}):[0-9]{1,5}$",
  errorMessage: "must be a host and a port, such as logs.example.com:514",
  description: "Host and port",
});

const fieldsSent = t.Record(
  t.String({ minLength: 1, maxLength: 256 }),
  secret({ description: "Value of the header" }),
  {
    default: {},
    maxProperties: 20,
    description: "Headers of the requests, such as one with a token",
  },
);

const attributes = (initial: Readonly<Record<string, string>>, description: string) =>
  t.Record(t.String({ minLength: 1, maxLength: 256 }), t.String({ maxLength: 1024 }), {
    default: initial,
    maxProperties: 50,
    description,
  });

const sinkFields = t.Object(
  {
    file: sink(
      {
        path: t.String({
          minLength: 1,
          maxLength: 1024,
          default: "access.log",
          description:
            "Path below `<data-dir>/logs`; absolute paths must be below the directory of `serve --log-dir`",
        }),
        ...lines,
        rotate_size: integer(104_857_600, {
          minimum: 1024,
          maximum: 1_099_511_627_776,
          description: "File size in bytes at which the file is rotated",
        }),
        keep: integer(7, {
          minimum: 1,
          maximum: 10_000,
          description: "Rotated files to keep; older ones are deleted",
        }),
      },
      "A file that all workers write, readable by the gateway's user only",
    ),
    stdout: sink(lines, "The gateway's standard output"),
    http: sink(
      {
        url: destination(url({ description: "URL that receives batches with POST" })),
        headers: fieldsSent,
        ...lines,
      },
      "HTTP, with each batch as a JSON list: of objects with the format `json`, of strings with the others",
    ),
    syslog: sink(
      {
        address,
        transport: oneOf(["udp", "tcp", "tls"], {
          default: "udp",
          description:
            "Transport: UDP (RFC 5426), TCP (RFC 6587, octet counting) or TLS (RFC 5425)",
        }),
        ca_certificate: nullable(
          t.String({
            maxLength: 100_000,
            description: "PEM of the trusted CA for `tls`; null: the system's CAs",
          }),
        ),
        facility: integer(16, {
          minimum: 0,
          maximum: 23,
          description: "Facility number; 16 is local0",
        }),
        app_name: t.String({
          minLength: 1,
          maxLength: 48,
          pattern: "^[!-~]+$",
          errorMessage: "must be printable ASCII without spaces",
          default: "sluice",
          description: "APP-NAME of the messages",
        }),
        ...lines,
      },
      "Syslog messages by RFC 5424",
    ),
    tcp: sink({ address, ...lines }, "Lines over a TCP connection"),
    udp: sink({ address, ...lines }, "A datagram for each line"),
    loki: sink(
      {
        url: destination(
          url({
            description:
              "URL of Loki, such as `http://loki:3100`; the default path is `/loki/api/v1/push`",
          }),
        ),
        headers: fieldsSent,
        labels: attributes({ job: "sluice" }, "Labels of the stream"),
        ...lines,
      },
      "Grafana Loki, through its push API",
    ),
    otlp: sink(
      {
        url: destination(
          url({
            description:
              "URL of an OTLP/HTTP collector, such as `http://collector:4318`; the default path is `/v1/logs`",
          }),
        ),
        headers: fieldsSent,
        resource_attributes: attributes(
          {},
          "Resource attributes of the gateway; the default `service.name` is `sluice`",
        ),
        ...lines,
      },
      "OpenTelemetry logs over HTTP in JSON",
    ),
  },
  { additionalProperties: false, description: "One sink: give exactly one of these" },
);

const seconds = (
  initial: number,
  range: { readonly minimum: number; readonly maximum: number; readonly description: string },
) => t.Number({ ...range, default: initial });

const longDelay = { minimum: 0.001, maximum: 3600 } as const;

export const schema = config({
  sinks: t.Array(sinkFields, {
    default: [{ file: {} }],
    minItems: 1,
    maxItems: 10,
    description: "Destinations of records, each with its own queue",
  }),
  filters: group(
    {
      status: listOf(
        t.String({
          pattern: "^[1-5](?:[0-9]{2}|xx)$",
          errorMessage: "must be a status such as 404, or a class such as 5xx",
          description: "Status or class",
        }),
        {
          maxItems: 100,
          description: "Statuses such as `404` and classes such as `5xx`; empty: all",
        },
      ),
      min_duration: integer(0, {
        minimum: 0,
        maximum: 86_400_000,
        description: "Minimum duration of a request in milliseconds",
      }),
      sample: t.Number({
        minimum: 0,
        maximum: 1,
        default: 1,
        description: "Share of the requests that match the other filters",
      }),
      when: condition("Condition on requests"),
    },
    "Filters; a request is logged when it matches all of them",
  ),
  include: group(
    {
      request_headers: listOf(headerName({ description: "Name of a header, or `*`" }), {
        maxItems: 100,
        description: "Request headers in JSON records; `*`: all",
      }),
      response_headers: listOf(headerName({ description: "Name of a header, or `*`" }), {
        maxItems: 100,
        description: "Response headers in JSON records; `*`: all",
      }),
    },
    "Additional members in the format `json`",
  ),
  redact: group(
    {
      headers: listOf(headerName({ description: "Name of a header" }), {
        default: ["authorization", "cookie", "set-cookie", "x-api-key"],
        maxItems: 100,
        description: "Headers whose values are redacted",
      }),
      query: listOf(
        t.String({ minLength: 1, maxLength: 256, description: "Name of a parameter" }),
        {
          maxItems: 100,
          description:
            "Query parameters whose values are redacted, also in headers with URLs such as Referer and Location",
        },
      ),
      ip: oneOf(["full", "mask", "hash"], {
        default: "full",
        description:
          "Client addresses: in full; truncated to the network (/24, /48); or as a keyed hash, equal for equal addresses",
      }),
    },
    "Redaction",
  ),
  queue: group(
    {
      max_batch_size: integer(100, {
        minimum: 1,
        maximum: 10_000,
        description:
          "Records that trigger a batch; files, standard output and TCP receive the whole queue",
      }),
      max_coalescing_delay: seconds(1, {
        ...longDelay,
        description: "Maximum delay of a record in seconds",
      }),
      max_entries: integer(10_000, {
        minimum: 1,
        maximum: 1_000_000,
        description: "Queue size per worker and sink; records beyond it are dropped",
      }),
      max_retry_time: seconds(60, {
        minimum: 0,
        maximum: 86_400,
        description: "Seconds after which a failing batch is dropped",
      }),
      initial_retry_delay: seconds(0.01, {
        ...longDelay,
        description: "Seconds before the second attempt; doubled for each further one",
      }),
      max_retry_delay: seconds(60, {
        ...longDelay,
        description: "Maximum delay between two attempts in seconds",
      }),
    },
    "Queue and retries",
  ),
});

export type Config = Static<typeof schema>;
export type SinkConfig = Config["sinks"][number];
export type LineConfig = Pick<NonNullable<SinkConfig["file"]>, "format" | "template">;

interface Problem {
  readonly path: string;
  readonly message: string;
}

export function problemsOf({ sinks, queue }: Config): Problem[] {
  const found = sinks.flatMap((each, at) => {
    const [kind, ...more] = Object.keys(each) as (keyof SinkConfig)[];
    const path = `sinks[${at}]`;
    if (kind === undefined || more.length > 0)
      return [
        {
          path,
          message: `must have exactly one of ${Object.keys(sinkFields.properties).join(", ")}`,
        },
      ];
    const own = each[kind];
    if (own === undefined) return [];
    const inside = [...lineProblems(own), ...ownProblems(each)];
    return inside.map((problem) => ({ ...problem, path: `${path}.${kind}.${problem.path}` }));
  });
  if (queue.initial_retry_delay > queue.max_retry_delay)
    found.push({
      path: "queue.initial_retry_delay",
      message: "must not be longer than max_retry_delay",
    });
  return found;
}

function lineProblems({ format, template }: LineConfig): Problem[] {
  if (format !== "template")
    return template === null
      ? []
      : [{ path: "template", message: "is only for the format template" }];
  if (template === null)
    return [{ path: "template", message: "is required for the format template" }];
  const problem = templateProblem(template, isKnownVariable);
  if (problem !== null) return [{ path: "template", message: problem }];
  return /\p{Cc}/u.test(template.replaceAll("\t", ""))
    ? [{ path: "template", message: "must be one line" }]
    : [];
}

function ownProblems({ file, http, loki, otlp, syslog, tcp, udp }: SinkConfig): Problem[] {
  const found: Problem[] = [];
  if (file !== undefined) {
    const message = pathProblem(file.path);
    if (message !== null) found.push({ path: "path", message });
  }
  for (const [name, value] of Object.entries({
    ...http?.headers,
    ...loki?.headers,
    ...otlp?.headers,
  })) {
    if (!isToken(name))
      found.push({ path: `headers.${name}`, message: "is not a valid header name" });
    // A reference to a secret is no text here.
    else if (typeof value === "string" && !isFieldValue(value))
      found.push({ path: `headers.${name}`, message: "is not a valid header value" });
  }
  for (const label of Object.keys(loki?.labels ?? {}))
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(label))
      found.push({ path: `labels.${label}`, message: "must be letters, digits and _" });
  if (loki !== undefined && Object.keys(loki.labels).length === 0)
    found.push({ path: "labels", message: "must have at least one label" });
  const given = syslog?.address ?? tcp?.address ?? udp?.address;
  if (given !== undefined) {
    const port = Number(given.slice(given.lastIndexOf(":") + 1));
    if (port < 1 || port > 65_535)
      found.push({ path: "address", message: "must have a port from 1 to 65535" });
  }
  return found;
}

function pathProblem(path: string): string | null {
  if (/\p{Cc}/u.test(path)) return "must not contain control characters";
  const segments = path.split("/");
  if (segments.includes("..")) return 'must not contain ".."';
  return segments.at(-1) === "" || segments.at(-1) === "." ? "must name a file" : null;
}
