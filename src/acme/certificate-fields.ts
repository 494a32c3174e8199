// Fields of an ACME certificate: their validation, and the present material during an order; sends no request to a CA.
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import type { Certificate, CertificateInput } from "../model/certificate.ts";
import { invalid } from "../model/error.ts";
import type { GatewayConfig } from "../model/gateway-config.ts";
import { withIds } from "../control/key.ts";

/** The input with ids of accounts and provider, and names as a CA gets them; throws a 400 with the field. */
export function issuingFields<F extends Pick<CertificateInput, "source" | "domains">>(
  input: F,
  config: GatewayConfig,
): F {
  const fields = withIds("certificates", input, config);
  return input.source === "acme" ? { ...fields, domains: namesToOrder(input.domains) } : fields;
}

function namesToOrder(domains: readonly string[]): string[] {
  for (const [index, name] of domains.entries()) {
    if (!name.includes("."))
      throw invalid(`domains[${index}]`, "must be a name with a dot: CAs issue for no others");
    if (isIP(name) !== 0)
      throw invalid(
        `domains[${index}]`,
        "must be a name: certificates for addresses are not supported",
      );
  }
  return [...new Set(domains.map((name) => name.toLowerCase()))];
}

/** In lower case, and an address in its shortest form. */
export const normalName = (name: string): string =>
  isIP(name) === 0 ? name.toLowerCase() : ipaddr.parse(name).toString();

type Material = Pick<
  Certificate,
  "certificate" | "sealed_key" | "not_before" | "not_after" | "issuer" | "fingerprint"
>;

/** Before the first issue. */
export const materialOfNone: Material = {
  certificate: null,
  sealed_key: null,
  not_before: null,
  not_after: null,
  issuer: null,
  fingerprint: null,
};

/** The present certificate stays in use until the CA has issued a new one; a self-signed one is dropped for the default. */
export function materialWhileOrdered(old: Certificate | null): Material {
  if (old === null || old.source === "self_signed") return materialOfNone;
  const { certificate, sealed_key, not_before, not_after, issuer, fingerprint } = old;
  return { certificate, sealed_key, not_before, not_after, issuer, fingerprint };
}
