// Seals all stored secrets with a new key; after an interruption exactly one of the keys is valid.
import { SEALED_PATTERN, SecretBox } from "../crypto/secret-box.ts";
import { StoreError } from "../store/error.ts";
import {
  finishRotation,
  KEY_VARIABLE,
  keyFromVariable,
  NEW_KEY_VARIABLE,
  prepareNewKey,
} from "../store/secret-key.ts";

/** The required part of the store, used exclusively. */
export interface SealedStore {
  /** Atomic: `judge` gets the resulting ids of keys, and throws to roll back. */
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
  /** The box of the present key. */
  readonly box: SecretBox;
}

/** Returns the new box. Throws a StoreError with the state. */
export function rotateKey({ dataDir, env, store, box }: RotationOptions): SecretBox {
  const isVariable = keyFromVariable(env, KEY_VARIABLE) !== null;
  const next = new SecretBox(isVariable ? newKeyFromVariable(env) : newKeyInFile(dataDir, env));
  if (next.keyId === box.keyId)
    throw new StoreError(`${NEW_KEY_VARIABLE}: must differ from the present key`);
  // A failure here leaves the new key in place: only the next start knows for certain which one is valid.
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
  // From here on only the new key is valid: the next start would finish an interrupted step.
  if (!isVariable) finishRotation(dataDir);
  compact(store, next);
  return next;
}

function compact(store: SealedStore, next: SecretBox): void {
  try {
    store.compact();
  } catch (error) {
    throw new StoreError(
      `all secrets are encrypted with the key ${next.keyId} now, but free parts of the database file still hold values ` +
        `encrypted with the old one, because it could not be compacted: ${(error as Error).message}`,
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
      `${NEW_KEY_VARIABLE}: is only valid together with ${KEY_VARIABLE}; without it the command generates the new key in the data directory`,
    );
  return prepareNewKey(dataDir);
}

/** Texts that do not decrypt stay unchanged: a user's text may look like a sealed value. */
function reseal(text: string, from: SecretBox, to: SecretBox): string {
  return text.replace(SEALED_PATTERN, (sealed: string) => {
    try {
      return to.seal(from.open(sealed));
    } catch {
      return sealed;
    }
  });
}
