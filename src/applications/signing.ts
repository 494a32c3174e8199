// Certificates of applications that the gateway signs: when one is required, and how to sign it for a synchronous change. Stores nothing.
import type { Clock } from "../clock.ts";
import { addressesIn, namesIn, readChain } from "../crypto/certificate-chain.ts";
import type { SecretBox } from "../crypto/secret-box.ts";
import { createSelfSigned, type KeyPair } from "../crypto/x509.ts";
import { type Certificate, isIssued } from "../model/certificate.ts";
import type { LocalCa } from "../acme/local-ca.ts";
import { covers } from "./domains.ts";
import type { Sign } from "./reconcile.ts";

const VALID_DAYS = 397;
const RENEW_BEFORE_MS = 30 * 86_400_000;
/** Applications per change; further ones wait for the next one. */
const MAX_PAIRS = 1000;

/** Thrown inside a change, which must restart with a certificate for these names. */
class PairNeeded extends Error {
  readonly source: Certificate["source"];
  readonly names: readonly string[];

  constructor({ source, domains }: Certificate) {
    super(`a certificate for ${domains.join(", ")} is needed`);
    this.source = source;
    this.names = domains;
  }
}

export interface SigningOptions {
  readonly box: SecretBox;
  readonly clock: Clock;
  readonly localCa: LocalCa;
}

/** Whether the certificate has other names or, self-signed, expires soon: those of the local CA are renewed without the application. */
export function needsReplacement(certificate: Certificate, now: number): boolean {
  const { source } = certificate;
  if (source !== "self_signed" && source !== "local_ca") return false;
  if (!isIssued(certificate)) return true;
  const { certificate: pem, not_after } = certificate;
  const names = [...namesIn(pem), ...addressesIn(pem)];
  const isSoonOver = Date.parse(not_after) - now < RENEW_BEFORE_MS;
  return (
    (source === "self_signed" && isSoonOver) ||
    certificate.domains.some((domain) => !covers(names, domain))
  );
}

const keyOf = (source: string, names: readonly string[]) => `${source} ${names.join(" ")}`;

/**
 * Runs a change that may need certificates. Signing is slow and a change must be fast: it restarts with each missing one.
 */
export async function withSigning<T>(
  { box, clock, localCa }: SigningOptions,
  run: (sign: Sign) => Promise<T>,
  { dryRun }: { readonly dryRun: boolean },
): Promise<T> {
  const pairs = new Map<string, KeyPair>();
  const sign: Sign = (certificate) => {
    if (!needsReplacement(certificate, clock.now())) return certificate;
    const pair = pairs.get(keyOf(certificate.source, certificate.domains));
    if (pair === undefined) throw new PairNeeded(certificate);
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
      const { names, source } = error;
      const content = { names, addresses: [], now: clock.now(), validDays: VALID_DAYS };
      const pair =
        source === "local_ca"
          ? await localCa.sign(names, { dryRun })
          : await createSelfSigned(content);
      pairs.set(keyOf(source, names), pair);
    }
  }
}
