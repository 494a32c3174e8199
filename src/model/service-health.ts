// When a target of a service counts as unhealthy: by checks of the gateway and by its traffic; knows no target.
import { Type as t } from "@sinclair/typebox";
import { since } from "./resource.ts";
import { flag, group, integer, nullable, oneOf } from "./fields.ts";

const status = t.Integer({ minimum: 100, maximum: 599 });

const checked = { enabled: [true] };
const checkedByHttp = { enabled: [true], type: ["http", "https"] };

const activeHealth = group(
  {
    enabled: flag(false, "Whether the gateway probes the targets", {
      title: "Active health checks",
      help: "The gateway probes each target and finds failures before clients do",
    }),
    type: oneOf(["http", "https", "tcp", "grpc", "grpcs"], {
      default: "http",
      description:
        "Protocol of the check. grpc and grpcs: grpc.health.v1.Health/Check; http is HTTP/2 for services that speak only that",
      form: {
        title: "Check type",
        help: "",
        options: {
          http: "HTTP request",
          https: "HTTPS request",
          tcp: "TCP connection",
          grpc: "gRPC health check",
          grpcs: "gRPC health check over TLS",
        },
        when: checked,
      },
    }),
    path: t.String({
      default: "/",
      pattern: "^/",
      errorMessage: "must start with /",
      maxLength: 2048,
      description: "Path of the check",
      form: {
        title: "Request path",
        help: "Sent as is, without the path of the service",
        example: "/healthz",
        when: checkedByHttp,
        order: 1,
      },
    }),
    method: oneOf(["GET", "HEAD", "POST", "OPTIONS"], {
      default: "GET",
      description: "Method of the check",
      form: {
        help: "HEAD returns no body",
        options: { GET: "GET", HEAD: "HEAD", POST: "POST", OPTIONS: "OPTIONS" },
        when: checkedByHttp,
        order: 1,
      },
    }),
    headers: t.Record(t.String(), t.String(), {
      default: {},
      description: "Headers of the check",
      form: { title: "Request headers", help: "", when: checkedByHttp, order: 2 },
    }),
    port: nullable(
      t.Integer({ minimum: 1, maximum: 65_535 }),
      "Port to check; null: the target's own",
      { help: "Empty: the target's port", input: "plain-number", when: checked },
    ),
    interval: integer(10, {
      minimum: 1,
      maximum: 3600,
      description: "Seconds between checks",
      form: { help: "", unit: "s", when: checked },
    }),
    unhealthy_interval: integer(5, {
      minimum: 1,
      maximum: 3600,
      description: "Seconds between checks of an unhealthy target",
      form: { title: "Interval while unhealthy", help: "", unit: "s", when: checked },
    }),
    timeout: integer(2, {
      minimum: 1,
      maximum: 300,
      description: "Timeout of a check in seconds",
      form: { help: "", unit: "s", when: checked },
    }),
    expect_statuses: t.Array(
      t.Union([
        status,
        t.String({
          pattern: "^[1-5]\\d\\d(-[1-5]\\d\\d)?$",
          errorMessage: "must be a status or a range such as 200-399",
        }),
      ]),
      {
        default: ["200-399"],
        maxItems: 50,
        description: "Statuses of a healthy target: numbers or ranges",
        form: {
          title: "Expected status codes",
          help: "Such as 204 or 200-299",
          when: checkedByHttp,
          order: 2,
        },
      },
    ),
    grpc_service: since(
      4,
      t.String({
        default: "",
        maxLength: 512,
        description: "Service name in gRPC checks; empty: the server as a whole",
        form: {
          title: "gRPC service to check",
          help: "The name that the target registered with grpc.health.v1.Health. Empty: the server as a whole",
          example: "helloworld.Greeter",
          when: { enabled: [true], type: ["grpc", "grpcs"] },
        },
      }),
    ),
    expect_body: nullable(t.String({ maxLength: 1024 }), "Text that the body must contain", {
      title: "Expected text in the body",
      help: "Empty: any body",
      input: "long",
      when: checkedByHttp,
      order: 2,
    }),
    healthy_threshold: integer(2, {
      minimum: 1,
      maximum: 100,
      description: "Successes until healthy",
      form: { title: "Successes until healthy", help: "", when: checked },
    }),
    unhealthy_threshold: integer(3, {
      minimum: 1,
      maximum: 100,
      description: "Failures until unhealthy",
      form: { title: "Failures until unhealthy", help: "", when: checked },
    }),
  },
  "Active health checks",
  { order: 1 },
);

const passiveHealth = group(
  {
    enabled: flag(true, "Whether to eject targets whose requests fail", {
      title: "Passive health checks",
      help: "Ejects a target after several consecutive failures",
    }),
    consecutive_failures: integer(5, {
      minimum: 1,
      maximum: 1000,
      description: "Consecutive failures until ejection",
      form: { help: "Failures before the target is ejected", when: checked },
    }),
    statuses: t.Array(status, {
      default: [502, 503, 504],
      maxItems: 50,
      description:
        "Statuses that count as failures; 503 is also UNAVAILABLE of gRPC, 504 DEADLINE_EXCEEDED",
      form: {
        title: "Status codes that count as failures",
        help: "In addition to connection errors",
        when: checked,
        order: 1,
      },
    }),
    ejection_seconds: integer(30, {
      minimum: 1,
      maximum: 3600,
      description: "Seconds of the first ejection; multiplied by the number of ejections",
      form: {
        title: "Ejection time",
        help: "Increases with each ejection",
        unit: "s",
        when: checked,
      },
    }),
    max_ejection_seconds: integer(300, {
      minimum: 1,
      maximum: 86_400,
      description: "Longest ejection in seconds",
      form: { title: "Maximum ejection time", help: "", unit: "s", when: checked },
    }),
    max_ejection_percent: integer(50, {
      minimum: 0,
      maximum: 100,
      description: "Largest share of targets ejected at once",
      form: {
        title: "Maximum ejected targets",
        help: "The last healthy target is never ejected",
        unit: "%",
        when: checked,
      },
    }),
  },
  "Passive health checks",
);

export const health = group(
  {
    active: activeHealth,
    passive: passiveHealth,
    panic_percent: integer(0, {
      minimum: 0,
      maximum: 100,
      description: "Panic threshold: below this percentage of healthy targets health is ignored",
      form: {
        title: "Panic threshold",
        help: "When fewer targets than this are healthy, all targets get traffic, so that the healthy ones are not overloaded",
        zero: "never",
        unit: "%",
        order: 2,
      },
    }),
  },
  "Health checks",
  { group: "health" },
);
