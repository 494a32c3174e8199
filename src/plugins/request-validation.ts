// request-validation: validates requests against JSON Schemas or an OpenAPI document.
import { type Static, Type as t } from "@sinclair/typebox";
import { type Outcome, type Rejection, reject } from "../pdk/response.ts";
import { isPreflight } from "../pdk/authentication.ts";
import type { RequestContext } from "../pdk/context.ts";
import type { Steps } from "../pace.ts";
import { definePlugin, httpScopes, type PluginProblem } from "../pdk/definition.ts";
import { config, flag, integer, listOf, nullable, url } from "../pdk/fields.ts";
import { findAmbiguity } from "../pdk/json.ts";
import type { PluginKit } from "../pdk/kit.ts";
import { DocumentSource } from "./request-validation/document-source.ts";
import { ApiDocument, type Body } from "./request-validation/openapi.ts";
import { lookThrough, sizeOf } from "./request-validation/schema-text.ts";
import { type Check, Validator } from "./request-validation/validator.ts";
import { formValues, parameterProblem } from "./request-validation/values.ts";

const jsonSchema = (description: string) =>
  nullable(t.Object({}, { additionalProperties: true, description }));

const schema = config({
  body_schema: jsonSchema("JSON Schema (2020-12) of bodies: JSON, and forms as objects of strings"),
  header_schema: jsonSchema("JSON Schema of the headers, as an object with lower-case names"),
  query_schema: jsonSchema(
    "JSON Schema of the query, as an object; a repeated parameter is a list",
  ),
  content_types: listOf(
    t.String({
      pattern: "^[A-Za-z0-9!#$&^_.+-]+/(?:\\*|[A-Za-z0-9!#$&^_.+-]+)$",
      errorMessage: "must be a media type such as application/json, or text/*",
      description: "Media type, or range such as `text/*`",
    }),
    {
      maxItems: 100,
      description: "Allowed media types of bodies; empty: all that the schemas allow",
    },
  ),
  openapi: nullable(
    t.Object(
      {
        spec: nullable(
          t.String({
            minLength: 1,
            maxLength: 1_048_576,
            description: "OpenAPI document as JSON or YAML",
          }),
        ),
        url: nullable(
          url({
            description: "URL of the OpenAPI document; each worker fetches it every 5 minutes",
          }),
        ),
      },
      { additionalProperties: false, description: "OpenAPI 3.0 or 3.1: give `spec` or `url`" },
    ),
  ),
  max_body: integer(1_048_576, {
    minimum: 1,
    maximum: 67_108_864,
    description: "Maximum size of a validated body in bytes; longer ones get 413",
  }),
  rejected_status: integer(400, {
    minimum: 400,
    maximum: 499,
    description: "Status of rejections",
  }),
  verbose_errors: flag(false, "Show the client what is invalid and where, without values"),
});

type Config = Static<typeof schema>;

export default definePlugin({
  name: "request-validation",
  summary: "Validates requests against JSON Schemas or an OpenAPI document",
  description: `\`body_schema\`, \`header_schema\` and \`query_schema\` are JSON Schemas of 2020-12. Texts of queries, headers and forms are converted to
numbers, booleans and lists where the schema expects them. With an OpenAPI document, a request must match one of its operations,
below the path of one of its \`servers\`; its parameters, its media type and its body must be valid. Object parameters are not
validated, nor are media types other than JSON and forms. CORS preflight requests pass.

Bodies must be JSON or a form where they have a schema, in UTF-8 and not compressed; others get 415, because the gateway cannot
check them. JSON with a duplicate member is rejected, because programs differ in which one they use. The body goes upstream
unchanged. The request log has the reason as \`validation.path\`, \`.method\`, \`.query\`, \`.header\`, \`.parameter\`, \`.body\` or
\`.content_type\`; the client sees it with \`verbose_errors\` only.

References must stay inside of the OpenAPI document; nothing else is fetched. A schema holds at most 2,000 values, with all that it
refers to and without descriptions. Each is compiled at the first request that needs it; the first 100,000 values also when the instance is written. Patterns are checked when the instance is written: those
with unbounded backtracking are rejected. An OpenAPI document from a \`url\` is fetched later, so that only its simple patterns are
used, on texts of up to 2048 characters; the log names the others. Until the first fetch succeeds, requests get 503. The checked formats are
date, time, date-time, email, hostname, ipv4, ipv6, uri, uuid, byte, int32 and int64.`,
  group: "access",
  order: 6500,
  phases: ["access"],
  scopes: httpScopes,
  config: schema,
  example: {
    body_schema: {
      type: "object",
      required: ["name"],
      properties: {
        name: { type: "string", maxLength: 100 },
        age: { type: "integer", minimum: 0 },
      },
      additionalProperties: false,
    },
    query_schema: { type: "object", properties: { page: { type: "integer", minimum: 1 } } },
    content_types: ["application/json"],
    verbose_errors: true,
  },
  onError: "closed",
  longCheck: problemsOf,
  regexes: (own) => schemasOf(own).flatMap(({ path, found }) => within(path, found.regexes)),
  create(own, kit) {
    const parts = compileParts(own, kit);
    return { access: (context) => judge(context, { own, parts }) };
  },
});

