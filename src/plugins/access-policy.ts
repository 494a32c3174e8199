// access-policy: rules in order say who is let in, who is kept out and who has to sign in.
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
      description: "For the log: `policy.deny:office`; empty: rule-1, rule-2 ...",
    }),
    when: condition("Which requests the rule is about; {}: all"),
    action: oneOf(actions, {
      description:
        "allow: let in without signing in; deny: refuse; challenge: let in whoever signs in; continue: go on as without a policy",
    }),
    comment: t.String({ default: "", maxLength: 1024, description: "For people" }),
  },
  { additionalProperties: false, description: "What becomes of some requests" },
);

const schema = config({
  rules: t.Array(rule, {
    default: [],
    maxItems: 500,
    description: "In order; the first whose condition holds decides, and no other is looked at",
  }),
  default: oneOf(actions, {
    default: "continue",
    description: "What becomes of requests that no rule is about",
  }),
  deny_status: integer(403, {
    minimum: 400,
    maximum: 599,
    description: "Status for those who are refused",
  }),
  deny_body: nullable(
    t.String({
      maxLength: 65_536,
      description:
        "What they are shown, HTML when it begins with <; null: the gateway's page in the form that they like",
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
    const message = `is the name of rules[${first}] already`;
    return first === undefined ? [] : [{ path: `rules[${at}].name`, message }];
  });
}

export default definePlugin({
  name: "access-policy",
  summary: "Says by rules who is let in, who is kept out and who has to sign in",
  description: `Each rule has a condition and an action; the first rule whose condition holds decides:

- \`allow\`: the request goes on, and authentication plugins do not run. What is shown to those with \`hide_credentials\` does not
  reach the application all the same; an \`Authorization\` that is meant for somebody else does.
- \`deny\`: it is refused.
- \`challenge\`: the authentication plugins of the route run, and nobody passes as their stand-in for unknown clients. Whoever
  none of them has recognised gets 401, also where there is no such plugin. Browsers that ask for permission (CORS preflight)
  never sign in and pass, unless an authentication plugin has \`run_on_preflight\`.
- \`continue\`: the route's plugins decide, as if there were no policy.

_From home or with a login_: one rule \`allow\` for your own networks, \`default\` \`challenge\`, and an authentication plugin on
the same route.

A rule that asks for a consumer or a group can only be judged after authentication. So everything up to the first such rule
is decided before, and the rest afterwards; an \`allow\` behind it lets nobody in whom authentication has refused.

Paths are compared in the form in which the most generous server reads them, so \`/admin\` also means \`//admin\`, \`/%61dmin\` and
\`/admin;x\`. \`country\` and \`asn\` need the databases of \`settings.geoip\`. Addresses are those of clients, after
\`settings.trusted_proxies\`.`,
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
  check,
  create: (own) => new Policy(own),
});

interface Rule {
  readonly decide: Decide;
  readonly holds: (context: RequestContext) => boolean;
  /** Whether it can only be judged after authentication. */
  readonly isLate: boolean;
}

type Decide = (context: RequestContext) => Outcome;

/** Where a request stands: the rule to go on with, or one of these. */
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
    // An instance for this consumer alone has not seen the request before.
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
    const answer = reject(status, reason, { detail: "the request is not allowed" });
    return () => answer;
  }
  const type = body.trimStart().startsWith("<") ? "text/html" : "text/plain";
  const headers = { "Content-Type": `${type}; charset=utf-8`, "Cache-Control": "no-store" };
  return () => reply(status, reason, { headers, body });
}

/** Browsers ask for permission without credentials; what authentication plugins ask of them is theirs. */
const isRecognised = (context: RequestContext) =>
  (context.isAuthenticated && !context.isAnonymous) || isPreflight(context);

/** RFC 9110 section 15.5.2 demands a scheme even where there is none to sign in with. */
const UNKNOWN = reject(401, "policy.unknown_client", {
  detail: "nobody has recognised the client",
  headers: { "WWW-Authenticate": 'Sluice realm="sluice"' },
});
