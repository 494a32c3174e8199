// Certificates that the other program requests with ACME, with their accounts and DNS providers; knows no program.
import type { Document } from "../control/body.ts";
import type { CertificateChain } from "../crypto/certificate-chain.ts";
import type { Output } from "./output.ts";
import { materialOf } from "./pem.ts";

export interface AcmeCertificate {
  readonly key: string;
  readonly label: string;
  readonly name: string;
  readonly domains: readonly string[];
  readonly email: string | null;
  /** URL of the CA's directory; null: Let's Encrypt. */
  readonly directory?: string | null;
  readonly isDns?: boolean;
  readonly dnsProvider?: string | null;
  readonly keyType?: "ecdsa" | "rsa";
  /** The one that the other program has: served until the gateway renews it. */
  readonly present?: CertificateChain | null;
}

/** The gateway requests them once an admin agrees to the terms: until then the names lead to the other program. */
export class AcmeCertificates {
  readonly #output: Output;
  readonly #accounts = new Map<string, string>();

  constructor(output: Output) {
    this.#output = output;
  }

  add(certificate: AcmeCertificate): string {
    const { key, label, name, domains, isDns = false, dnsProvider = null, present } = certificate;
    const account = this.#accountOf(certificate);
    const needsDns = isDns || domains.some((domain) => domain.startsWith("*."));
    if (needsDns && dnsProvider === null)
      this.#output.report.changed(label, "add a DNS provider that can write to its zones");
    const when = this.#output.agreesTerms ? "" : " once you agree to the terms of the CA";
    const isPresent = present !== undefined && present !== null;
    this.#output.report[isPresent ? "imported" : "changed"](
      label,
      isPresent
        ? `is served as it is, and the gateway renews it${when}`
        : `the gateway requests it${when}; until then clients get another certificate`,
    );
    return this.#output.add(
      "certificates",
      { key, label },
      {
        name: this.#output.name("certificates", name),
        source: "acme",
        domains,
        acme_account_ids: [account],
        challenge: needsDns ? "dns-01" : "http-01",
        dns_provider_id: dnsProvider,
        key_type: certificate.keyType ?? "ecdsa",
        ...(isPresent ? materialOf(present) : {}),
      },
    );
  }

  #accountOf({ email, directory = null }: AcmeCertificate): string {
    const key = `${email ?? ""} ${directory ?? ""}`.trim();
    const known = this.#accounts.get(key);
    if (known !== undefined) return known;
    const host = directory === null ? "Let's Encrypt" : (URL.parse(directory)?.host ?? directory);
    const label = `account ${email === null ? "without e-mail address" : `of ${email}`} at ${host}`;
    const id = this.#output.add(
      "acme_accounts",
      { key, label },
      {
        name: this.#output.name("acme_accounts", `${host} ${email ?? ""}`.trim()),
        ...(directory === null ? {} : { directory_url: directory }),
        email: email === "" ? null : email,
        terms_agreed: this.#output.agreesTerms,
      },
    );
    this.#output.report.changed(
      label,
      this.#output.agreesTerms
        ? "became an ACME account, and you have agreed to the terms of the CA"
        : "became an ACME account: agree to the terms of the CA with this import, or set terms_agreed later",
    );
    this.#accounts.set(key, id);
    return id;
  }
}

/** For a provider whose secret the source contains in plain text. */
export function addDnsProvider(
  output: Output,
  {
    key,
    type,
    secrets,
    config = {},
    propagationTimeout,
  }: {
    readonly key: string;
    readonly type: string;
    readonly secrets: Readonly<Record<string, string>>;
    readonly config?: Document;
    /** Seconds; default: that of the gateway. */
    readonly propagationTimeout?: number;
  },
): string {
  const label = `DNS provider ${type}`;
  const sealed = Object.entries(secrets).map(([name, plain]) => [name, { sealed: { plain } }]);
  output.report.imported(label, "became a DNS provider");
  const fields = {
    name: output.name("dns_providers", type),
    type,
    config: { ...config, ...(Object.fromEntries(sealed) as Document) },
    ...(propagationTimeout === undefined ? {} : { propagation_timeout: propagationTimeout }),
  };
  return output.add("dns_providers", { key, label }, fields);
}
