// Routes of Caddy: lists of handlers that a request passes in turn, as routes that end somewhere with the plugins on the way.
import type { Document } from "../../body.ts";
import type { Members } from "../members.ts";
import type { CaddyContext } from "./caddy.ts";
import { answers } from "./answers.ts";
import { anything, both, conditionOf, type Match, readMatch, readNegated } from "./matching.ts";
import { addProxy } from "./proxy.ts";
import { type Rewrite, readRewrite, rewriteFields } from "./rewrite.ts";
import { stepsOf, type Step } from "./steps.ts";

/** A route that was made. */
export interface Site {
  readonly id: string;
  readonly hosts: readonly string[];
}

/** What holds at a place in the configuration. */
export interface Scope {
  readonly match: Match;
  readonly steps: readonly Step[];
  readonly rewrite: Rewrite | null;
  /** A protection that could not be carried over. */
  readonly lost: string | null;
  /** Fields of all routes. */
  readonly fields: Document;
}

export interface Walk {
  readonly context: CaddyContext;
  readonly sites: Site[];
  readonly key: string;
  readonly depth: number;
}

const MAX_DEPTH = 30;

/** Handlers of the ones before hold for those that follow. */
export function addRoutes(routes: readonly Members[], outer: Scope, walk: Walk): void {
  let scope = outer;
  for (const [index, route] of routes.entries()) {
    for (const name of ["group", "@id"]) route.raw(name);
    const isLast = route.flag("terminal") ?? false;
    const inner = { ...walk, key: `${walk.key} ${index}`, depth: walk.depth + 1 };
    if (walk.depth > MAX_DEPTH) route.drop("it is nested too deeply");
    else {
      const after = addRoute(route, scope, inner);
      // Its requests do not get to the ones behind it.
      if (!isLast) scope = after;
    }
  }
}

/** What holds for the routes behind it. */
function addRoute(route: Members, scope: Scope, walk: Walk): Scope {
  const sets = route.objects("match");
  const handlers = route.objects("handle");
  if (sets.length === 0) return addHandlers(handlers, { scope, own: anything }, walk);
  let after = scope;
  for (const [index, set] of sets.entries()) {
    const inner = { ...walk, key: `${walk.key}.${index}` };
    const match = readMatch(set);
    const own = match === null ? null : both(scope.match, match);
    if (match !== null && own !== null) {
      const below = { ...after, match: own };
      const result = addHandlers(handlers, { scope: below, own: match }, inner);
      after = { ...result, match: scope.match };
    } else after = withoutMatch(set, handlers, { scope: after, walk: inner });
  }
  return after;
}

/** A matcher that no route can have: what keeps clients out must not be lost by that. */
function withoutMatch(
  set: Members,
  handlers: readonly Members[],
  { scope, walk }: { readonly scope: Scope; readonly walk: Walk },
): Scope {
  const names = set.names.join(", ");
  const negated = readNegated(set);
  const [only] = handlers;
  const status = handlers.length === 1 && only !== undefined ? refusalOf(only) : null;
  const what = `${set.path}: ${names}`;
  if (negated !== null && status !== null) {
    const rules = [{ when: negated.when, action: "deny" }];
    const body = only?.raw("body") ?? null;
    const config = { rules, deny_status: status, ...(body === null ? {} : { deny_body: body }) };
    return {
      ...scope,
      steps: [...scope.steps, { name: "access-policy", config, what, protects: true, when: null }],
    };
  }
  set.ignoreRest();
  const kinds = handlers.map((handler) => handler.text("handler") ?? "");
  for (const handler of handlers) handler.ignoreRest();
  walk.context.output.report.leftOut(what, `no route has these conditions: ${kinds.join(", ")}`);
  const isHarmless = kinds.every((kind) => HARMLESS.includes(kind));
  return isHarmless ? scope : { ...scope, lost: what };
}

const HARMLESS = ["reverse_proxy", "file_server", "headers", "encode", "rewrite", "vars"];

/** The status of a handler that turns clients away. */
function refusalOf(handler: Members): number | null {
  const kind = handler.text("handler");
  const status = Number(handler.raw("status_code") ?? (kind === "error" ? 500 : 200));
  if (kind === "static_response" && handler.flag("abort") === true) return 403;
  if (kind !== "static_response" && kind !== "error") return null;
  return status >= 400 && status <= 599 ? status : null;
}

interface Place {
  readonly scope: Scope;
  /** What the route itself asks for: in front of plugins that go on behind it. */
  readonly own: Match;
}

function addHandlers(handlers: readonly Members[], { scope, own }: Place, walk: Walk): Scope {
  let inside = scope;
  let after = scope;
  let hasEnded = false;
  for (const [index, handler] of handlers.entries()) {
    const kind = handler.text("handler") ?? "";
    const inner = { ...walk, key: `${walk.key}/${index}` };
    if (kind === "subroute") {
      handler.leaveOut("errors", "use the plugin error-pages");
      addRoutes(handler.objects("routes"), inside, inner);
    } else if (kind === "rewrite") {
      const rewrite = readRewrite(handler);
      inside = { ...inside, rewrite: rewrite ?? inside.rewrite };
      if (conditionOf(own) === null) after = { ...after, rewrite: inside.rewrite };
    } else if (kind === "reverse_proxy" && !handler.has("handle_response")) {
      hasEnded = true;
      const { serviceId, steps } = addProxy(handler, inner);
      addSite(
        handler,
        { ...inside, steps: [...inside.steps, ...steps] },
        { serviceId, walk: inner },
      );
    } else if (Object.hasOwn(answers, kind)) {
      hasEnded = true;
      const step = answers[kind]?.(handler);
      if (step !== null && step !== undefined)
        addSite(
          handler,
          { ...inside, steps: [...inside.steps, step] },
          { serviceId: null, walk: inner },
        );
    } else {
      const { steps, lost } = stepsOf(kind, handler);
      inside = { ...inside, steps: [...inside.steps, ...steps], lost: lost ?? inside.lost };
      const when = conditionOf(own);
      const behind = steps.map((step) => ({ ...step, when }));
      after = { ...after, steps: [...after.steps, ...behind], lost: lost ?? after.lost };
    }
  }
  return hasEnded ? scope : after;
}

function addSite(
  handler: Members,
  scope: Scope,
  { serviceId, walk }: { readonly serviceId: string | null; readonly walk: Walk },
): void {
  const { output } = walk.context;
  const { match, steps, rewrite, lost, fields } = scope;
  const words = [...match.hosts.slice(0, 1), ...match.paths.slice(0, 1).map(({ value }) => value)];
  const wanted = words.join(" ") || "everything";
  const name = output.name("routes", wanted);
  const label = `route ${name}`;
  const { protocols, ...conditions } = match;
  const id = output.add(
    "routes",
    { key: walk.key, label },
    {
      ...{ name, service_id: serviceId },
      ...conditions,
      ...(protocols.length === 0 ? fields : { protocols }),
      ...(protocols.length === 0 || fields["listener_ids"] === undefined
        ? {}
        : { listener_ids: fields["listener_ids"] }),
      ...rewriteFields(rewrite, match),
    },
  );
  output.report.carried(label, `made from ${handler.path}`);
  walk.sites.push({ id, hosts: match.hosts });
  for (const [index, step] of steps.entries())
    output.plugin({
      ...{ name: step.name, config: step.config, protects: step.protects },
      ...{ key: `${walk.key} ${index}`, what: `${step.what} for ${label}` },
      ...{ scope: { route_id: id }, ...(step.when === null ? {} : { when: step.when }) },
    });
  if (lost !== null) output.lose({ scope: { route_id: id }, what: lost });
}
