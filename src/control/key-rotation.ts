// Encrypts all stored secrets under a new key; a crash in between leaves one of the two keys valid for all.
import { SEALED_PATTERN, SecretBox } from "../crypto/secret-box.ts";
import { StoreError } from "../store/error.ts";
import {
  finishRotation,
  KEY_VARIABLE,
  keyFromVariable,
  NEW_KEY_VARIABLE,
  prepareNewKey,
} from "../store/secret-key.ts";

/** The part of the store that the rotation needs, with exclusive access. */
export interface SealedStore {
  /** Atomic: `judge` gets the key ids of all values after the replacement, and throws to roll it back. */
  replaceSealed(
    replace: (text: string) => string,
    judge: (keyIds: ReadonlySet<string>) => void,
  ): void;
  /** Removes replaced values from the file. */
  compact(): void;
}

export interface RotationOptions {
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly store: SealedStore;
  /** Decrypts the stored values. */
  readonly box: SecretBox;
}

/** Returns the new box. Throws a StoreError that names the failed step. */
export function rotateKey({ dataDir, env, store, box }: RotationOptions): SecretBox {
  const isVariable = keyFromVariable(env, KEY_VARIABLE) !== null;
  const next = new SecretBox(isVariable ? newKeyFromVariable(env) : newKeyInFile(dataDir, env));
  if (next.keyId === box.keyId)
    throw new StoreError(`${NEW_KEY_VARIABLE}: is the current key; set a new one`);
  // After a failure here the new key stays: only the next start can decide for certain which one is needed.
  store.replaceSealed(
    (text) => reseal(text, box, next),
    (keyIds) => {
      const [left] = [...keyIds].filter((id) => id !== next.keyId);
      if (left !== undefined)
        throw new StoreError(
          "a stored secret is damaged and cannot be decrypted; nothing was changed",
        );
    },
  );
  // From here on only the new key decrypts the stored values: the next start would finish this step after a crash.
  if (!isVariable) finishRotation(dataDir);
  compact(store, next);
  return next;
}

function compact(store: SealedStore, next: SecretBox): void {
  try {
    store.compact();
  } catch (error) {
    throw new StoreError(
      `all secrets are encrypted under the key ${next.keyId} now, but parts of the database file still contain values ` +
        `encrypted under the old one, because the file could not be rewritten: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

function newKeyFromVariable(env: RotationOptions["env"]): Uint8Array {
  const key = keyFromVariable(env, NEW_KEY_VARIABLE);
  if (key !== null) return key;
  throw new StoreError(
    `${NEW_KEY_VARIABLE}: must contain the new key, because ${KEY_VARIABLE} contains the current one`,
  );
}

function newKeyInFile(dataDir: string, env: RotationOptions["env"]): Uint8Array {
  if (env[NEW_KEY_VARIABLE] !== undefined)
    throw new StoreError(
      `${NEW_KEY_VARIABLE}: requires ${KEY_VARIABLE}; without it the command generates the new key in the data directory`,
    );
  return prepareNewKey(dataDir);
}

/** A value that cannot be decrypted stays as it is: a user's text may look like a sealed value. */
function reseal(text: string, from: SecretBox, to: SecretBox): string {
  return text.replace(SEALED_PATTERN, (sealed: string) => {
    try {
      return to.seal(from.open(sealed));
    } catch {
      return sealed;
    }
  });
}
