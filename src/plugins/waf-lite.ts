// waf-lite: detects common attacks with a small set of rules.
import { Type as t } from "@sinclair/typebox";
import { type Outcome, reject } from "../pdk/response.ts";
import { Cache } from "../pdk/cache.ts";
import type { RequestContext } from "../pdk/context.ts";
import { definePlugin, httpScopes } from "../pdk/definition.ts";
import { config, flag, integer, listOf, oneOf } from "../pdk/fields.ts";
import { comparablePath } from "../pdk/http.ts";
import { hasSequence } from "./waf-lite/exploit-rules.ts";
import { defaultRulesets, type Part, type Rule, rules, rulesetNames } from "./waf-lite/rules.ts";
import { type Encoding, viewsOf } from "./waf-lite/views.ts";

const schema = config({
  mode: oneOf(["detect", "block"], {
    default: "detect",
    description: "detect: log matches and allow requests; block: reject requests",
  }),
  rulesets: listOf(oneOf(rulesetNames, { description: "Name of a rule set" }), {
    default: [...defaultRulesets],
    maxItems: 10,
    description:
      "Enabled rule sets; block-exploits: the checks of Nginx Proxy Manager, for imported hosts",
  }),
  exclude: listOf(
    t.String({ minLength: 1, maxLength: 1024, description: "Id of a rule, or a path" }),
    {
      maxItems: 200,
      description: "Rules to skip by id, and path prefixes (beginning with /) to skip",
    },
  ),
  inspect_body: flag(false, "Inspect bodies: forms, JSON, XML and other text, and multipart forms"),
  max_body: integer(65_536, {
    minimum: 1,
    maximum: 1_048_576,
    description: "Maximum size of an inspected body in bytes; longer ones are logged instead",
  }),
  status: integer(403, { minimum: 400, maximum: 599, description: "Status of rejections" }),
});

type Config = (typeof schema)["static"];

/** Headers used for attacks, because applications log or evaluate them. */
const HEADERS = [
  "user-agent",
  "referer",
  "cookie",
  "origin",
  "content-type",
  "accept-language",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-api-version",
] as const;

/** Cache size: clients repeat the same header values. */
const REMEMBERED = { maxEntries: 500, ttlMs: 600_000 };
const MAX_REMEMBERED_LENGTH = 1024;

/** Rules per log line; attack tools match many at once. */
const MAX_NOTES = 8;

const listed = rules
  .map(
    ({ id, ruleset, parts, finds }) =>
      `| \`${id}\` | ${ruleset} | ${parts.join(", ")} | ${finds} |`,
  )
  .join("\n");

export default definePlugin({
  name: "waf-lite",
  summary: "Detects common attacks with a small set of rules",
  description: `Inspects the path, the query, some headers (${HEADERS.join(", ")}) and, where enabled, the body. It decodes percent-encoding up to
three times, and ignores case, white space, SQL comments, JSON escapes and full-width letters.

Leave \`mode\` at \`detect\` for a while, look for reasons that begin with \`waf.\` in the request log, add what your applications need
to \`exclude\`, then set \`block\`. The rules catch scanners and simple attacks. They cannot know what an application does with a
value: they do not replace a secure application, and an attacker who knows the rules can evade them.

The rule set \`block-exploits\` has the checks of "Block Common Exploits" in Nginx Proxy Manager, on the query as the client sent it
and on User-Agent. The others detect more.

Bodies that are longer than \`max_body\`, compressed, or neither text nor a form are not inspected, with the note
\`waf.body-not-inspected\` for the first two; [request-size-limit](request-size-limit.md) rejects long ones. Articles and queries in
bodies look like attacks to these rules: exclude the paths of editors and database tools before you enable \`inspect_body\`.

The rules ([their expressions](../../src/plugins/waf-lite/rules.ts)):

| rule | set | looks at | finds |
| --- | --- | --- | --- |
${listed}`,
  group: "access",
  order: 9000,
  phases: ["pre_auth"],
  scopes: httpScopes.filter((scope) => !scope.startsWith("consumer")),
  config: schema,
  example: { mode: "block", rulesets: ["path-traversal", "rce-probe"], exclude: ["/admin/editor"] },
  onError: "closed",
  check: ({ exclude }) =>
    exclude.flatMap((each, at) =>
      each.startsWith("/") || rules.some(({ id }) => id === each)
        ? []
        : [{ path: `exclude[${at}]`, message: "must be the id of a rule, or a path" }],
    ),
  create(own) {
    const { find, isExcluded } = inspector(own);
    const conclude = conclusion(own);
    return {
      preAuth(context): Outcome | Promise<Outcome> {
        if (isExcluded(context.path)) return undefined;
        const found = [
          ...find("path", context.path, "text"),
          ...find("query", context.query, "form"),
        ];
        for (const name of HEADERS) {
          const value = context.header(name);
          if (value !== null) found.push(...find("header", value, "text"));
        }
        found.push(...find("user-agent", context.header("user-agent") ?? "", "text"));
        const isDecided = own.mode === "block" && found.length > 0;
        if (!own.inspect_body || isDecided || !context.hasBody) return conclude(found, context);
        const encoding = encodingOf(context.header("content-type"));
        if (encoding === null) return conclude(found, context);
        return bodyText(context, own.max_body).then((text) =>
          conclude(text === null ? found : [...found, ...find("body", text, encoding)], context),
        );
      },
    };
  },
});

