// Chooses for each site of Caddy the conditions of a route that matches neither more nor fewer requests than is safe.
import { type Document, isDocument } from "../../control/body.ts";
import { type ProtectedRoute, type Exposure, exposuresInOrder, shareHosts } from "../exposure.ts";
import type { Report } from "../report.ts";
import type { Site } from "./routes.ts";
import type { Step } from "./steps.ts";
import { always, anything, conditionOf, routeTerms, type Terms } from "./terms.ts";

/** A site with the responses of earlier sites whose conditions no route can express. */
export interface ResolvedSite extends Site {
  readonly responses: readonly Step[];
}

/** Conditions of a route. */
export interface Choice {
  readonly terms: Terms;
  /** Conditions of requests to deny: the route matches them, the site does not. */
  readonly denied: readonly Document[];
  /** Why the route denies all requests; null: it does not. */
  readonly closed: string | null;
  /** Whether clients could gain access without the route. */
  readonly protects: boolean;
}

export interface Chosen {
  readonly site: ResolvedSite;
  /** Null: the site is omitted, and later routes may match its requests. */
  readonly choice: Choice | null;
}

export function choicesFor(sites: readonly Site[], report: Report): readonly Chosen[] {
  const placed = withoutRedundant(withResponsesOfEarlier(sites, report));
  const protectedHosts = sites.filter(isProtected).map(({ scope }) => scope.bounds.over.hosts);
  const found = exposuresInOrder(placed.map(exposedOf), protectedHosts);
  return placed.map((site, at) => ({
    site,
    choice: choiceOf(site, found[at] ?? { mustNotWiden: true, mustNotNarrow: true }),
  }));
}

/** Whether clients are turned away. */
const isRefusal = ({ ending }: Site): boolean =>
  ending.kind === "closed" ||
  (ending.kind === "response" && Number(ending.step.config["status"]) >= 400);

/** Moves sites whose conditions no route can express to plugins of later routes, which respond or deny. */
function withResponsesOfEarlier(sites: readonly Site[], report: Report): readonly ResolvedSite[] {
  const kept: ResolvedSite[] = [];
  const behind: { readonly site: Site; readonly step: Step }[] = [];
  const isFor = (site: Site) => (other: Site) =>
    shareHosts(site.scope.bounds.over.hosts, other.scope.bounds.over.hosts);
  const some = sites.filter(({ scope }) => !scope.bounds.isNever);
  for (const [at, site] of some.entries()) {
    const own = behind.filter((each) => isFor(site)(each.site)).map(({ step }) => step);
    const isLast = !some.slice(at + 1).some(isFor(site));
    if (isExpressible(site) || (isLast && site.ending.kind === "proxy")) {
      kept.push({ ...site, responses: isRefusal(site) ? [] : own });
      continue;
    }
    behind.push({ site, step: stepFor(site) });
    if (site.ending.kind === "proxy") site.ending.handler.ignoreRest();
    const why = "a plugin of later routes responds";
    if (isRefusal(site)) report.imported(site.label, why);
    else report.changed(site.label, `a route cannot have its conditions: ${why}`);
  }
  return kept;
}

/** Whether a route can have the conditions, or safe wider ones. */
function isExpressible({ scope: { bounds }, ending }: Site): boolean {
  const { over, under, plain } = bounds;
  if (over.not.length === 0) return true;
  const isWhole = (terms: Terms | null) => terms !== null && routeTerms(terms).isWhole;
  return ending.kind === "proxy" && (isWhole(plain) || isWhole(under));
}

/** The response of a site as a plugin. */
function stepFor({ scope, ending, label }: Site): Step {
  const where = scope.bounds;
  const when = conditionOf(where.over, "over");
  const config = ending.kind === "response" ? ending.step.config : {};
  const status = ending.kind === "closed" ? ending.status : Number(config["status"] ?? 403);
  // A later route may lack the protections of the site.
  const isOpen = scope.lost === null && scope.steps.every(({ protects }) => !protects);
  if (ending.kind === "response" && !(status >= 400) && isOpen)
    return { ...ending.step, protects: true, where };
  const body = status >= 400 ? (config["body"] ?? null) : null;
  return {
    name: "access-policy",
    what: label,
    protects: true,
    where: always,
    config: {
      rules: [{ when, action: "deny" }],
      deny_status: status >= 400 ? status : 403,
      ...(body === null ? {} : { deny_body: body }),
    },
  };
}

