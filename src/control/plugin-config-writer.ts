// Reads and writes configurations of plugins: validation, references, encryption and removal of secrets; knows no plugin.
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
  /** The stored configuration; null for a new instance and for one of another plugin. */
  readonly old: Document | null;
  readonly draft: Draft;
  readonly box: SecretBox;
}

/** Marks a member that a patch removes, including secrets: an absent secret stays. */
const REMOVED = Symbol("removed");

/** A stored secret at the path of its plain value. */
class RetainedSecret {
  readonly stored: Stored;

  constructor(stored: Stored) {
    this.stored = stored;
  }
}

/**
 * The configuration as it is stored: with defaults, ids instead of names, and encrypted secrets. An omitted secret stays.
 * Throws a 400 for the first problem.
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

/** Null members of a patch remove secrets too: apply this before the merge. */
export function markRemovals(patch: unknown): unknown {
  if (patch === null) return REMOVED;
  if (!isDocument(patch)) return patch;
  return Object.fromEntries(
    Object.entries(patch).map(([name, inner]) => [name, markRemovals(inner)]),
  );
}

/** A copy without secrets; references to named secrets stay. */
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

/** Throws a 400 for a value in the form of an encrypted one: only the gateway creates those. */
export function refuseSealed(value: unknown, path: string): void {
  if (isSealed(value)) throw invalid(path, NO_SECRET);
  if (Array.isArray(value))
    for (const [index, item] of value.entries()) refuseSealed(item, `${path}[${index}]`);
  else if (isDocument(value))
    for (const [name, inner] of Object.entries(value)) {
      const at = path === "" ? name : `${path}.${name}`;
      // In the database it would look like a value that needs a key.
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
    kind === "secret" && (isSealed(value) || isReference(value))
      ? new RetainedSecret(value)
      : value,
  );
}

interface Sources {
  /** The stored configuration, secrets marked. */
  readonly old: unknown;
  /** The sent configuration with all defaults. */
  readonly defaults: unknown;
}

/** A copy of `next` with the secrets of `old` that `next` omits, and without removed members. */
function carry(next: unknown, { old, defaults }: Sources, context: ConfigContext): unknown {
  if (next === REMOVED) return undefined;
  if (old instanceof RetainedSecret) return carrySecret(next, old, context);
  if (Array.isArray(next)) {
    const before = counterparts(next, Array.isArray(old) ? old : []);
    return next.map((item, index) => {
      // Representations have null in place of a secret in a list.
      if (item === null && before[index] instanceof RetainedSecret) return before[index];
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
    if (isLeftOut && !(inner.old instanceof RetainedSecret) && !isDocument(inner.defaults))
      continue;
    // An omitted group has its defaults, and its secrets stay.
    const isGroup = isLeftOut && isDocument(inner.defaults);
    const carried = carry(isGroup ? {} : next[name], inner, context);
    if (carried === undefined) continue;
    if (!isGroup) members.push([name, carried]);
    else if (isDocument(carried) && Object.keys(carried).length > 0)
      members.push([name, { ...Object(inner.defaults), ...carried }]);
  }
  return Object.fromEntries(members);
}

function carrySecret(next: unknown, old: RetainedSecret, { box, draft }: ConfigContext): unknown {
  if (next === undefined) return old;
  if (next === null) return undefined;
  if (!draft.isByAdmin || !("sealed" in old.stored)) return next;
  // Each encryption gives a new text, and writing the stored value again must change nothing.
  return box.open(old.stored.sealed) === next ? old : next;
}

/** Fields that identify the elements of a list. */
const IDENTIFYING = ["id", "name", "username", "url"];

/**
 * For each element of a new list its counterpart in the old one: the one with the same identity, or the one at the same index
 * if it is free. Otherwise inserting or removing an element would shift the secrets of the others.
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
 * The identity of an element; null: none. A nested object, `{"http": {"url": ...}}`, may change its identity and stay the same
 * element.
 */
function nameOf(item: unknown): { readonly text: string; readonly isOwn: boolean } | null {
  if (!isDocument(item)) return null;
  const word = IDENTIFYING.find((each) => typeof item[each] === "string");
  if (word !== undefined) return { text: `${word} ${String(item[word])}`, isOwn: true };
  const [[kind, only] = ["", null], ...more] = Object.entries(item);
  const inner = more.length > 0 || !isDocument(only) ? null : nameOf(only);
  return inner === null ? null : { text: `${kind} ${inner.text}`, isOwn: false };
}

/** The configuration with a text for each secret, as the schema requires, and the stored form of retained secrets. */
function withTexts(whole: unknown, context: ConfigContext) {
  const stored = new Map<string, Stored>();
  const texts = mapConfig(context.definition, whole, ({ kind, path, value }) => {
    if (kind !== "secret") return value;
    const known = value instanceof RetainedSecret ? value.stored : value;
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
 * For a named secret a text that matches any schema: a rule checks the value, and reports a missing one, after the change is
 * authorized.
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
