// Configurations of plugins on their way in and out: checked, names made ids, secrets sealed, kept and left out; knows no plugin.
import { Value } from "@sinclair/typebox/value";
import type { SecretBox } from "../crypto/secret-box.ts";
import { decode } from "../model/decode.ts";
import { ApiError, invalid } from "../model/error.ts";
import { type Configurable, mapConfig } from "../snapshot/plugin-config.ts";
import { type Document, isDocument } from "./body.ts";
import type { Draft } from "./draft.ts";
import { resolveKey } from "./key.ts";

type Stored = { readonly sealed: string } | { readonly $secret: string };

export interface ConfigContext {
  readonly definition: Configurable;
  /** What the instance has; null for a new one and for one of another plugin. */
  readonly old: Document | null;
  readonly draft: Draft;
  readonly box: SecretBox;
}

/** Stands for a member that a patch takes away, secrets included. What is absent would be kept. */
const REMOVED = Symbol("removed");

/** A secret as it is stored, in the place where it would be sent. */
class Kept {
  readonly stored: Stored;

  constructor(stored: Stored) {
    this.stored = stored;
  }
}

/**
 * The configuration as it is stored: every default is there, names are ids, secrets are sealed. A secret that was left out
 * is the one that was there. Throws the 400 of the first thing that is wrong.
 */
export function writeConfig(sent: Document, context: ConfigContext): Record<string, unknown> {
  refuseSealed(sent, "config");
  const { definition, draft } = context;
  const defaults = Value.Default(definition.config, Value.Clone(sent));
  const whole = carry(sent, { old: markSecrets(context), defaults }, context);
  const { texts, stored } = withTexts(whole, context);
  const decoded = decodeConfig(definition, texts);
  return mapConfig(definition, decoded, ({ kind, path, value }) => {
    const at = { path: `config.${path}`, word: kind };
    switch (kind) {
      case "service":
        return resolveKey(draft.config.services, String(value), at);
      case "consumer":
        return resolveKey(draft.config.consumers, String(value), at);
      case "secret":
        return stored.get(path) ?? seal(String(value), context);
      default:
        return value;
    }
  }) as Record<string, unknown>;
}

function seal(value: string, { box, draft }: ConfigContext): Stored {
  const sealed = box.seal(value);
  draft.markSent(sealed);
  return { sealed };
}

/** What of a patch of a configuration is null takes secrets away too: to be applied before it is merged. */
export function markRemovals(patch: unknown): unknown {
  if (patch === null) return REMOVED;
  if (!isDocument(patch)) return patch;
  return Object.fromEntries(
    Object.entries(patch).map(([name, inner]) => [name, markRemovals(inner)]),
  );
}

/** A copy without secrets; what refers to a secret by name stays. */
export function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value))
    return value.map((item) => (isSealed(item) ? null : withoutSecrets(item)));
  if (!isDocument(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => !isSealed(inner))
      .map(([name, inner]) => [name, withoutSecrets(inner)]),
  );
}

/** Throws a 400 for what looks like an encrypted value: only the gateway makes those. */
export function refuseSealed(value: unknown, path: string): void {
  if (isSealed(value)) throw invalid(path, NO_SECRET);
  if (Array.isArray(value))
    for (const [index, item] of value.entries()) refuseSealed(item, `${path}[${index}]`);
  else if (isDocument(value))
    for (const [name, inner] of Object.entries(value)) {
      const at = path === "" ? name : `${path}.${name}`;
      // In the database it would be taken for a value that needs a key.
      if (name.startsWith("sealed") && isSealedText(inner)) throw invalid(at, NO_SECRET);
      refuseSealed(inner, at);
    }
}

const NO_SECRET = 'must be a text or {"$secret": "name"}';

const isSealedText = (value: unknown): boolean =>
  typeof value === "string" && value.startsWith("sealed:");

const isSealed = (value: unknown): value is { readonly sealed: string } =>
  isDocument(value) && isSealedText(value["sealed"]);

const isReference = (value: unknown): value is { readonly $secret: string } =>
  isDocument(value) && typeof value["$secret"] === "string" && Object.keys(value).length === 1;

function markSecrets({ definition, old }: ConfigContext): unknown {
  if (old === null) return {};
  return mapConfig(definition, old, ({ kind, value }) =>
    kind === "secret" && (isSealed(value) || isReference(value)) ? new Kept(value) : value,
  );
}

interface Sources {
  /** What there is, secrets marked. */
  readonly old: unknown;
  /** What is sent, with all defaults. */
  readonly defaults: unknown;
}

