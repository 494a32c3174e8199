// Encrypts values that must be read again: AES-256-GCM under one key; knows neither where the key nor the values are kept.
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
} from "node:crypto";

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;

/** How a sealed value looks, so that it can be found again in any text: `sealed:1:<key id>:<base64url>`. */
const SEALED_PATTERN = /sealed:1:([0-9a-f]{8}):([A-Za-z0-9_-]+)/g;

/** A value that this key does not open. The message holds no part of it. */
export class SealError extends Error {}

/** Seals values under one key, which another one can replace while it is in use, and opens what was sealed under both. */
export class SecretBox {
  #keyId: string;
  #key: Buffer;
  /** Boxes of keys that were replaced since the start. */
  #former: readonly SecretBox[] = [];
  readonly #listeners: (() => void)[] = [];

  /** `key` must have 32 bytes. */
  constructor(key: Uint8Array) {
    if (key.byteLength !== KEY_BYTES) throw new SealError(`a key must have ${KEY_BYTES} bytes`);
    this.#key = Buffer.from(key);
    this.#keyId = createHash("sha256").update(key).digest("hex").slice(0, 8);
  }

  /** Tells keys apart without telling what they are: the first 8 hexadecimal digits of the SHA-256. */
  get keyId(): string {
    return this.#keyId;
  }

  /** A key for another purpose, from which this one cannot be found (HKDF, RFC 5869); base64url. */
  derive(purpose: string): string {
    return Buffer.from(hkdfSync("sha256", this.#key, "", purpose, KEY_BYTES)).toString("base64url");
  }

  /** Equal values give different results. */
  seal(plain: string): string {
    return this.#seal(plain, randomBytes(NONCE_BYTES));
  }

  #seal(plain: string, nonce: Uint8Array): string {
    const cipher = createCipheriv("aes-256-gcm", this.#key, nonce);
    const parts = [nonce, cipher.update(plain, "utf8"), cipher.final(), cipher.getAuthTag()];
    return `sealed:1:${this.#keyId}:${Buffer.concat(parts).toString("base64url")}`;
  }

  /** Throws a SealError for what was sealed under another key or changed since. */
  open(sealed: string): string {
    const [, keyId, text] = new RegExp(`^${SEALED_PATTERN.source}$`).exec(sealed) ?? [];
    if (keyId === undefined || text === undefined) throw new SealError("the value is not sealed");
    const box = [this, ...this.#former].find((each) => each.#keyId === keyId);
    if (box === undefined)
      throw new SealError(`the value is sealed under the key ${keyId}, not ${this.#keyId}`);
    const bytes = Buffer.from(text, "base64url");
    try {
      const decipher = createDecipheriv("aes-256-gcm", box.#key, bytes.subarray(0, NONCE_BYTES));
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
      const body = bytes.subarray(NONCE_BYTES, -TAG_BYTES);
      return Buffer.concat([decipher.update(body), decipher.final()]).toString("utf8");
    } catch (error) {
      throw new SealError("the sealed value was changed", { cause: error });
    }
  }

  /** A box of another key, which opens what this one opens. */
  successor(key: Uint8Array): SecretBox {
    const next = new SecretBox(key);
    // A copy: this one gets another key.
    next.#former = [new SecretBox(this.#key), ...this.#former];
    return next;
  }

  /** All holders of this box seal under the key of `next` from now on. */
  replaceBy(next: SecretBox): void {
    this.#key = next.#key;
    this.#keyId = next.#keyId;
    this.#former = next.#former;
    for (const listener of this.#listeners) listener();
  }

  /** Calls `listener` in the turn in which the key is replaced. */
  onReplaced(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /**
   * A text whose values under former keys are sealed under the present one: the same on every machine. What does not open stays
   * as it is: a user's text may look like a sealed value.
   */
  renew(text: string): string {
    return text.replace(SEALED_PATTERN, (sealed, keyId: string) => {
      if (keyId === this.#keyId) return sealed;
      try {
        return this.#seal(this.open(sealed), this.#nonceFor(sealed));
      } catch {
        return sealed;
      }
    });
  }

  /** A nonce belongs to one plain text: the one of this sealed value. */
  #nonceFor(sealed: string): Uint8Array {
    const mac = createHmac("sha256", this.derive("renewed values")).update(sealed).digest();
    return mac.subarray(0, NONCE_BYTES);
  }
}
