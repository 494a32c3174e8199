// Opens the secret key of a data directory, and replaces it while it is in use: after an interruption exactly one key is valid.
import { SealError, SecretBox } from "../crypto/secret-box.ts";
import { ApiError } from "../model/error.ts";
import { StoreError } from "../store/error.ts";
import type { KeyFact, KeyKeeper, KeyReplacement } from "../store/sealed-texts.ts";
import {
  createKey,
  finishRotation,
  KEY_VARIABLE,
  keyFromText,
  loadSecretKey,
  NEW_KEY_VARIABLE,
  prepareNewKey,
  type SecretKey,
} from "../store/secret-key.ts";

export interface BoxOptions {
  readonly dataDir: string;
  /** Gets the new key when it replaces the one of a variable: a process that takes over starts with it. */
  readonly env: Record<string, string | undefined>;
  /** Ids of the keys that stored values are sealed with. */
  readonly keyIds: ReadonlySet<string>;
}

/** Throws a StoreError with the missing key when the present key does not open the stored values. */
export const openSecretBox = (options: BoxOptions): SecretBox => openSecretKey(options).box;

/** The same, with what replaces the key. */
export function openSecretKey({ dataDir, env, keyIds }: BoxOptions): SecretKeyFile {
  const stored = { ids: keyIds, idOf: (key: Uint8Array) => new SecretBox(key).keyId };
  const { key, source } = loadSecretKey({ dataDir, env, stored });
  return new SecretKeyFile({ dataDir, env, source, box: new SecretBox(key) });
}

interface KeyParts {
  readonly dataDir: string;
  readonly env: BoxOptions["env"];
  readonly source: SecretKey["source"];
  readonly box: SecretBox;
}

export class SecretKeyFile implements KeyKeeper {
  readonly #parts: KeyParts;
  readonly box: SecretBox;
  /** Where the key comes from at the next start. */
  readonly source: SecretKey["source"];

  constructor(parts: KeyParts) {
    this.#parts = parts;
    this.box = parts.box;
    this.source = parts.source;
  }

  /** A new key, sealed under the present one. `given`: its text; null: one is created. Throws an ApiError. */
  offer(given: string | null): KeyFact {
    if (given === null && this.source === "variable")
      throw new ApiError(
        409,
        `${NEW_KEY_VARIABLE}: must contain the new key, because the present one comes from ${KEY_VARIABLE}; the next start needs the new one there`,
      );
    const key = given === null ? createKey() : keyOf(given);
    const { keyId } = new SecretBox(key);
    if (keyId === this.box.keyId)
      throw new ApiError(400, `${NEW_KEY_VARIABLE}: must differ from the present key`);
    return { kind: "secret_key", key_id: keyId, sealed: this.box.seal(textOf(key)) };
  }

  begin({ key_id, sealed }: KeyFact): KeyReplacement | null {
    const { box, source } = this;
    const { dataDir, env } = this.#parts;
    if (key_id === box.keyId) return null;
    const key = openedKey(box, sealed);
    const next = box.successor(key);
    if (next.keyId !== key_id) throw new StoreError("the new secret key is not the announced one");
    if (source === "file") prepared(dataDir, key);
    return {
      keyId: key_id,
      formerKeyId: box.keyId,
      proof: next.seal(""),
      replace: (text) => next.renew(text),
      finish: () => {
        // A process that takes over gets this environment.
        if (source === "variable") env[KEY_VARIABLE] = textOf(key);
        try {
          if (source === "file") finishRotation(dataDir);
        } catch {
          // The database decides which key is valid: the next start finishes it.
        }
        box.replaceBy(next);
      },
    };
  }
}

function prepared(dataDir: string, key: Uint8Array): void {
  try {
    prepareNewKey(dataDir, key);
  } catch (error) {
    throw new StoreError(`the new secret key cannot be written: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

const textOf = (key: Uint8Array) => Buffer.from(key).toString("base64");

function keyOf(text: string): Uint8Array {
  try {
    return keyFromText(text.trim(), NEW_KEY_VARIABLE);
  } catch (error) {
    throw new ApiError(400, (error as Error).message);
  }
}

function openedKey(box: SecretBox, sealed: string): Uint8Array {
  try {
    return keyFromText(box.open(sealed), "the new secret key");
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    throw new StoreError("the new secret key cannot be read: it is sealed under another key", {
      cause: error,
    });
  }
}
