// An account at an ACME CA (RFC 8555); knows nothing of orders.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineResource } from "./resource.ts";
import { destination, stays, storedSecret } from "./destination.ts";
import { flag, type Identity, KEPT_THERE, labels, name, nullable } from "./fields.ts";

/** Production directory of Let's Encrypt. */
const LETS_ENCRYPT = "https://acme-v02.api.letsencrypt.org/directory";

const directoryUrl = (options: { readonly default?: string; readonly description?: string }) =>
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

const shared = {
  name: name("Unique name"),
  staging: destination(
    flag(
      false,
      "Use the CA's staging directory, whose certificates clients do not trust. When switched off, the gateway replaces certificates that were issued there",
    ),
  ),
  staging_directory_url: destination(
    nullable(
      directoryUrl({}),
      "Staging directory; null: the well-known one, for Let's Encrypt and Google Trust Services",
    ),
  ),
  directory_url: destination(
    directoryUrl({
      default: LETS_ENCRYPT,
      description: "Directory URL of the CA",
    }),
  ),
  email: nullable(
    t.String({
      maxLength: 254,
      pattern: "^[^\\s@]+@[^\\s@]+$",
      errorMessage: "must be an e-mail address",
    }),
    "Contact address for notices from the CA",
  ),
  eab_key_id: nullable(
    t.String({ minLength: 1, maxLength: 512 }),
    "Key ID of an external account binding, for CAs that require one",
  ),
  profile: nullable(
    t.String({ minLength: 1, maxLength: 128 }),
    "Certificate profile, for CAs that offer several",
  ),
  preferred_chain: nullable(
    t.String({ minLength: 1, maxLength: 256 }),
    "Common name of the topmost issuer of the preferred chain",
  ),
  ca_certificates: destination(
    t.String({
      default: "",
      maxLength: 262_144,
      description: "PEM: CAs to trust for the directory, instead of the system's",
    }),
  ),
  terms_agreed: flag(false, "Whether you agree to the CA's terms of service"),
  enabled: flag(true, "Whether the gateway issues certificates with it"),
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
      }),
    ),
  },
  { additionalProperties: false, title: "ACME account" },
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
  api: { path: "/acme/accounts", tag: "ACME accounts", schema: "AcmeAccount" },
});