/** A copy of `next` with the secrets of `old` where `next` says nothing, and without what is to be removed. */
function carry(next: unknown, { old, defaults }: Sources, context: ConfigContext): unknown {
  if (next === REMOVED) return undefined;
  if (old instanceof Kept) return carrySecret(next, old, context);
  if (Array.isArray(next)) {
    const before = counterparts(next, Array.isArray(old) ? old : []);
    return next.map((item, index) => {
      // What was read holds null in the place of a secret.
      if (item === null && before[index] instanceof Kept) return before[index];
      const inner = Array.isArray(defaults) ? defaults[index] : undefined;
      return carry(item, { old: before[index], defaults: inner }, context);
    });
  }
  if (!isDocument(next)) return next;
  return carryMembers(next, { old, defaults }, context);
}

function carryMembers(next: Document, sources: Sources, context: ConfigContext): Document {
  const old = isDocument(sources.old) ? sources.old : {};
  const defaults = isDocument(sources.defaults) ? sources.defaults : {};
  const members: [string, unknown][] = [];
  for (const name of new Set([...Object.keys(next), ...Object.keys(old)])) {
    const inner = { old: old[name], defaults: defaults[name] };
    const isLeftOut = next[name] === undefined;
    if (isLeftOut && !(inner.old instanceof Kept) && !isDocument(inner.defaults)) continue;
    // A group that is left out is there nevertheless, and so are its secrets.
    const isGroup = isLeftOut && isDocument(inner.defaults);
    const carried = carry(isGroup ? {} : next[name], inner, context);
    if (carried === undefined) continue;
    if (!isGroup) members.push([name, carried]);
    else if (isDocument(carried) && Object.keys(carried).length > 0)
      members.push([name, { ...Object(inner.defaults), ...carried }]);
  }
  return Object.fromEntries(members);
}

function carrySecret(next: unknown, old: Kept, { box, draft }: ConfigContext): unknown {
  if (next === undefined) return old;
  if (next === null) return undefined;
  if (!draft.isByAdmin || !("sealed" in old.stored)) return next;
  // Sealing gives something new each time, and writing what is there already must change nothing.
  return box.open(old.stored.sealed) === next ? old : next;
}

/** Words that tell the elements of a list apart. */
const IDENTIFYING = ["id", "name", "username", "url"];

/**
 * For each element of a new list the element of the old one that it continues: the one that calls itself the same, or the
 * one at its place where that is no other's. Otherwise an element that is put in or taken out would hand the secrets of the
 * others on.
 */
function counterparts(items: readonly unknown[], olds: readonly unknown[]): unknown[] {
  const names = items.map(nameOf);
  const oldNames = olds.map(nameOf);
  const free = new Set(olds.keys());
  const found = new Map<number, number>();
  const pair = (index: number, at: number) => {
    if (found.has(index) || !free.delete(at)) return;
    found.set(index, at);
  };
  for (const [index, name] of names.entries())
    if (name !== null && name.text === oldNames[index]?.text) pair(index, index);
  for (const [index, name] of names.entries())
    if (name !== null)
      pair(
        index,
        oldNames.findIndex((old, at) => old?.text === name.text && free.has(at)),
      );
  for (const [index, name] of names.entries()) if (name?.isOwn !== true) pair(index, index);
  return items.map((_, index) => olds[found.get(index) ?? -1]);
}

/**
 * What an element calls itself; null: nothing. One that is an object in an object, `{"http": {"url": ...}}`, may be given
 * another name and be the same.
 */
function nameOf(item: unknown): { readonly text: string; readonly isOwn: boolean } | null {
  if (!isDocument(item)) return null;
  const word = IDENTIFYING.find((each) => typeof item[each] === "string");
  if (word !== undefined) return { text: `${word} ${String(item[word])}`, isOwn: true };
  const [[kind, only] = ["", null], ...more] = Object.entries(item);
  const inner = more.length > 0 || !isDocument(only) ? null : nameOf(only);
  return inner === null ? null : { text: `${kind} ${inner.text}`, isOwn: false };
}

/** The configuration with a text for each secret, as the schema wants it, and what is stored of those that stay. */
function withTexts(whole: unknown, context: ConfigContext) {
  const stored = new Map<string, Stored>();
  const texts = mapConfig(context.definition, whole, ({ kind, path, value }) => {
    if (kind !== "secret") return value;
    const known = value instanceof Kept ? value.stored : value;
    if (!isSealed(known) && !isReference(known)) {
      if (typeof known === "object") throw invalid(`config.${path}`, NO_SECRET);
      return known;
    }
    stored.set(path, known);
    return textOf(known, context);
  });
  return { texts, stored };
}

/**
 * Of a named secret something that fits any schema: a rule looks at the value, and says that it is missing, once it is known
 * that the client may refer to it.
 */
const textOf = (stored: Stored, { box }: ConfigContext): string =>
  "sealed" in stored ? box.open(stored.sealed) : "-";

function decodeConfig(definition: Configurable, value: unknown): unknown {
  try {
    return decode(definition.config, value);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new ApiError(error.status, `config.${error.message}`);
  }
}
