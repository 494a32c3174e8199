// traffic-split: splits the requests of a route among several services.
import { createHmac } from "node:crypto";
import { Type as t } from "@sinclair/typebox";
import { compileCondition } from "../pdk/condition.ts";
import type { RequestContext, ResponseDraft } from "../pdk/context.ts";
import { definePlugin, httpScopes, type PluginHandlers } from "../pdk/definition.ts";
import {
  condition,
  config,
  headerName,
  integer,
  nullable,
  serviceReference,
} from "../pdk/fields.ts";
import { isToken } from "../pdk/http.ts";
import type { PluginKit } from "../pdk/kit.ts";

const target = t.Object(
  {
    service_id: serviceReference({ description: "Target service, by id or name" }),
    weight: integer(1, {
      minimum: 0,
      maximum: 1_000_000,
      description: "Weight relative to the others; 0: only requests with force_header",
    }),
  },
  { additionalProperties: false, description: "One service" },
);

const rule = t.Object(
  {
    when: condition("Requests that the rule matches; empty: all"),
    targets: t.Array(target, {
      minItems: 1,
      maxItems: 64,
      description: "Target services",
    }),
  },
  { additionalProperties: false, description: "One rule" },
);

const schema = config({
  rules: t.Array(rule, {
    minItems: 1,
    maxItems: 64,
    description:
      "Rules in order; the first that matches decides; without a match the route's service is used",
  }),
  sticky: nullable(
    t.Object(
      {
        cookie: t.String({
          default: "sluice_split",
          minLength: 1,
          maxLength: 128,
          description: "Name of the sticky cookie",
        }),
        ttl: integer(86_400, {
          minimum: 1,
          maximum: 31_536_000,
          description: "Lifetime of the cookie in seconds",
        }),
      },
      {
        additionalProperties: false,
        description: "Sticky sessions: a client stays with its first service; null: off",
      },
    ),
  ),
  force_header: t.Union([headerName({ description: "Name of the header" }), t.Null()], {
    default: "X-Sluice-Split",
    description:
      "Header with which a client chooses a service of its rule, by id or name; null: off",
  }),
});

type Config = (typeof schema)["static"];

export default definePlugin({
  name: "traffic-split",
  summary: "Splits requests among several services by weight, rule or header",
  description: `For canary releases and blue-green deployments: \`{"rules": [{"targets": [{"service_id": "shop", "weight": 95},
{"service_id": "shop-next", "weight": 5}]}]}\`. The weights are exact: of a hundred requests of a worker, five go to the second
service, evenly spread.

With \`sticky\` a cookie keeps each client on its service; its value reveals nothing about the service, cannot be forged, and does
not go upstream. A service whose weight becomes 0 loses its sticky clients.

\`force_header\` is for tests: a client that sends it gets any service of the rule, even one with the weight 0. Set it to null where
clients should not choose. A disabled service gets no requests; the others of the rule get its share.

Everything else is the route's: its paths, plugins and limits. Target, TLS, retries and the plugins of the service are those of
the chosen service. Plugins of that service that run earlier than this one, such as its authentication, run directly after the
choice, so that no request bypasses them. Plugins of the route's own service that run before the choice have run for every
request; its later ones do not run for requests that go to another service. A response-cache in the same scope stores the
responses of each service separately: a client that chooses a service does not change what others see. Responses from the cache
count for the weights.`,
  group: "traffic",
  order: 5000,
  phases: ["request", "response"],
  scopes: httpScopes,
  config: schema,
  example: {
    rules: [
      {
        targets: [
          { service_id: "shop", weight: 95 },
          { service_id: "shop-next", weight: 5 },
        ],
      },
    ],
  },
  onError: "open",
  ignoresPath: true,
  check: problemsOf,
  create: (own, kit) => createHandlers(own, kit),
});

