// Expresses conditions of HAProxy as terms of rules, and as conditions of plugins; knows no section.
import type { Document } from "../../control/body.ts";
import { caseless, escaped, portable } from "../expression.ts";
import type { Conjunction, RuleTerm } from "../traefik/rule.ts";
import type { Condition, Literal, Test } from "./conditions.ts";
import { storedNameOf } from "../../model/host-name.ts";

/** Terms of a rule for each alternative; text: the test without an equivalent. */
export function ruleOf(condition: Condition): readonly Conjunction[] | string {
  const made: Conjunction[] = [];
  for (const literals of condition) {
    let parts: readonly Conjunction[] = [[]];
    for (const { test, isNegated } of literals) {
      if (test.kind === "always") {
        if (isNegated) parts = [];
        continue;
      }
      const found = termsOf(test);
      if (found === null) return test.text;
      const next = isNegated
        ? [found.map((term) => ({ ...term, isNegated }))]
        : found.map((term) => [{ ...term, isNegated }]);
      parts = parts.flatMap((left) => next.map((right) => [...left, ...right]));
    }
    made.push(...parts);
  }
  return made;
}

type Term = Omit<RuleTerm, "isNegated">;

/** Any of the terms; null: no equivalent. */
function termsOf(test: Test): readonly Term[] | null {
  const { kind, name, match, values } = test;
  switch (kind) {
    case "host":
    case "sni":
      return hostTerms(test);
    case "path": {
      if (match === "exact" && !test.isCaseless) return [{ matcher: "path", values }];
      if (match === "beg" && !test.isCaseless) return [{ matcher: "pathprefix", values }];
      const sources = sourcesOf(test);
      return sources === null ? null : [{ matcher: "pathregexp", values: sources }];
    }
    case "method":
      return match === "exact" ? [{ matcher: "method", values }] : null;
    case "src":
      return [{ matcher: "clientip", values }];
    case "header":
    case "query": {
      if (match === "found") return [{ matcher: kind, values: [name] }];
      const sources = sourcesOf(test);
      if (sources === null) return null;
      return [{ matcher: `${kind}regexp`, values: [name, `(?:${sources.join("|")})`] }];
    }
    default:
      return null;
  }
}

function hostTerms(test: Test): readonly Term[] | null {
  const { match, values } = test;
  const names = values.map((value) => storedNameOf(value).toLowerCase());
  if (match === "exact")
    return [{ matcher: "host", values: names.map((host) => host.replace(/:\d+$/, "")) }];
  const below = (host: string) => `^.+\\.${escaped(host)}$`;
  if (match === "end" && names.every((host) => /^\.[a-z0-9.-]+$/.test(host)))
    return [{ matcher: "hostregexp", values: names.map((host) => below(host.slice(1))) }];
  if (match === "dom" && names.every((host) => /^[a-z0-9.-]+\.[a-z0-9.-]+$/.test(host)))
    return [
      { matcher: "host", values: names },
      { matcher: "hostregexp", values: names.map(below) },
    ];
  const sources = sourcesOf(test);
  return sources === null ? null : [{ matcher: "hostregexp", values: sources }];
}

/** An expression for each value; null: one has no equivalent. */
function sourcesOf({ match, values, isCaseless }: Test): readonly string[] | null {
  const plain = (value: string) => (isCaseless ? caseless(value) : escaped(value));
  const made = values.map((value): string | null => {
    switch (match) {
      case "exact":
        return `^${plain(value)}$`;
      case "beg":
        return `^${plain(value)}`;
      case "end":
        return `${plain(value)}$`;
      case "sub":
        return plain(value);
      case "dir":
        return `(?:^|/)${plain(value.replace(/^\/+|\/+$/g, ""))}(?:/|$)`;
      case "dom":
        return `(?:^|[/?.:])${plain(value.replace(/^\.+|\.+$/g, ""))}(?:[/?.:]|$)`;
      case "reg":
        return portable(isCaseless ? `(?i)${value}` : value)?.source ?? null;
      default:
        return null;
    }
  });
  return made.includes(null) ? null : made.map((source) => source ?? "");
}

/**
 * Conditions of plugins that together match whenever the condition does, and maybe more often. Null: there are none, so that
 * only all requests would do.
 */