/** The rest of a handler list needs a route only where a later route would match it. */
function withoutRedundant(sites: readonly ResolvedSite[]): readonly ResolvedSite[] {
  return sites.filter(
    ({ isRest, scope }, at) =>
      !isRest ||
      sites
        .slice(at + 1)
        .some((other) => shareHosts(scope.bounds.over.hosts, other.scope.bounds.over.hosts)),
  );
}

function exposedOf(site: ResolvedSite): ProtectedRoute {
  const { scope, responses } = site;
  const { hosts } = scope.bounds.over;
  if (scope.lost !== null || isRefusal(site))
    return { hosts, protections: null, lostIfOverridden: null, lostIfUnmatched: null };
  const own = protectionsOf(scope.steps);
  const all = new Set([...own, ...protectionsOf(responses)]);
  return { hosts, protections: all, lostIfOverridden: all, lostIfUnmatched: own };
}

/** A redirect gives no access, so it may match more requests. */
const isRedirect = ({ ending }: Site): boolean =>
  ending.kind === "response" && ending.step.name === "redirect";

/** Whether the site denies some clients. */
const isProtected = (site: Site): boolean =>
  (isRefusal(site) && !site.isRest) ||
  site.scope.lost !== null ||
  site.scope.steps.some(({ protects }) => protects) ||
  matchesAddress(site.scope.bounds.over);

const matchesAddress = ({ cidrs, not }: Terms): boolean =>
  cidrs.length > 0 || not.some(matchesAddress);

const protectionsOf = (steps: readonly Step[]): Set<string> =>
  new Set(
    steps
      .filter(({ protects }) => protects)
      .map(({ name, config, where }) =>
        JSON.stringify([name, config, conditionOf(where.over, "over")]),
      ),
  );

function choiceOf(site: ResolvedSite, { mustNotWiden, mustNotNarrow }: Exposure): Choice | null {
  const { bounds, mayIdentifyClient } = site.scope;
  const { over, under } = bounds;
  const plain = bounds.plain !== null && routeTerms(bounds.plain).isWhole ? bounds.plain : null;
  const choice = (terms: Terms, rest: Partial<Choice> = {}): Choice => ({
    terms,
    denied: [],
    closed: null,
    protects: mustNotNarrow || isRedirect(site),
    ...rest,
  });
  const closed = () => choice(over, { closed: `the conditions of ${site.label}`, protects: true });
  if (!mustNotWiden && !mustNotNarrow && plain !== null) return choice(plain);
  if (isRefusal(site) || site.scope.lost !== null) return choice(over);
  if (mustNotWiden ? isRedirect(site) : mustNotNarrow) return choice(over);
  // A response may protect later sites.
  if (under === null)
    return mustNotWiden || mayIdentifyClient || site.ending.kind === "response" ? closed() : null;
  // A route can express every condition on the host.
  const most = { ...over, hostFields: under.hostFields };
  if (routeTerms(under).isWhole && Bun.deepEquals(most, under)) return choice(under);
  const exact = conditionOf(withoutCommon(under, most), "under");
  return exact === null ? closed() : choice(most, { denied: negated(exact) });
}

/** Conditions whose union is the negation of this one, which has at most one level of negation. */
function negated({ not, ...members }: Document): readonly Document[] {
  const isEmpty = Object.keys(members).length === 0;
  return [...(isEmpty ? [] : [{ not: members }]), ...(isDocument(not) ? [not] : [])];
}

/** Without the conditions that the route already has. */
function withoutCommon(under: Terms, most: Terms): Terms {
  const { isWhole } = routeTerms(most);
  const isKept = (name: keyof Terms) =>
    !Bun.deepEquals(under[name], most[name]) || name === "not" || (name === "paths" && !isWhole);
  const kept = (Object.keys(under) as (keyof Terms)[]).filter(isKept);
  return { ...anything, ...Object.fromEntries(kept.map((name) => [name, under[name]])) };
}