interface Looked {
  readonly path: string;
  readonly found: ReturnType<typeof lookThrough>;
}

const within = <T extends { readonly path: string }>(path: string, all: readonly T[]): T[] =>
  all.map((each) => ({ ...each, path: each.path === "" ? path : `${path}.${each.path}` }));

/** All schemas of the configuration. */
function schemasOf(own: Config): Looked[] {
  const looked: Looked[] = [];
  for (const path of ["body_schema", "header_schema", "query_schema"] as const)
    if (own[path] !== null) looked.push({ path, found: lookThrough(own[path]) });
  const { spec } = own.openapi ?? { spec: null };
  if (spec === null) return looked;
  try {
    const document: unknown = /^\s*\{/.test(spec) ? JSON.parse(spec) : Bun.YAML.parse(spec);
    looked.push({ path: "openapi.spec", found: lookThrough(document) });
  } catch {
    const problems = [{ path: "", message: "must be JSON or YAML" }];
    looked.push({ path: "openapi.spec", found: { regexes: [], problems } });
  }
  return looked;
}

function* problemsOf(own: Config): Steps<PluginProblem[]> {
  const found = schemasOf(own).flatMap(({ path, found: { problems } }) => within(path, problems));
  const { openapi } = own;
  if (openapi !== null && (openapi.spec === null) === (openapi.url === null))
    found.push({ path: "openapi", message: "must have exactly one of spec and url" });
  yield;
  // External references and oversized schemas are not compiled.
  return found.length > 0 ? found : yield* compiledProblems(own);
}

function* compiledProblems(own: Config): Steps<PluginProblem[]> {
  const found: PluginProblem[] = [];
  const hasSafePatterns = true;
  for (const path of ["body_schema", "header_schema", "query_schema"] as const) {
    const given = own[path];
    if (given === null) continue;
    const validator = new Validator({ coerces: false, hasSafePatterns });
    const message = sizeOf(given, given).problem ?? validator.problemOf(given);
    yield;
    if (message !== null) found.push({ path, message });
  }
  const { spec } = own.openapi ?? { spec: null };
  if (spec === null) return found;
  try {
    const document = new ApiDocument(spec, { hasSafePatterns });
    yield;
    const message = yield* document.schemaProblem();
    if (message !== null) found.push({ path: "openapi.spec", message });
  } catch (error) {
    found.push({ path: "openapi.spec", message: (error as Error).message });
  }
  return found;
}

interface Parts {
  readonly body: { readonly strict: Check; readonly lenient: Check } | null;
  readonly headers: Check | null;
  readonly query: Check | null;
  /** Null: no OpenAPI document. */
  readonly document: (() => ApiDocument | null | Promise<ApiDocument | null>) | null;
  readonly isAllowedType: (type: string) => boolean;
}

function compileParts(own: Config, kit: PluginKit): Parts {
  const strict = new Validator({ coerces: false, hasSafePatterns: true });
  const lenient = new Validator({ coerces: true, hasSafePatterns: true });
  const { body_schema: body, header_schema: header, query_schema: query } = own;
  return {
    body:
      body === null
        ? null
        : { strict: strict.compile(body), lenient: lenient.compile(structuredClone(body)) },
    headers: header === null ? null : lenient.compile(header),
    query: query === null ? null : lenient.compile(query),
    document: compileDocument(own, kit),
    isAllowedType: rangesOf(own.content_types),
  };
}

function compileDocument({ openapi }: Config, kit: PluginKit): Parts["document"] {
  if (openapi === null) return null;
  if (openapi.spec !== null) {
    try {
      const document = new ApiDocument(openapi.spec, { hasSafePatterns: true });
      return () => document;
    } catch (error) {
      throw new Error(`openapi.spec: ${(error as Error).message}`, { cause: error });
    }
  }
  const source = new DocumentSource({
    url: openapi.url ?? "",
    kit,
    compile(text) {
      const document = new ApiDocument(text, { hasSafePatterns: false });
      if (document.ignored.length > 0)
        kit.log(
          "warn",
          "patterns of an OpenAPI document are ignored, because they could backtrack without bound",
          {
            patterns: document.ignored.slice(0, 20),
          },
        );
      return document;
    },
  });
  return () => source.get();
}

function rangesOf(types: readonly string[]): (type: string) => boolean {
  if (types.length === 0) return () => true;
  const all = new Set(types.map((type) => type.toLowerCase()));
  return (type) => all.has(type) || all.has(`${type.split("/")[0]}/*`);
}

interface Case {
  readonly own: Config;
  readonly parts: Parts;
}

function judge(context: RequestContext, by: Case): Outcome | Promise<Outcome> {
  const { document } = by.parts;
  if (document === null) return judgeWith(context, by, null);
  if (isPreflight(context)) return undefined;
  const found = document();
  const validate = (api: ApiDocument | null) =>
    api === null
      ? reject(503, "validation.no_document", {
          detail: "requests cannot be validated at the moment",
        })
      : judgeWith(context, by, api);
  return found instanceof Promise ? found.then(validate) : validate(found);
}

function judgeWith(
  context: RequestContext,
  by: Case,
  api: ApiDocument | null,
): Outcome | Promise<Outcome> {
  const { own, parts } = by;
  if (parts.headers !== null) {
    const problem = parts.headers({ ...context.headers });
    if (problem !== null) return refusal(own, "header", `the header fields: ${problem}`);
  }
  if (parts.query !== null) {
    const values = formValues(context.query);
    const problem = values === null ? "has invalid escapes" : parts.query(values);
    if (problem !== null) return refusal(own, "query", `the query: ${problem}`);
  }
  const matched = api?.match(context.method, context.path) ?? null;
  if (matched === "path") return refusal(own, "path", "the path does not exist");
  if (matched === "method") return refusal(own, "method", "the path does not have this method");
  if (matched !== null) {
    const problem = parameterProblem(matched.operation, context, matched.values);
    if (problem !== null) return refusal(own, "parameter", problem);
  }
  return judgeBody(context, by, matched === null ? null : matched.operation.body);
}

/** RFC 9110 section 9.3: a body has no meaning in these. */
const BODILESS: ReadonlySet<string> = new Set(["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"]);

function judgeBody(
  context: RequestContext,
  { own, parts }: Case,
  ofOperation: Body | null,
): Outcome | Promise<Outcome> {
  if (!context.hasBody) {
    const isNeeded =
      ofOperation?.isRequired === true || (parts.body !== null && !BODILESS.has(context.method));
    return isNeeded ? refusal(own, "body", "a body is required") : undefined;
  }
  const type = mediaTypeOf(context);
  if (!parts.isAllowedType(type)) return wrongType();
  const media = ofOperation === null ? null : mediaOf(ofOperation, type);
  if (ofOperation !== null && media === null) return wrongType();
  const checks = [parts.body, media].filter((each) => each !== null);
  const strict = checks.flatMap(({ strict: check }) => (check === null ? [] : [check]));
  const lenient = checks.flatMap(({ lenient: check }) => (check === null ? [] : [check]));
  if (strict.length === 0) return undefined;
  const isForm = type === "application/x-www-form-urlencoded";
  const isJson = /^[^/]+\/(?:[^/]+\+)?json$/.test(type);
  // An OpenAPI document may describe bodies that the gateway cannot parse; a body_schema needs one that it can.
  if (!isForm && !isJson) return parts.body === null ? undefined : wrongType();
  const coding = context.header("content-encoding")?.trim().toLowerCase() ?? "identity";
  if (coding !== "identity")
    return reject(415, "validation.content_type", {
      detail: "the request body must not be compressed",
      // RFC 9110 section 12.5.3.
      headers: { "Accept-Encoding": "identity" },
    });
  return context.readBody(own.max_body).then((bytes) => {
    if (bytes === null)
      return reject(413, "validation.too_large", { detail: "the request body is too large" });
    const problem = isForm ? formProblem(bytes, lenient) : jsonProblem(bytes, strict);
    return problem === null ? undefined : refusal(own, "body", `the body: ${problem}`);
  });
}

const wrongType = (): Rejection =>
  reject(415, "validation.content_type", {
    detail: "the media type of the request body is not allowed",
  });

const mediaTypeOf = (context: RequestContext) =>
  ((context.header("content-type") ?? "").split(";")[0] ?? "").trim().toLowerCase();

const mediaOf = ({ content }: Body, type: string) =>
  content.get(type) ?? content.get(`${type.split("/")[0]}/*`) ?? content.get("*/*") ?? null;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function textOf(bytes: Uint8Array): string | null {
  try {
    return utf8.decode(bytes);
  } catch {
    return null;
  }
}

function jsonProblem(bytes: Uint8Array, checks: readonly Check[]): string | null {
  const text = textOf(bytes);
  if (text === null) return "is not UTF-8";
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "is not JSON";
  }
  const ambiguity = findAmbiguity(text, { numbers: false });
  if (ambiguity !== null)
    return `${ambiguity.path.replaceAll(/[^ -~]/g, "?").slice(0, 200)} ${ambiguity.message}`;
  return firstOf(checks, () => value);
}

function formProblem(bytes: Uint8Array, checks: readonly Check[]): string | null {
  const text = textOf(bytes);
  if (text === null) return "is not UTF-8";
  if (formValues(text) === null) return "has invalid escapes";
  // Validators may convert strings to numbers, so each gets its own copy.
  return firstOf(checks, () => formValues(text));
}

function firstOf(checks: readonly Check[], value: () => unknown): string | null {
  for (const check of checks) {
    const problem = check(value());
    if (problem !== null) return problem;
  }
  return null;
}

const refusal = (
  { rejected_status: status, verbose_errors: isVerbose }: Config,
  what: string,
  why: string,
) =>
  reject(status, `validation.${what}`, {
    detail: isVerbose ? why : "the request is not valid",
  });
