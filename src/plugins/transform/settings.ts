// The settings of transform and their validation; knows no request.
import { type Static, Type as t } from "@sinclair/typebox";
import {
  config,
  flag,
  group,
  headerName,
  listOf,
  nullable,
  regex,
  template,
} from "../../pdk/fields.ts";
import {
  forbiddenInTrailers,
  GATEWAY_FIELDS,
  HOP_BY_HOP,
  isFieldValue,
  isToken,
  parseAuthority,
} from "../../pdk/http.ts";
import { pathProblem } from "./json-body.ts";
import { replacementProblem } from "./replacement.ts";

/** Larger bodies are not changed. */
export const MAX_BODY_BYTES = 1_048_576;

const key = t.String({ minLength: 1, maxLength: 256 });

const values = (description: string) =>
  t.Record(key, template({ description: "Value, with variables" }), {
    default: {},
    maxProperties: 100,
    description,
  });

const renames = (description: string) =>
  t.Record(key, t.String({ minLength: 1, maxLength: 256, description: "New name" }), {
    default: {},
    maxProperties: 100,
    description,
  });

const names = (what: string) =>
  listOf(t.String({ minLength: 1, maxLength: 256, description: `Name of a ${what}` }), {
    maxItems: 100,
    description: "Names to remove",
  });

const fields = (what: "Header" | "Trailer", description: string) =>
  group(
    {
      set: values(`${what}s to set, replacing those of the same name`),
      add: values(`${what}s to add to those of the same name`),
      remove: listOf(headerName({ description: `Name of a ${what.toLowerCase()}` }), {
        maxItems: 100,
        description: "Names to remove",
      }),
      rename: renames("New names by old names"),
    },
    description,
  );

const headers = (whose: string) =>
  fields("Header", `Headers of ${whose}; changes apply in the order remove, rename, set, add`);

const jsonBody = (whose: string) =>
  group(
    {
      set: t.Record(key, t.Unknown({ description: "JSON value; strings may have variables" }), {
        default: {},
        maxProperties: 100,
        description: "Members to set by path, created when missing",
      }),
      remove: names("member"),
      rename: renames("New paths by old paths"),
    },
    `Members of JSON bodies of ${whose}, by paths such as \`user.name\` and \`items.0\`, or \`/a.b/c\` for names with dots; in the order remove, rename, set`,
  );

export const schema = config({
  request: group(
    {
      method: nullable(
        t.String({
          pattern: "^[A-Z][A-Z-]{0,31}$",
          errorMessage: "must be a method in capitals",
          description: "New method",
        }),
      ),
      path_rewrite: nullable(
        t.Object(
          {
            regex: regex({
              description: "Expression to find in the percent-encoded path",
            }),
            to: template({
              description: "Replacement: variables, and `$1` or `$<name>` for groups",
            }),
          },
          {
            additionalProperties: false,
            description: "Path rewrite; the route then neither strips nor rewrites the path",
          },
        ),
      ),
      host: nullable(template({ description: "New Host header" })),
      headers: headers("requests"),
      query: group(
        {
          set: values("Parameters to set, replacing those of the same name"),
          add: values("Parameters to add to those of the same name"),
          remove: names("parameter"),
          rename: renames("New names by old names"),
        },
        "Query parameters; changes apply in the order remove, rename, set, add",
      ),
      body_json: jsonBody("requests"),
      body_template: nullable(
        template({
          maxLength: MAX_BODY_BYTES,
          description: "New body; variables are escaped by Content-Type, also when it is set here",
        }),
      ),
    },
    "Changes to the request",
  ),
  response: group(
    {
      status_map: t.Record(
        t.String({ pattern: "^[1-5](?:[0-9]{2}|xx)$" }),
        t.Integer({ minimum: 200, maximum: 599, description: "New status" }),
        {
          additionalProperties: false,
          default: {},
          description: "New statuses by old statuses, or by classes such as `5xx`",
        },
      ),
      headers: headers("responses"),
      gateway_responses: flag(
        false,
        "Change the headers of errors and redirects of the gateway itself, too; those of plugins with a higher priority stay as they are",
      ),
      trailers: fields(
        "Trailer",
        "Trailers of responses, such as `grpc-message`, in the same order; only for listeners with an engine for trailers",
      ),
      body_json: jsonBody("responses"),
      body_replace: listOf(
        t.Object(
          {
            regex: regex({ description: "Expression to find in the body" }),
            with: template({
              description: "Replacement: variables, and `$1` or `$<name>` for groups",
            }),
          },
          { additionalProperties: false, description: "One replacement" },
        ),
        { maxItems: 20, description: "Replacements in text bodies, in order" },
      ),
    },
    "Changes to the response",
  ),
});

