// The detail of an audit entry: before, after and differences, secrets masked, of limited size; knows no resource.

import { isSecretField } from "../model/export-document.ts";

/** Write-only fields, in every object. */
const SECRET_FIELDS = new Set([
  "password",
  "password_hash",
  "passphrase",
  "token",
  "token_hash",
  "secret",
  "client_secret",
  "sealed",
  "sealed_value",
  "sealed_key",
  "api_key",
  "private_key",
]);
const SEALED = /sealed:1:[0-9a-f]{8}:[A-Za-z0-9_-]+/;

const MASK = "***";
const CHANGED_MASK = "*** (changed)";

const MAX_BYTES = 65_536;
/** Longer texts, such as whole pages, are truncated. */
const MAX_CHARACTERS = 2048;
const SHOWN_CHARACTERS = 1024;

export interface Difference {
  /** `health.active.path`; a list counts as one value. */
  readonly path: string;
  /** Null for an absent field. */
  readonly before: unknown;
  readonly after: unknown;
}

/**
 * `before` of a creation and `after` of a deletion are null. For an update both hold the changed fields, and `diff` the
 * changes inside them.
 */
export function detailOf(old: object | null, now: object | null): unknown {
  const [before, after] = [masked(old), maskedAgainst(old, now)];
  if (!isObject(before) || !isObject(after)) return bounded({ before, after });
  const diff = differences(before, after);
  const changed = new Set(diff.map(({ path }) => path.split(".")[0] ?? ""));
  const part = (whole: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(whole).filter(([name]) => changed.has(name)));
  return bounded({ before: part(before), after: part(after), diff });
}

/** The fields in which two versions of an object differ; for a new or deleted one, the non-empty fields. */
export function fieldChanges(old: object | null, now: object | null): readonly Difference[] {
  const [before, after] = [masked(old) ?? {}, maskedAgainst(old, now) ?? {}];
  const all = differences(before, after).filter(
    ({ path, ...values }) =>
      (old !== null && now !== null) ||
      (!IDENTITY.has(path) && [values.before, values.after].some(isNonEmpty)),
  );
  return all.map((difference) => shortened(difference) as Difference);
}

const IDENTITY = new Set(["id", "created_at", "updated_at"]);

const isNonEmpty = (value: unknown) =>
  value !== null && value !== "" && !(typeof value === "object" && Object.keys(value).length === 0);

/** A copy with masked secrets. */
export function masked(value: unknown): unknown {
  return maskedAgainst(value, value);
}

/** A copy with masked secrets; the mask shows whether they differ from those at the same path of `old`. */
function maskedAgainst(old: unknown, value: unknown): unknown {
  if (typeof value === "string") return SEALED.test(value) ? maskOf(old, value) : value;
  if (typeof value !== "object" || value === null) return value;
  if (isSealed(value)) return maskOf(old, value);
  if (Array.isArray(value))
    return value.map((item, index) =>
      maskedAgainst(Array.isArray(old) ? old[index] : undefined, item),
    );
  const previous = isObject(old) ? old : {};
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      isSecretName(key) && isSecret(inner)
        ? maskOf(previous[key], inner)
        : maskedAgainst(previous[key], inner),
    ]),
  );
}

/** A secret in the configuration of a plugin, in any field. */
const isSealed = (value: unknown) => isObject(value) && typeof value["sealed"] === "string";

const isSecretName = (name: string) => SECRET_FIELDS.has(name) || isSecretField(name);

/** A reference to a named secret is not secret. */
const isSecret = (value: unknown) =>
  value !== null && value !== "" && !(isObject(value) && "$secret" in value);

function maskOf(old: unknown, value: unknown): string {
  return old === undefined || old === null || Bun.deepEquals(old, value) ? MASK : CHANGED_MASK;
}

/** The differences between two objects, without `updated_at`: the entry has its own time. */
function differences(before: unknown, after: unknown, path = ""): Difference[] {
  if (Bun.deepEquals(before, after)) return [];
  if (!isObject(before) || !isObject(after))
    return [{ path, before: before ?? null, after: after ?? null }];
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) =>
    path === "" && name === "updated_at"
      ? []
      : differences(before[name], after[name], path === "" ? name : `${path}.${name}`),
  );
}

/** A copy of at most 64 KiB as JSON; `truncated` names the removed parts. */
export function bounded(detail: unknown): unknown {
  const short = shortened(detail);
  if (sizeOf(short) <= MAX_BYTES) return short;
  if (!isObject(short)) return { truncated: tooLong(short) };
  const parts: Record<string, unknown> = { truncated: "parts that are too long were removed" };
  let left = MAX_BYTES - 4096;
  // The differences matter most, so they go first.
  for (const name of Object.keys(short).toReversed()) {
    const size = sizeOf(short[name]);
    parts[name] = size <= left ? short[name] : tooLong(short[name]);
    left -= sizeOf(parts[name]);
  }
  return left < 0 ? { truncated: tooLong(short) } : parts;
}

function shortened(value: unknown): unknown {
  if (typeof value === "string" && value.length > MAX_CHARACTERS)
    return `${value.slice(0, SHOWN_CHARACTERS)}… (${value.length} characters)`;
  if (Array.isArray(value)) return value.map(shortened);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shortened(inner)]));
}

const sizeOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value) ?? "");
const tooLong = (value: unknown) => `… (${sizeOf(value)} bytes)`;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