export function overConditions(condition: Condition): readonly Document[] | null {
  const made = condition.map(overOf);
  return made.includes(null) ? null : made.map((one) => one ?? {});
}

function overOf(literals: readonly Literal[]): Document | null {
  const own = membersOf(
    literals.filter(({ isNegated }) => !isNegated).map(({ test }) => test),
    "over",
  );
  const excluded = literals.filter(({ isNegated }) => isNegated).map(({ test }) => test);
  if (own === null) return null;
  if (excluded.length === 0) return own;
  // `not` excludes requests that match all of its members: of several tests only those of one member can be joined.
  const kinds = new Set(excluded.map(({ kind, name }) => `${kind} ${name}`));
  if (kinds.size > 1) return null;
  const [first] = excluded;
  if (first === undefined) return null;
  const joined = excluded.map((test) => membersOf([test], "under"));
  if (joined.includes(null)) return null;
  const not = joined.reduce<Record<string, unknown>>((all, one) => {
    for (const [name, value] of Object.entries(one ?? {}))
      all[name] = Array.isArray(value)
        ? [...((all[name] ?? []) as unknown[]), ...(value as unknown[])]
        : value;
    return all;
  }, {});
  const isJoined = Object.values(not).every(
    (value) => Array.isArray(value) || typeof value === "boolean",
  );
  return excluded.length === 1 || isJoined ? { ...own, not } : null;
}

/**
 * Conditions of requests that the condition excludes, for a policy whose rules run in order: exceptions first. Null: it has no
 * equivalent.
 */
export function exceptionsOf(
  condition: Condition,
): { readonly exceptions: readonly Document[]; readonly when: Document } | null {
  const [literals, ...others] = condition;
  if (literals === undefined || others.length > 0) return null;
  const excluded = literals.filter(({ isNegated }) => isNegated);
  const when = overOf(literals.filter(({ isNegated }) => !isNegated));
  const exceptions = excluded.map(({ test }) => membersOf([test], "under"));
  if (when === null || exceptions.includes(null)) return null;
  return { when, exceptions: exceptions.map((one) => one ?? {}) };
}

/** Members of a condition; null: one has no equivalent, or two tests are of the same member. */
function membersOf(tests: readonly Test[], side: "over" | "under"): Document | null {
  const made: Record<string, unknown> = {};
  for (const test of tests) {
    if (test.kind === "always") continue;
    const one = memberOf(test, side);
    if (one === null) return null;
    for (const [name, value] of Object.entries(one)) {
      if (Object.hasOwn(made, name) && name !== "ambiguous_path") return null;
      made[name] = value;
    }
  }
  return made;
}

function memberOf(test: Test, side: "over" | "under"): Document | null {
  const { kind, name, match, values } = test;
  const sources =
    match === "found" ? [] : sourcesOf({ ...test, isCaseless: test.isCaseless || kind === "host" });
  switch (kind) {
    case "src":
      return { cidr: values };
    case "method":
      return match === "exact" ? { method: values } : null;
    case "path": {
      if (sources === null) return null;
      const path = sources.map((source) => `~${source}`);
      return side === "over" ? { path } : { path, ambiguous_path: false };
    }
    case "host": {
      if (side === "over" && match === "exact")
        return {
          host: values.map((value) => storedNameOf(value).toLowerCase().replace(/:\d+$/, "")),
        };
      if (sources === null) return null;
      const ends = sources.map((source) =>
        side === "over" ? source.replace(/\$$/, "(?:\\.?(?::\\d*)?$)") : source,
      );
      return { header: { host: `~(?:${ends.join("|")})` } };
    }
    case "header":
    case "query": {
      if (match === "found") return { [kind]: { [name.toLowerCase()]: "*" } };
      if (sources === null) return null;
      // HAProxy compares each value of a list.
      const anywhere = sources.map((source) =>
        source.replace(/^\^/, "(?:^|, *)").replace(/\$$/, "(?: *,|$)"),
      );
      const used = kind === "header" && side === "over" ? anywhere : sources;
      return {
        [kind]: { [kind === "header" ? name.toLowerCase() : name]: `~(?:${used.join("|")})` },
      };
    }
    default:
      return null;
  }
}
