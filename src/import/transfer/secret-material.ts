// Masks, decrypts and encrypts secrets in exported and imported objects; knows no kind of object.
import { SealError, type SecretBox } from "../../crypto/secret-box.ts";
import { invalid } from "../../model/error.ts";
import { isSealedField, isSecretField, MASK } from "../../model/export-document.ts";
import { isDocument } from "../../control/body.ts";

/** A copy with masked secrets. */
export const maskSecrets = (value: unknown): unknown => mapSecrets(value, () => MASK);

/** A copy in which encrypted values are `{"plain": ...}`; hashes stay as they are. */
export const openSecrets = (value: unknown, box: SecretBox): unknown =>
  mapSecrets(value, (field, inner) =>
    isSealedField(field) && typeof inner === "string" ? { plain: box.open(inner) } : inner,
  );

function mapSecrets(value: unknown, map: (field: string, inner: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => mapSecrets(item, map));
  if (!isDocument(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([field, inner]) => [
      field,
      isSecret(field, inner) ? map(field, inner) : mapSecrets(inner, map),
    ]),
  );
}

/** Whether the member is a secret value itself, not an object that contains one, nor a reference to a secret. */
const isSecret = (field: string, value: unknown) =>
  isSecretField(field) && isPresent(value) && !isWrapper(value);

/** Whether it contains a secret, masked or plain. */
export function holdsSecrets(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(holdsSecrets);
  if (!isDocument(value)) return false;
  return Object.entries(value).some(
    ([field, inner]) => isSecret(field, inner) || holdsSecrets(inner),
  );
}

const isWrapper = (value: unknown) =>
  isDocument(value) && Object.keys(value).every((name) => name === "$secret" || name === "sealed");

const isPresent = (value: unknown) => value !== null && value !== "" && value !== undefined;

export interface SealOptions {
  /** The stored object with the same id; undefined: none. */
  readonly old: unknown;
  readonly box: SecretBox;
  /** Value of a mask without a stored value; absent: the mask is rejected. */
  readonly standsFor?: string;
}

/**
 * A copy as it is stored: replaces masks with the stored value at the same path and encrypts plain values. Throws a 400 for a
 * mask without a stored value, and for a value that this gateway cannot decrypt.
 */
export function sealSecrets(value: unknown, options: SealOptions, path = ""): unknown {
  const { old } = options;
  if (Array.isArray(value)) {
    const olds = Array.isArray(old) ? old : [];
    return value.map((item, index) =>
      sealSecrets(item, { ...options, old: counterpart(item, index, olds) }, `${path}[${index}]`),
    );
  }
  if (!isDocument(value)) return value;
  const before = isDocument(old) ? old : {};
  return Object.fromEntries(
    Object.entries(value).map(([field, inner]) => {
      const at = path === "" ? field : `${path}.${field}`;
      const inside = { ...options, old: before[field] };
      return [
        field,
        isSecret(field, inner)
          ? sealOne(field, inner, { ...inside, path: at })
          : sealSecrets(inner, inside, at),
      ];
    }),
  );
}

function sealOne(
  field: string,
  value: unknown,
  { old, box, standsFor, path }: SealOptions & { readonly path: string },
): unknown {
  if (value === MASK) {
    if (isPresent(old)) return old;
    if (standsFor !== undefined) return isSealedField(field) ? box.seal(standsFor) : standsFor;
    throw invalid(
      path,
      'is masked, and the gateway has no value for it; write {"plain": "..."} or import an encrypted export',
    );
  }
  if (!isSealedField(field)) return value;
  if (isDocument(value) && typeof value["plain"] === "string")
    return sealAgain(value["plain"], old, box);
  if (typeof value !== "string") throw invalid(path, `must be "${MASK}" or {"plain": "the value"}`);
  try {
    box.open(value);
    return box.renew(value);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    throw invalid(path, "is not encrypted with the key of this gateway");
  }
}

/** Each encryption gives a new text, and an unchanged value must stay the same. */
export function sealAgain(plain: string, old: unknown, box: SecretBox): string {
  if (typeof old !== "string") return box.seal(plain);
  try {
    if (box.open(old) === plain) return old;
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
  }
  return box.seal(plain);
}

/** Fields that identify the items of a list. */
const LABELS = ["id", "name", "username", "label", "key"] as const;

/**
 * The counterpart of an item in the old list. Only one with the same identity, or with equal non-secret members: the index alone
 * could assign the secret of one item to another.
 */
function counterpart(item: unknown, index: number, olds: readonly unknown[]): unknown {
  if (!isDocument(item)) return undefined;
  const masked = maskSecrets(item);
  const isSame = (other: unknown) => Bun.deepEquals(maskSecrets(other), masked);
  if (isSame(olds[index])) return olds[index];
  const label = LABELS.find((name) => typeof item[name] === "string");
  const same = (other: unknown) =>
    isDocument(other) && label !== undefined && other[label] === item[label];
  const candidates = label === undefined ? olds.filter(isSame) : olds.filter(same);
  return candidates.length === 1 ? candidates[0] : undefined;
}
