// How each place where requests of Caddy end is said here: as a route that takes neither more nor less than is safe.
import { type Document, isDocument } from "../../body.ts";
import { type Exposed, type Exposure, exposuresInOrder, shareHosts } from "../exposure.ts";
import type { Report } from "../report.ts";
import type { Site } from "./routes.ts";
import type { Step } from "./steps.ts";
import { always, anything, conditionOf, routeTerms, type Terms } from "./terms.ts";

/** A site with the plugins of those in front of it that no route can ask for. */
export interface Placed extends Site {
  readonly answers: readonly Step[];
}

/** What a route asks for. */
export interface Choice {
  readonly terms: Terms;
  /** Requests that the route takes and the site would not, as far as they matter: each of these. */
  readonly refused: readonly Document[];
  /** Why nobody may be let in. */
  readonly closed: string | null;
  /** Whether upper and lower case differ. */
  readonly isPlain: boolean;
  /** Whether what it keeps out would come in without it. */
  readonly protects: boolean;
}

export interface Chosen {
  readonly site: Placed;
  /** Null: it is left out, and its requests go on to those behind it. */
  readonly choice: Choice | null;
}

export function choicesFor(sites: readonly Site[], report: Report): readonly Chosen[] {
  const placed = withoutNeedless(withAnswersBehind(sites, report));
  const guarded = sites.filter(isGuarded).map(({ scope }) => scope.bounds.over.hosts);
  const found = exposuresInOrder(placed.map(exposedOf), guarded);
  return placed.map((site, at) => ({
    site,
    choice: choiceOf(site, found[at] ?? { mayTakeNoMore: true, mayTakeNoLess: true }),
  }));
}

/** Whether clients are turned away. */
const isRefusal = ({ ending }: Site): boolean =>
  ending.kind === "closed" ||
  (ending.kind === "answer" && Number(ending.step.config["status"]) >= 400);

/** What a route cannot ask for, plugins of the routes behind it can: they answer for it, or turn its requests away. */
function withAnswersBehind(sites: readonly Site[], report: Report): readonly Placed[] {
  const kept: Placed[] = [];
  const behind: { readonly site: Site; readonly step: Step }[] = [];
  const isFor = (site: Site) => (other: Site) =>
    shareHosts(site.scope.bounds.over.hosts, other.scope.bounds.over.hosts);
  const some = sites.filter(({ scope }) => !scope.bounds.isNever);
  for (const [at, site] of some.entries()) {
    const own = behind.filter((each) => isFor(site)(each.site)).map(({ step }) => step);
    const isLast = !some.slice(at + 1).some(isFor(site));
    if (isSayable(site) || (isLast && site.ending.kind === "proxy")) {
      kept.push({ ...site, answers: isRefusal(site) ? [] : own });
      continue;
    }
    behind.push({ site, step: stepFor(site) });
    if (site.ending.kind === "proxy") site.ending.handler.ignoreRest();
    const why = "is answered by a plugin of the routes behind it";
    if (isRefusal(site)) report.carried(site.path, why);
    else report.changed(site.path, `no route has its conditions: ${why}`);
  }
  return kept;
}

/** Whether a route can ask for it, or for more where that is no harm. */
function isSayable({ scope: { bounds }, ending }: Site): boolean {
  const { over, under, plain } = bounds;
  if (over.not.length === 0) return true;
  const isWhole = (terms: Terms | null) => terms !== null && routeTerms(terms).isWhole;
  return ending.kind === "proxy" && (isWhole(plain) || isWhole(under));
}

/** The answer of a site as a plugin. */
function stepFor({ scope, ending, path }: Site): Step {
  const where = scope.bounds;
  const when = conditionOf(where.over, "over");
  const config = ending.kind === "answer" ? ending.step.config : {};
  const status = ending.kind === "closed" ? ending.status : Number(config["status"] ?? 403);
  // Behind it, what it is protected by may be missing.
  const isOpen = scope.lost === null && scope.steps.every(({ protects }) => !protects);
  if (ending.kind === "answer" && !(status >= 400) && isOpen)
    return { ...ending.step, protects: true, where };
  const body = status >= 400 ? (config["body"] ?? null) : null;
  return {
    name: "access-policy",
    what: path,
    protects: true,
    where: always,
    config: {
      rules: [{ when, action: "deny" }],
      deny_status: status >= 400 ? status : 403,
      ...(body === null ? {} : { deny_body: body }),
    },
  };
}

