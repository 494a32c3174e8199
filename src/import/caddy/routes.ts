// Follows the handler lists of Caddy's routes to their terminal handlers; knows no route of the gateway.
import { type Document, isDocument } from "../../control/body.ts";
import { ApiError } from "../../model/error.ts";
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
  /** Hosts and paths, or the server, for the report. */
  readonly place: string;
  /** Hosts of the outermost route, for which Caddy requests certificates. */
  readonly outerHosts: readonly string[];
}

/** How the gateway serves requests of a site. */
export type Ending =
  | { readonly kind: "proxy"; readonly handler: Members }
  | { readonly kind: "response"; readonly step: Step }
  /** The route serves nothing. */
  | { readonly kind: "closed"; readonly status: 404 | 503 };

/** A terminal handler, in the order of Caddy. */
export interface Site {
  readonly key: string;
  /** Its name in the report: `file_server at a.example.com /files/*`. */
  readonly label: string;
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
  /** Handlers that may still be followed, in all routes. */
  readonly budget: { left: number };
  /** Routes that the handler `invoke` names. */
  readonly named: Members | null;
}

/** The requests that pass some handlers. */
interface Passed {
  readonly scope: Scope;
  /** Whether no request passes. */
  readonly isDone: boolean;
}

const MAX_DEPTH = 30;
/** Alternative matchers of nested routes, and routes that are invoked several times, multiply handlers. */
export const MAX_HANDLERS = 100_000;

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
      scope = { ...scope, lost: `a route at ${scope.place}, which is nested too deeply` };
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
    const bounds = both(scope.bounds, match.bounds);
    const inside = {
      ...scope,
      bounds,
      view: match.view,
      mayIdentifyClient: scope.mayIdentifyClient || match.mayIdentifyClient,
      name: pattern === null ? scope.name : pattern.replace(/\/?\*$/, ""),
      place: placeOf(scope, bounds.over.hosts, match.view.patterns),
      outerHosts: walk.depth === 1 ? bounds.over.hosts : scope.outerHosts,
    };
    const behind = addHandlers(handlers, inside, inner);
    passed ??= behind;
    if (!behind.isDone) rest.push(restOf(inside, inner.key));
  }
  if (passed === null) {
    for (const handler of handlers) handler.ignoreRest();
    return { scope, isDone: false, rest };
  }
  const isAll = own.under !== null && isAnything(own.under);
  const isDone = isAll && (passed.isDone || isTerminal);
  if (passed.isDone || isTerminal) return { scope, isDone, rest };
  return { scope: behindOf(scope, { passed: passed.scope, own, isAll }), isDone, rest };
}

/** `a.example.com, b.example.com /api/*`. */
function placeOf(outer: Scope, hosts: readonly string[], patterns: readonly string[]): string {
  const site = hosts.length > 0 ? some(hosts, ", ") : outer.place.replace(/ \/.*$/, "");
  return patterns.length > 0 ? `${site} ${some(patterns, " ")}` : site;
}

const some = (words: readonly string[], between: string): string =>
  words.length <= 10
    ? words.join(between)
    : `${words.slice(0, 10).join(between)} and ${words.length - 10} more`;

function matchesOf(route: Members, scope: Scope): readonly Match[] {
  const { view } = scope;
  const sets = route.objects("match");
  if (sets.length === 0) return [{ bounds: always, view, unknown: [], mayIdentifyClient: false }];
  return sets.flatMap((set) => {
    const hosts = set.has("host") ? set.texts("host") : scope.bounds.over.hosts;
    const place = placeOf(scope, hosts, set.has("path") ? set.texts("path") : []);
    set.setLabel(`conditions at ${place}`);
    const match = readMatch(set, view);
    if (match.unknown.length > 0)
      set.report.omitted(
        `${set.label}: ${match.unknown.join(", ")}`,
        "a route cannot have these conditions: what they deny is denied more widely",
      );
    if (!match.bounds.isNever) return [match];
    set.report.omitted(set.label, "no request matches these conditions");
    return [];
  });
}

const restOf = (scope: Scope, key: string): Site => ({
  key: `${key} rest`,
  label: `requests that nothing serves at ${scope.place}`,
  scope,
  isRest: true,
  ending: { kind: "closed", status: 404 },
});

