// Matches the Origin header of browsers against lists; knows no request.
import { compileTexts } from "./fields.ts";

/** Of browsers, with or without a host: `moz-extension://…`, `https://a.example:8443`. */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s@\\*]+$/;
/** Every host below one, at any depth, as in the Gateway API. */
const WILDCARD = /^([a-z][a-z0-9+.-]*:\/\/)\*(\.[^/?#\s@\\*]+)$/;
/** Longer origins never match. */
const MAX_LENGTH = 512;

/** The problem of one entry of a list of origins, worded to follow its field; null: none. */
export function originProblem(text: string): string | null {
  if (text === "*" || text === "null" || text.startsWith("~")) return null;
  const [, scheme, below] = WILDCARD.exec(text) ?? [];
  if (scheme !== undefined) {
    const problem = originProblem(`${scheme}x${below}`);
    return problem?.replace("://x.", "://*.") ?? null;
  }
  if (text.includes("*"))
    return 'may have "*" only as the first label of a host: https://*.example.com';
  const sent = URL.parse(text)?.origin ?? null;
  if (sent !== null && sent !== "null" && sent !== text)
    return `must be written as browsers send it: ${sent}`;
  return ORIGIN.test(text)
    ? null
    : 'must be an origin such as https://app.example.com, "*" or "~…"';
}

/** Whether an origin equals one of these, is below a wildcard, or fully matches an expression. The caller handles `*` alone. */
export function compileOrigins(origins: readonly string[]): (origin: string) => boolean {
  const texts = origins.filter((each) => each !== "*");
  return compileTexts(
    texts.map((each) => (WILDCARD.test(each) ? wildcardRegex(each) : each)),
    MAX_LENGTH,
  );
}

/** `https://*.example.com` as an expression: the wildcard stands for one or more labels. */
function wildcardRegex(text: string): string {
  const [, scheme = "", below = ""] = WILDCARD.exec(text) ?? [];
  const literal = (part: string) => part.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  return `~${literal(scheme)}[a-z0-9_-]+(?:\\.[a-z0-9_-]+)*${literal(below)}`;
}
