// Self-signed certificates of applications: when one is required, and how to sign it for a synchronous change. Stores nothing.
import type { Clock } from "../clock.ts";
import { namesIn, readChain } from "../crypto/certificate-chain.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import { createSelfSigned, type KeyPair } from "../crypto/x509.ts";
import { type Certificate, isIssued } from "../model/certificate.ts";
import { covers } from "./domains.ts";
import type { Sign } from "./reconcile.ts";

const VALID_DAYS = 397;
const RENEW_BEFORE_MS = 30 * 86_400_000;
/** Applications per change; further ones wait for the next one. */
const MAX_PAIRS = 1000;

/** Thrown inside a change, which must restart with a certificate for these names. */
class PairNeeded extends Error {
  readonly names: readonly string[];

  constructor(names: readonly string[]) {
    super(`a certificate for ${names.join(", ")} is needed`);
    this.names = names;
  }
}

export interface SigningOptions {
  readonly box: SecretBox;
  readonly clock: Clock;
}

/** Whether the certificate has other names or expires soon. */
export function needsReplacement(certificate: Certificate, now: number): boolean {
  if (certificate.source !== "self_signed") return false;
  if (!isIssued(certificate)) return true;
  const names = namesIn(certificate.certificate);
  const isSoonOver = Date.parse(certificate.not_after) - now < RENEW_BEFORE_MS;
  return isSoonOver || certificate.domains.some((domain) => !covers(names, domain));
}

/**
 * Runs a change that may need certificates. Signing is slow and a change must be fast: it restarts with each missing one.
 */
export async function withSigning<T>(
  { box, clock }: SigningOptions,
  run: (sign: Sign) => Promise<T>,
): Promise<T> {
  const pairs = new Map<string, KeyPair>();
  const sign: Sign = (certificate) => {
    if (!needsReplacement(certificate, clock.now())) return certificate;
    const { domains } = certificate;
    const pair = pairs.get(domains.join(" "));
    if (pair === undefined) throw new PairNeeded(domains);
    const chain = readChain(pair.cert, pair.key);
    const { certificate: pem, notBefore, notAfter, issuer, fingerprint } = chain;
    return {
      ...certificate,
      certificate: pem,
      sealed_key: box.seal(chain.key),
      not_before: notBefore,
      not_after: notAfter,
      issuer,
      fingerprint,
    };
  };
  for (let tries = 1; ; tries++) {
    try {
      return await run(sign);
    } catch (error) {
      if (!(error instanceof PairNeeded) || tries > MAX_PAIRS) throw error;
      const { names } = error;
      const pair = await createSelfSigned({
        names,
        addresses: [],
        now: clock.now(),
        validDays: VALID_DAYS,
      });
      pairs.set(names.join(" "), pair);
    }
  }
}
