// Removes secrets from a value by its schema, for drafts; renders nothing.
import { isDocument } from "../../api/merge-patch.ts";
import { isSecret, type JsonSchema, optionsOf } from "./shape.ts";

/** The replacements of a secret. */
interface Replacements {
  readonly member: undefined;
  /** Null in lists, so that indexes stay stable, as in API responses. */
  readonly item: null;
  /** Empty in maps: the entered name stays. */
  readonly named: "";
}

const replacements: Replacements = { member: undefined, item: null, named: "" };

/** Names of stored secrets stay: they are not secret. */
export const withoutSecrets = (schema: JsonSchema, value: unknown): unknown =>
  strip([schema], value, "member");

/** `schemas`: all alternatives of the value. */
function strip(
  schemas: readonly JsonSchema[],
  value: unknown,
  replacement: keyof Replacements,
): unknown {
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
  const isOne = [...schemas, ...options].some(isSecret);
  return isOne && value !== null ? replacements[replacement] : value;
}

const membersOf = ({ patternProperties = {}, additionalProperties }: JsonSchema) => [
  ...Object.values(patternProperties),
  ...(typeof additionalProperties === "object" ? [additionalProperties] : []),
];
