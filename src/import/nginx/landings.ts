// Finds the location in which a rewritten path ends, where that is certain for all requests; knows no route.
import { type Content, type ContentOptions, type Reading, readLocationContent } from "./content.ts";
import { type Location, type Locations, mayMatch } from "./locations.ts";
import { pathExpression } from "./paths.ts";
import type { Rewrite } from "./rewrites.ts";
import { literalStart } from "./paths.ts";
import type { Level } from "./tree.ts";

export interface Landing extends Pick<Reading, "lost" | "methods"> {
  readonly level: Level;
  readonly content: Content;
}

/** Null: it depends on the request, or the location changes the path again. */
export function landingOf(
  rewrite: Rewrite,
  { locations, options }: { readonly locations: Locations; readonly options: ContentOptions },
): Landing | null {
  const path = pathOf(rewrite);
  const found = locations.inOrder.find((location) => mayTake(location, path) !== false);
  if (found === undefined || mayTake(found, path) !== true) return null;
  const { level } = found;
  const { branches, content, lost, methods } = readLocationContent(level, options);
  if (branches.some(({ conditions }) => mayChange(conditions.path, path))) return null;
  if (content === null || content.kind === "closed") return null;
  if (content.kind === "response")
    return /request\.path|keep_path":true/.test(JSON.stringify(content.config))
      ? null
      : { level, content, lost, methods };
  const { uri, isWhole } = content.destination;
  if (content.rewrite !== null || content.level !== level || isWhole) return null;
  if (uri === null) return { level, lost, methods, content: { ...content, rewrite } };
  if (found.kind !== "prefix" || /[?$]/.test(uri)) return null;
  const to = uri + rewrite.to.slice(found.value.length);
  return { level, lost, methods, content: { ...content, rewrite: { ...rewrite, to } } };
}

interface NewPath {
  /** With what all new paths begin. */
  readonly start: string;
  /** Whether that is all. */
  readonly isWhole: boolean;
}

function pathOf({ to }: Rewrite): NewPath {
  const at = to.search(/\$\d/);
  return { start: at === -1 ? to : to.slice(0, at), isWhole: at === -1 };
}

/** Whether nginx selects the location for the new path; null: for some of them. */
function mayTake(location: Location, { start, isWhole }: NewPath): boolean | null {
  const { kind, value, holes } = location;
  if (isWhole && kind === "regex" && pathExpression(value, location.isCaseless) === null)
    return null;
  if (isWhole) return mayMatch(location, start);
  if (kind === "exact") return value.startsWith(start) ? null : false;
  if (kind === "regex") return isApart(value, start) ? false : null;
  if (!start.startsWith(value)) return value.startsWith(start) ? null : false;
  return holes.some((hole) => hole.startsWith(start) || start.startsWith(hole)) ? null : true;
}

/** Whether the location changes the new path, too. A condition on something else counts. */
function mayChange(expression: string | undefined, { start, isWhole }: NewPath): boolean {
  if (expression === undefined) return true;
  const found = pathExpression(expression, false);
  return isWhole && found !== null
    ? new RegExp(found.plain).test(start)
    : !isApart(expression, start);
}

/** Whether the expression matches no path with this beginning. */
function isApart(expression: string, start: string): boolean {
  const other = literalStart(expression)?.toLowerCase();
  const own = start.toLowerCase();
  return other !== undefined && !other.startsWith(own) && !own.startsWith(other);
}