export type Config = Static<typeof schema>;
export type HeaderChanges = Config["request"]["headers"];
export type QueryChanges = Config["request"]["query"];
export type JsonChanges = Config["request"]["body_json"];

interface Problem {
  readonly path: string;
  readonly message: string;
}

/** Response headers of the connection and of body framing. */
const isOfResponse = (name: string) => HOP_BY_HOP.has(name) || name === "content-length";

export const hasJsonChanges = ({ set, remove, rename }: JsonChanges): boolean =>
  Object.keys(set).length + remove.length + Object.keys(rename).length > 0;

export function problemsOf({ request, response }: Config): Problem[] {
  const found = [
    ...headerProblems("request.headers", request.headers, (name) => GATEWAY_FIELDS.has(name)),
    ...headerProblems("response.headers", response.headers, isOfResponse),
    ...headerProblems("response.trailers", response.trailers, forbiddenInTrailers),
    ...jsonProblems("request.body_json", request.body_json),
    ...jsonProblems("response.body_json", response.body_json),
  ];
  const check = (path: string, message: string | null) => {
    if (message !== null) found.push({ path, message });
  };
  if (request.body_template !== null && hasJsonChanges(request.body_json))
    check("request.body_template", "cannot be combined with body_json");
  if (request.method === "CONNECT" || request.method === "TRACE")
    check("request.method", "must be a supported method");
  const { path_rewrite: rewrite, host } = request;
  if (host !== null && parseAuthority(withoutVariables(host)) === null)
    check("request.host", "must be a host, optionally with a port");
  if (rewrite !== null) check("request.path_rewrite.to", replacementProblem(rewrite.to));
  for (const [at, each] of response.body_replace.entries())
    check(`response.body_replace[${at}].with`, replacementProblem(each.with));
  return found;
}

/** With harmless values for all variables. */
const withoutVariables = (text: string) => text.replaceAll(/\$\{[^{}]*\}/g, "x");

function headerProblems(
  path: string,
  { set, add, remove, rename }: HeaderChanges,
  isReserved: (name: string) => boolean,
): Problem[] {
  const named = (kind: string, all: readonly string[]) =>
    all.flatMap((name): Problem[] => {
      const at = `${path}.${kind}.${name}`;
      if (!isToken(name)) return [{ path: at, message: "is not a valid header name" }];
      return isReserved(name.toLowerCase())
        ? [{ path: at, message: "is reserved for the gateway" }]
        : [];
    });
  const literal = (kind: string, all: Readonly<Record<string, string>>) =>
    Object.entries(all).flatMap(([name, value]): Problem[] =>
      isFieldValue(withoutVariables(value))
        ? []
        : [{ path: `${path}.${kind}.${name}`, message: "is not a valid header value" }],
    );
  return [
    ...named("set", Object.keys(set)),
    ...named("add", Object.keys(add)),
    ...named("remove", remove),
    ...named("rename", [...Object.keys(rename), ...Object.values(rename)]),
    ...literal("set", set),
    ...literal("add", add),
  ];
}

function jsonProblems(path: string, { set, remove, rename }: JsonChanges): Problem[] {
  const all = [
    ...Object.keys(set).map((name) => ["set", name] as const),
    ...remove.map((name) => ["remove", name] as const),
    ...Object.entries(rename).flatMap(([from, to]) => [
      ["rename", from] as const,
      ["rename", to] as const,
    ]),
  ];
  return all.flatMap(([kind, name]): Problem[] => {
    const message = pathProblem(name);
    return message === null ? [] : [{ path: `${path}.${kind}.${name}`, message }];
  });
}
