// The box that secrets of the configuration are sealed in, opened for one data directory; knows no secret.
import { SecretBox } from "../crypto/secret-box.ts";
import { loadSecretKey } from "../store/secret-key.ts";

export interface BoxOptions {
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Ids of the keys that stored values are sealed under. */
  readonly keyIds: ReadonlySet<string>;
}

/** Throws a StoreError that says which key is missing where when the key at hand does not open what is stored. */
export function openSecretBox({ dataDir, env, keyIds }: BoxOptions): SecretBox {
  const stored = { ids: keyIds, idOf: (key: Uint8Array) => new SecretBox(key).keyId };
  return new SecretBox(loadSecretKey({ dataDir, env, stored }).key);
}
