// Settings of rate-limit: what is counted, for whom and how much of it; knows no request.
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
      description: "Names the limit in the header fields; another one for each",
    }),
    requests: t.Integer({
      minimum: 1,
      maximum: 1_000_000_000,
      description: "How many requests (or units of cost) there may be in a window",
    }),
    window: integer(60, {
      minimum: 1,
      maximum: 31_536_000,
      description: "Length of the window in seconds",
    }),
    algorithm: oneOf(["sliding", "fixed", "token_bucket"], {
      default: "sliding",
      description:
        "sliding: counts the part of the window before that is not over yet; fixed: begins anew with each window; token_bucket: fills up evenly and allows a burst",
    }),
    burst: nullable(
      t.Integer({
        minimum: 1,
        maximum: 1_000_000_000,
        description: "What a token bucket holds; null: as much as `requests`",
      }),
    ),
    key: requestKey("ip", "What requests are counted by"),
    cost: integer(1, {
      minimum: 1,
      maximum: 1_000_000,
      description: "How much a request takes",
    }),
    when: condition("Count only these requests; empty: all"),
  },
  { additionalProperties: false, description: "One limit" },
);

export const schema = config({
  limits: t.Array(limit, {
    minItems: 1,
    maxItems: 16,
    description: "The limits; a request must fit into all of them, and else counts in none",
  }),
  ipv6_prefix: integer(64, {
    minimum: 16,
    maximum: 128,
    description:
      "How much of an IPv6 address tells clients apart: a client has a whole network of them",
  }),
  status: integer(429, { minimum: 400, maximum: 599, description: "Status of a refusal" }),
  message: nullable(
    t.String({
      minLength: 1,
      maxLength: 1024,
      description: "What a refused client is told; null: that there were too many requests",
    }),
  ),
  count_when: t.String({
    default: "request",
    maxLength: 512,
    pattern: `^(?:request|response_status:\\[?${STATUS}(?:, ?${STATUS})*\\]?)$`,
    errorMessage:
      "must be request, or response_status: and statuses, such as response_status:[401,403,5xx]",
    description:
      "request: every request counts; response_status:[401,403]: only those that are answered with one of these",
  }),
  headers: oneOf(["both", "draft11", "legacy", "off"], {
    default: "both",
    description:
      "Which header fields tell clients what is left: RateLimit and RateLimit-Policy (draft11), RateLimit-* and X-RateLimit-* (legacy), both or none",
  }),
  persist: flag(
    false,
    "Keep the counts when the gateway stops: they are written to the data directory every 5 seconds",
  ),
});

export type Config = Static<typeof schema>;
export type Limit = Config["limits"][number];

/** What a schema cannot say. */
export function problemsOf({ limits }: Config): { path: string; message: string }[] {
  const problems: { path: string; message: string }[] = [];
  const names = new Set<string>();
  for (const [at, each] of limits.entries()) {
    const report = (field: string, message: string) =>
      problems.push({ path: `limits[${at}].${field}`, message });
    if (names.has(each.name)) report("name", "is there already");
    names.add(each.name);
    if (each.burst !== null && each.algorithm !== "token_bucket")
      report("burst", "is only for the algorithm token_bucket");
    if (each.cost > (each.burst ?? each.requests)) report("cost", "is more than there ever is");
    const wrong = keyProblem(each.key);
    if (wrong !== null) report("key", wrong);
  }
  return problems;
}

/** Whether a status is one of those that count; null: every request counts, whatever the answer. */
export function countedStatuses(countWhen: string): ((status: number) => boolean) | null {
  if (countWhen === "request") return null;
  const words = countWhen.match(new RegExp(STATUS, "g")) ?? [];
  const exact = new Set(words.filter((word) => !word.endsWith("xx")).map(Number));
  const classes = new Set(
    words.filter((word) => word.endsWith("xx")).map((word) => Number(word[0])),
  );
  return (status) => exact.has(status) || classes.has(Math.floor(status / 100));
}
