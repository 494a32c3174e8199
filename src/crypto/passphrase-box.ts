// Encrypts bytes under a passphrase: scrypt (RFC 7914) for the key, AES-256-GCM for the rest; knows nothing of what they are.
import { createCipheriv, createDecipheriv, randomBytes, scrypt } from "node:crypto";

/** How the key was made and what it encrypted; texts are base64. */
export interface PassphraseBox {
  readonly cipher: "aes-256-gcm";
  readonly kdf: "scrypt";
  readonly n: number;
  readonly r: number;
  readonly p: number;
  readonly salt: string;
  readonly nonce: string;
  readonly data: string;
}

/** The passphrase is wrong or the bytes were changed: the two cannot be distinguished. */
export class PassphraseError extends Error {}

/** 128 MiB and about half a second for each guess. */
const COST = { n: 131_072, r: 8, p: 1 } as const;
const KEY_BYTES = 32;
const SALT_BYTES = 16;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Gives another result each time. */
export async function encryptUnder(passphrase: string, plain: string): Promise<PassphraseBox> {
  const [salt, nonce] = [randomBytes(SALT_BYTES), randomBytes(NONCE_BYTES)];
  const head = { cipher: "aes-256-gcm", kdf: "scrypt", ...COST } as const;
  const key = await deriveKey(passphrase, { ...head, salt });
  const cipher = createCipheriv("aes-256-gcm", key, nonce);
  cipher.setAAD(boundText(head));
  const parts = [cipher.update(plain, "utf8"), cipher.final(), cipher.getAuthTag()];
  return {
    ...head,
    salt: salt.toString("base64"),
    nonce: nonce.toString("base64"),
    data: Buffer.concat(parts).toString("base64"),
  };
}

/** Throws a PassphraseError. The numbers in the box must have been checked: they decide how much memory this takes. */
export async function decryptUnder(passphrase: string, box: PassphraseBox): Promise<string> {
  const { salt, nonce, data, ...head } = box;
  const key = await deriveKey(passphrase, { ...head, salt: Buffer.from(salt, "base64") });
  const bytes = Buffer.from(data, "base64");
  try {
    const decipher = createDecipheriv("aes-256-gcm", key, Buffer.from(nonce, "base64"));
    decipher.setAAD(boundText(head));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    return Buffer.concat([
      decipher.update(bytes.subarray(0, -TAG_BYTES)),
      decipher.final(),
    ]).toString("utf8");
  } catch (error) {
    throw new PassphraseError("the passphrase is wrong, or the document was changed", {
      cause: error,
    });
  }
}

type Cost = Pick<PassphraseBox, "n" | "r" | "p">;

function deriveKey(
  passphrase: string,
  { n, r, p, salt }: Cost & { readonly salt: Uint8Array },
): Promise<Buffer> {
  // RFC 7914 section 2: 128 * n * r bytes, and a little more for the blocks.
  const options = { N: n, r, p, maxmem: 256 * n * r };
  return new Promise((resolve, reject) => {
    // Success is null in Node and undefined in Bun 1.4.5.
    scrypt(passphrase, salt, KEY_BYTES, options, (error, key) =>
      error ? reject(error) : resolve(key),
    );
  });
}

/** Authenticated together with the contents, so that weaker parameters are detected. */
const boundText = ({ cipher, kdf, n, r, p }: Omit<PassphraseBox, "salt" | "nonce" | "data">) =>
  Buffer.from(JSON.stringify([cipher, kdf, n, r, p]));
