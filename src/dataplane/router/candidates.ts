// All routes in the order of matching for one request, with the condition that each fails; for `explain`, not for traffic.
import { comparablePath } from "../../http/request-target.ts";
import { type CompiledMatch, firstMismatch, type RouteSubject } from "./compiled-match.ts";
import type { RouteCandidate } from "./path-index.ts";
import { compareRank } from "./ranked-list.ts";

/** One route's position for a request. */
export interface CandidateRank<E extends RouteCandidate> {
  readonly entry: E;
  /** From 1. */
  readonly position: number;
  /** As `firstMismatch`. */
  readonly mismatch: string | null;
}

interface Ranking<E> {
  readonly entry: E;
  readonly mismatch: string | null;
  readonly host: readonly [kind: number, length: number];
  readonly path: readonly [kind: number, length: number];
}

/**
 * The `most` routes that came closest: those that match the request, then those whose host and path match, then those whose
 * host does. In the order of matching; within a priority, routes whose patterns do not match come last.
 */
export function rankCandidates<E extends RouteCandidate>(
  entries: Iterable<E>,
  subject: RouteSubject,
  most: number,
): readonly CandidateRank<E>[] {
  const path = comparablePath(subject.path);
  const rankings = [...entries].map((entry): Ranking<E> => ({
    entry,
    mismatch: firstMismatch(entry.match, subject),
    host: hostRank(entry.match, subject.host),
    path: pathRank(entry.match, path),
  }));
  rankings.sort(compare);
  const all = rankings.map(({ entry, mismatch }, index) => ({
    entry,
    position: index + 1,
    mismatch,
  }));
  return all
    .toSorted((a, b) => distance(a.mismatch) - distance(b.mismatch) || a.position - b.position)
    .slice(0, most)
    .sort((a, b) => a.position - b.position);
}

function distance(mismatch: string | null): number {
  if (mismatch === null) return 0;
  return mismatch === "hosts" ? 3 : mismatch === "paths" ? 2 : 1;
}

function compare<E extends RouteCandidate>(a: Ranking<E>, b: Ranking<E>): number {
  return (
    b.entry.priority - a.entry.priority ||
    a.host[0] - b.host[0] ||
    b.host[1] - a.host[1] ||
    a.path[0] - b.path[0] ||
    b.path[1] - a.path[1] ||
    compareRank(a.entry, b.entry)
  );
}

const longest = (texts: readonly string[]) => Math.max(...texts.map(({ length }) => length));

/** Exact, wildcard (longer suffixes first), any, no match. */
function hostRank({ exactHosts, hostSuffixes }: CompiledMatch, host: string): [number, number] {
  if (exactHosts.length === 0 && hostSuffixes.length === 0) return [2, 0];
  if (exactHosts.includes(host)) return [0, 0];
  const fitting = hostSuffixes.filter((suffix) => host.endsWith(`.${suffix}`));
  if (fitting.length > 0) return [1, longest(fitting)];
  return [3, 0];
}

/** Exact, prefix (longer first), regular expression, any, no match. */
function pathRank(match: CompiledMatch, path: string): [number, number] {
  const { exactPaths, pathPrefixes, pathRegexes, anyPath } = match;
  if (exactPaths.includes(path)) return [0, 0];
  const fitting = pathPrefixes.filter((prefix) => path === prefix || path.startsWith(`${prefix}/`));
  if (fitting.length > 0) return [1, longest(fitting)];
  if (pathRegexes.some((regex) => regex.test(path))) return [2, 0];
  return [anyPath ? 3 : 4, 0];
}
