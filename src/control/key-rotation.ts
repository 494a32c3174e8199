// Seals everything that is stored under a new key, so that a process that dies in between leaves either key in charge.
import { SEALED_PATTERN, SecretBox } from "../crypto/secret-box.ts";
import { StoreError } from "../store/error.ts";
import {
  finishRotation,
  KEY_VARIABLE,
  keyFromVariable,
  NEW_KEY_VARIABLE,
  prepareNewKey,
} from "../store/secret-key.ts";

/** What of the store is needed; nobody else may use it meanwhile. */
export interface SealedStore {
  /** All or nothing: `judge` gets the ids of the keys that values are sealed under then, and throws to take it back. */
  replaceSealed(
    replace: (text: string) => string,
    judge: (keyIds: ReadonlySet<string>) => void,
  ): void;
  /** Takes replaced values out of the file for good. */
  compact(): void;
}

export interface RotationOptions {
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly store: SealedStore;
  /** Opens what is stored now. */
  readonly box: SecretBox;
}

/** Returns the new box. Throws a StoreError that says what was not done. */
export function rotateKey({ dataDir, env, store, box }: RotationOptions): SecretBox {
  const isVariable = keyFromVariable(env, KEY_VARIABLE) !== null;
  const next = new SecretBox(isVariable ? newKeyFromVariable(env) : newKeyInFile(dataDir, env));
  if (next.keyId === box.keyId)
    throw new StoreError(`${NEW_KEY_VARIABLE}: is the key that is in use already`);
  // A new key that is left behind by a failure here stays: only the next start can tell for certain which one is needed.
  store.replaceSealed(
    (text) => reseal(text, box, next),
    (keyIds) => {
      const [left] = [...keyIds].filter((id) => id !== next.keyId);
      if (left !== undefined)
        throw new StoreError(
          "a stored secret could not be decrypted, so it was damaged; nothing was changed",
        );
    },
  );
  // From here on only the new key opens what is stored: the next start would finish this step if it did not happen now.
  if (!isVariable) finishRotation(dataDir);
  compact(store, next);
  return next;
}

function compact(store: SealedStore, next: SecretBox): void {
  try {
    store.compact();
  } catch (error) {
    throw new StoreError(
      `all secrets are encrypted under the key ${next.keyId} now, but parts of the database file still hold what was ` +
        `encrypted under the old one, because it could not be written anew: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

function newKeyFromVariable(env: RotationOptions["env"]): Uint8Array {
  const key = keyFromVariable(env, NEW_KEY_VARIABLE);
  if (key !== null) return key;
  throw new StoreError(
    `${NEW_KEY_VARIABLE}: must hold the new key, because ${KEY_VARIABLE} holds the present one`,
  );
}

function newKeyInFile(dataDir: string, env: RotationOptions["env"]): Uint8Array {
  if (env[NEW_KEY_VARIABLE] !== undefined)
    throw new StoreError(
      `${NEW_KEY_VARIABLE}: is only used together with ${KEY_VARIABLE}; the key in the data directory is made here`,
    );
  return prepareNewKey(dataDir);
}

/** What does not open is left as it is: a text that somebody wrote may look like a sealed value. */
function reseal(text: string, from: SecretBox, to: SecretBox): string {
  return text.replace(SEALED_PATTERN, (sealed: string) => {
    try {
      return to.seal(from.open(sealed));
    } catch {
      return sealed;
    }
  });
}
