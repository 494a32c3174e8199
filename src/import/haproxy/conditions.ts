// Parses ACLs and conditions of HAProxy into alternatives of tests; knows no rule that uses them.
import type { Line } from "./sections.ts";

export type TestKind =
  | "host"
  | "path"
  | "method"
  | "src"
  | "header"
  | "query"
  | "ssl"
  | "sni"
  | "auth"
  | "always"
  | "unknown";

export interface Test {
  readonly kind: TestKind;
  /** Name of the header or parameter, or of the user list. */
  readonly name: string;
  readonly match: "exact" | "beg" | "end" | "sub" | "dir" | "dom" | "reg" | "found";
  /** Any of them. */
  readonly values: readonly string[];
  readonly isCaseless: boolean;
  /** As in the source. */
  readonly text: string;
}

export interface Literal {
  readonly test: Test;
  readonly isNegated: boolean;
}

/** One of the alternatives must hold, with all of its literals. */
export type Condition = readonly (readonly Literal[])[];

export const always: Condition = [[]];

const MAX_ALTERNATIVES = 64;

/** ACLs by name; several lines of one name are alternatives. */
export type Acls = ReadonlyMap<string, readonly Test[]>;

export function readAcls(lines: readonly Line[]): Acls {
  const found = new Map<string, Test[]>();
  for (const { words } of lines) {
    const [keyword, name = "", ...rest] = words;
    if (keyword === "acl") found.set(name, [...(found.get(name) ?? []), testOf(rest)]);
  }
  return found;
}

const literalTest = (kind: TestKind, values: readonly string[], text: string): Test => ({
  kind,
  name: "",
  match: "exact",
  values,
  isCaseless: false,
  text,
});

function predefined(name: string): Test | null {
  const [, method] = /^METH_([A-Z]+)$/.exec(name) ?? [];
  if (method !== undefined)
    return literalTest("method", method === "GET" ? ["GET", "HEAD"] : [method], name);
  if (name === "TRUE" || name === "HTTP") return literalTest("always", [], name);
  return name === "LOCALHOST" ? literalTest("src", ["127.0.0.0/8", "::1"], name) : null;
}

/** `if a !b || { path /x }` and `unless …`; no words: always. Null: it has too many alternatives. */
export function conditionOf(words: readonly string[], acls: Acls): Condition | null {
  const [keyword, ...rest] = words;
  if (keyword !== "if" && keyword !== "unless") return always;
  const all: { tests: readonly Test[]; isNegated: boolean }[][] = [[]];
  let isNegated = false;
  for (let at = 0; at < rest.length; at++) {
    let word = rest[at] ?? "";
    if (word === "or" || word === "||") {
      all.push([]);
      continue;
    }
    while (word.startsWith("!")) {
      isNegated = !isNegated;
      word = word.slice(1);
    }
    if (word === "") continue;
    let tests: readonly Test[];
    if (word === "{") {
      const end = rest.indexOf("}", at);
      tests = [testOf(rest.slice(at + 1, end === -1 ? rest.length : end))];
      at = end === -1 ? rest.length : end;
    } else {
      const known = predefined(word);
      tests = acls.get(word) ?? (known === null ? [literalTest("unknown", [], word)] : [known]);
    }
    all.at(-1)?.push({ tests, isNegated });
    isNegated = false;
  }
  const parts = all.map((terms) =>
    terms.reduce<Condition | null>(
      (made, { tests, isNegated: negated }) => product(made, expanded(tests, negated)),
      always,
    ),
  );
  if (parts.includes(null)) return null;
  const made = parts.flatMap((part) => part ?? []);
  return keyword === "if" ? limited(made) : negatedCondition(made);
}

const expanded = (tests: readonly Test[], isNegated: boolean): Condition =>
  isNegated
    ? [tests.map((test) => ({ test, isNegated: true }))]
    : tests.map((test) => [{ test, isNegated: false }]);

const limited = (condition: Condition): Condition | null =>
  condition.length > MAX_ALTERNATIVES ? null : condition;

function product(left: Condition | null, right: Condition): Condition | null {
  if (left === null) return null;
  return limited(left.flatMap((one) => right.map((other) => [...one, ...other])));
}

