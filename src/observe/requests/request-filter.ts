// Compiles a query to a filter of recent requests; knows no ring.
import { cacheReasons, cacheStatuses } from "../../model/cache-outcome.ts";
import { ApiError } from "../../model/error.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import { grpcStatusNames } from "../../http/grpc.ts";
import { cidrProblem, compileCidrs } from "../../net/cidr.ts";
import { findByKey } from "../../control/key.ts";
import type { RequestView } from "./request-view.ts";
import { storedNameOf } from "../../model/host-name.ts";

/** Names of the filters. */
export const requestFilters = [
  "status",
  "host",
  "route",
  "service",
  "address",
  "cache",
  "grpc",
  "q",
  "kind",
] as const;
type FilterName = (typeof requestFilters)[number];

export type FilterWords = Readonly<Partial<Record<FilterName, string>>>;

export interface RequestFilter {
  /** Equal for equivalent filters. */
  readonly key: string;
  /** Whether the status matches; true: the other conditions decide. */
  matchesStatus(status: number): boolean;
  matches(view: RequestView): boolean;
}

const MAX_CHARACTERS = 320;

type Test = (view: RequestView) => boolean;

/** Throws a 400 that names the parameter. */
export function createRequestFilter(words: FilterWords, config: GatewayConfig): RequestFilter {
  const tests: Test[] = [];
  for (const name of requestFilters) {
    const text = words[name];
    if (text === undefined) continue;
    if (text === "" || text.length > MAX_CHARACTERS)
      throw new ApiError(400, `${name}: must have 1 to ${MAX_CHARACTERS} characters`);
    if (name !== "status") tests.push(testOf(name, text, config));
  }
  const matchesStatus = words.status === undefined ? () => true : statusTest(words.status);
  return {
    key: JSON.stringify(requestFilters.map((name) => words[name] ?? null)),
    matchesStatus,
    matches: (view) => matchesStatus(view.status ?? 0) && tests.every((test) => test(view)),
  };
}

function testOf(name: Exclude<FilterName, "status">, text: string, config: GatewayConfig): Test {
  switch (name) {
    case "host": {
      const host = storedNameOf(text);
      return host.startsWith("*.")
        ? (view) => view.host?.endsWith(host.slice(1)) === true
        : (view) => view.host === host;
    }
    case "route": {
      const ids = [
        text,
        findByKey(config.routes, text)?.id,
        findByKey(config.stream_routes, text)?.id,
      ];
      return (view) => view.route !== null && ids.includes(view.route.id);
    }
    case "service": {
      const ids = [text, findByKey(config.services, text)?.id];
      return (view) => view.service !== null && ids.includes(view.service.id);
    }
    case "address":
      return addressTest(text);
    case "cache":
      return cacheTest(text);
    case "grpc":
      return grpcTest(text);
    case "kind":
      if (text !== "http" && text !== "stream")
        throw new ApiError(400, "kind: must be http or stream");
      return (view) => view.kind === text;
    case "q": {
      const wanted = text.toLowerCase();
      return (view) => textsOf(view).some((found) => found?.toLowerCase().includes(wanted));
    }
    default: {
      const unknown: never = name;
      throw new Error(`unknown filter ${String(unknown)}`);
    }
  }
}

function addressTest(text: string): Test {
  const problem = cidrProblem(text);
  if (problem !== null) throw new ApiError(400, `address: ${problem}`);
  const includes = compileCidrs([text]);
  return (view) => includes(view.client);
}

/** By status, or by reason. */
function cacheTest(text: string): Test {
  const [statuses, reasons]: readonly (readonly string[])[] = [cacheStatuses, cacheReasons];
  if (statuses?.includes(text) === true) return (view) => view.cache?.status === text;
  if (reasons?.includes(text) === true) return (view) => view.cache?.reason === text;
  throw new ApiError(
    400,
    `cache: must be ${cacheStatuses.join(", ")}, or a reason such as set_cookie`,
  );
}

/** By number or name; `error`: by every status but OK. */
function grpcTest(text: string): Test {
  if (text === "error") return (view) => (view.grpc?.status ?? 0) > 0;
  const status = /^\d{1,2}$/.test(text)
    ? Number(text)
    : grpcStatusNames.indexOf(text.toUpperCase());
  if (grpcStatusNames[status] !== undefined) return (view) => view.grpc?.status === status;
  throw new ApiError(400, "grpc: must be a status such as 14 or UNAVAILABLE, or error");
}

/** Only visible texts: a search must not reveal masked values. */
const textsOf = (view: RequestView) => [
  view.path,
  view.host,
  view.method,
  view.client,
  view.user_agent,
  view.consumer,
  view.id,
  view.route?.name,
  view.service?.name,
  view.target?.address,
  ...view.reasons,
];

const STATUS = /^(?:([1-5])xx|(\d{3})(?:-(\d{3}))?)$/i;

function statusTest(text: string): (status: number) => boolean {
  const ranges = text.split(",").map((word) => {
    const [, hundreds, first, last = first] = STATUS.exec(word.trim()) ?? [];
    if (hundreds !== undefined) return [Number(hundreds) * 100, Number(hundreds) * 100 + 99];
    if (first === undefined || Number(last) < Number(first))
      throw new ApiError(400, "status: must be like 200, 5xx or 400-499, or several with commas");
    return [Number(first), Number(last)];
  });
  return (status) => ranges.some(([from = 0, to = 0]) => status >= from && status <= to);
}
