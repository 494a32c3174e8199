// Places where requests of Caddy end, as routes with plugins: what they take is widened, narrowed or closed where it matters.
import type { PathMatch } from "../../../model/route.ts";
import { type Document, isDocument } from "../../body.ts";
import type { Output } from "../output.ts";
import type { CaddyContext } from "./caddy.ts";
import { type Choice, choicesFor, type Placed } from "./choices.ts";
import { addProxy } from "./proxy.ts";
import { rewriteFields } from "./rewrite.ts";
import type { Site } from "./routes.ts";
import type { Step } from "./steps.ts";
import { always, type Bounds, conditionOf, isAnything, routeTerms, union } from "./terms.ts";

/** Routes in the order of the sites, which is the order of their priorities. */
export function addSites(sites: readonly Site[], context: CaddyContext): void {
  const chosen = choicesFor(sites, context.output.report);
  for (const [index, { site, choice }] of chosen.entries())
    if (choice === null) leaveOut(site, context.output);
    else addSite(site, choice, { context, priority: chosen.length - index });
}

function leaveOut({ ending, path }: Site, output: Output): void {
  if (ending.kind === "proxy") ending.handler.ignoreRest();
  output.report.leftOut(path, "no route has its conditions: its requests go on to those behind it");
}

interface Position {
  readonly context: CaddyContext;
  readonly priority: number;
}

function addSite(site: Placed, choice: Choice, { context, priority }: Position): void {
  const { output } = context;
  const { scope, key } = site;
  const { fields } = routeTerms(choice.terms);
  const hosts = choice.terms.hosts;
  const paths = fields["paths"] as readonly PathMatch[];
  const wanted = [...hosts.slice(0, 1), scope.name].join(" ").trim() || "everything";
  const name = output.name("routes", site.isRest ? `${wanted} rest` : wanted);
  const label = `route ${name}`;
  const proxy =
    site.ending.kind === "proxy" ? addProxy(site.ending.handler, { context, key }) : null;
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
  output.report.carried(label, `made from ${site.path}`);
  if (choice.isPlain && paths.length > 0)
    output.report.changed(`${label}: paths`, "upper and lower case differ");
  const steps = [...site.answers, ...scope.steps, ...(proxy?.steps ?? []), ...answerOf(site)];
  const isGuarded = choice.refused.length > 0 || steps.some(({ protects: keepsOut }) => keepsOut);
  for (const [index, step] of inOrder(steps, choice.refused).entries())
    output.plugin({
      name: step.name,
      config: step.config,
      protects: step.protects || step.matters === true,
      key: `${key} ${index}`,
      what: `${step.what} for ${label}`,
      scope: { route_id: id },
      ...whenOf(step),
      ...(isGuarded ? priorityOf(step) : {}),
    });
  const lost = scope.lost ?? proxy?.lost ?? choice.closed ?? unguarded(steps);
  if (lost !== null) output.lose({ scope: { route_id: id }, what: lost });
}

function answerOf({ ending, path }: Site): readonly Step[] {
  if (ending.kind === "proxy") return [];
  if (ending.kind === "answer") return [ending.step];
  const config = { status: ending.status };
  return [
    { name: "respond", config, what: `${ending.why}: ${path}`, protects: false, where: always },
  ];
}

const AUTHENTICATION: ReadonlySet<string> = new Set(["basic-auth", "forward-auth"]);
const ANSWERS: ReadonlySet<string> = new Set(["respond", "redirect"]);

const asksWho = (steps: readonly Step[]) => steps.some(({ name }) => AUTHENTICATION.has(name));

/** One policy with all rules, and each step but once. */
function inOrder(steps: readonly Step[], refused: readonly Document[]): readonly Step[] {
  const policies = steps.filter(({ name }) => name === "access-policy");
  const rules = policies.flatMap(({ config }) => config["rules"] as readonly Document[]);
  const first = refused.map((when) => ({ when, action: "deny" }));
  const [policy] = policies;
  const what = policies.map((each) => each.what).join(" and ") || "requests that only look alike";
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
    return [{ ...afterwards(step, steps), where: unionOf(alike) }];
  });
  return [...(first.length + rules.length === 0 ? [] : [whole]), ...others];
}

const strippedOf = ({ name, config, protects }: Step) => ({ name, config, protects });

/** Of the same step in several places, one for all requests that any of them is for. */
function unionOf(steps: readonly Step[]): Bounds {
  const [first] = steps;
  return steps.length === 1 && first !== undefined
    ? first.where
    : union(steps.map(({ where }) => where));
}

/** An answer that is for those who have signed in comes after that. */
function afterwards(step: Step, steps: readonly Step[]): Step {
  if (step.name !== "respond" || !asksWho(steps)) return step;
  return { ...step, config: { ...step.config, after_authentication: true } };
}

/** Redirects are given before anybody is asked who it is. */
const unguarded = (steps: readonly Step[]): string | null =>
  asksWho(steps) && steps.some(({ name }) => name === "redirect")
    ? "authentication in front of a redirect"
    : null;

/** Answers come when everything that keeps clients out has been asked. */
const priorityOf = ({ name }: Step) => (ANSWERS.has(name) ? { priority: 1 } : {});

function whenOf({ where, protects }: Step): { readonly when?: Document } {
  const terms = protects || where.plain === null ? where.over : where.plain;
  const when = isAnything(terms) ? null : conditionOf(terms, "over");
  return when === null || !isDocument(when) || Object.keys(when).length === 0 ? {} : { when };
}
