// Certificates that the other program orders by itself (ACME), with their accounts and DNS providers; knows no program.
import { generateKeyPairSync } from "node:crypto";
import type { Document } from "../body.ts";
import type { Output } from "./output.ts";

export interface OrderedCertificate {
  readonly key: string;
  readonly label: string;
  readonly name: string;
  readonly domains: readonly string[];
  readonly email: string | null;
  /** Address of the authority's directory; null: Let's Encrypt. */
  readonly directory?: string | null;
  readonly isDns?: boolean;
  readonly dnsProvider?: string | null;
  readonly keyType?: "ecdsa" | "rsa";
}

/** Orders begin when somebody agrees to the terms: names lead to the other program until then. */
export class OrderedCertificates {
  readonly #output: Output;
  readonly #accounts = new Map<string, string>();

  constructor(output: Output) {
    this.#output = output;
  }

  add(ordered: OrderedCertificate): string {
    const { key, label, name, domains, isDns = false, dnsProvider = null } = ordered;
    const account = this.#accountOf(ordered);
    const needsDns = isDns || domains.some((domain) => domain.startsWith("*."));
    if (needsDns && dnsProvider === null)
      this.#output.report.changed(label, "add a DNS provider that may write its zones");
    this.#output.report.changed(
      label,
      "became a certificate that is ordered anew, once you agree to the terms in its ACME account",
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
        key_type: ordered.keyType ?? "ecdsa",
      },
    );
  }

  #accountOf({ email, directory = null }: OrderedCertificate): string {
    const key = `${email ?? ""} ${directory ?? ""}`.trim();
    const known = this.#accounts.get(key);
    if (known !== undefined) return known;
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const host = directory === null ? "Let's Encrypt" : (URL.parse(directory)?.host ?? directory);
    const label = `account of ${email ?? "nobody"} at ${host}`;
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
      "became an ACME account with a new key: set terms_agreed when names lead here",
    );
    this.#accounts.set(key, id);
    return id;
  }
}

/** A provider whose secret stands in the clear in the source. */
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
  output.report.carried(label, "became a DNS provider");
  const fields = {
    name: output.name("dns_providers", type),
    type,
    config: { ...config, ...(Object.fromEntries(sealed) as Document) },
  };
  return output.add("dns_providers", { key, label }, fields);
}
