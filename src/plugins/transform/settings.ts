// What transform can be told to change, and what is wrong with it beyond the schema; knows no request.
import { type Static, Type as t } from "@sinclair/typebox";
import { config, group, headerName, listOf, nullable, regex, template } from "../../pdk/fields.ts";
import {
  GATEWAY_FIELDS,
  HOP_BY_HOP,
  isFieldValue,
  isToken,
  parseAuthority,
} from "../../pdk/http.ts";
import { pathProblem } from "./json-body.ts";
import { replacementProblem } from "./replacement.ts";

/** Bodies above this are not changed. */
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
    description: "What is taken away",
  });

const headers = (whose: string) =>
  group(
    {
      set: values("Fields in the place of those of the same name"),
      add: values("Fields beside those of the same name"),
      remove: listOf(headerName({ description: "Name of a field" }), {
        maxItems: 100,
        description: "What is taken away",
      }),
      rename: renames("New names by old ones"),
    },
    `Header fields of ${whose}; in the order remove, rename, set, add`,
  );

const jsonBody = (whose: string) =>
  group(
    {
      set: t.Record(
        key,
        t.Unknown({ description: "Any JSON value; in texts variables are filled in" }),
        {
          default: {},
          maxProperties: 100,
          description: "Members by path, made where they are not there",
        },
      ),
      remove: names("member"),
      rename: renames("New paths by old ones"),
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
          description: "Another method",
        }),
      ),
      path_rewrite: nullable(
        t.Object(
          {
            regex: regex({
              description: "What is looked for in the path, percent-encoded as it is",
            }),
            to: template({
              description: "What stands in its place: variables, and `$1` or `$<name>` for groups",
            }),
          },
          {
            additionalProperties: false,
            description: "Another path; the route then neither strips nor rewrites it",
          },
        ),
      ),
      host: nullable(template({ description: "Another Host field" })),
      headers: headers("requests"),
      query: group(
        {
          set: values("Parameters in the place of those of the same name"),
          add: values("Parameters beside those of the same name"),
          remove: names("parameter"),
          rename: renames("New names by old ones"),
        },
        "Parameters of the query; in the order remove, rename, set, add",
      ),
      body_json: jsonBody("requests"),
      body_template: nullable(
        template({
          maxLength: MAX_BODY_BYTES,
          description:
            "Another body; variables are escaped as Content-Type wants it, also where it is set here",
        }),
      ),
    },
    "What goes upstream",
  ),
  response: group(
    {
      status_map: t.Record(
        t.String({ pattern: "^[1-5](?:[0-9]{2}|xx)$" }),
        t.Integer({ minimum: 200, maximum: 599, description: "New status" }),
        {
          additionalProperties: false,
          default: {},
          description: "New statuses by old ones, or by classes such as `5xx`",
        },
      ),
      headers: headers("answers"),
      body_json: jsonBody("answers"),
      body_replace: listOf(
        t.Object(
          {
            regex: regex({ description: "What is looked for, everywhere in the body" }),
            with: template({
              description: "What stands in its place: variables, and `$1` or `$<name>` for groups",
            }),
          },
          { additionalProperties: false, description: "One replacement" },
        ),
        { maxItems: 20, description: "Replacements in texts, one after the other" },
      ),
    },
    "What comes back",
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

/** Of an answer, what belongs to the connection and the length of its body. */
export const ANSWER_FIELDS: ReadonlySet<string> = new Set([...HOP_BY_HOP, "content-length"]);

export const hasJsonChanges = ({ set, remove, rename }: JsonChanges): boolean =>
  Object.keys(set).length + remove.length + Object.keys(rename).length > 0;

export function problemsOf({ request, response }: Config): Problem[] {
  const found = [
    ...headerProblems("request.headers", request.headers, GATEWAY_FIELDS),
    ...headerProblems("response.headers", response.headers, ANSWER_FIELDS),
    ...jsonProblems("request.body_json", request.body_json),
    ...jsonProblems("response.body_json", response.body_json),
  ];
  const check = (path: string, message: string | null) => {
    if (message !== null) found.push({ path, message });
  };
  if (request.body_template !== null && hasJsonChanges(request.body_json))
    check("request.body_template", "cannot be given together with body_json");
  if (request.method === "CONNECT" || request.method === "TRACE")
    check("request.method", "must be another method");
  const { path_rewrite: rewrite, host } = request;
  if (host !== null && parseAuthority(withoutVariables(host)) === null)
    check("request.host", "must be a host, with a port where it is not the usual one");
  if (rewrite !== null) check("request.path_rewrite.to", replacementProblem(rewrite.to));
  for (const [at, each] of response.body_replace.entries())
    check(`response.body_replace[${at}].with`, replacementProblem(each.with));
  return found;
}

/** As if each held something harmless. */
const withoutVariables = (text: string) => text.replaceAll(/\$\{[^{}]*\}/g, "x");

function headerProblems(
  path: string,
  { set, add, remove, rename }: HeaderChanges,
  reserved: ReadonlySet<string>,
): Problem[] {
  const named = (kind: string, all: readonly string[]) =>
    all.flatMap((name): Problem[] => {
      const at = `${path}.${kind}.${name}`;
      if (!isToken(name)) return [{ path: at, message: "is not the name of a field" }];
      return reserved.has(name.toLowerCase())
        ? [{ path: at, message: "is reserved for the gateway" }]
        : [];
    });
  const literal = (kind: string, all: Readonly<Record<string, string>>) =>
    Object.entries(all).flatMap(([name, value]): Problem[] =>
      isFieldValue(withoutVariables(value))
        ? []
        : [{ path: `${path}.${kind}.${name}`, message: "is not the value of a field" }],
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
