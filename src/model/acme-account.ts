// An account at a certificate authority that speaks ACME (RFC 8555); knows nothing of orders.
import { type Static, Type as t } from "@sinclair/typebox";
import { destination, stays, storedSecret } from "./destination.ts";
import { flag, type Identity, KEPT_THERE, labels, name, nullable } from "./fields.ts";

/** Production directory of Let's Encrypt. */
export const LETS_ENCRYPT = "https://acme-v02.api.letsencrypt.org/directory";

const directoryUrl = (options: { readonly default?: string; readonly description?: string }) =>
  t.String({
    maxLength: 2048,
    pattern: "^https://[^\\s?#]+$",
    errorMessage: "must be an https:// address without query and fragment",
    ...options,
  });

/** Directories for trials of authorities that have one. */
const STAGING: Readonly<Record<string, string>> = {
  [LETS_ENCRYPT]: "https://acme-staging-v02.api.letsencrypt.org/directory",
  "https://dv.acme-v02.api.pki.goog/directory": "https://dv.acme-v02.test-api.pki.goog/directory",
};

const shared = {
  name: name("Unique name"),
  staging: destination(
    flag(
      false,
      "Order at the authority's directory for trials, whose certificates nobody trusts. Switched off, what was issued there is ordered anew",
    ),
  ),
  staging_directory_url: destination(
    nullable(
      directoryUrl({}),
      "Directory for trials; null: known of Let's Encrypt and Google Trust Services",
    ),
  ),
  directory_url: destination(
    directoryUrl({
      default: LETS_ENCRYPT,
      description: "Directory of the certificate authority",
    }),
  ),
  email: nullable(
    t.String({
      maxLength: 254,
      pattern: "^[^\\s@]+@[^\\s@]+$",
      errorMessage: "must be an e-mail address",
    }),
    "Where the authority writes to, if it does",
  ),
  eab_key_id: nullable(
    t.String({ minLength: 1, maxLength: 512 }),
    "Key id of an external account binding, for authorities that ask for one",
  ),
  profile: nullable(
    t.String({ minLength: 1, maxLength: 128 }),
    "Profile of certificates, for authorities that offer several",
  ),
  preferred_chain: nullable(
    t.String({ minLength: 1, maxLength: 256 }),
    "Common name of the issuer at the end of the chain that is preferred",
  ),
  ca_certificates: destination(
    t.String({
      default: "",
      maxLength: 262_144,
      description: "PEM: authorities to trust for the directory, in the place of the usual ones",
    }),
  ),
  terms_agreed: flag(false, "Whether you agree to the authority's terms of service"),
  enabled: flag(true, "Whether certificates are ordered with it"),
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
        description: "Private key of the account, encrypted; empty in a document: it has none yet",
      }),
    ),
    sealed_next_key: stays(
      SIGNS,
      nullable(
        t.String(),
        "Private key that the authority has been asked to take instead, encrypted; null: none",
      ),
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

/** Where the account orders at present; null: it is for trials, and nobody has said where. */
export function directoryOf(
  account: Pick<AcmeAccount, "directory_url" | "staging" | "staging_directory_url">,
): string | null {
  const { directory_url: url, staging, staging_directory_url: own } = account;
  return staging ? (own ?? STAGING[url] ?? null) : url;
}
