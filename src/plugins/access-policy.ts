// access-policy: ordered rules that allow, deny or challenge requests.
import { Type as t } from "@sinclair/typebox";
import { type Outcome, reject, reply } from "../pdk/response.ts";
import { isPreflight } from "../pdk/authentication.ts";
import { asksForConsumer, compileCondition } from "../pdk/condition.ts";
import type { RequestContext } from "../pdk/context.ts";
import { definePlugin, httpScopes } from "../pdk/definition.ts";
import { condition, config, integer, nullable, oneOf } from "../pdk/fields.ts";

const actions = ["allow", "deny", "challenge", "continue"] as const;
type Action = (typeof actions)[number];

const rule = t.Object(
  {
    name: t.String({
      default: "",
      maxLength: 64,
      pattern: "^[A-Za-z0-9_. -]*$",
      errorMessage: "must be letters, digits, spaces and . _ -",
      description: "Name for the log: `policy.deny:office`; default: rule-1, rule-2 ...",
    }),
    when: condition("Requests that the rule matches; {}: all"),
    action: oneOf(actions, {
      description:
        "allow: skip authentication; deny: reject; challenge: require authentication; continue: as without a policy",
    }),
    comment: t.String({ default: "", maxLength: 1024, description: "Comment" }),
  },
  { additionalProperties: false, description: "One rule" },
);

const schema = config({
  rules: t.Array(rule, {
    default: [],
    maxItems: 500,
    description: "Rules in order; the first that matches decides",
  }),
  default: oneOf(actions, {
    default: "continue",
    description: "Action for requests that no rule matches",
  }),
  deny_status: integer(403, {
    minimum: 400,
    maximum: 599,
    description: "Status of rejections",
  }),
  deny_body: nullable(
    t.String({
      maxLength: 65_536,
      description: "Body of rejections, HTML when it begins with <; null: the gateway's error page",
    }),
  ),
});

type Config = (typeof schema)["static"];

function check({ rules }: Config) {
  const seen = new Map<string, number>();
  return rules.flatMap(({ name }, at) => {
    if (name === "") return [];
    const first = seen.get(name);
    seen.set(name, first ?? at);
    const message = `is already the name of rules[${first}]`;
    return first === undefined ? [] : [{ path: `rules[${at}].name`, message }];
  });
}

export default definePlugin({
  name: "access-policy",
  summary: "Allows, denies or challenges requests by ordered rules",
  description: `Each rule has a condition and an action; the first rule that matches decides:

- \`allow\`: the request continues, and authentication plugins do not run. Those with \`hide_credentials\` still remove their
  credentials; an \`Authorization\` of another scheme reaches the application.
- \`deny\`: the gateway rejects the request.
- \`challenge\`: the authentication plugins of the route run, without their anonymous consumer. A client that none of them has
  authenticated gets 401, also where there is no such plugin. CORS preflight requests carry no credentials and pass, unless an
  authentication plugin has \`run_on_preflight\`.
- \`continue\`: the route's plugins decide, as without a policy.

_Own network or login_: one rule \`allow\` for your own networks, \`default\` \`challenge\`, and an authentication plugin on the same
route.

Rules on consumers or groups need authentication. The rules before the first of them decide before authentication, the others
after it; an \`allow\` after it cannot admit a client that authentication has rejected.

Paths are compared in their most permissive reading, so that \`/admin\` also matches \`//admin\`, \`/%61dmin\` and \`/admin;x\`.
\`country\` and \`asn\` need the databases of \`settings.geoip\`. Addresses are those of clients, after \`settings.trusted_proxies\`.`,
  group: "access",
  order: 8800,
  phases: ["pre_auth", "access"],
  scopes: httpScopes,
  config: schema,
  example: {
    rules: [
      { name: "home", when: { cidr: ["192.168.0.0/16", "127.0.0.0/8"] }, action: "allow" },
      { name: "no-admin", when: { path: ["/admin"] }, action: "deny" },
    ],
    default: "continue",
  },
  onError: "closed",
  ignoresPath: true,
  check,
  create: (own) => new Policy(own),
});

interface Rule {
  readonly decide: Decide;
  readonly holds: (context: RequestContext) => boolean;
  /** Whether it can be evaluated only after authentication. */
  readonly isLate: boolean;
}

type Decide = (context: RequestContext) => Outcome;

/** The state of a request: the rule to resume with, or one of these. */
const DECIDED = -1;
const CHALLENGED = -2;

class Policy {
  readonly #rules: readonly Rule[];
  readonly #default: Decide;

  constructor(own: Config) {
    this.#rules = own.rules.map(({ name, when, action }, at) => ({
      decide: this.#decision(action, name === "" ? `rule-${at + 1}` : name, own),
      holds: compileCondition(when),
      isLate: asksForConsumer(when),
    }));
    this.#default =
      own.default === "continue" && own.rules.length === 0
        ? () => undefined
        : this.#decision(own.default, "default", own);
  }

  readonly preAuth = (context: RequestContext): Outcome => {
    const rules = this.#rules;
    for (let at = 0; at < rules.length; at++) {
      const rule = rules[at];
      if (rule === undefined) continue;
      if (rule.isLate) {
        context.memory.set(this, at);
        return undefined;
      }
      if (rule.holds(context)) return this.#settle(rule.decide, context);
    }
    return this.#settle(this.#default, context);
  };

  readonly access = (context: RequestContext): Outcome => {
    // An instance of the consumer's scope has not run before authentication.
    const from = (context.memory.get(this) as number | undefined) ?? 0;
    if (from === CHALLENGED) return isRecognised(context) ? undefined : UNKNOWN;
    if (from === DECIDED) return undefined;
    const rule = this.#rules.find((each, at) => at >= from && each.holds(context));
    const outcome = (rule?.decide ?? this.#default)(context);
    if (outcome !== undefined) return outcome;
    return context.memory.get(this) === CHALLENGED && !isRecognised(context) ? UNKNOWN : undefined;
  };

  #settle(decide: Decide, context: RequestContext): Outcome {
    context.memory.set(this, DECIDED);
    return decide(context);
  }

  #decision(action: Action, name: string, own: Config): Decide {
    const reason = `policy.${action}:${name}`;
    switch (action) {
      case "allow":
        return (context) => {
          context.authMode = "skip";
          context.note(reason);
          return undefined;
        };
      case "challenge":
        return (context) => {
          context.authMode = "require";
          context.memory.set(this, CHALLENGED);
          context.note(reason);
          return undefined;
        };
      case "continue":
        return (context) => {
          context.note(reason);
          return undefined;
        };
      case "deny":
        return refusal(reason, own);
      default:
        return action satisfies never;
    }
  }
}

function refusal(reason: string, { deny_status: status, deny_body: body }: Config): Decide {
  if (body === null) {
    const rejection = reject(status, reason, { detail: "the request is not allowed" });
    return () => rejection;
  }
  const type = body.trimStart().startsWith("<") ? "text/html" : "text/plain";
  const headers = { "Content-Type": `${type}; charset=utf-8`, "Cache-Control": "no-store" };
  return () => reply(status, reason, { headers, body });
}

/** Preflight requests carry no credentials; authentication plugins decide about them. */
const isRecognised = (context: RequestContext) =>
  (context.isAuthenticated && !context.isAnonymous) || isPreflight(context);

/** RFC 9110 section 15.5.2 requires a challenge even where no scheme is available. */
const UNKNOWN = reject(401, "policy.unknown_client", {
  detail: "authentication is required",
  headers: { "WWW-Authenticate": 'Sluice realm="sluice"' },
});
