// When a failed attempt is retried; shared by services and routes.
import { Type as t } from "@sinclair/typebox";
import { integer, milliseconds, oneOf } from "./fields.ts";

export const retriesFields = {
  count: integer(2, {
    minimum: 0,
    maximum: 10,
    description: "Retries after the first attempt",
    form: { title: "Retries", help: "Attempts after the first", zero: "no retries" },
  }),
  on: t.Array(
    oneOf(["connect", "reset", "timeout", "500", "502", "503", "504", "429"], {
      description: "A condition for a retry",
      form: {
        options: {
          connect: "connection failed",
          reset: "connection lost",
          timeout: "timeout",
          "500": "status 500",
          "502": "status 502",
          "503": "status 503",
          "504": "status 504",
          "429": "status 429",
        },
      },
    }),
    {
      default: ["connect", "reset", "502", "503", "504"],
      maxItems: 8,
      description:
        "Conditions for a retry: a failed connect, a reset, a timeout, or one of these statuses; 503 is also UNAVAILABLE of gRPC",
      form: { title: "Retry conditions", help: "", order: 1 },
    },
  ),
  methods: oneOf(["idempotent", "all"], {
    default: "idempotent",
    description: "Methods that may be retried (RFC 9110 section 9.2.2)",
    form: {
      title: "Retried methods",
      help: "A retried POST may run twice at the target",
      options: {
        idempotent: "Idempotent, such as GET and PUT",
        all: "All, including POST",
      },
    },
  }),
  per_try_timeout: milliseconds(
    0,
    "Timeout of one attempt in milliseconds; 0: only request_timeout applies",
    {
      title: "Timeout per attempt",
      help: "",
      zero: "only the total timeout applies",
      unit: "ms",
      order: 2,
    },
  ),
  backoff_ms: milliseconds(
    25,
    "Initial backoff in milliseconds; doubles with each retry, with jitter",
    { title: "Initial backoff", help: "Doubles with each retry", unit: "ms", order: 2 },
  ),
  budget_percent: integer(20, {
    minimum: 0,
    maximum: 100,
    description:
      "Share of all requests that may be retries; retries after a failed connect do not count",
    form: {
      title: "Retry budget",
      help: "Maximum share of retries among all requests",
      unit: "%",
      order: 2,
    },
  }),
};
