// Certificates that the other program requests with ACME, with their accounts and DNS providers; knows no program.
import { generateKeyPairSync } from "node:crypto";
import type { Document } from "../control/body.ts";
import type { Output } from "./output.ts";

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
}

/** The gateway requests them once an admin agrees to the terms: until then the names lead to the other program. */
export class AcmeCertificates {
  readonly #output: Output;
  readonly #accounts = new Map<string, string>();

  constructor(output: Output) {
    this.#output = output;
  }

  add(certificate: AcmeCertificate): string {
    const { key, label, name, domains, isDns = false, dnsProvider = null } = certificate;
    const account = this.#accountOf(certificate);
    const needsDns = isDns || domains.some((domain) => domain.startsWith("*."));
    if (needsDns && dnsProvider === null)
      this.#output.report.changed(label, "add a DNS provider that can write to its zones");
    this.#output.report.changed(
      label,
      "became a certificate that the gateway requests once you agree to the terms in its ACME account",
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
      },
    );
  }

  #accountOf({ email, directory = null }: AcmeCertificate): string {
    const key = `${email ?? ""} ${directory ?? ""}`.trim();
    const known = this.#accounts.get(key);
    if (known !== undefined) return known;
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const host = directory === null ? "Let's Encrypt" : (URL.parse(directory)?.host ?? directory);
    const label = `account ${email === null ? "without e-mail address" : `of ${email}`} at ${host}`;
    const id = this.#output.add(
      "acme_accounts",
      { key, label },
      {
        name: this.#output.name("acme_accounts", `${host} ${email ?? ""}`.trim()),
        ...(directory === null ? {} : { directory_url: directory }),
        email: email === "" ? null : email,
        terms_agreed: false,
        sealed_key: { plain: privateKey.export({ type: "pkcs8", format: "pem" }).toString() },
      },
    );
    this.#output.report.changed(
      label,
      "became an ACME account with a new key: set terms_agreed when the names resolve to this gateway",
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
  }: {
    readonly key: string;
    readonly type: string;
    readonly secrets: Readonly<Record<string, string>>;
    readonly config?: Document;
  },
): string {
  const label = `DNS provider ${type}`;
  const sealed = Object.entries(secrets).map(([name, plain]) => [name, { sealed: { plain } }]);
  output.report.imported(label, "became a DNS provider");
  const fields = {
    name: output.name("dns_providers", type),
    type,
    config: { ...config, ...(Object.fromEntries(sealed) as Document) },
  };
  return output.add("dns_providers", { key, label }, fields);
}
