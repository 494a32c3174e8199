// Which certificate is presented for which name; knows no handshake.
import { type Certificate, type IssuedCertificate, isIssued } from "../model/certificate.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { CertificatePlan, Snapshot } from "./snapshot.ts";

/** What a certificate is presented with; null while there is none, or it has not been issued. */
export function pairOf(
  certificate: Certificate | undefined,
  openSealed: (sealed: string) => string,
): { readonly cert: string; readonly key: string } | null {
  if (certificate === undefined || !isIssued(certificate)) return null;
  return { cert: certificate.certificate, key: openSealed(certificate.sealed_key) };
}

interface Before {
  readonly config: GatewayConfig;
  readonly snapshot: Snapshot;
}

/**
 * Every name belongs to one certificate: of several that have it, the one that lasts longest. One that has not been issued
 * yet has none. Unchanged plans stay the same object.
 */
export function planCertificates(
  config: GatewayConfig,
  previous: Before | null,
  { openSealed }: { readonly openSealed: (sealed: string) => string },
): Snapshot["certificates"] {
  if (previous?.config.certificates === config.certificates) return previous.snapshot.certificates;
  const plans = new Map<string, CertificatePlan>();
  const old = previous?.snapshot.certificates;
  let kept = 0;
  for (const [certificate, names] of namesByOwner(config)) {
    const before = old?.get(certificate.id);
    const isKept =
      before !== undefined &&
      previous?.config.certificates.get(certificate.id) === certificate &&
      Bun.deepEquals(before.names, names);
    if (isKept) kept++;
    const plan = isKept
      ? before
      : {
          id: certificate.id,
          names,
          cert: certificate.certificate,
          key: openSealed(certificate.sealed_key),
        };
    plans.set(certificate.id, plan);
  }
  return old !== undefined && kept === plans.size && kept === old.size ? old : plans;
}

function namesByOwner({ certificates }: GatewayConfig): Map<IssuedCertificate, string[]> {
  const owners = new Map<string, IssuedCertificate>();
  for (const certificate of certificates.values()) {
    if (!certificate.enabled || !isIssued(certificate)) continue;
    for (const name of certificate.domains) {
      const owner = owners.get(name);
      if (owner === undefined || owner.not_after <= certificate.not_after)
        owners.set(name, certificate);
    }
  }
  const names = new Map<IssuedCertificate, string[]>();
  for (const [name, owner] of owners) {
    const list = names.get(owner);
    if (list === undefined) names.set(owner, [name]);
    else list.push(name);
  }
  return names;
}
