// Which fields name the destination of an object's secrets, and which secrets never leave the gateway; knows no kind of object.
import type { TSchema } from "@sinclair/typebox";
import { alternativeOf, isNamedMember, KIND, memberSchema } from "./schema-walk.ts";

const DESTINATION = "x-destination";
const STAYS = "x-stays";
const SENT_AS = "x-sent-as";

/**
 * A field that decides where secrets of its object are sent or who can read them in transit: kind, address, issuer,
 * encryption, trusted CAs. Wrap the whole field, with `nullable` and inside `t.Optional`.
 */
export const destination = <T extends TSchema>(schema: T): T => ({
  ...schema,
  [DESTINATION]: true,
});

/** A secret that never leaves the gateway; `reason` says why, and names what it is used for instead. */
export const stays = <T extends TSchema>(reason: string, schema: T): T => ({
  ...schema,
  [STAYS]: reason,
});

/** A stored field that holds a secret; `sentAs` is the field in which clients send it. */
export const storedSecret = <T extends TSchema>(sentAs: string, schema: T): T => ({
  ...schema,
  [KIND]: "secret",
  [SENT_AS]: sentAs,
});

/** One field of an object. */
interface Field {
  /** As clients write it: `config.headers[0].value`. */
  readonly path: string;
  /** The same for all items of a list and all members with free names: `config.headers[].value`. */
  readonly pattern: string;
  /** As it is stored, as JSON. */
  readonly value: string;
}

export type DestinationField = Field;

/** A secret that the gateway sends, and every field that names its destination. */
export interface SecretUse extends Field {
  /** The encrypted text; null: it is a reference to a named secret. */
  readonly sealed: string | null;
  /** Name of the secret; null: it is stored in the object itself. */
  readonly name: string | null;
  readonly destination: readonly DestinationField[];
}

/** All secrets of a stored object that the gateway sends; `schema` is that of the stored form. */
export function secretUses(schema: TSchema, object: unknown): SecretUse[] {
  const marked: Found[] = [];
  visit({ schema, value: object, steps: [] }, marked);
  const destinations = marked.filter((found) => found.schema[DESTINATION] === true);
  return marked.flatMap((found) => {
    const secret = secretOf(found);
    if (secret === null) return [];
    const own = destinations.filter((other) => !isBesideIt(found.steps, other.steps));
    return [{ ...fieldOf(found), ...secret, destination: own.map(fieldOf) }];
  });
}

/** The marks of a schema for secrets and destinations, independent of values; for tests and the docs. */
export const markOf = (schema: TSchema) => ({
  isDestination: schema[DESTINATION] === true,
  isSecret: schema[KIND] === "secret",
  staysBecause: (schema[STAYS] as string | undefined) ?? null,
});

/** `member`: one that the schema names; `key`: one of any number of freely named ones; `index`: an item of a list. */
interface Step {
  readonly name: string;
  readonly kind: "member" | "key" | "index";
}

interface Found {
  readonly schema: TSchema;
  readonly value: unknown;
  readonly steps: readonly Step[];
}

function visit({ schema, value, steps }: Found, found: Found[]): void {
  if (value === undefined) return;
  const isSecret = schema[KIND] === "secret";
  if (isSecret || schema[DESTINATION] === true) found.push({ schema, value, steps });
  if (isSecret || value === null) return;
  if (Array.isArray(schema.anyOf)) {
    const alternative = alternativeOf(schema, value);
    if (alternative !== undefined) visit({ schema: alternative, value, steps }, found);
    return;
  }
  if (Array.isArray(value)) {
    if (schema.items === undefined) return;
    for (const [index, item] of value.entries()) {
      const step = { name: String(index), kind: "index" } as const;
      visit({ schema: schema.items as TSchema, value: item, steps: [...steps, step] }, found);
    }
    return;
  }
  if (typeof value !== "object") return;
  for (const [name, member] of Object.entries(value)) {
    const inner = memberSchema(schema, name);
    if (inner === undefined) continue;
    const step: Step = { name, kind: isNamedMember(schema, name) ? "member" : "key" };
    visit({ schema: inner, value: member, steps: [...steps, step] }, found);
  }
}

/** Whether the other field belongs to another item of a list that the first one is in. */
function isBesideIt(steps: readonly Step[], other: readonly Step[]): boolean {
  const at = steps.findIndex(({ name }, index) => other[index]?.name !== name);
  const kinds = [steps[at]?.kind, other[at]?.kind];
  return kinds.every((kind) => kind === "index" || kind === "key");
}

function secretOf({ schema, value }: Found): Pick<SecretUse, "sealed" | "name"> | null {
  if (schema[KIND] !== "secret" || schema[STAYS] !== undefined) return null;
  if (typeof value === "string") return value === "" ? null : { sealed: value, name: null };
  if (typeof value !== "object" || value === null) return null;
  const { sealed, $secret: name } = value as Readonly<Record<string, unknown>>;
  if (typeof sealed === "string") return { sealed, name: null };
  return typeof name === "string" ? { sealed: null, name } : null;
}

function fieldOf({ schema, value, steps }: Found): Field {
  const sentAs = schema[SENT_AS] as string | undefined;
  const named: readonly Step[] =
    sentAs === undefined ? steps : [...steps.slice(0, -1), { name: sentAs, kind: "member" }];
  const path = named.map(({ name, kind }) => (kind === "index" ? `[${name}]` : `.${name}`));
  const pattern = named.map(({ name, kind }) => (kind === "member" ? `.${name}` : "[]"));
  return { path: textOf(path), pattern: textOf(pattern), value: JSON.stringify(value) };
}

const textOf = (steps: readonly string[]) => steps.join("").replace(/^\./, "");
