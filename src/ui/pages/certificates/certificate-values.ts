// The fields of the form of a certificate, converted from and to the API's objects; renders nothing.
import type { Read, Write } from "../../api/resources.ts";
import { asciiName } from "../../api/shown-names.ts";

export interface CertificateValues extends Pick<
  Read<"certificates">,
  | "name"
  | "source"
  | "domains"
  | "acme_account_ids"
  | "challenge"
  | "dns_provider_id"
  | "key_type"
  | "reuse_key"
  | "enabled"
  | "tags"
  | "description"
> {
  readonly preferred_chain: string;
  readonly profile: string;
  readonly is_on_demand: boolean;
  readonly on_demand: { readonly ask_url: string; readonly hosts: string[] };
  readonly certificate: string;
  /** Empty: the stored key is unchanged. */
  readonly private_key: string;
}

/** Whether the gateway issues new ones in time by itself. */
export const isRenewed = (source: CertificateValues["source"]): boolean =>
  source === "acme" || source === "local_ca";

export function toValues(certificate: Partial<Read<"certificates">>): CertificateValues {
  const { on_demand: onDemand = null } = certificate;
  return {
    name: certificate.name ?? "",
    source: certificate.source ?? "acme",
    domains: certificate.domains ?? [],
    acme_account_ids: certificate.acme_account_ids ?? [],
    challenge: certificate.challenge ?? "http-01",
    dns_provider_id: certificate.dns_provider_id ?? null,
    key_type: certificate.key_type ?? "ecdsa",
    reuse_key: certificate.reuse_key ?? false,
    enabled: certificate.enabled ?? true,
    tags: certificate.tags ?? [],
    description: certificate.description ?? "",
    preferred_chain: certificate.preferred_chain ?? "",
    profile: certificate.profile ?? "",
    is_on_demand: onDemand !== null,
    on_demand: onDemand ?? { ask_url: "", hosts: [] },
    certificate: certificate.source === "upload" ? (certificate.certificate ?? "") : "",
    private_key: "",
  };
}

export function toBody(values: CertificateValues): Write<"certificates"> {
  const { name, source, domains, enabled, tags, description } = values;
  const shared = { name, source, enabled, tags, description };
  if (source === "self_signed" || source === "local_ca") return { ...shared, domains };
  if (source === "upload")
    return {
      ...shared,
      certificate: values.certificate,
      // Omitted fields are read from the certificate; an omitted key stays stored.
      ...(domains.length === 0 ? {} : { domains }),
      ...(values.private_key === "" ? {} : { private_key: values.private_key }),
    };
  return {
    ...shared,
    domains: values.is_on_demand ? [] : domains,
    challenge: values.challenge,
    key_type: values.key_type,
    reuse_key: values.reuse_key,
    acme_account_ids: values.acme_account_ids,
    dns_provider_id: values.challenge === "dns-01" ? values.dns_provider_id : null,
    preferred_chain: values.preferred_chain === "" ? null : values.preferred_chain,
    profile: values.profile === "" ? null : values.profile,
    on_demand: values.is_on_demand ? { ...values.on_demand } : null,
  };
}

/** The local CA signs addresses, too. */
const isNameWrong = (domain: string, source: CertificateValues["source"]): boolean =>
  source === "local_ca" && /^[0-9a-f:.]+$/i.test(domain) ? false : /[\s/:]/.test(domain);

/** The gateway's rules, so that errors show while typing. */
export const rules = {
  name: (value: string) =>
    value.trim() === ""
      ? "Name is required"
      : /^[A-Za-z0-9_](?:[A-Za-z0-9_.~ -]*[A-Za-z0-9_.~-])?$/.test(value)
        ? null
        : "Only letters, digits, spaces and . ~ _ -; it starts and ends with a letter or digit",
  domains: (
    _: unknown,
    { source, domains, is_on_demand: isOnDemand, challenge }: CertificateValues,
  ) => {
    if (source === "upload" || (source === "acme" && isOnDemand)) return null;
    if (domains.length === 0) return "At least one name is required, such as shop.example.com";
    const wrong = domains.find((name) => isNameWrong(name, source));
    if (wrong !== undefined) return `${wrong}: only the name, without http:// or a port`;
    const isStar = source === "acme" && domains.some((domain) => domain.startsWith("*."));
    return isStar && challenge !== "dns-01"
      ? "Wildcard names require the DNS challenge: select it below"
      : null;
  },
  certificate: (value: string, { source }: CertificateValues) =>
    source !== "upload" || value.includes("-----BEGIN CERTIFICATE-----")
      ? null
      : value.includes("PRIVATE KEY")
        ? "This is a private key: paste it into the field below"
        : "Must be PEM that begins with -----BEGIN CERTIFICATE-----",
  private_key: (value: string, { source }: CertificateValues) =>
    source !== "upload" || value === ""
      ? null
      : value.includes("ENCRYPTED")
        ? "This key is encrypted: decrypt it first, with openssl pkey -in key.pem"
        : /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/.test(value)
          ? null
          : "Must be PEM that begins with -----BEGIN PRIVATE KEY-----",
};

/** The name of a new certificate follows its first domain until the user edits it. */
export function followedName(values: CertificateValues, domains: readonly string[]): string {
  const nameFor = (all: readonly string[]) => asciiName(all[0]?.replace("*.", "") ?? "");
  const isFollowing = values.name === "" || values.name === nameFor(values.domains);
  return isFollowing ? nameFor(domains) : values.name;
}
