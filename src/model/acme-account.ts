// An account at an ACME CA (RFC 8555); knows nothing of orders.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineResource } from "./resource.ts";
import { destination, stays, storedSecret } from "./destination.ts";
import {
  type FieldForm,
  flag,
  type Identity,
  KEPT_THERE,
  labels,
  name,
  nullable,
} from "./fields.ts";

/** Production directory of Let's Encrypt. */
const LETS_ENCRYPT = "https://acme-v02.api.letsencrypt.org/directory";

const directoryUrl = (options: {
  readonly default?: string;
  readonly description?: string;
  readonly form?: FieldForm;
}) =>
  t.String({
    maxLength: 2048,
    pattern: "^https://[^\\s?#]+$",
    errorMessage: "must be an https:// address without query and fragment",
    ...options,
  });

/** Staging directories of the CAs that have one. */
const STAGING: Readonly<Record<string, string>> = {
  [LETS_ENCRYPT]: "https://acme-staging-v02.api.letsencrypt.org/directory",
  "https://dv.acme-v02.api.pki.goog/directory": "https://dv.acme-v02.test-api.pki.goog/directory",
};

const form: FieldForm = {
  groups: [
    { id: "main", title: "CA" },
    { id: "contact", title: "Contact" },
    {
      id: "binding",
      title: "External account binding",
      text: "Credentials of CAs that require a registration first.",
      folded: true,
      summary: "None",
    },
    {
      id: "advanced",
      title: "Advanced",
      text: "Defaults for certificates that set nothing else, and the CA's own certificate.",
      folded: true,
      summary: "Defaults",
    },
    { id: "labels", title: "Name and notes" },
  ],
};

const shared = {
  name: name("Unique name", { group: "labels" }),
  staging: destination(
    flag(
      false,
      "Use the CA's staging directory, whose certificates clients do not trust. When switched off, the gateway replaces certificates that were issued there",
      {
        help: "Untrusted certificates with high rate limits, for tests. After you turn it off, the gateway requests trusted ones",
      },
    ),
  ),
  staging_directory_url: destination(
    nullable(
      directoryUrl({}),
      "Staging directory; null: the well-known one, for Let's Encrypt and Google Trust Services",
      {
        title: "Staging directory",
        help: "Empty: the well-known one, for Let's Encrypt and Google Trust Services",
        example: "https://ca.home.arpa/acme/staging/directory",
        when: { staging: [true] },
      },
    ),
  ),
  directory_url: destination(
    directoryUrl({
      default: LETS_ENCRYPT,
      description: "Directory URL of the CA",
      form: {
        title: "CA",
        help: "The CA that issues the certificates, or any other CA that supports ACME",
        options: {
          [LETS_ENCRYPT]: "Let's Encrypt",
          "https://acme.zerossl.com/v2/DV90": "ZeroSSL",
          "https://dv.acme-v02.api.pki.goog/directory": "Google Trust Services",
          "https://acme.ssl.com/sslcom-dv-ecc": "SSL.com",
        },
        other: "Directory",
        example: "https://ca.home.arpa/acme/acme/directory",
        order: -1,
      },
    }),
  ),
  email: nullable(
    t.String({
      maxLength: 254,
      pattern: "^[^\\s@]+@[^\\s@]+$",
      errorMessage: "must be an e-mail address",
    }),
    "Contact address for notices from the CA",
    {
      title: "E-mail address",
      help: "Contact for the CA, for example before a certificate expires",
      example: "you@example.com",
      group: "contact",
    },
  ),
  eab_key_id: nullable(
    t.String({ minLength: 1, maxLength: 512 }),
    "Key ID of an external account binding, for CAs that require one",
    { title: "EAB key id", help: "", group: "binding" },
  ),
  profile: nullable(
    t.String({ minLength: 1, maxLength: 128 }),
    "Certificate profile, for CAs that offer several",
    { help: "If the CA has several", example: "shortlived", group: "advanced" },
  ),
  preferred_chain: nullable(
    t.String({ minLength: 1, maxLength: 256 }),
    "Common name of the topmost issuer of the preferred chain",
    { help: "Common name of its root issuer", group: "advanced" },
  ),
  ca_certificates: destination(
    t.String({
      default: "",
      maxLength: 262_144,
      description: "PEM: CAs to trust for the directory, instead of the system's",
      form: {
        title: "Trusted CAs of the directory",
        help: "PEM, for a CA in your own network. Empty: the system's CAs",
        example: "-----BEGIN CERTIFICATE-----",
        input: "code",
        group: "advanced",
      },
    }),
  ),
  terms_agreed: flag(false, "Whether you agree to the CA's terms of service", {
    title: "I agree to the CA's terms of service",
    help: "",
    group: "contact",
  }),
  enabled: flag(true, "Whether the gateway issues certificates with it", {
    help: "Off: no certificates are requested with it",
    group: "labels",
  }),
  ...labels,
};

/** What clients send. */
export const acmeAccountInput = t.Object(
  {
    ...shared,
    eab_hmac_key: t.Optional(
      t.String({
        minLength: 1,
        maxLength: 1024,
        pattern: "^[A-Za-z0-9_-]+=*$",
        errorMessage: "must be base64url",
        writeOnly: true,
        description: `Key of the external account binding. ${KEPT_THERE}`,
        form: {
          title: "EAB HMAC key",
          help: "Stored encrypted and never shown. Empty: unchanged",
          group: "binding",
        },
      }),
    ),
  },
  { additionalProperties: false, title: "ACME account", form },
);

const SIGNS = "it signs requests, each for one address (RFC 8555 section 6.4)";

/** What is stored. */
export const acmeAccountRecord = t.Object(
  {
    ...shared,
    sealed_key: stays(
      SIGNS,
      t.String({
        default: "",
        description: "Private key of the account, encrypted; empty in an export: it has none yet",
      }),
    ),
    sealed_next_key: stays(
      SIGNS,
      nullable(t.String(), "New private key of a key rollover in progress, encrypted; null: none"),
    ),
    // It signs as well, but unlike a private key it may be short enough to be guessed from what it has signed.
    sealed_eab_key: storedSecret(
      "eab_hmac_key",
      nullable(t.String(), "Key of the external account binding, encrypted"),
    ),
  },
  { additionalProperties: false },
);

export type AcmeAccountInput = Static<typeof acmeAccountInput>;
export type AcmeAccount = Readonly<Static<typeof acmeAccountRecord>> & Identity;

/** The directory in use; null: `staging` is set and no staging directory is known. */
export function directoryOf(
  account: Pick<AcmeAccount, "directory_url" | "staging" | "staging_directory_url">,
): string | null {
  const { directory_url: url, staging, staging_directory_url: own } = account;
  return staging ? (own ?? STAGING[url] ?? null) : url;
}

export const acmeAccounts = defineResource<AcmeAccount>({
  word: "ACME account",
  input: acmeAccountInput,
  record: acmeAccountRecord,
  nameField: "name",
  sendsSecrets: true,
  api: { path: "acme/accounts", tag: "ACME accounts", schema: "AcmeAccount" },
});
