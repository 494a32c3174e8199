// Chooses the certificate for each name; knows no handshake.
import { type Certificate, type IssuedCertificate, isIssued } from "../model/certificate.ts";
import { isAddress } from "../model/local-ca.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import type { CertificatePlan, Snapshot } from "./snapshot.ts";

/** PEM chain and key; null when there is no certificate, or it has not been issued. */
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
 * Every name belongs to one issued certificate: of several that cover it, the one that expires last. Unchanged plans stay the
 * same object.
 */
export function planCertificates(
  config: GatewayConfig,
  previous: Before | null,
  { openSealed }: { readonly openSealed: (sealed: string) => string },
): Snapshot["certificates"] {
  if (previous?.config.certificates === config.certificates) return previous.snapshot.certificates;
  const plans = new Map<string, CertificatePlan>();
  const old = previous?.snapshot.certificates;
  let unchanged = 0;
  for (const [certificate, owned] of namesByOwner(config)) {
    // Clients send no address as a name (RFC 6066 section 3).
    const names = owned.filter((name) => !isAddress(name));
    const before = old?.get(certificate.id);
    const isUnchanged =
      before !== undefined &&
      previous?.config.certificates.get(certificate.id) === certificate &&
      Bun.deepEquals(before.names, names);
    if (isUnchanged) unchanged++;
    const plan = isUnchanged
      ? before
      : {
          id: certificate.id,
          names,
          cert: certificate.certificate,
          key: openSealed(certificate.sealed_key),
        };
    plans.set(certificate.id, plan);
  }
  return old !== undefined && unchanged === plans.size && unchanged === old.size ? old : plans;
}

/**
 * The certificate for clients that send no name, as those that connect to an address: the oldest one of the local CA that holds
 * addresses. Null: there is none.
 */
export function planForAddresses(
  { certificates }: GatewayConfig,
  plans: Snapshot["certificates"],
): CertificatePlan | null {
  for (const { id, source, domains } of certificates.values()) {
    const plan = plans.get(id);
    const holdsAddress = source === "local_ca" && domains.some(isAddress);
    if (plan !== undefined && holdsAddress) return plan;
  }
  return null;
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
