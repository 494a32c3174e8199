// rate-limit: limits requests per client and time window.
import { type Outcome, reject } from "../pdk/response.ts";
import { asksForConsumer, compileCondition } from "../pdk/condition.ts";
import type { PluginKit } from "../pdk/kit.ts";
import type { RequestContext, ResponseDraft } from "../pdk/context.ts";
import { definePlugin, httpScopes, type PluginHandlers } from "../pdk/definition.ts";
import { asksForClient, keyReader } from "../pdk/request-key.ts";
import { ExactStore } from "./rate-limit/exact-store.ts";
import { LeaseStore } from "./rate-limit/lease-store.ts";
import { policyOf, retryAfter, LimitFields } from "./rate-limit/fields.ts";
import {
  type Config,
  countedStatuses,
  type Limit,
  problemsOf,
  schema,
} from "./rate-limit/settings.ts";
import {
  type Demand,
  type LimitStore,
  type Rule,
  SharedStore,
  type Verdict,
  type Verdicts,
} from "./rate-limit/store.ts";

export default definePlugin({
  name: "rate-limit",
  summary: "Limits requests per client and time window",
  description: `Each limit counts requests by a key; a request must fit all limits, and a rejected one counts in none of them. Counts are in
memory that all workers share, so limits are exact over all of them: a \`fixed\` limit of 1000 allows 1000 requests per window, from
any number of connections. Requests in the same instant as one that another limit rejects may briefly see its cost and be
rejected too; the gateway never allows more than the limit.

- \`fixed\`: windows begin at multiples of their length. Around the border of two windows, twice as many requests may pass.
- \`sliding\`: the previous window counts in proportion to its overlap, as if its requests were evenly spread. In a clock-aligned
  window never more than \`requests\` pass. A client that spends a whole window at its end can send up to twice as many in a
  period of that length, but spread over it.
- \`token_bucket\`: \`requests\` per \`window\` refill the bucket evenly; \`burst\` is its capacity, and the most requests at once.

Requests without the key's value (no such header, not authenticated, anonymous consumer) are counted by their address, so that
omitting the value does not bypass the limit. A key that clients choose freely, such as a header, lets them start a new count
with each value: add a limit by \`ip\`. \`jwt:CLAIM\` reads only tokens that jwt or oidc has accepted.

With \`count_when\` set to statuses, a request is rejected once that many responses were counted; requests in flight do not count
yet. Limits whose keys need no authentication are then checked before it, which stops password guessing early.

In a fleet, \`--counters\` makes nodes share the limits on a Valkey or Redis server ([shared counters](../shared-counters.md)):
\`shared\` selects how, and \`on_shared_error\` what happens while the server is away. Without it each node counts for itself.

Setting the clock back starts new counts. There is room for \`settings.limits.counter_keys\` keys; beyond that, the keys idle
longest are evicted.`,
  group: "traffic",
  order: 7000,
  phases: ["pre_auth", "access", "response", "log"],
  scopes: httpScopes,
  config: schema,
  example: { limits: [{ name: "default", requests: 100, window: 60, key: "ip" }] },
  onError: "open",
  ignoresPath: true,
  perNode: ({ shared }) => (shared === "node" ? null : "each node counts for itself"),
  check: problemsOf,
  create: (own, kit) => createHandlers(own, storeOf(own, kit)),
});

function storeOf({ shared: mode, on_shared_error: onError }: Config, kit: PluginKit): LimitStore {
  const { counters, shared } = kit;
  const local = new SharedStore(counters);
  if (shared === null || mode === "node") return local;
  return mode === "exact"
    ? new ExactStore({ shared, local, onError })
    : new LeaseStore({ shared, local, onError, counters });
}

/** One limit, compiled. */
interface Ready {
  readonly rule: Rule;
  readonly cost: number;
  readonly key: (context: RequestContext) => string;
  /** Null: for every request. */
  readonly when: ((context: RequestContext) => boolean) | null;
}

/** State of a request between phases. */
interface State {
  readonly demands: readonly Demand[];
  verdicts: readonly Verdict[];
  /** Whether all limits are counted. */
  isCounted: boolean;
}

