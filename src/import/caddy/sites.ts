// Converts sites of Caddy to routes with plugins; widens, narrows or closes their conditions where access depends on it.
import type { PathMatch } from "../../model/route-match.ts";
import { type Document, isDocument } from "../../control/body.ts";
import type { Output } from "../output.ts";
import type { CaddyContext } from "./caddy.ts";
import { type Choice, choicesFor, type ResolvedSite } from "./choices.ts";
import { addProxy } from "./proxy.ts";
import { rewriteFields } from "./rewrite.ts";
import type { Site } from "./routes.ts";
import type { Step } from "./steps.ts";
import { always, type Bounds, conditionOf, isAnything, routeTerms, union } from "./terms.ts";

/** Adds routes in the order of the sites, with descending priorities. */
export function addSites(sites: readonly Site[], context: CaddyContext): void {
  const chosen = choicesFor(sites, context.output.report);
  for (const [index, { site, choice }] of chosen.entries())
    if (choice === null) omit(site, context.output);
    else addSite(site, choice, { context, priority: chosen.length - index });
}

function omit({ ending, label }: Site, output: Output): void {
  if (ending.kind === "proxy") ending.handler.ignoreRest();
  output.report.omitted(
    label,
    "a route cannot have its conditions: later routes may match its requests",
  );
}

interface Position {
  readonly context: CaddyContext;
  readonly priority: number;
}

function addSite(site: ResolvedSite, choice: Choice, { context, priority }: Position): void {
  const { output } = context;
  const { scope, key } = site;
  const { fields } = routeTerms(choice.terms);
  const { hosts } = choice.terms;
  const paths = fields["paths"] as readonly PathMatch[];
  const below = scope.name.replaceAll(/^\/|[^\w.~-]*$/g, "").replaceAll("/", "-");
  const wanted = [...hosts.slice(0, 1), below].join(" ").trim() || "everything";
  const name = output.name("routes", site.isRest ? `${wanted} rest` : wanted);
  const label = `route ${name}`;
  const proxy =
    site.ending.kind === "proxy"
      ? addProxy(site.ending.handler, { context, key, place: scope.place })
      : null;
  const { protocols: scheme, ...common } = scope.fields;
  const id = output.add(
    "routes",
    { key, label, protects: choice.protects },
    {
      name,
      service_id: proxy?.serviceId ?? null,
      priority,
      ...common,
      ...(scheme === undefined ? {} : { protocols: scheme }),
      ...fields,
      ...rewriteFields(scope.rewrite, paths),
    },
  );
  output.report.imported(label, `made from ${site.label}`);
  const own = [...scope.steps, ...(proxy?.steps ?? []), ...responseOf(site)];
  const steps = [...site.responses.flatMap(withRefusal), ...own];
  const isProtected = choice.denied.length > 0 || steps.some((step) => step.protects);
  for (const [index, step] of inOrder(steps, choice.denied).entries())
    output.plugin({
      name: step.name,
      config: step.config,
      protects: step.protects || step.matters === true,
      key: `${key} ${index}`,
      what: `${step.what} for ${label}`,
      scope: { route_id: id },
      ...whenOf(step),
      ...(isProtected ? priorityOf(step) : {}),
    });
  const lost = scope.lost ?? proxy?.lost ?? choice.closed ?? bypassedAuthentication(own);
  // It allows no client, and the report has its reason.
  if (site.ending.kind === "closed") return;
  if (lost !== null) output.loseProtection({ scope: { route_id: id }, what: lost });
}

function responseOf({ ending, label }: Site): readonly Step[] {
  if (ending.kind === "proxy") return [];
  if (ending.kind === "response") return [ending.step];
  const config = { status: ending.status };
  return [{ name: "respond", config, what: label, protects: false, where: always }];
}

const AUTHENTICATION: ReadonlySet<string> = new Set(["basic-auth", "forward-auth"]);
const RESPONSES: ReadonlySet<string> = new Set(["respond", "redirect"]);

const requiresAuthentication = (steps: readonly Step[]) =>
  steps.some(({ name }) => AUTHENTICATION.has(name));

/** Merges the policies and removes duplicate steps. */
function inOrder(steps: readonly Step[], denied: readonly Document[]): readonly Step[] {
  const policies = steps.filter(({ name }) => name === "access-policy");
  const rules = policies.flatMap(({ config }) => config["rules"] as readonly Document[]);
  const first = denied.map((when) => ({ when, action: "deny" }));
  const policy = policies.find(({ config }) => "deny_status" in config) ?? policies[0];
  const what = policies.map((each) => each.what).join(" and ") || "similar requests";
  const whole: Step = {
    name: "access-policy",
    what,
    protects: true,
    where: always,
    config: { ...policy?.config, rules: [...first, ...rules] },
  };
  const rest = steps.filter(({ name }) => name !== "access-policy");
  const isRepeated = (step: Step, at: number) =>
    rest.findIndex((other) => Bun.deepEquals(strippedOf(other), strippedOf(step))) !== at;
  const others = rest.flatMap((step, at) => {
    if (isRepeated(step, at)) return [];
    const alike = rest.filter((other) => Bun.deepEquals(strippedOf(other), strippedOf(step)));
    // Where a route has the redirects of several sites, the policy behind it denies the requests of the others.
    const where = step.isFirst === true ? step.where : unionOf(alike);
    return [{ ...afterwards(step, steps), where }];
  });
  return [...(first.length + rules.length === 0 ? [] : [whole]), ...others];
}

const strippedOf = ({ name, config, protects }: Step) => ({ name, config, protects });

/** The union of the conditions of equal steps. */
function unionOf(steps: readonly Step[]): Bounds {
  const [first] = steps;
  return steps.length === 1 && first !== undefined
    ? first.where
    : union(steps.map(({ where }) => where));
}

/** A response for authenticated clients runs after authentication. */
function afterwards(step: Step, steps: readonly Step[]): Step {
  if (step.name !== "respond" || !requiresAuthentication(steps)) return step;
  return { ...step, config: { ...step.config, after_authentication: true } };
}

/** The plugin redirect runs before authentication. */
const bypassedAuthentication = (steps: readonly Step[]): string | null =>
  requiresAuthentication(steps) && steps.some(({ name }) => name === "redirect")
    ? "authentication before a redirect"
    : null;

/**
 * The plugin redirect passes requests that are already at their destination, which Caddy redirects again: a policy behind it
 * denies them.
 */
function withRefusal(step: Step): readonly Step[] {
  if (step.name !== "redirect") return [step];
  const when = conditionOf(step.where.over, "over");
  const config = { rules: [{ when, action: "deny" }] };
  const policy: Step = { ...step, name: "access-policy", config, where: always };
  return [{ ...step, protects: false, isFirst: true }, policy];
}

/** Responses run after all plugins that deny access. */
const priorityOf = ({ name, isFirst }: Step) =>
  RESPONSES.has(name) && isFirst !== true ? { priority: 1 } : {};

function whenOf({ where, protects }: Step): { readonly when?: Document } {
  const terms = protects || where.plain === null ? where.over : where.plain;
  const when = isAnything(terms) ? null : conditionOf(terms, "over");
  return when === null || !isDocument(when) || Object.keys(when).length === 0 ? {} : { when };
}
