// Follows the handler lists of Caddy's routes to their terminal handlers; knows no route of the gateway.
import type { Document } from "../../control/body.ts";
import type { Members } from "../members.ts";
import { responses } from "./responses.ts";
import type { CaddyContext } from "./caddy.ts";
import { type Match, readMatch, type View } from "./matching.ts";
import { liesBelow } from "./paths.ts";
import { composed, readRewrite, replacementOf, type Rewrite } from "./rewrite.ts";
import { stepsOf, type Step } from "./steps.ts";
import { always, type Bounds, both, isAnything, union } from "./terms.ts";

/** State of requests at a position in the configuration. */
export interface Scope {
  readonly bounds: Bounds;
  readonly view: View;
  readonly steps: readonly Step[];
  readonly rewrite: Rewrite | null;
  /** A protection that could not be imported. */
  readonly lost: string | null;
  /** Whether matchers without an equivalent may identify the client. */
  readonly mayIdentifyClient: boolean;
  /** Fields of every route. */
  readonly fields: Document;
  /** The nearest path pattern of the source, for names. */
  readonly name: string;
}

/** How the gateway serves requests of a site. */
export type Ending =
  | { readonly kind: "proxy"; readonly handler: Members }
  | { readonly kind: "response"; readonly step: Step }
  /** The route serves nothing. */
  | { readonly kind: "closed"; readonly status: 404 | 503; readonly why: string };

/** A terminal handler, in the order of Caddy. */
export interface Site {
  readonly key: string;
  /** Path in the source. */
  readonly path: string;
  readonly scope: Scope;
  readonly ending: Ending;
  /** Whether it represents the requests that a handler list does not serve. */
  readonly isRest: boolean;
}

export interface Walk {
  readonly context: CaddyContext;
  readonly sites: Site[];
  readonly key: string;
  readonly depth: number;
}

/** The requests that pass some handlers. */
interface Passed {
  readonly scope: Scope;
  /** Whether no request passes. */
  readonly isDone: boolean;
}

const MAX_DEPTH = 30;

/** Handlers of earlier routes also apply to later ones. */
export function addRoutes(routes: readonly Members[], outer: Scope, walk: Walk): Passed {
  const groups = new Map<string, Site[]>();
  let scope = outer;
  let isDone = false;
  for (const [index, route] of routes.entries()) {
    route.raw("@id");
    const inner = { ...walk, key: `${walk.key} ${index}`, depth: walk.depth + 1 };
    if (walk.depth > MAX_DEPTH) {
      route.drop("the nesting is too deep");
      scope = { ...scope, lost: `${route.path}, which is nested too deeply` };
      continue;
    }
    const group = route.text("group");
    const earlier = group === null ? [] : (groups.get(group) ?? []);
    // In a group, only the first matching route handles a request.
    walk.sites.push(...earlier.splice(0));
    const added = addRoute(route, scope, inner);
    scope = added.scope;
    isDone ||= added.isDone;
    if (group !== null && added.rest.length > 0) groups.set(group, [...earlier, ...added.rest]);
    if (route.flag("terminal") === true) walk.sites.push(...added.rest);
  }
  return { scope, isDone };
}

/** Requests that pass the route, and those that it matches without serving them. */
function addRoute(
  route: Members,
  scope: Scope,
  walk: Walk,
): Passed & { readonly rest: readonly Site[] } {
  const handlers = route.objects("handle");
  const matches = matchesOf(route, scope);
  const isTerminal = route.flag("terminal") === true;
  const own = union(matches.map(({ bounds }) => bounds));
  let passed: Passed | null = null;
  const rest: Site[] = [];
  for (const [index, match] of matches.entries()) {
    const inner = { ...walk, key: `${walk.key}.${index}` };
    const [pattern = null] = match.view.patterns;
    const inside = {
      ...scope,
      bounds: both(scope.bounds, match.bounds),
      view: match.view,
      mayIdentifyClient: scope.mayIdentifyClient || match.mayIdentifyClient,
      name: pattern === null ? scope.name : pattern.replace(/\/?\*$/, ""),
    };
    const behind = addHandlers(handlers, inside, inner);
    passed ??= behind;
    if (!behind.isDone) rest.push(restOf(inside, { route, key: inner.key }));
  }
  if (passed === null) {
    for (const handler of handlers) handler.ignoreRest();
    return { scope, isDone: false, rest };
  }
  const isAll = own.under !== null && isAnything(own.under);
  const isDone = isAll && (passed.isDone || isTerminal);
  if (passed.isDone || isTerminal) return { scope, isDone, rest };
  return { scope: behindOf(scope, { passed: passed.scope, own, isAll, route }), isDone, rest };
}

function matchesOf(route: Members, { view }: Scope): readonly Match[] {
  const sets = route.objects("match");
  if (sets.length === 0) return [{ bounds: always, view, unknown: [], mayIdentifyClient: false }];
  return sets.flatMap((set) => {
    const match = readMatch(set, view);
    if (match.unknown.length > 0)
      set.report.omitted(
        `${set.path}: ${match.unknown.join(", ")}`,
        "a route cannot have these conditions: what they deny is denied more widely",
      );
    if (!match.bounds.isNever) return [match];
    set.report.omitted(set.path, "no request matches these conditions");
    return [];
  });
}

