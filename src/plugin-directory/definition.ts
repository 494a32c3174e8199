// The definition of a plugin from a directory, on its way from the thread that has read it to the main thread; runs no code of it.
import type { TObject, TSchema } from "@sinclair/typebox";
import { decode } from "../model/decode.ts";
import { markOf } from "../model/destination.ts";
import { scopeNames, type ScopeName } from "../model/plugin.ts";
import { type AnyPlugin, type PhaseName, phaseHandlers } from "../pdk/definition.ts";
import type { PluginCode } from "../pdk/definition.ts";

/** A definition as plain data: without handlers, and with the symbols of its schema as texts. */
export interface PlainDefinition {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly group: AnyPlugin["group"];
  readonly order: number;
  readonly phases: readonly PhaseName[];
  readonly scopes: readonly ScopeName[];
  readonly onError: "open" | "closed";
  readonly allowsMultiple: boolean;
  readonly namesRequests: boolean;
  readonly needsAdmin: boolean;
  readonly ignoresPath: boolean;
  readonly example: unknown;
  readonly config: unknown;
}

const GROUPS = ["authentication", "access", "traffic", "content", "observability"];
export const NAME = /^[a-z][a-z0-9-]{0,63}$/;
const MAX_ORDER = 100_000;
const MAX_TIMEOUT_MS = 600_000;

/** What only the main thread could call, which runs no code from a directory. */
const CARRIED_NOWHERE = {
  metrics: "a plugin from a directory has no metrics of its own: the gateway counts its decisions",
  cache: "a plugin from a directory cannot store responses: use response-cache",
  feed: "a plugin from a directory has no feed in the main thread: use kit.callout in the workers",
  regexes: "make the fields with regex(), which the gateway checks",
} as const;

/** Throws an Error that names the member of the definition that is wrong. */
export function plainDefinition(given: unknown, name: string): PlainDefinition {
  const definition = requireObject(given);
  requireThat(definition.name === name, `name: must be "${name}", the name of the file`);
  for (const member of ["summary", "description"] as const)
    requireThat(isText(definition[member]), `${member}: must be a text`);
  requireThat(GROUPS.includes(definition.group), `group: must be one of ${GROUPS.join(", ")}`);
  const { order, onError, phases, scopes, handlerTimeoutMs = 1 } = definition;
  requireThat(isInteger(order, 0, MAX_ORDER), `order: must be an integer from 0 to ${MAX_ORDER}`);
  requireThat(onError === "open" || onError === "closed", 'onError: must be "open" or "closed"');
  requireWords("phases", phases, Object.keys(phaseHandlers));
  requireWords("scopes", scopes, scopeNames);
  requireThat(
    isInteger(handlerTimeoutMs, 1, MAX_TIMEOUT_MS),
    `handlerTimeoutMs: must be an integer from 1 to ${MAX_TIMEOUT_MS}`,
  );
  requireThat(typeof definition.create === "function", "create: must be a function");
  for (const member of ["check", "perNode"] as const)
    requireThat(isAbsentOr("function", definition[member]), `${member}: must be a function`);
  for (const member of ["allowsMultiple", "namesRequests", "needsAdmin", "ignoresPath"] as const)
    requireThat(isAbsentOr("boolean", definition[member]), `${member}: must be true or false`);
  for (const [member, why] of Object.entries(CARRIED_NOWHERE))
    requireThat(definition[member as keyof AnyPlugin] === undefined, `${member}: ${why}`);
  return {
    name,
    summary: definition.summary,
    description: definition.description,
    group: definition.group,
    order,
    phases: [...phases],
    scopes: [...scopes],
    onError,
    allowsMultiple: definition.allowsMultiple ?? false,
    namesRequests: definition.namesRequests ?? false,
    needsAdmin: definition.needsAdmin ?? false,
    ignoresPath: definition.ignoresPath ?? false,
    ...schemaOf(definition),
  };
}

