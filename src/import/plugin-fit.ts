// Removes fields that the gateway's version of a plugin does not have; knows no plugin.
import type { TSchema } from "@sinclair/typebox";
import { type Document, isDocument } from "../control/body.ts";

/** The configuration without unknown fields, and the paths of those. */
export function fitConfig(
  schema: TSchema,
  config: Document,
): { readonly config: Document; readonly unknown: readonly string[] } {
  const unknown: string[] = [];
  return { config: trim(schema, config, { path: "", unknown }) as Document, unknown };
}

interface Walk {
  readonly path: string;
  readonly unknown: string[];
}

function trim(schema: TSchema, value: unknown, { path, unknown }: Walk): unknown {
  if (Array.isArray(value)) {
    const items: unknown = schema["items"];
    if (!isDocument(items)) return value;
    return value.map((item, index) =>
      trim(items as unknown as TSchema, item, { path: `${path}[${index}]`, unknown }),
    );
  }
  if (!isDocument(value)) return value;
  const known: unknown = schema["properties"];
  if (!isDocument(known)) return value;
  const isOpen = schema["additionalProperties"] !== false;
  const kept = Object.entries(value).flatMap(([name, inner]) => {
    const at = path === "" ? name : `${path}.${name}`;
    if (inner === undefined) return [];
    if (Object.hasOwn(known, name))
      return [[name, trim(known[name] as TSchema, inner, { path: at, unknown })] as const];
    if (isOpen) return [[name, inner] as const];
    unknown.push(at);
    return [];
  });
  return Object.fromEntries(kept);
}
