// The schedule of orders, renewals and retries: pure arithmetic over times; knows no timer and no CA.
import { addressesIn, namesIn } from "../crypto/certificate-chain.ts";
import {
  type Certificate,
  type IssuedCertificate,
  isIssued,
  isRenewed,
} from "../model/certificate.ts";
import { normalName } from "./certificate-fields.ts";
import type { AcmeFailure } from "./failure.ts";
import type { AcmeState } from "./state.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** CAs limit failed validations: Let's Encrypt allows five per name and hour. */
const FIRST_PAUSE_MS = 5 * MINUTE_MS;
const LONGEST_PAUSE_MS = DAY_MS;
/** Attempts at an unavailable CA do not count. */
const FIRST_OUTAGE_PAUSE_MS = MINUTE_MS;
const LONGEST_OUTAGE_PAUSE_MS = HOUR_MS;
const LIMIT_PAUSE_MS = HOUR_MS;
/** Relative jitter of pauses, so that gateways do not retry in step. */
const JITTER = 0.2;
/** Certificates with a shorter lifetime are renewed at half of it (RFC 9773 section 4.2 leaves it to clients). */
const SHORT_LIFE_MS = 10 * DAY_MS;

/** Time of the next order, in milliseconds since the Unix epoch; 0: now; null: never. */
export function dueAt(certificate: Certificate, state: AcmeState): number | null {
  if (!isRenewed(certificate) || !certificate.enabled || certificate.domains.length === 0)
    return null;
  return Math.max(wantedAt(certificate, state), timeOf(state.next_attempt_at));
}

function wantedAt(certificate: Certificate, state: AcmeState): number {
  if (!isIssued(certificate) || state.is_asked_for || !holdsAllNames(certificate)) return 0;
  const { renewal, issued } = state;
  const drawn = renewal?.fingerprint === certificate.fingerprint ? timeOf(renewal.at) : 0;
  const wished = drawn === 0 ? naturalRenewal(certificate) : drawn;
  const isOwn = issued?.fingerprint === certificate.fingerprint;
  return Math.max(wished, earliestRenewal(certificate, isOwn ? (issued.at ?? null) : null));
}

/**
 * Prevents endless renewals with a CA whose window is always due or whose clock is far behind. `issuedAt`: by our own clock.
 */
function earliestRenewal(
  { not_before, not_after }: IssuedCertificate,
  issuedAt: string | null,
): number {
  const begin = Date.parse(not_before);
  const pauseMs = Math.min(DAY_MS, (Date.parse(not_after) - begin) / 10);
  return Math.max(begin, timeOf(issuedAt)) + pauseMs;
}

/** At one third of the remaining lifetime, or half of a short one. */
function naturalRenewal({ not_before, not_after }: IssuedCertificate): number {
  const end = Date.parse(not_after);
  const lifeMs = end - Date.parse(not_before);
  return end - lifeMs / (lifeMs < SHORT_LIFE_MS ? 2 : 3);
}

/** The fields that define an order. */
const ordering = [
  ...([
    "source",
    "enabled",
    "domains",
    "acme_account_ids",
    "challenge",
    "dns_provider_id",
  ] as const),
  ...(["key_type", "profile", "reuse_key", "preferred_chain"] as const),
];

/** Whether both certificates require the same order; true where one is missing. */
export const isOrderedAlike = (
  one: Certificate | undefined,
  other: Certificate | undefined,
): boolean =>
  one === undefined ||
  other === undefined ||
  ordering.every((field) => Bun.deepEquals(one[field], other[field]));

const names = new WeakMap<Certificate, boolean>();

/** Names may have been added since it was issued. */
export function holdsAllNames(certificate: IssuedCertificate): boolean {
  let isWhole = names.get(certificate);
  if (isWhole === undefined) {
    isWhole = nameMissingIn(certificate.certificate, certificate.domains) === undefined;
    names.set(certificate, isWhole);
  }
  return isWhole;
}

/** The first name that is missing in the certificate (PEM). */
export function nameMissingIn(pem: string, domains: readonly string[]): string | undefined {
  const held = [...namesIn(pem), ...addressesIn(pem)];
  return domains.find((domain) => {
    const name = normalName(domain);
    return !held.includes(name) && !held.includes(name.replace(/^[^.*]+(?=\.)/, "*"));
  });
}

/** Time of the retry after the `attempts`th consecutive failure. `random`: from 0 to 1. */
export function retryAt(
  failures: readonly AcmeFailure[],
  attempts: number,
  { now, random }: { readonly now: number; readonly random: number },
): number {
  const isOutage = failures.length > 0 && failures.every((failure) => failure.isOutage);
  const [first, longest] = isOutage
    ? [FIRST_OUTAGE_PAUSE_MS, LONGEST_OUTAGE_PAUSE_MS]
    : [FIRST_PAUSE_MS, LONGEST_PAUSE_MS];
  const pauseMs = Math.min(first * 2 ** Math.min(attempts - 1, 20), longest);
  const drawnMs = pauseMs * (1 - JITTER + 2 * JITTER * random);
  const wishedMs = failures.map(({ type, retryAfterMs }) =>
    type === "rateLimited" ? Math.max(retryAfterMs ?? 0, LIMIT_PAUSE_MS) : (retryAfterMs ?? 0),
  );
  return now + Math.max(drawnMs, ...wishedMs);
}

/** 0 for null. */
export const timeOf = (text: string | null): number => (text === null ? 0 : Date.parse(text));

export const toTime = (ms: number): string => new Date(ms).toISOString();
