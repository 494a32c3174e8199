// Opens the secret box of a data directory, which encrypts secrets of the configuration; knows no secret.
import { SecretBox } from "../crypto/secret-box.ts";
import { loadSecretKey } from "../store/secret-key.ts";

export interface BoxOptions {
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Ids of the keys of all stored values. */
  readonly keyIds: ReadonlySet<string>;
}

/** Throws a StoreError that names the missing key and its location when the current key does not decrypt the stored values. */
export function openSecretBox({ dataDir, env, keyIds }: BoxOptions): SecretBox {
  const stored = { ids: keyIds, idOf: (key: Uint8Array) => new SecretBox(key).keyId };
  return new SecretBox(loadSecretKey({ dataDir, env, stored }).key);
}
