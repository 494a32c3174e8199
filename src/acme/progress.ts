// The status of a certificate for users; knows no CA and no timer.
import { type Certificate, type CertificateStatus, isIssued } from "../model/certificate.ts";

/** The ACME progress of one certificate. */
export interface Progress {
  /** Whether an order is in progress. */
  readonly isRunning: boolean;
  readonly last_error: string | null;
  readonly attempts: number;
  readonly next_attempt_at: string | null;
  readonly renewal_window: { readonly start: string; readonly end: string } | null;
}

export const noProgress: Progress = {
  isRunning: false,
  last_error: null,
  attempts: 0,
  next_attempt_at: null,
  renewal_window: null,
};

/** `now`: milliseconds since the Unix epoch. */
export function statusOf(
  certificate: Certificate,
  { isRunning, attempts }: Progress,
  now: number,
): CertificateStatus {
  if (!isIssued(certificate)) {
    if (isRunning) return "ordering";
    return attempts > 0 ? "failed" : "pending";
  }
  if (Date.parse(certificate.not_after) <= now) return isRunning ? "ordering" : "expired";
  if (Date.parse(certificate.not_before) > now) return "pending";
  return isRunning || attempts > 0 ? "renewing" : "valid";
}
