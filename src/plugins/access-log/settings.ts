// What can be set about access logs, and what is wrong with it beyond the schema; knows no request.
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
  url,
} from "../../pdk/fields.ts";
import { isFieldValue, isToken } from "../../pdk/http.ts";
import { templateProblem } from "../../pdk/template.ts";
import { isKnownVariable } from "./variables.ts";

const formats = ["json", "clf", "combined", "template"] as const;

const lines = {
  format: oneOf(formats, {
    default: "json",
    description: "What a line looks like; `clf` and `combined` are those of Apache and nginx",
  }),
  template: nullable(
    t.String({
      minLength: 1,
      maxLength: 4096,
      description: "The line with variables such as `${status}`, for the format `template`",
    }),
  ),
};

const sink = <T extends Parameters<typeof t.Object>[0]>(properties: T, description: string) =>
  t.Optional(t.Object(properties, { additionalProperties: false, description }));

const address = t.String({
  minLength: 3,
  maxLength: 300,
  pattern: "^(?:\\[[0-9A-Fa-f:.]{2,45}\\]|[A-Za-z0-9._-]{1,253}):[0-9]{1,5}$",
  errorMessage: "must be a host and a port, such as logs.example.com:514",
  description: "Host and port",
});

const fieldsSent = t.Record(
  t.String({ minLength: 1, maxLength: 256 }),
  secret({ description: "Value of the field" }),
  {
    default: {},
    maxProperties: 20,
    description: "Fields of the requests, such as one with a token",
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
            "Below `<data-dir>/logs`; absolute only below the folder that `serve --log-dir` names",
        }),
        ...lines,
        rotate_size: integer(104_857_600, {
          minimum: 1024,
          maximum: 1_099_511_627_776,
          description: "Bytes after which the file is put aside and another one begun",
        }),
        keep: integer(7, {
          minimum: 1,
          maximum: 10_000,
          description: "Files that were put aside and stay; older ones are deleted",
        }),
      },
      "A file, written by all workers, readable by the gateway's user only",
    ),
    stdout: sink(lines, "The gateway's standard output"),
    http: sink(
      {
        url: destination(url({ description: "Where batches are sent with POST" })),
        headers: fieldsSent,
        ...lines,
      },
      "Batches as a JSON list: of objects with the format `json`, of texts with the others",
    ),
    syslog: sink(
      {
        address,
        transport: oneOf(["udp", "tcp", "tls"], {
          default: "udp",
          description: "How messages are carried: RFC 5426, RFC 6587 (with lengths) or RFC 5425",
        }),
        ca_certificate: nullable(
          t.String({
            maxLength: 100_000,
            description: "PEM of the authority to believe with `tls`; null: those of the system",
          }),
        ),
        facility: integer(16, {
          minimum: 0,
          maximum: 23,
          description: "Number of the facility; 16 is local0",
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
              "Loki, such as `http://loki:3100`; without a path, `/loki/api/v1/push` is used",
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
              "Collector that takes OTLP over HTTP, such as `http://collector:4318`; without a path, `/v1/logs` is used",
          }),
        ),
        headers: fieldsSent,
        resource_attributes: attributes(
          {},
          "What records say of this gateway; `service.name` is `sluice` unless it is given here",
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
    description: "Where records go; each with a queue of its own",
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
        description: "Milliseconds that a request must have taken",
      }),
      sample: t.Number({
        minimum: 0,
        maximum: 1,
        default: 1,
        description: "Share of the requests that pass the other filters",
      }),
      when: condition("Which requests"),
    },
    "What is written down; all of them must let a request through",
  ),
  include: group(
    {
      request_headers: listOf(headerName({ description: "Name of a field, or `*`" }), {
        maxItems: 100,
        description: "Header fields of requests that JSON holds; `*`: all",
      }),
      response_headers: listOf(headerName({ description: "Name of a field, or `*`" }), {
        maxItems: 100,
        description: "Header fields of answers that JSON holds; `*`: all",
      }),
    },
    "More than the usual facts in the format `json`",
  ),
  redact: group(
    {
      headers: listOf(headerName({ description: "Name of a field" }), {
        default: ["authorization", "cookie", "set-cookie", "x-api-key"],
        maxItems: 100,
        description: "Header fields whose values are never written",
      }),
      query: listOf(
        t.String({ minLength: 1, maxLength: 256, description: "Name of a parameter" }),
        {
          maxItems: 100,
          description:
            "Parameters of the query whose values are never written, also in fields that hold addresses, such as Referer and Location",
        },
      ),
      ip: oneOf(["full", "mask", "hash"], {
        default: "full",
        description:
          "Addresses of clients: as they are; their network (/24, /48) only; or a keyed hash, the same for the same address",
      }),
    },
    "What must not be in a log",
  ),
  queue: group(
    {
      max_batch_size: integer(100, {
        minimum: 1,
        maximum: 10_000,
        description:
          "Records that are handed over at once; files, standard output and TCP then get all that waits",
      }),
      max_coalescing_delay: seconds(1, {
        ...longDelay,
        description: "Seconds that a record waits at most for others",
      }),
      max_entries: integer(10_000, {
        minimum: 1,
        maximum: 1_000_000,
        description:
          "Records that wait in a worker for one sink; what there is no room for is dropped",
      }),
      max_retry_time: seconds(60, {
        minimum: 0,
        maximum: 86_400,
        description: "Seconds after which a batch that the sink does not take is dropped",
      }),
      initial_retry_delay: seconds(0.01, {
        ...longDelay,
        description: "Seconds before the second attempt; doubled for each one after it",
      }),
      max_retry_delay: seconds(60, {
        ...longDelay,
        description: "Seconds between two attempts at most",
      }),
    },
    "How records wait for their sinks",
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
          message: `must hold exactly one of ${Object.keys(sinkFields.properties).join(", ")}`,
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
      : [{ path: "template", message: "is only used with the format template" }];
  if (template === null)
    return [{ path: "template", message: "is needed for the format template" }];
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
      found.push({ path: `headers.${name}`, message: "is not the name of a field" });
    // One that is named and kept elsewhere is no text here.
    else if (typeof value === "string" && !isFieldValue(value))
      found.push({ path: `headers.${name}`, message: "is not the value of a field" });
  }
  for (const label of Object.keys(loki?.labels ?? {}))
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(label))
      found.push({ path: `labels.${label}`, message: "must be letters, digits and _" });
  if (loki !== undefined && Object.keys(loki.labels).length === 0)
    found.push({ path: "labels", message: "must hold one label at least" });
  const given = syslog?.address ?? tcp?.address ?? udp?.address;
  if (given !== undefined) {
    const port = Number(given.slice(given.lastIndexOf(":") + 1));
    if (port < 1 || port > 65_535) found.push({ path: "address", message: "has no such port" });
  }
  return found;
}

function pathProblem(path: string): string | null {
  if (/\p{Cc}/u.test(path)) return "must not hold control characters";
  const segments = path.split("/");
  if (segments.includes("..")) return 'must not hold ".."';
  return segments.at(-1) === "" || segments.at(-1) === "." ? "must name a file" : null;
}
