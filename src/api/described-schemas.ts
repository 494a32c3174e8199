// The schemas of the API as OpenAPI 3.1 has them: keywords of JSON Schema only, and defaults that fit; knows no endpoint.
import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { FORMER } from "../model/decode.ts";
import { DEFAULTS } from "../model/dependent-defaults.ts";
import { examples } from "./examples.ts";
import { schemas } from "./schemas.ts";

type Json = Readonly<Record<string, unknown>>;

/** Of the web UI and of error messages; clients of the API have no use for them. */
const OWN_KEYWORDS = new Set(["form", "errorMessage", DEFAULTS, FORMER]);

/** `sent`: names of schemas that requests have. */
export const describedSchemas = (sent: ReadonlySet<string>): Readonly<Record<string, Json>> =>
  Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => {
      const described = new Described(sent.has(name)).of(schema);
      const example = examples[name];
      return [name, example === undefined ? described : { ...described, examples: [example] }];
    }),
  );

class Described {
  /** Requests may omit what has a default; responses have every field. */
  readonly #omitsDefaults: boolean;

  constructor(omitsDefaults: boolean) {
    this.#omitsDefaults = omitsDefaults;
  }

  of(schema: TSchema): Json {
    const described: Record<string, unknown> = {};
    for (const [keyword, value] of Object.entries(schema)) {
      if (OWN_KEYWORDS.has(keyword)) continue;
      const shown = this.#valueOf(keyword, value, schema);
      if (shown !== undefined) described[keyword] = shown;
    }
    return described;
  }

  #valueOf(keyword: string, value: unknown, schema: TSchema): unknown {
    switch (keyword) {
      case "properties":
      case "patternProperties":
        return Object.fromEntries(
          Object.entries(value as Record<string, TSchema>).map(([name, member]) => [
            name,
            this.of(member),
          ]),
        );
      case "anyOf":
      case "allOf":
        return (value as TSchema[]).map((part) => this.of(part));
      case "items":
      case "not":
      case "additionalProperties":
        return typeof value === "object" ? this.of(value as TSchema) : value;
      case "default":
        return Value.Default(schema, Value.Clone(value));
      case "required":
        return this.#omitsDefaults ? needed(value as readonly string[], schema) : value;
      default:
        return value;
    }
  }
}

/** Undefined: none. */
function needed(
  required: readonly string[],
  { properties }: TSchema,
): readonly string[] | undefined {
  const members = (properties ?? {}) as Readonly<Record<string, TSchema>>;
  const names = required.filter((name) => !("default" in (members[name] ?? {})));
  return names.length === 0 ? undefined : names;
}