function schemaOf({ config, example }: AnyPlugin): Pick<PlainDefinition, "config" | "example"> {
  requireThat(config?.type === "object", "config: must be made with config()");
  requireProtectedSecrets(config);
  const packed = pack(config, "config");
  try {
    // As the main thread will do it, with what arrives there.
    decode(unpack(packed) as TObject, example);
  } catch (error) {
    throw new Error(`example: does not match config: ${(error as Error).message}`, {
      cause: error,
    });
  }
  return { config: packed, example: pack(example, "example") };
}

/**
 * Every secret is compared only, or has a destination, whose change an editor cannot make with a secret of an admin: without one
 * the gateway could not tell where the plugin sends it.
 */
function requireProtectedSecrets(config: TSchema): void {
  const fields = fieldsOf(config, "config");
  const hasDestination = fields.some(({ schema }) => markOf(schema).isDestination);
  for (const { path, schema } of fields) {
    const { isSecret, staysBecause } = markOf(schema);
    requireThat(
      !isSecret || staysBecause !== null || hasDestination,
      `${path}: a secret needs stays("reason", …), or a field made with destination(…) that says where it is sent`,
    );
  }
}

interface SchemaField {
  readonly path: string;
  readonly schema: TSchema;
}

/** All parts of a schema, with names of its members. */
function fieldsOf(schema: TSchema, path: string): SchemaField[] {
  const members = Object.entries((schema.properties ?? {}) as Readonly<Record<string, TSchema>>);
  const named = Object.values(
    (schema.patternProperties ?? {}) as Readonly<Record<string, TSchema>>,
  );
  const others = [schema.items, schema.additionalProperties, ...named, ...(schema.anyOf ?? [])];
  return [
    { path, schema },
    ...members.flatMap(([name, member]) => fieldsOf(member, `${path}.${name}`)),
    ...others.flatMap((other) => (typeof other === "object" ? fieldsOf(other, path) : [])),
  ];
}

/** What the main thread knows of the plugin. Its `create` throws: workers import the text. */
export function definitionFrom(plain: PlainDefinition, code: PluginCode): AnyPlugin {
  return {
    ...plain,
    config: unpack(plain.config) as TObject,
    example: plain.example as AnyPlugin["example"],
    code,
    create() {
      throw new Error("only workers run plugins from a directory");
    },
  };
}

function requireThat(condition: boolean, message: string): void {
  if (!condition) throw new Error(message);
}

function requireObject(given: unknown): AnyPlugin {
  if (typeof given === "object" && given !== null) return given as AnyPlugin;
  throw new Error("the default export must be what definePlugin returns");
}

const isText = (value: unknown) => typeof value === "string" && value.trim() !== "";
const isInteger = (value: unknown, least: number, most: number) =>
  Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
const isAbsentOr = (type: string, value: unknown) => value === undefined || typeof value === type;

function requireWords(member: string, words: unknown, known: readonly string[]): void {
  const isRight = Array.isArray(words) && words.length > 0 && words.every((w) => known.includes(w));
  requireThat(isRight, `${member}: must be a list of ${known.join(", ")}`);
}

/** Marks a symbol among the names of a packed schema. */
const SYMBOL = "@@";

/** A copy that can be sent to another thread: TypeBox marks its schemas with symbols, which a message would drop. */
function pack(value: unknown, path: string): unknown {
  if (Array.isArray(value)) return value.map((each, at) => pack(each, `${path}[${at}]`));
  if (typeof value === "function")
    throw new Error(`${path}: a schema from a directory cannot hold functions`);
  if (typeof value !== "object" || value === null) return value;
  const packed: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value))
    packed[name] = pack(member, `${path}.${name}`);
  for (const symbol of Object.getOwnPropertySymbols(value)) {
    const key = Symbol.keyFor(symbol);
    const member = (value as Readonly<Record<symbol, unknown>>)[symbol];
    if (key !== undefined) packed[SYMBOL + key] = pack(member, `${path}.${key}`);
  }
  return packed;
}

function unpack(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unpack);
  if (typeof value !== "object" || value === null) return value;
  const schema: Record<string | symbol, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    const key = name.startsWith(SYMBOL) ? Symbol.for(name.slice(SYMBOL.length)) : name;
    schema[key] = unpack(member);
  }
  return schema;
}
