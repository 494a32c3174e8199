// International host names in their one stored form, lower-case A-labels (RFC 5890), by UTS 46 without transitional mappings.
import { domainToASCII, domainToUnicode } from "node:url";
import type { TSchema } from "@sinclair/typebox";

/** The mark of strings that are a host name, with `*.` or a port where the field allows them, or a URL with one. */
const HOST_NAME = "x-host-name";

export const asHostName = <T extends TSchema>(schema: T): T => ({ ...schema, [HOST_NAME]: true });

const PLAIN = /^[\w*.~-]+(?::\d+)?$/;
const PARTS = /^(https?:\/\/)?([^/?#@:[\]]*)(.*)$/isu;

export interface StoredName {
  readonly name: string;
  /** Why it is none, worded to follow the field; null: it is, or the field itself will say so. */
  readonly problem: string | null;
}

/** Programs that show or compare names may read letters that only look alike as one, so what would be mapped is refused. */
export function storedName(text: string): StoredName {
  if (/^[\0-\x7f]*$/.test(text))
    return { name: PLAIN.test(text) ? text.toLowerCase() : text, problem: null };
  const [, scheme = "", host = "", rest = ""] = PARTS.exec(text) ?? [];
  if (/^[\0-\x7f]*$/.test(host)) return { name: text, problem: null };
  const ascii = domainToASCII(host);
  const labels = ascii.split(".");
  if (ascii === "" || !PLAIN.test(ascii))
    return { name: text, problem: "is not a valid host name" };
  const shown = domainToUnicode(ascii);
  if (shown !== host.toLowerCase().normalize("NFC"))
    return {
      name: text,
      problem: `is the name ${shown} in other characters: enter that, if you mean it`,
    };
  if (ascii.length > 253 || labels.some((label) => label.length > 63))
    return { name: text, problem: `is too long: each part may have 63 characters in ${ascii}` };
  return { name: scheme.toLowerCase() + ascii + rest, problem: null };
}

/** The stored form where there is one. */
export const storedNameOf = (text: string): string => storedName(text).name;

/** The members with host names inside, by schema: schemas live as long as the program. */
const known = new WeakMap<TSchema, boolean>();

function hasNames(schema: TSchema): boolean {
  let found = known.get(schema);
  if (found === undefined) {
    // A schema that contains itself.
    known.set(schema, false);
    found = HOST_NAME in schema || partsOf(schema).some(hasNames);
    known.set(schema, found);
  }
  return found;
}

const partsOf = (schema: TSchema): TSchema[] => [
  ...Object.values((schema.properties ?? {}) as Record<string, TSchema>),
  ...(schema.items === undefined || Array.isArray(schema.items) ? [] : [schema.items as TSchema]),
  ...((schema.anyOf ?? []) as TSchema[]),
];

/** Puts the host names in the value into the stored form; returns the first problem. */
export function storeNames(schema: TSchema, value: unknown, path = ""): NameProblem | null {
  if (typeof value !== "object" || value === null || !hasNames(schema)) return null;
  const members = value as Record<string, unknown>;
  for (const part of [schema, ...((schema.anyOf ?? []) as TSchema[])])
    for (const [key, member] of Object.entries(members)) {
      const inner: TSchema | undefined = Array.isArray(value) ? part.items : part.properties?.[key];
      if (inner === undefined || !hasNames(inner)) continue;
      const at = Array.isArray(value) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
      const found = storeMember({ inner, member, at }, (name) => (members[key] = name));
      if (found !== null) return found;
    }
  return null;
}

interface NameProblem {
  readonly path: string;
  readonly message: string;
}

function storeMember(
  { inner, member, at }: { readonly inner: TSchema; readonly member: unknown; readonly at: string },
  store: (name: string) => void,
): NameProblem | null {
  if (typeof member !== "string") return storeNames(inner, member, at);
  if (!isMarked(inner)) return null;
  const { name, problem } = storedName(member);
  store(name);
  return problem === null ? null : { path: at, message: problem };
}

const isMarked = (schema: TSchema): boolean =>
  HOST_NAME in schema || ((schema.anyOf ?? []) as TSchema[]).some((part) => HOST_NAME in part);
