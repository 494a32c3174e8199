// The settings of rate-limit; knows no request.
import { type Static, Type as t } from "@sinclair/typebox";
import { condition, config, flag, integer, nullable, oneOf } from "../../pdk/fields.ts";
import { keyProblem, requestKey } from "../../pdk/request-key.ts";

const STATUS = "[1-5](?:[0-9][0-9]|xx)";

const limit = t.Object(
  {
    name: t.String({
      default: "default",
      pattern: "^[A-Za-z0-9_.-]{1,64}$",
      errorMessage: "must be letters, digits, dots, hyphens and underscores",
      description: "Unique name of the limit in the headers",
    }),
    requests: t.Integer({
      minimum: 1,
      maximum: 1_000_000_000,
      description: "Requests (or units of cost) per window",
    }),
    window: integer(60, {
      minimum: 1,
      maximum: 31_536_000,
      description: "Length of the window in seconds",
    }),
    algorithm: oneOf(["sliding", "fixed", "token_bucket"], {
      default: "sliding",
      description:
        "sliding: the previous window counts in proportion; fixed: each window starts at zero; token_bucket: refills evenly and allows a burst",
    }),
    burst: nullable(
      t.Integer({
        minimum: 1,
        maximum: 1_000_000_000,
        description: "Capacity of the token bucket; null: the same as `requests`",
      }),
    ),
    key: requestKey("ip", "Key of the limit"),
    cost: integer(1, {
      minimum: 1,
      maximum: 1_000_000,
      description: "Cost of a request",
    }),
    when: condition("Requests to count; empty: all"),
  },
  { additionalProperties: false, description: "One limit" },
);

export const schema = config({
  limits: t.Array(limit, {
    minItems: 1,
    maxItems: 16,
    description: "Limits, all of which a request must fit; a rejected request counts in none",
  }),
  ipv6_prefix: integer(64, {
    minimum: 16,
    maximum: 128,
    description:
      "Prefix length that identifies an IPv6 client, which has a whole network of addresses",
  }),
  status: integer(429, { minimum: 400, maximum: 599, description: "Status of rejections" }),
  message: nullable(
    t.String({
      minLength: 1,
      maxLength: 1024,
      description: "Reason shown to rejected clients; null: too many requests",
    }),
  ),
  count_when: t.String({
    default: "request",
    maxLength: 512,
    pattern: `^(?:request|response_status:\\[?${STATUS}(?:, ?${STATUS})*\\]?)$`,
    errorMessage:
      "must be request, or response_status: and statuses, such as response_status:[401,403,5xx]",
    description:
      "request: count every request; response_status:[401,403]: count only requests with these response statuses",
  }),
  headers: oneOf(["both", "draft11", "legacy", "off"], {
    default: "both",
    description:
      "Headers with the remaining quota: RateLimit and RateLimit-Policy (draft11), RateLimit-* and X-RateLimit-* (legacy), both or none",
  }),
  shared: nullable(
    oneOf(["node", "lease", "exact"], {
      description:
        "How the nodes of a fleet share the limits. node: each for itself; lease: all together, by units that nodes take in advance; exact: all together, with a question for each request; null: lease with `--counters`, otherwise node",
    }),
  ),
  on_shared_error: oneOf(["node", "open", "closed"], {
    default: "node",
    description:
      "While the server of `--counters` is away. node: each node allows its share, the limit divided by the number of nodes; open: allow all; closed: reject with 503",
  }),
  persist: flag(
    false,
    "Persist the counts over restarts; written to the data directory every 5 seconds",
  ),
});

export type Config = Static<typeof schema>;
export type Limit = Config["limits"][number];

/** Validation beyond the schema. */
export function problemsOf({ limits }: Config): { path: string; message: string }[] {
  const problems: { path: string; message: string }[] = [];
  const names = new Set<string>();
  for (const [at, each] of limits.entries()) {
    const report = (field: string, message: string) =>
      problems.push({ path: `limits[${at}].${field}`, message });
    if (names.has(each.name)) report("name", "is used twice");
    names.add(each.name);
    if (each.burst !== null && each.algorithm !== "token_bucket")
      report("burst", "is only for the algorithm token_bucket");
    if (each.cost > (each.burst ?? each.requests)) report("cost", "exceeds the limit");
    const wrong = keyProblem(each.key);
    if (wrong !== null) report("key", wrong);
  }
  return problems;
}

/** Whether responses with a status count; null: every request counts. */
export function countedStatuses(countWhen: string): ((status: number) => boolean) | null {
  if (countWhen === "request") return null;
  const words = countWhen.match(new RegExp(STATUS, "g")) ?? [];
  const exact = new Set(words.filter((word) => !word.endsWith("xx")).map(Number));
  const classes = new Set(
    words.filter((word) => word.endsWith("xx")).map((word) => Number(word[0])),
  );
  return (status) => exact.has(status) || classes.has(Math.floor(status / 100));
}