interface Behind {
  readonly passed: Scope;
  readonly own: Bounds;
  /** Whether every request passed. */
  readonly isAll: boolean;
}

/** The state after a route that only some requests passed. */
function behindOf(scope: Scope, { passed, own, isAll }: Behind): Scope {
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
  const what = `the rewrite of some paths at ${scope.place}`;
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

/** Directives of a Caddyfile that stand for handlers of another name. */
const DIRECTIVES: Readonly<Record<string, string>> = {
  static_response: "respond",
  headers: "header",
  authentication: "basic_auth",
  subroute: "handle",
};

function directiveOf(kind: string, handler: Members): string {
  if (kind !== "reverse_proxy") return DIRECTIVES[kind] ?? kind;
  const word = isFastCgi(handler)
    ? "php_fastcgi"
    : handler.has("handle_response")
      ? "forward_auth"
      : kind;
  const dials = handler.list("upstreams").map((upstream) => Object(upstream)["dial"] ?? "");
  return [word, ...dials].join(" ");
}

function addHandler(handler: Members, scope: Scope, walk: Walk): Passed {
  const kind = handler.text("handler") ?? "";
  const { key } = walk;
  handler.setLabel(`${directiveOf(kind, handler)} at ${scope.place}`);
  walk.budget.left -= 1;
  if (walk.budget.left < 0)
    throw new ApiError(400, `the routes have more than ${MAX_HANDLERS} handlers`);
  const end = (ending: Ending, at: Scope): Passed => {
    walk.sites.push({ key, label: handler.label, scope: at, ending, isRest: false });
    return { scope, isDone: true };
  };
  if (kind === "subroute") {
    handler.omit("errors", "use the plugin error-pages");
    return addRoutes(handler.objects("routes"), scope, walk);
  }
  if (kind === "invoke") return invoked(handler, scope, walk);
  if (kind === "rewrite") return { scope: rewritten(handler, scope), isDone: false };
  if (kind === "reverse_proxy" && isFastCgi(handler)) {
    handler.drop("this gateway does not support FastCGI: add a web server as a target");
    return end({ kind: "closed", status: 503 }, scope);
  }
  if (kind === "reverse_proxy" && !handler.has("handle_response")) {
    const rewrite = handler.object("rewrite");
    return end({ kind: "proxy", handler }, rewrite === null ? scope : rewritten(rewrite, scope));
  }
  if (Object.hasOwn(responses, kind)) {
    const { over } = scope.bounds;
    const isSent = scope.rewrite === null && scope.view.path === "sent";
    const step = responses[kind]?.(handler, { hosts: over.hosts, isSent }) ?? null;
    return end(step === null ? { kind: "closed", status: 503 } : { kind: "response", step }, scope);
  }
  const { steps, lost, changes } = stepsOf(kind, handler);
  const changedFields = [...new Set([...scope.view.changedFields, ...changes])];
  const view = { ...scope.view, changedFields };
  return {
    scope: { ...scope, view, steps: [...scope.steps, ...steps], lost: lost ?? scope.lost },
    isDone: false,
  };
}

/** Read raw: the object takes the label of the handler, which is not set yet. */
function isFastCgi(handler: Members): boolean {
  const transport = handler.raw("transport");
  return isDocument(transport) && (transport["protocol"] ?? "http") !== "http";
}

/** The named route in the place of the handler. */
function invoked(handler: Members, scope: Scope, walk: Walk): Passed {
  const name = handler.text("name") ?? "";
  const route = walk.named?.object(name) ?? null;
  if (route !== null) return addRoutes([route], scope, walk);
  handler.drop(`there is no route ${name}`);
  return { scope: { ...scope, lost: handler.label }, isDone: false };
}

function rewritten(handler: Members, scope: Scope): Scope {
  const { rewrite, method, lost } = readRewrite(handler);
  const next = rewrite === null ? scope.rewrite : composed(scope.rewrite, rewrite);
  const isLost = rewrite !== null && next === null;
  const what = `method of the rewrite at ${scope.place}`;
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
    lost: (isLost ? `the second rewrite at ${scope.place}` : lost) ?? scope.lost,
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
