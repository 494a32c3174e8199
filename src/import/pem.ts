// Converts certificates of another program to objects; knows no program.
import { type CertificateChain, ChainError, readChain } from "../crypto/certificate-chain.ts";
import type { Output } from "./output.ts";

export interface UploadedCertificate {
  readonly key: string;
  readonly label: string;
  readonly name: string;
  readonly certificate: string;
  readonly privateKey: string;
  /** Names that the source uses it for; empty: all its names. */
  readonly domains: readonly string[];
  readonly tags?: readonly string[];
}

/** The id of the certificate; null, with a report entry, when it is invalid. */
export function addCertificate(output: Output, uploaded: UploadedCertificate): string | null {
  const { key, label, name, certificate, privateKey, domains } = uploaded;
  try {
    const chain = readChain(certificate, privateKey);
    const wanted = domains.map((domain) => domain.toLowerCase());
    const used = wanted.filter((domain) => chain.names.includes(domain));
    for (const domain of wanted)
      if (!chain.names.includes(domain) && !covers(chain.names, domain))
        output.report.omitted(`${label}: ${domain}`, "the certificate does not cover this name");
    output.report.imported(label, "became a certificate");
    return output.add(
      "certificates",
      { key, label },
      {
        name: output.name("certificates", name),
        source: "upload",
        domains: used.length === wanted.length && used.length > 0 ? used : chain.names,
        ...materialOf(chain),
        tags: uploaded.tags ?? [],
      },
    );
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    output.report.omitted(label, `its ${error.field.replace("_", " ")} ${error.message}`);
    return null;
  }
}

const covers = (names: readonly string[], domain: string) =>
  names.includes(`*.${domain.split(".").slice(1).join(".")}`);

/** Fields of a certificate in a configuration file. */
export const materialOf = (chain: CertificateChain) => ({
  certificate: chain.certificate,
  sealed_key: { plain: chain.key },
  not_before: chain.notBefore,
  not_after: chain.notAfter,
  issuer: chain.issuer,
  fingerprint: chain.fingerprint,
});
