// The fields of the form of an ACME account, and the known CAs; renders nothing.
import type { Read, Write } from "../../api/resources.ts";

export interface AccountValues extends Pick<
  Read<"acme/accounts">,
  "name" | "directory_url" | "staging" | "terms_agreed" | "ca_certificates" | "enabled" | "tags"
> {
  readonly description: string;
  readonly email: string;
  readonly staging_directory_url: string;
  readonly eab_key_id: string;
  /** Empty: the stored key is unchanged. */
  readonly eab_hmac_key: string;
  readonly profile: string;
  readonly preferred_chain: string;
}

export interface Ca {
  readonly label: string;
  readonly url: string;
  readonly needsBinding: boolean;
  readonly hasStaging: boolean;
  readonly text: string;
}

export const cas: readonly Ca[] = [
  {
    label: "Let's Encrypt",
    url: "https://acme-v02.api.letsencrypt.org/directory",
    needsBinding: false,
    hasStaging: true,
    text: "Free, without registration.",
  },
  {
    label: "ZeroSSL",
    url: "https://acme.zerossl.com/v2/DV90",
    needsBinding: true,
    hasStaging: false,
    text: "Free. Sign up at zerossl.com and copy the EAB credentials from Developer.",
  },
  {
    label: "Google Trust Services",
    url: "https://dv.acme-v02.api.pki.goog/directory",
    needsBinding: true,
    hasStaging: true,
    text: "Free with a Google Cloud project: gcloud publicca external-account-keys create.",
  },
  {
    label: "SSL.com",
    url: "https://acme.ssl.com/sslcom-dv-ecc",
    needsBinding: true,
    hasStaging: false,
    text: "Sign up at ssl.com and copy the ACME credentials of your account.",
  },
];

export const caOf = (url: string): Ca | undefined => cas.find((ca) => ca.url === url);

/** Its name, or the host of an unknown CA. */
export const caName = (url: string): string => caOf(url)?.label ?? URL.parse(url)?.host ?? url;

export function toValues(account: Partial<Read<"acme/accounts">>): AccountValues {
  return {
    name: account.name ?? "letsencrypt",
    directory_url: account.directory_url ?? cas[0]?.url ?? "",
    staging: account.staging ?? false,
    terms_agreed: account.terms_agreed ?? false,
    ca_certificates: account.ca_certificates ?? "",
    enabled: account.enabled ?? true,
    tags: account.tags ?? [],
    description: account.description ?? "",
    email: account.email ?? "",
    staging_directory_url: account.staging_directory_url ?? "",
    eab_key_id: account.eab_key_id ?? "",
    eab_hmac_key: "",
    profile: account.profile ?? "",
    preferred_chain: account.preferred_chain ?? "",
  };
}

const orNull = (text: string): string | null => (text.trim() === "" ? null : text.trim());

export function toBody(values: AccountValues): Write<"acme/accounts"> {
  const { eab_hmac_key: key, ...rest } = values;
  return {
    ...rest,
    email: orNull(values.email),
    staging_directory_url: orNull(values.staging_directory_url),
    eab_key_id: orNull(values.eab_key_id),
    profile: orNull(values.profile),
    preferred_chain: orNull(values.preferred_chain),
    ...(key === "" ? {} : { eab_hmac_key: key }),
  };
}

/** The gateway's rules, so that errors show while typing. */
export const rules = {
  name: (value: string) =>
    value.trim() === ""
      ? "Name is required"
      : /^[A-Za-z0-9_](?:[A-Za-z0-9_.~ -]*[A-Za-z0-9_.~-])?$/.test(value)
        ? null
        : "Only letters, digits, spaces and . ~ _ -; it starts and ends with a letter or digit",
  directory_url: (value: string) =>
    /^https:\/\/[^\s?#]+$/.test(value) ? null : "Must start with https://",
  staging_directory_url: (value: string) =>
    value === "" || /^https:\/\/[^\s?#]+$/.test(value) ? null : "Must start with https://",
  email: (value: string) =>
    value === "" || /^[^\s@]+@[^\s@]+$/.test(value) ? null : "Must be an e-mail address or empty",
  terms_agreed: (value: boolean) => (value ? null : "Required by the CA"),
  eab_hmac_key: (value: string) =>
    /^[A-Za-z0-9_-]*=*$/.test(value) ? null : "Must be base64url: letters, digits, - and _",
};