/** The outcome of a request with matches. */
function conclusion({ mode, status }: Config) {
  const detail = "the request looks like an attack";
  return (found: readonly Rule[], context: RequestContext): Outcome => {
    const [first] = found;
    if (first === undefined) return undefined;
    if (mode === "block") return reject(status, `waf.${first.id}`, { detail });
    const ids = new Set(found.map(({ id }) => id));
    for (const id of [...ids].slice(0, MAX_NOTES)) context.note(`waf.${id}`);
    return undefined;
  };
}

const NONE: readonly Rule[] = [];

function inspector({ rulesets, exclude }: Config) {
  const excluded = new Set(exclude);
  const asked = rules.filter(({ id, ruleset }) => rulesets.includes(ruleset) && !excluded.has(id));
  const of = (part: Part) => asked.filter(({ parts }) => parts.includes(part));
  const byPart: Readonly<Record<Part, readonly Rule[]>> = {
    path: of("path"),
    query: of("query"),
    header: of("header"),
    "user-agent": of("user-agent"),
    body: of("body"),
  };
  const remembered = new Cache<readonly Rule[]>(REMEMBERED);
  const search = (part: Part, text: string, encoding: Encoding): readonly Rule[] => {
    const views = viewsOf(text, encoding);
    const found = byPart[part].filter(({ patterns, sequences = [], isRaw = false }) => {
      const texts = isRaw ? [text] : views;
      return (
        patterns.some((pattern) => texts.some((each) => pattern.test(each))) ||
        sequences.some((steps) => texts.some((each) => hasSequence(each, steps)))
      );
    });
    return found.length === 0 ? NONE : found;
  };
  const find = (part: Part, text: string, encoding: Encoding): readonly Rule[] => {
    if (text === "" || byPart[part].length === 0) return NONE;
    if (part !== "header" || text.length > MAX_REMEMBERED_LENGTH)
      return search(part, text, encoding);
    const known = remembered.get(text);
    if (known !== undefined) return known;
    const found = search(part, text, encoding);
    remembered.set(text, found);
    return found;
  };
  const paths = exclude
    .filter((each) => each.startsWith("/"))
    .map((each) => comparablePath(each).replace(/\/$/, ""));
  const isExcluded = (path: string) => {
    if (paths.length === 0) return false;
    const plain = comparablePath(path);
    return paths.some((each) => plain === each || plain.startsWith(`${each}/`));
  };
  return { find, isExcluded };
}

/** Null: no text. A body without a type may be any text. */
function encodingOf(contentType: string | null): Encoding | null {
  const type = (contentType ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  if (type === "application/x-www-form-urlencoded") return "form";
  if (/^application\/(?:[^ ]+\+)?json$|^application\/x-ndjson$/.test(type)) return "json";
  const isText =
    type === "" ||
    type.startsWith("text/") ||
    type === "multipart/form-data" ||
    /^application\/(?:[^ ]+\+)?(?:xml|graphql|javascript|yaml|soap)$/.test(type);
  return isText ? "text" : null;
}

async function bodyText(context: RequestContext, maxBytes: number): Promise<string | null> {
  // Content codings are case-insensitive, so capitals do not bypass inspection.
  const coding = (context.header("content-encoding") ?? "identity").trim().toLowerCase();
  const bytes = coding === "identity" ? await context.readBody(maxBytes) : null;
  if (bytes !== null) return new TextDecoder().decode(bytes);
  context.note("waf.body-not-inspected");
  return null;
}
