// Renewal information (RFC 9773): requests the window and selects a time in it; stores nothing itself.
import { identityOf } from "../crypto/certificate-identity.ts";
import type { IssuedCertificate } from "../model/certificate.ts";
import type { CaClient } from "./ca-client.ts";
import { toTime } from "./schedule.ts";
import type { AcmeState } from "./state.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** RFC 9773 section 4.3.3. */
const DEFAULT_PAUSE_MS = 6 * 60 * MINUTE_MS;

type Renewal = NonNullable<AcmeState["renewal"]>;

/** RFC 9773 section 4.1: the issuer's key identifier and the serial number in the certificate; null: it has none. */
export function certificateIdOf(pem: string): string | null {
  const identity = identityOf(pem);
  if (identity === null) return null;
  const part = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64url");
  return `${part(identity.authorityKeyId)}.${part(identity.serialNumber)}`;
}

/** `random`: from 0 to 1. Throws an AcmeFailure. */
export async function askRenewal(
  certificate: IssuedCertificate,
  ca: CaClient,
  { now, random }: { readonly now: number; readonly random: number },
): Promise<Renewal> {
  const fingerprint = certificate.fingerprint ?? "";
  const nothing = { fingerprint, start: null, end: null, at: null };
  const base = await ca.renewalInfoUrl();
  const id = base === null ? null : certificateIdOf(certificate.certificate);
  if (base === null || id === null) return { ...nothing, ask_again_at: toTime(now + DAY_MS) };
  const window = windowOf(await ca.read(`${base.replace(/\/$/, "")}/${id}`), certificate);
  const wishMs = ca.retryAfterMs ?? DEFAULT_PAUSE_MS;
  const ask_again_at = toTime(now + Math.min(Math.max(wishMs, MINUTE_MS), DAY_MS));
  if (window === null) return { ...nothing, ask_again_at };
  const { start, end } = window;
  const at = start + (end - start) * random;
  return {
    fingerprint,
    start: toTime(start),
    end: toTime(end),
    at: toTime(at),
    ask_again_at,
  };
}

/** Retains the selected time while the window is unchanged. */
export function settled(answer: Renewal, old: Renewal | null): Renewal {
  const isSame = old?.fingerprint === answer.fingerprint && old.start === answer.start;
  return isSame && old.end === answer.end ? { ...answer, at: old.at } : answer;
}

/** Null for an invalid window, which is ignored. */
function windowOf(
  answer: unknown,
  { not_after }: IssuedCertificate,
): { readonly start: number; readonly end: number } | null {
  const { suggestedWindow: window } = Object(answer) as {
    readonly suggestedWindow?: { readonly start?: unknown; readonly end?: unknown };
  };
  const start = Date.parse(String(window?.start));
  const end = Date.parse(String(window?.end));
  if (Number.isNaN(start) || Number.isNaN(end) || end <= start) return null;
  // Waiting so long would let the certificate expire.
  return end > Date.parse(not_after) ? null : { start, end };
}
