// Expiry thresholds of certificates, and their warnings; knows no event and no renewal.
import {
  type Certificate,
  type IssuedCertificate,
  isIssued,
  isRenewed,
} from "../model/certificate.ts";
import { holdsAllNames } from "./schedule.ts";

const DAY_MS = 86_400_000;

/** Days before the expiry with one notification each; 0: expired. */
const THRESHOLDS = [0, 1, 3, 7, 14, 30] as const;

export interface Expiry {
  readonly certificate: IssuedCertificate;
  /** The reached threshold. */
  readonly days: number;
}

/** Null before the first threshold. `now`: milliseconds since the Unix epoch. */
export function expiryOf(certificate: Certificate, now: number): Expiry | null {
  if (!certificate.enabled || !isIssued(certificate)) return null;
  const end = Date.parse(certificate.not_after);
  const leftMs = end - now;
  const days = THRESHOLDS.find((threshold) => leftMs <= threshold * DAY_MS);
  if (days === undefined) return null;
  // Automatic renewal is expected in the last third of the lifetime.
  const lifeMs = end - Date.parse(certificate.not_before);
  const isExpected = isRenewed(certificate) && days > 0 && days * DAY_MS >= lifeMs / 3;
  return isExpected ? null : { certificate, days };
}

/** `certificate "shop" expires in 13 days, on 2026-05-01`. */
export function describeExpiry({ certificate }: Expiry, now: number): string {
  const { name, not_after } = certificate;
  const day = not_after.slice(0, 10);
  const leftMs = Date.parse(not_after) - now;
  if (leftMs <= 0) return `certificate "${name}" expired on ${day}`;
  const days = Math.floor(leftMs / DAY_MS);
  const left = days === 0 ? "in less than a day" : days === 1 ? "in 1 day" : `in ${days} days`;
  return `certificate "${name}" expires ${left}, on ${day}`;
}

/** One sentence per problem of a certificate. `attempts`: failures since the last success. */
export function describeTroubles(
  certificate: Certificate,
  attempts: number,
  now: number,
): readonly string[] {
  const expiry = expiryOf(certificate, now);
  const expires = expiry === null ? [] : [describeExpiry(expiry, now)];
  if (attempts === 0 || !isRenewed(certificate) || !certificate.enabled) return expires;
  const what = !isIssued(certificate)
    ? "could not be issued"
    : holdsAllNames(certificate)
      ? null
      : "could not be issued for all of its names";
  const times = attempts === 1 ? "1 attempt" : `${attempts} attempts`;
  return what === null
    ? expires
    : [...expires, `certificate "${certificate.name}" ${what} in ${times}`];
}