/** What stands for the rest of a list is needed only where a route behind it would take it. */
function withoutNeedless(sites: readonly Placed[]): readonly Placed[] {
  return sites.filter(
    ({ isRest, scope }, at) =>
      !isRest ||
      sites
        .slice(at + 1)
        .some((other) => shareHosts(scope.bounds.over.hosts, other.scope.bounds.over.hosts)),
  );
}

function exposedOf(site: Placed): Exposed {
  const { scope, answers } = site;
  const { hosts } = scope.bounds.over;
  if (scope.lost !== null || isRefusal(site))
    return { hosts, protections: null, ifTaken: null, ifLeft: null };
  const own = protectionsOf(scope.steps);
  const all = new Set([...own, ...protectionsOf(answers)]);
  return { hosts, protections: all, ifTaken: all, ifLeft: own };
}

/** It lets nobody in, so it may take more. */
const isRedirect = ({ ending }: Site): boolean =>
  ending.kind === "answer" && ending.step.name === "redirect";

/** Whether some clients are kept out. */
const isGuarded = (site: Site): boolean =>
  (isRefusal(site) && !site.isRest) ||
  site.scope.lost !== null ||
  site.scope.steps.some(({ protects }) => protects) ||
  asksForAddress(site.scope.bounds.over);

const asksForAddress = ({ cidrs, not }: Terms): boolean =>
  cidrs.length > 0 || not.some(asksForAddress);

const protectionsOf = (steps: readonly Step[]): Set<string> =>
  new Set(
    steps
      .filter(({ protects }) => protects)
      .map(({ name, config, where }) =>
        JSON.stringify([name, config, conditionOf(where.over, "over")]),
      ),
  );

function choiceOf(site: Placed, { mayTakeNoMore, mayTakeNoLess }: Exposure): Choice | null {
  const { bounds, vague } = site.scope;
  const { over, under } = bounds;
  const plain = bounds.plain !== null && routeTerms(bounds.plain).isWhole ? bounds.plain : null;
  const choice = (terms: Terms, rest: Partial<Choice> = {}): Choice => ({
    terms,
    refused: [],
    closed: null,
    isPlain: terms === plain,
    protects: mayTakeNoLess || isRedirect(site),
    ...rest,
  });
  const closed = () => choice(over, { closed: `what ${site.path} takes`, protects: true });
  if (!mayTakeNoMore && !mayTakeNoLess && plain !== null) return choice(plain);
  if (isRefusal(site) || site.scope.lost !== null) return choice(over);
  if (mayTakeNoMore ? isRedirect(site) : mayTakeNoLess) return choice(over);
  // Of answers nobody knows whether they keep clients from what is behind them.
  if (under === null)
    return mayTakeNoMore || vague || site.ending.kind === "answer" ? closed() : null;
  // What is said of the host, a route says in full.
  const most = { ...over, hostFields: under.hostFields };
  if (routeTerms(under).isWhole && Bun.deepEquals(most, under)) return choice(under);
  const exact = conditionOf(inBrief(under, most), "under");
  return exact === null ? closed() : choice(most, { refused: otherThan(exact) });
}

/** Conditions of which one holds when this one does not: in a negation there is no other one. */
function otherThan({ not, ...members }: Document): readonly Document[] {
  const isEmpty = Object.keys(members).length === 0;
  return [...(isEmpty ? [] : [{ not: members }]), ...(isDocument(not) ? [not] : [])];
}

/** Without what the route asks for already. */
function inBrief(under: Terms, most: Terms): Terms {
  const { isWhole } = routeTerms(most);
  const isKept = (name: keyof Terms) =>
    !Bun.deepEquals(under[name], most[name]) || name === "not" || (name === "paths" && !isWhole);
  const kept = (Object.keys(under) as (keyof Terms)[]).filter(isKept);
  return { ...anything, ...Object.fromEntries(kept.map((name) => [name, under[name]])) };
}
