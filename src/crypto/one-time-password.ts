// One-time passwords from a shared key, RFC 4226 and RFC 6238, as authenticator apps make them; knows neither users nor the time.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { base32 } from "oslo/encoding";
import { createTOTPKeyURI } from "oslo/otp";

/** The default of all authenticator apps. */
const DIGITS = 6;
const STEP_MS = 30_000;
/** RFC 4226 section 4, R6: as long as the output of SHA-1. */
const KEY_BYTES = 20;
/** RFC 6238 section 5.2: one step before and one after, for clocks that differ and people who type slowly. */
const TOLERATED_STEPS = 1;

export const createTotpKey = (): Uint8Array => new Uint8Array(randomBytes(KEY_BYTES));

/** As people type it into an app that cannot read the picture. */
export const toBase32 = (bytes: Uint8Array): string =>
  base32.encode(bytes, { includePadding: false });

/** The address that an authenticator app reads from a picture. */
export const totpUri = (issuer: string, account: string, key: Uint8Array): string =>
  createTOTPKeyURI(issuer, account, key);

export const stepAt = (timeMs: number): number => Math.floor(timeMs / STEP_MS);

/**
 * The one-time password of a counter. Not by `oslo/otp`, which gives a promise: the use of a code has to be decided and
 * written in one turn, and a promise without `await` would pass as true.
 */
export function hotp(key: Uint8Array, counter: number, digits = DIGITS): string {
  const message = Buffer.alloc(8);
  message.writeBigUInt64BE(BigInt(counter));
  const mac = createHmac("sha1", key).update(message).digest();
  // RFC 4226 section 5.3: the low four bits of the last byte say which four bytes are taken.
  const offset = mac.readUInt8(mac.length - 1) & 0x0f;
  const number = mac.readUInt32BE(offset) & 0x7fff_ffff;
  return String(number % 10 ** digits).padStart(digits, "0");
}

/** Whether a text could be a one-time password at all. */
export const looksLikeCode = (text: string): boolean => new RegExp(`^\\d{${DIGITS}}$`).test(text);

/**
 * The time step that `code` belongs to, near `timeMs` and later than `lastStep`; null when there is none. Takes the same
 * time whichever step fits, or none.
 */
export function findStep(
  key: Uint8Array,
  code: string,
  { timeMs, lastStep }: { readonly timeMs: number; readonly lastStep: number },
): number | null {
  if (!looksLikeCode(code)) return null;
  const given = Buffer.from(code);
  const now = stepAt(timeMs);
  let found: number | null = null;
  for (let step = now - TOLERATED_STEPS; step <= now + TOLERATED_STEPS; step++) {
    const fits = step >= 0 && timingSafeEqual(given, Buffer.from(hotp(key, Math.max(step, 0))));
    if (fits && step > lastStep) found ??= step;
  }
  return found;
}
