// What a certificate that is to be ordered has to say, and what it keeps while that goes on; talks to no authority.
import { isIP } from "node:net";
import type { Certificate, CertificateInput } from "../../model/certificate.ts";
import { invalid } from "../../model/error.ts";
import type { GatewayConfig } from "../../model/gateway-config.ts";
import { resolveKey } from "../key.ts";

type IssuingFields = Pick<Certificate, "domains" | "acme_account_ids" | "dns_provider_id">;

/** Names of accounts and of the provider become ids; throws a 400 that names the field. */
export function issuingFields(input: CertificateInput, config: GatewayConfig): IssuingFields {
  const { dns_provider_id: provider } = input;
  const ids = input.acme_account_ids.map((key, index) =>
    resolveKey(config.acme_accounts, key, {
      path: `acme_account_ids[${index}]`,
      word: "ACME account",
    }),
  );
  const at = { path: "dns_provider_id", word: "DNS provider" };
  return {
    domains: input.source === "acme" ? namesToOrder(input.domains) : input.domains,
    acme_account_ids: [...new Set(ids)],
    dns_provider_id: provider === null ? null : resolveKey(config.dns_providers, provider, at),
  };
}

function namesToOrder(domains: readonly string[]): string[] {
  for (const [index, name] of domains.entries()) {
    if (!name.includes("."))
      throw invalid(`domains[${index}]`, "must be a name with a dot: no authority knows others");
    if (isIP(name) !== 0)
      throw invalid(`domains[${index}]`, "must be a name: none is ordered for addresses");
  }
  return [...new Set(domains.map((name) => name.toLowerCase()))];
}

type Material = Pick<
  Certificate,
  "certificate" | "sealed_key" | "not_before" | "not_after" | "issuer" | "fingerprint"
>;

/** As long as nothing has been issued. */
export const materialOfNone: Material = {
  certificate: null,
  sealed_key: null,
  not_before: null,
  not_after: null,
  issuer: null,
  fingerprint: null,
};

/** What is there stays in use until the authority has issued another; one that was made here is worth no more than the default. */
export function materialWhileOrdered(old: Certificate | null): Material {
  if (old === null || old.source === "self_signed") return materialOfNone;
  const { certificate, sealed_key, not_before, not_after, issuer, fingerprint } = old;
  return { certificate, sealed_key, not_before, not_after, issuer, fingerprint };
}