const restOf = (
  scope: Scope,
  { route, key }: { readonly route: Members; readonly key: string },
): Site => ({
  key: `${key} rest`,
  path: route.path,
  scope,
  isRest: true,
  ending: {
    kind: "closed",
    status: 404,
    why: `requests that ${route.path} matches but does not serve`,
  },
});

interface Behind {
  readonly passed: Scope;
  readonly own: Bounds;
  /** Whether every request passed. */
  readonly isAll: boolean;
  readonly route: Members;
}

/** The state after a route that only some requests passed. */
function behindOf(scope: Scope, { passed, own, isAll, route }: Behind): Scope {
  const added = passed.steps.slice(scope.steps.length);
  const steps = added.map((step) => ({ ...step, where: both(own, step.where) }));
  const isRewritten = !Bun.deepEquals(passed.rewrite, scope.rewrite);
  const lost = passed.lost ?? scope.lost;
  if (isAll) return { ...passed, bounds: scope.bounds, steps: [...scope.steps, ...steps], lost };
  const isElsewhere = !Bun.deepEquals(passed.view.path, scope.view.path);
  const view: View = {
    ...scope.view,
    path: isElsewhere ? "unknown" : scope.view.path,
    patterns: isElsewhere ? [] : scope.view.patterns,
    changedFields: passed.view.changedFields,
    isMethodChanged: passed.view.isMethodChanged,
    isQueryChanged: passed.view.isQueryChanged,
  };
  const behind = { ...scope, view, steps: [...scope.steps, ...steps], lost };
  if (!isRewritten) return behind;
  const what = `the rewrite at ${route.path}`;
  // A route rewrites all requests or none, so a plugin rewrites some, and then the route does not.
  if (scope.rewrite !== null || passed.rewrite === null) return { ...behind, lost: lost ?? what };
  const config = { request: { path_rewrite: replacementOf(passed.rewrite) } };
  const step = { name: "transform", config, what, protects: true, where: own };
  return { ...behind, steps: [...behind.steps, step] };
}

function addHandlers(handlers: readonly Members[], outer: Scope, walk: Walk): Passed {
  let scope = outer;
  let isDone = false;
  for (const [index, handler] of handlers.entries()) {
    const inner = { ...walk, key: `${walk.key}/${index}` };
    if (isDone) {
      handler.drop("no request reaches it");
      continue;
    }
    const passed = addHandler(handler, scope, inner);
    scope = passed.scope;
    isDone = passed.isDone;
  }
  return { scope, isDone };
}

function addHandler(handler: Members, scope: Scope, walk: Walk): Passed {
  const kind = handler.text("handler") ?? "";
  const { key } = walk;
  const end = (ending: Ending): Passed => {
    walk.sites.push({ key, path: handler.path, scope, ending, isRest: false });
    return { scope, isDone: true };
  };
  if (kind === "subroute") {
    handler.omit("errors", "use the plugin error-pages");
    return addRoutes(handler.objects("routes"), scope, walk);
  }
  if (kind === "rewrite") return { scope: rewritten(handler, scope), isDone: false };
  if (kind === "reverse_proxy" && !handler.has("handle_response"))
    return end({ kind: "proxy", handler });
  if (Object.hasOwn(responses, kind)) {
    const step = responses[kind]?.(handler) ?? null;
    const why = `${kind} at ${handler.path}, which has no equivalent`;
    return end(step === null ? { kind: "closed", status: 503, why } : { kind: "response", step });
  }
  const { steps, lost, changes } = stepsOf(kind, handler);
  const changedFields = [...new Set([...scope.view.changedFields, ...changes])];
  const view = { ...scope.view, changedFields };
  return {
    scope: { ...scope, view, steps: [...scope.steps, ...steps], lost: lost ?? scope.lost },
    isDone: false,
  };
}

function rewritten(handler: Members, scope: Scope): Scope {
  const { rewrite, method, lost } = readRewrite(handler);
  const next = rewrite === null ? scope.rewrite : composed(scope.rewrite, rewrite);
  const isLost = rewrite !== null && next === null;
  const what = `method of the rewrite at ${handler.path}`;
  const step: Step = {
    name: "transform",
    config: { request: { method } },
    what,
    protects: true,
    where: always,
  };
  return {
    ...scope,
    rewrite: next ?? scope.rewrite,
    lost: (isLost ? `the second rewrite at ${handler.path}` : lost) ?? scope.lost,
    steps: method === null ? scope.steps : [...scope.steps, step],
    view: viewBehind(scope.view, rewrite, { isOdd: lost !== null, changesMethod: method !== null }),
  };
}

function viewBehind(
  view: View,
  rewrite: Rewrite | null,
  { isOdd, changesMethod }: { readonly isOdd: boolean; readonly changesMethod: boolean },
): View {
  const isMethodChanged = view.isMethodChanged || changesMethod;
  const isQueryChanged = view.isQueryChanged || isOdd;
  if (rewrite === null && !isOdd) return { ...view, isMethodChanged };
  const changed = { ...view, isMethodChanged, isQueryChanged, patterns: [] };
  if (isOdd || rewrite?.kind !== "strip" || view.path !== "sent")
    return { ...changed, path: "unknown" };
  const { prefix } = rewrite;
  const isSure =
    view.patterns.length > 0 && view.patterns.every((pattern) => liesBelow(pattern, `${prefix}*`));
  return { ...changed, path: { prefix, isSure } };
}
