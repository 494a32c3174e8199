// Random routers of Traefik, and which of them serves a request according to Traefik's reference; knows nothing of the import.
import type { Random } from "../../support/random.ts";
import type { Asked } from "./judge.ts";

/** A rule as text, and whether it matches a request. */
interface Rule {
  readonly text: string;
  readonly matches: (asked: ParsedRequest) => boolean;
}

interface ParsedRequest {
  readonly host: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly method: string;
  /** Values of X-Kind. */
  readonly kinds: readonly string[];
}

export interface RandomRouter {
  readonly name: string;
  readonly rule: Rule;
  readonly isGuarded: boolean;
  /** Distinct among the routers of a host. */
  readonly priority: number;
  readonly service: "one" | "two";
}

const PATHS = ["/", "/a", "/a/", "/a/b", "/ab", "/b", "/admin"];
const EXPRESSIONS = ["^/a", "b$", "^/a/[a-z]+$", "/b/", "^/(a|b)$", "^/admin"];
const METHODS = ["GET", "POST", "PUT", "DELETE"];
const KINDS = ["x", "y"];

function leaf(random: Random): Rule {
  const value = random.pick(PATHS);
  switch (random.between(0, 7)) {
    case 0:
    case 1:
      return {
        text: `PathPrefix(\`${value}\`)`,
        matches: ({ path }) => path.startsWith(value),
      };
    case 2:
      return { text: `Path(\`${value}\`)`, matches: ({ path }) => path === value };
    case 3: {
      const source = random.pick(EXPRESSIONS);
      const regex = new RegExp(source);
      return { text: `PathRegexp(\`${source}\`)`, matches: ({ path }) => regex.test(path) };
    }
    case 4: {
      const method = random.pick(METHODS);
      return { text: `Method(\`${method}\`)`, matches: (asked) => asked.method === method };
    }
    case 5: {
      const kind = random.pick(KINDS);
      return {
        text: `Header(\`X-Kind\`, \`${kind}\`)`,
        matches: ({ kinds }) => kinds.includes(kind),
      };
    }
    default: {
      const kind = random.pick(KINDS);
      return {
        text: `Query(\`q\`, \`${kind}\`)`,
        matches: ({ query }) => query.get("q") === kind,
      };
    }
  }
}

function ruleOf(random: Random, depth: number): Rule {
  if (depth === 0 || random.chance(0.45)) return leaf(random);
  if (random.chance(0.25)) {
    const inner = ruleOf(random, depth - 1);
    return { text: `!(${inner.text})`, matches: (asked) => !inner.matches(asked) };
  }
  const [left, right] = [ruleOf(random, depth - 1), ruleOf(random, depth - 1)];
  return random.chance(0.6)
    ? {
        text: `(${left.text} && ${right.text})`,
        matches: (asked) => left.matches(asked) && right.matches(asked),
      }
    : {
        text: `(${left.text} || ${right.text})`,
        matches: (asked) => left.matches(asked) || right.matches(asked),
      };
}

/** Some routers of one host. */
export function randomRouters(host: string, random: Random): readonly RandomRouter[] {
  const count = random.between(1, 5);
  const ranks = new Set<number>();
  return Array.from({ length: count }, (_, at): RandomRouter => {
    const inner = at === 0 && random.chance(0.5) ? null : ruleOf(random, 2);
    const text = `Host(\`${host}\`)${inner === null ? "" : ` && ${inner.text}`}`;
    let priority = random.chance(0.5) ? random.between(1, 200) : text.length;
    while (ranks.has(priority)) priority += 1;
    ranks.add(priority);
    return {
      name: `${host}-${at}`,
      rule: { text, matches: (asked) => asked.host === host && (inner?.matches(asked) ?? true) },
      isGuarded: random.chance(0.35),
      priority,
      service: random.pick(["one", "two"]),
    };
  });
}

const ODD = [
  "//admin",
  "/%61dmin",
  "/a;x",
  "/a%2Fb",
  "/a//b",
  "/b/../admin",
  "/;x/admin",
  "/a/%62",
];
const PLAIN = [
  "/",
  "/a",
  "/a/",
  "/a/b",
  "/a/c",
  "/ab",
  "/abc",
  "/b",
  "/b/b",
  "/admin",
  "/adminx",
  "/x",
];

export interface RandomRequest extends Asked {
  /** Whether servers read the path in one way only. */
  readonly isPlain: boolean;
}

export function randomRequest(host: string, random: Random): RandomRequest {
  const isPlain = random.chance(0.75);
  const query = random.chance(0.3) ? `?q=${random.pick([...KINDS, "z"])}` : "";
  const kind = random.pick([...KINDS, "z", "x, y"]);
  return {
    host,
    isPlain,
    path: random.pick(isPlain ? PLAIN : ODD) + query,
    method: random.pick(METHODS),
    fields: random.chance(0.4) ? `X-Kind: ${kind}\r\n` : "",
  };
}

/** Of the routers that match, the one with the highest priority; null: none. Traefik decodes and cleans paths first. */
export function routed(
  routers: readonly RandomRouter[],
  { host, path, method = "GET", fields = "" }: Asked,
): RandomRouter | null {
  const [target = "", query = ""] = path.split("?");
  const clean = new URL(`http://h${decodeURIComponent(target).replaceAll(/\/{2,}/g, "/")}`)
    .pathname;
  const [, kind] = /^X-Kind: (.*)\r\n$/.exec(fields) ?? [];
  const asked: ParsedRequest = {
    host,
    path: clean,
    method,
    query: new URLSearchParams(query),
    kinds: kind === undefined ? [] : [kind],
  };
  const fitting = routers.filter(({ rule }) => rule.matches(asked));
  return fitting.toSorted((a, b) => b.priority - a.priority)[0] ?? null;
}
