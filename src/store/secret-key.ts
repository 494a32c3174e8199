// The encryption key of stored secrets: a file in the data directory or a variable; knows nothing of what it encrypts.
import {
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  readSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { randomBytes } from "node:crypto";
import { dirname, join } from "node:path";
import { StoreError } from "./error.ts";

export interface SecretKey {
  readonly key: Uint8Array;
  readonly source: "file" | "variable";
}

export interface SecretKeyOptions {
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Facts about stored values; absent: nothing is stored yet. */
  readonly stored?: StoredKeys;
}

export interface StoredKeys {
  /** Ids of the keys that values are encrypted with. */
  readonly ids: ReadonlySet<string>;
  readonly idOf: (key: Uint8Array) => string;
}

export const KEY_VARIABLE = "SLUICE_SECRET_KEY";
export const NEW_KEY_VARIABLE = "SLUICE_NEW_SECRET_KEY";
const KEY_BYTES = 32;

/** Path of the key file, used when no variable is set. */
export const secretKeyPath = (dataDir: string) => join(dataDir, "secret.key");

const newPath = (dataDir: string) => `${secretKeyPath(dataDir)}.new`;

/**
 * The key, generated when there is none yet. The caller must hold the directory's lock. Throws a StoreError, which never
 * holds any part of a key, when the key exists but cannot be trusted.
 */
export function loadSecretKey({ dataDir, env, stored }: SecretKeyOptions): SecretKey {
  const given = keyFromVariable(env, KEY_VARIABLE);
  if (given !== null) {
    const next = keyFromVariable(env, NEW_KEY_VARIABLE);
    // After a rotation, until the operator has moved the new key to the other variable.
    const isRotated = next !== null && stored?.ids.has(stored.idOf(next)) === true;
    const key = isRotated ? next : given;
    requireStored(key, KEY_VARIABLE, stored);
    return { key, source: "variable" };
  }
  const path = secretKeyPath(dataDir);
  settleRotation(dataDir, stored);
  let key = readKeyFile(path);
  requireStored(key, path, stored);
  if (key === null) {
    key = prepareNewKey(dataDir);
    finishRotation(dataDir);
  }
  return { key, source: "file" };
}

/** The key of a data directory that a gateway serves; null: there is none. Changes nothing. */
export const readSecretKey = ({ dataDir, env }: Omit<SecretKeyOptions, "stored">) =>
  keyFromVariable(env, KEY_VARIABLE) ?? readKeyFile(secretKeyPath(dataDir));

/** Rejects a new key while stored values need another one: they could not be decrypted. */
function requireStored(key: Uint8Array | null, source: string, stored?: StoredKeys): void {
  if (stored === undefined) return;
  const found = key === null ? null : stored.idOf(key);
  const [missing] = [...stored.ids].filter((id) => id !== found);
  if (missing === undefined) return;
  throw new StoreError(
    `stored secrets are encrypted with the key ${missing}, which was expected in ${source}, ` +
      `but ${found === null ? "there is none" : `the key there is ${found}`}; without the right key they cannot be read`,
  );
}

/** The key in a variable: 32 bytes in base64, base64url or hexadecimal. Null when it is not set. */
function keyFromVariable(env: SecretKeyOptions["env"], name: string): Uint8Array | null {
  const text = env[name]?.trim();
  return text === undefined ? null : keyFromText(text, name);
}

/** 32 bytes in base64, base64url or hexadecimal; `name`: where the text comes from, for the error. */
export function keyFromText(text: string, name: string): Uint8Array {
  const isHex = /^[0-9a-fA-F]{64}$/.test(text);
  if (!isHex && !/^[A-Za-z0-9+/_-]{43}=?$/.test(text))
    throw new StoreError(`${name}: must be ${KEY_BYTES} bytes in base64, base64url or hexadecimal`);
  return new Uint8Array(Buffer.from(text, isHex ? "hex" : "base64url"));
}

export const createKey = (): Uint8Array => new Uint8Array(randomBytes(KEY_BYTES));

/** First step of a rotation: the new key is on disk, beside the old one. Default: one that it creates. */
export function prepareNewKey(dataDir: string, key = createKey()): Uint8Array {
  const path = newPath(dataDir);
  remove(path);
  const file = openSync(path, "wx", 0o600);
  try {
    writeSync(file, key);
    // Root may run this for a gateway of the directory's owner, who must be able to read the file.
    const { uid, gid } = statSync(dataDir);
    if (process.getuid?.() === 0 && uid !== 0) fchownSync(file, uid, gid);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  syncDirectory(dataDir);
  return key;
}

/** Last step: everything is encrypted with the new key, so it replaces the old one. */
export function finishRotation(dataDir: string): void {
  renameSync(newPath(dataDir), secretKeyPath(dataDir));
  syncDirectory(dataDir);
}

/** An interrupted rotation leaves both files: the stored values decide which one is valid. */
function settleRotation(dataDir: string, stored?: StoredKeys): void {
  const left = readKeyFile(newPath(dataDir), { orIncomplete: true });
  if (left === null) return;
  const old = readKeyFile(secretKeyPath(dataDir));
  const isComplete = left.byteLength === KEY_BYTES;
  const isUsed = (key: Uint8Array) => stored?.ids.has(stored.idOf(key)) ?? false;
  // Without an old key a first start was interrupted; an incomplete key has never encrypted anything.
  if (isComplete && (old === null || (isUsed(left) && !isUsed(old)))) finishRotation(dataDir);
  else remove(newPath(dataDir));
}

/** Null when there is no such file. */
function readKeyFile(path: string, { orIncomplete = false } = {}): Uint8Array | null {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    const reason = code === "ELOOP" ? "is a symbolic link, which is not followed" : message;
    throw new StoreError(`secret key ${path}: ${reason}`, { cause: error });
  }
  try {
    const status = fstatSync(file);
    if (!status.isFile()) throw new StoreError(`secret key ${path}: is not a file`);
    if ((status.mode & 0o077) !== 0)
      throw new StoreError(
        `secret key ${path}: mode ${(status.mode & 0o777).toString(8)} lets other users read or change it; ` +
          "run chmod 600, and if another user may have read it, rotate the key with sluice rotate-key",
      );
    const bytes = new Uint8Array(KEY_BYTES + 1);
    const length = readSync(file, bytes);
    if (length === KEY_BYTES || orIncomplete) return bytes.slice(0, length);
    throw new StoreError(
      `secret key ${path}: must hold ${KEY_BYTES} bytes, but ${length > KEY_BYTES ? "holds more" : `holds ${length}`}`,
    );
  } finally {
    closeSync(file);
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return;
  }
  syncDirectory(dirname(path));
}

/** A new or renamed entry survives a power failure only once its directory is written. */
function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