function createHandlers(own: Config, store: LimitStore): PluginHandlers {
  const limits = own.limits.map((limit) => prepared(limit, own.ipv6_prefix));
  const isCounted = countedStatuses(own.count_when);
  const states = new States(own);
  const ask = (
    context: RequestContext,
    take: (demands: readonly Demand[]) => Verdicts,
  ): Outcome | Promise<Outcome> => {
    const demands = demandsOf(limits, context);
    if (demands.length === 0) return undefined;
    const verdicts = take(demands);
    return verdicts instanceof Promise
      ? verdicts.then((all) => states.judge(context, demands, all))
      : states.judge(context, demands, verdicts);
  };
  const tell = own.headers === "off" ? null : states.tell;
  if (isCounted === null) {
    const take = (demands: readonly Demand[]) => store.take(demands);
    const access = (context: RequestContext) => ask(context, take);
    return tell === null ? { access } : { access, response: tell };
  }
  const count = (context: RequestContext, status: number) =>
    states.count(context, status, { isCounted, store });
  const lookAt = (demands: readonly Demand[]) => store.look(demands);
  const look = (context: RequestContext) =>
    states.of(context) === undefined ? ask(context, lookAt) : undefined;
  return {
    ...(isKnownBeforeAuth(own.limits) ? { preAuth: look } : {}),
    // Instances for consumers do not run before authentication.
    access: look,
    response(context, response) {
      count(context, response.status);
      tell?.(context, response);
    },
    // Responses of plugins that run before this one.
    log: (context) => count(context, context.result?.status ?? 0),
  };
}

const isKnownBeforeAuth = (limits: readonly Limit[]) =>
  limits.every((limit) => !asksForClient(limit.key) && !asksForConsumer(limit.when));

function prepared(limit: Limit, ipv6Prefix: number): Ready {
  const { name, algorithm, requests, window, burst, cost, when } = limit;
  const capacity = burst ?? requests;
  const read = keyReader(limit.key, ipv6Prefix);
  const perSecond = requests / window;
  const rule = { name, algorithm, capacity, windowMs: window * 1000, perSecond };
  return {
    rule: { ...rule, policy: policyOf(rule) },
    cost,
    key: (context) => `${name} ${read(context)}`,
    when: Object.keys(when).length === 0 ? null : compileCondition(when),
  };
}

function demandsOf(limits: readonly Ready[], context: RequestContext): Demand[] {
  const demands: Demand[] = [];
  for (const { rule, cost, key, when } of limits)
    if (when === null || when(context)) demands.push({ rule, cost, key: key(context) });
  return demands;
}

/** The state of each request in flight. */
class States {
  readonly #own: Config;
  readonly #fields: LimitFields;

  constructor(own: Config) {
    this.#own = own;
    this.#fields = new LimitFields(own.headers);
  }

  of(context: RequestContext): State | undefined {
    return context.memory.get(this) as State | undefined;
  }

  judge(
    context: RequestContext,
    demands: readonly Demand[],
    verdicts: readonly Verdict[] | null,
  ): Outcome {
    if (verdicts === null)
      return reject(503, "rl.unavailable", {
        detail: "the limits cannot be checked at the moment",
        headers: { "Retry-After": "1" },
      });
    let isAllowed = true;
    for (const verdict of verdicts) isAllowed &&= verdict.isAllowed;
    const state: State = { demands, verdicts, isCounted: !isAllowed };
    context.memory.set(this, state);
    return isAllowed ? undefined : this.#refuse(state);
  }

  #refuse(state: State): Outcome {
    const { status, message } = this.#own;
    const headers: Record<string, string> = { "Retry-After": retryAfter(state.verdicts) };
    const { names, values } = this.#fields.of(state.demands, state.verdicts);
    for (const [at, name] of names.entries()) headers[name] = values[at] ?? "";
    const detail = message ?? "too many requests";
    return reject(status, "rl.exceeded", { detail, headers });
  }

  /** Sets the remaining quota after this request, and replaces the target's headers. */
  readonly tell = (context: RequestContext, draft: ResponseDraft): void => {
    const state = this.of(context);
    if (state === undefined) return;
    const { names, values } = this.#fields.of(state.demands, state.verdicts);
    draft.setHeaders(names, values);
  };

  count(
    context: RequestContext,
    status: number,
    by: { readonly isCounted: (status: number) => boolean; readonly store: LimitStore },
  ): void {
    const state = this.of(context);
    if (state === undefined || state.isCounted || !by.isCounted(status)) return;
    state.isCounted = true;
    const verdicts = by.store.count(state.demands);
    // With a server the response is out already.
    if (verdicts !== null && !(verdicts instanceof Promise)) state.verdicts = verdicts;
  }
}
