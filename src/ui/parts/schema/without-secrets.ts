// A value of a schema without the secrets in it, to be kept where others may read it; draws nothing.
import { isDocument } from "../../api/merge-patch.ts";
import { type JsonSchema, optionsOf } from "./shape.ts";

/** What stands in the place of a secret. */
interface Places {
  readonly member: undefined;
  /** The others keep their places, as in what the gateway shows. */
  readonly item: null;
  /** The name was typed, too, and stays. */
  readonly named: "";
}

const places: Places = { member: undefined, item: null, named: "" };

/** Names of stored secrets stay: they tell nothing. */
export const withoutSecrets = (schema: JsonSchema, value: unknown): unknown =>
  strip([schema], value, "member");

/** `schemas`: all that the value may be meant as. */
function strip(schemas: readonly JsonSchema[], value: unknown, place: keyof Places): unknown {
  const options = schemas.flatMap(optionsOf);
  if (Array.isArray(value)) {
    const items = options.flatMap((option) => option.items ?? []);
    return value.map((item: unknown) => strip(items, item, "item"));
  }
  if (isDocument(value)) {
    const kept = Object.entries(value).map(([name, member]) => {
      const known = options.flatMap(({ properties = {} }) =>
        Object.hasOwn(properties, name) ? (properties[name] ?? []) : [],
      );
      if (known.length > 0) return [name, strip(known, member, "member")] as const;
      return [name, strip(options.flatMap(membersOf), member, "named")] as const;
    });
    return Object.fromEntries(kept.filter(([, member]) => member !== undefined));
  }
  const isSecret = options.some((option) => option["x-kind"] === "secret");
  return isSecret && value !== null ? places[place] : value;
}

const membersOf = ({ patternProperties = {}, additionalProperties }: JsonSchema) => [
  ...Object.values(patternProperties),
  ...(typeof additionalProperties === "object" ? [additionalProperties] : []),
];