function problemsOf({ rules, sticky }: Config) {
  const problems: { path: string; message: string }[] = [];
  if (sticky !== null && !isToken(sticky.cookie))
    problems.push({ path: "sticky.cookie", message: "must be a valid cookie name" });
  for (const [at, { targets }] of rules.entries()) {
    const ids = targets.map((each) => each.service_id);
    const twice = ids.findIndex((id, index) => ids.indexOf(id) !== index);
    if (twice >= 0)
      problems.push({
        path: `rules[${at}].targets[${twice}].service_id`,
        message: "is used twice",
      });
  }
  return problems;
}

interface Share {
  readonly serviceId: string;
  readonly weight: number;
  /** The service's token in cookies. */
  readonly token: string;
  /** Current weight: the service with the highest one is next. */
  owed: number;
}

interface Split {
  readonly when: (context: RequestContext) => boolean;
  readonly shares: readonly Share[];
  /** Services with a weight above 0. */
  readonly weighted: readonly Share[];
}

function createHandlers(own: Config, kit: PluginKit): PluginHandlers {
  const key = kit.deriveKey("sticky");
  const tokenOf = (serviceId: string) =>
    createHmac("sha256", key).update(serviceId).digest("base64url").slice(0, 22);
  const splits: Split[] = own.rules.map(({ when, targets }) => {
    const shares = targets.map(({ service_id: serviceId, weight }) => ({
      serviceId,
      weight,
      owed: 0,
      token: tokenOf(serviceId),
    }));
    const weighted = shares.filter(({ weight }) => weight > 0);
    return { when: compileCondition(when), shares, weighted };
  });
  const wish = own.force_header?.toLowerCase() ?? null;
  const { sticky } = own;
  /** Memory key of the token for a new cookie. */
  const memoryKey = {};

  const request = (context: RequestContext): undefined => {
    const split = splits.find(({ when }) => when(context));
    if (split === undefined) return;
    const forced = wish === null ? null : wished(context, split, wish);
    if (wish !== null && context.header(wish) !== null) context.upstream.removeHeader(wish);
    const token = sticky === null ? null : context.cookie(sticky.cookie);
    if (sticky !== null && token !== null) context.upstream.removeCookie(sticky.cookie);
    const known = split.weighted.find((share) => share.token === token);
    for (const share of [forced, known])
      if (share !== null && share !== undefined && context.upstream.setService(share.serviceId))
        return;
    const next = nextOf(split.weighted, (id) => context.upstream.setService(id));
    if (next === null) context.note("split.none");
    else if (sticky !== null) context.memory.set(memoryKey, next.token);
  };

  if (sticky === null) return { request };
  const attributes = `; Path=/; Max-Age=${sticky.ttl}; HttpOnly; SameSite=Lax`;
  return {
    request,
    response(context: RequestContext, { headers }: ResponseDraft) {
      const token = context.memory.get(memoryKey);
      if (token === undefined) return;
      const secure = context.scheme === "https" ? "; Secure" : "";
      headers.append("Set-Cookie", `${sticky.cookie}=${String(token)}${attributes}${secure}`);
    },
  };
}

/** The service of force_header, if the rule has it. */
function wished(context: RequestContext, { shares }: Split, field: string): Share | null {
  const text = context.header(field);
  if (text === null) return null;
  const share = shares.find(
    ({ serviceId }) => serviceId === text || context.serviceNamed(serviceId)?.name === text,
  );
  return share ?? null;
}

/**
 * Smooth weighted round robin: in as many requests as the sum of weights, each service gets exactly its weight, evenly spread.
 * Null when none is available.
 */
function nextOf(shares: readonly Share[], take: (serviceId: string) => boolean): Share | null {
  let left = shares;
  while (left.length > 0) {
    let total = 0;
    let next: Share | null = null;
    for (const share of left) {
      total += share.weight;
      share.owed += share.weight;
      if (next === null || share.owed > next.owed) next = share;
    }
    if (next === null) return null;
    next.owed -= total;
    if (take(next.serviceId)) return next;
    // A service that is not available keeps no weight.
    for (const share of left) share.owed -= share.weight;
    next.owed += total;
    const gone = next;
    left = left.filter((share) => share !== gone);
  }
  return null;
}
