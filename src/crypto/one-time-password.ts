// One-time passwords from a shared key, RFC 4226 and RFC 6238, as authenticator apps make them; knows neither users nor the time.
import { randomBytes, timingSafeEqual } from "node:crypto";
import { base32 } from "oslo/encoding";
import { createTOTPKeyURI, generateHOTP } from "oslo/otp";

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

/** Whether a text could be a one-time password at all. */
export const looksLikeCode = (text: string): boolean => new RegExp(`^\\d{${DIGITS}}$`).test(text);

/** A code, and the time step that it belongs to. */
export interface StepCode {
  readonly step: number;
  readonly code: string;
}

/** The codes that are valid near `timeMs`, in the order of their steps. */
export async function codesNear(key: Uint8Array, timeMs: number): Promise<readonly StepCode[]> {
  const codes: StepCode[] = [];
  const now = stepAt(timeMs);
  for (let step = now - TOLERATED_STEPS; step <= now + TOLERATED_STEPS; step++)
    if (step >= 0) codes.push({ step, code: await generateHOTP(key, step, DIGITS) });
  return codes;
}

/**
 * The time step of `given` that is later than `lastStep`; null when there is none. Takes the same time whichever step fits, or
 * none, unlike the comparison of oslo.
 */
export function findStep(
  valid: readonly StepCode[],
  given: string,
  lastStep: number,
): number | null {
  if (!looksLikeCode(given)) return null;
  const bytes = Buffer.from(given);
  let found: number | null = null;
  for (const { step, code } of valid) {
    const fits = timingSafeEqual(bytes, Buffer.from(code));
    if (fits && step > lastStep) found ??= step;
  }
  return found;
}