function negatedCondition(condition: Condition): Condition | null {
  return condition.reduce<Condition | null>(
    (made, literals) =>
      product(
        made,
        literals.map(({ test, isNegated }) => [{ test, isNegated: !isNegated }]),
      ),
    always,
  );
}

const SUFFIXES = ["beg", "end", "sub", "dir", "dom", "reg"] as const;
type Suffix = (typeof SUFFIXES)[number];

const METHODS: Readonly<Record<string, Test["match"]>> = {
  str: "exact",
  beg: "beg",
  end: "end",
  sub: "sub",
  dir: "dir",
  dom: "dom",
  reg: "reg",
  found: "found",
  ip: "exact",
};

/** `hdr(host) -i a.test`: criterion, flags, values. */
function testOf(words: readonly string[]): Test {
  const text = words.join(" ");
  const [criterion = "", ...rest] = words;
  const unknown = literalTest("unknown", [], text);
  let isCaseless = false;
  let method: Test["match"] | null = null;
  let at = 0;
  for (; at < rest.length; at++) {
    const flag = rest[at] ?? "";
    if (flag === "-i") isCaseless = true;
    else if (flag === "-m") {
      at += 1;
      const known = METHODS[rest[at] ?? ""];
      if (known === undefined) return unknown;
      method = known;
    } else if (flag === "--") {
      at += 1;
      break;
    } else if (flag === "-n" || flag === "-u" || flag === "-f" || flag === "-M") return unknown;
    else break;
  }
  const values = rest.slice(at);
  const fetched = fetchOf(criterion);
  if (fetched === null) return unknown;
  const { kind, name, suffix, isLower } = fetched;
  const isBoolean = kind === "ssl" || kind === "always" || kind === "auth";
  if (!isBoolean && values.length === 0 && method !== "found") return unknown;
  if (isBoolean && values.length > 0) return unknown;
  return {
    kind,
    name,
    match: method ?? suffix ?? "exact",
    values,
    isCaseless: isCaseless || isLower,
    text,
  };
}

interface Fetched {
  readonly kind: TestKind;
  readonly name: string;
  readonly suffix: Suffix | null;
  readonly isLower: boolean;
}

/** `req.hdr_end(host),lower`; null: it has no equivalent. */
function fetchOf(criterion: string): Fetched | null {
  const [, whole = "", args = "", converters = ""] =
    /^([\w.]+)(?:\(([^()]*)\))?((?:,[\w.]+(?:\([^()]*\))?)*)$/.exec(criterion) ?? [];
  const steps = converters.split(",").filter((step) => step !== "");
  const isHost = args.split(",")[0]?.toLowerCase() === "host";
  const isKnown = steps.every(
    (step) => step === "lower" || (isHost && step === "field(1,:)") || step === "host_only",
  );
  // Commas in arguments split a converter.
  const isField = isHost && /^(?:,lower)?,field\(1,:\)(?:,lower)?$/.test(converters);
  if (whole === "" || (!isKnown && !isField)) return null;
  const [, base = whole, found] = /^(.*)_(beg|end|sub|dir|dom|reg)$/.exec(whole) ?? [];
  const suffix = SUFFIXES.find((one) => one === found) ?? null;
  const isLower = converters.includes("lower");
  const made = (kind: TestKind, name = ""): Fetched => ({ kind, name, suffix, isLower });
  const name = args.split(",")[0] ?? "";
  switch (base) {
    case "hdr":
    case "req.hdr":
    case "req.fhdr":
      return name.toLowerCase() === "host"
        ? made("host")
        : name === ""
          ? null
          : made("header", name);
    case "path":
      return made("path");
    case "method":
      return made("method");
    case "src":
      return made("src");
    case "url_param":
    case "urlp":
      return name === "" ? null : made("query", name);
    case "ssl_fc":
      return made("ssl");
    case "req.ssl_sni":
    case "req_ssl_sni":
    case "ssl_fc_sni":
      return made("sni");
    case "http_auth":
      return made("auth", name);
    case "always_true":
      return made("always");
    default:
      return null;
  }
}
