// A certificate that HTTPS listeners present; knows nothing of keys in use or of how authorities are talked to.
import { type Static, Type as t } from "@sinclair/typebox";
import { stays } from "./destination.ts";
import {
  flag,
  group,
  type Identity,
  KEPT,
  labels,
  listOf,
  name,
  nullable,
  oneOf,
} from "./fields.ts";

const hostName = (description: string) =>
  t.String({
    maxLength: 253,
    pattern:
      "^(?:\\*\\.)?(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\\.)*[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$",
    errorMessage: "must be a host name, or one behind *.",
    description,
  });

/** How an authority can be shown that a name is ours. */
export const challengeTypes = ["http-01", "tls-alpn-01", "dns-01"] as const;
export type ChallengeType = (typeof challengeTypes)[number];

/** What counts for source `acme` only. */
const issuing = {
  acme_account_ids: listOf(
    t.String({ minLength: 1, maxLength: 128 }),
    "acme: accounts to order with, ids or names; the next one is tried when one fails. Empty: the oldest account that is enabled",
    10,
  ),
  challenge: oneOf(challengeTypes, {
    default: "http-01",
    description:
      "acme: how names are proved. http-01: over a plain listener; tls-alpn-01: over an https listener; dns-01: with a DNS provider, which wildcards need",
  }),
  dns_provider_id: nullable(
    t.String({ minLength: 1, maxLength: 128 }),
    "acme with dns-01: DNS provider, id or name. null: the one whose zones fit best",
  ),
  key_type: oneOf(["ecdsa", "rsa"], {
    default: "ecdsa",
    description: "acme: kind of the private key; ecdsa: P-256, rsa: 2048 bits",
  }),
  preferred_chain: nullable(
    t.String({ minLength: 1, maxLength: 256 }),
    "acme: common name of the issuer at the end of the chain that is preferred; null: as the account says",
  ),
  profile: nullable(
    t.String({ minLength: 1, maxLength: 128 }),
    "acme: profile, where the authority offers several; null: as the account says",
  ),
  reuse_key: flag(false, "acme: whether renewals keep the private key"),
  on_demand: nullable(
    group(
      {
        ask_url: t.String({
          default: "",
          maxLength: 2048,
          pattern: "^(?:https?://[^\\s#]+)?$",
          errorMessage: "must be an http:// or https:// address without fragment, or empty",
          description:
            "Asked with ?domain=NAME before anything is ordered: 200 allows it. Empty: every name that fits hosts",
        }),
        hosts: listOf(
          hostName("Host name or pattern"),
          "Names that may be asked for; required",
          200,
        ),
      },
      "Order a certificate when a client first asks for a name",
    ),
    "acme: certificates for names that are not listed, ordered when clients ask for them",
  ),
};

const shared = {
  name: name("Unique name"),
  source: oneOf(["upload", "self_signed", "acme"], {
    default: "upload",
    description:
      "upload: certificate and private_key are sent; self_signed: made here, for tests and local networks; acme: ordered from an authority and renewed in time",
  }),
  domains: listOf(
    hostName("Host name"),
    "Host names that it is used for. upload: read from the certificate when left out, and otherwise some of its names; self_signed and acme: required",
    200,
  ),
  ...issuing,
  enabled: flag(true, "Whether listeners present it"),
  ...labels,
};

const chain = t.String({
  maxLength: 262_144,
  description: "PEM: the certificate and those that lead to its issuer, in any order",
});

/** What clients send. */
export const certificateInput = t.Object(
  {
    ...shared,
    certificate: t.Optional(chain),
    private_key: t.Optional(
      t.String({
        maxLength: 65_536,
        writeOnly: true,
        description: `PEM, not encrypted. ${KEPT}`,
      }),
    ),
  },
  { additionalProperties: false, title: "Certificate" },
);

/** null: it has not been issued yet. */
const facts = {
  not_before: nullable(t.String({ format: "date-time" }), "RFC 3339: valid from"),
  not_after: nullable(t.String({ format: "date-time" }), "RFC 3339: valid until"),
  issuer: nullable(t.String(), "Distinguished name of who signed it"),
  fingerprint: nullable(t.String(), "SHA-256 of the certificate, hexadecimal"),
};

/** What is stored. */
export const certificateRecord = t.Object(
  {
    ...shared,
    certificate: nullable(chain, "PEM; null: it has not been issued yet"),
    sealed_key: stays(
      "it signs handshakes and requests for certificates",
      nullable(t.String(), "The private key, encrypted"),
    ),
    ...facts,
  },
  { additionalProperties: false },
);

export const certificateStatuses = [
  "pending",
  "ordering",
  "valid",
  "renewing",
  "failed",
  "expired",
] as const;
export type CertificateStatus = (typeof certificateStatuses)[number];

const time = (description: string) => nullable(t.String({ format: "date-time" }), description);

/** What the gateway adds for readers. */
export const certificateFacts = {
  ...facts,
  status: oneOf(certificateStatuses, {
    description:
      "pending: not issued, or not valid yet; ordering: being issued; renewing: valid, and a new one is on its way or tried again; failed: not issued, and the last attempt failed",
  }),
  last_error: nullable(t.String(), "Why the last attempt to have it issued failed"),
  attempts: t.Integer({ description: "Attempts since it was last issued" }),
  next_attempt_at: time("When it is ordered or renewed next; null: never"),
  renewal_window: nullable(
    t.Object({ start: t.String(), end: t.String() }),
    "When the authority wants it to be renewed, if it says so (RFC 9773)",
  ),
};

/** Why a certificate is taken back, with its number in RFC 5280 section 5.3.1. */
export const revocationReasons = {
  unspecified: 0,
  key_compromise: 1,
  affiliation_changed: 3,
  superseded: 4,
  cessation_of_operation: 5,
} as const;
export type RevocationReason = keyof typeof revocationReasons;

export const revocationInput = t.Object(
  {
    reason: oneOf(Object.keys(revocationReasons) as RevocationReason[], {
      default: "unspecified",
      description: "Why",
    }),
  },
  { additionalProperties: false, title: "Revocation" },
);

export type CertificateInput = Static<typeof certificateInput>;
export type Certificate = Readonly<Static<typeof certificateRecord>> & Identity;

/** One that can be presented. */
export type IssuedCertificate = Certificate & {
  readonly certificate: string;
  readonly sealed_key: string;
  readonly not_before: string;
  readonly not_after: string;
};

export const isIssued = (certificate: Certificate): certificate is IssuedCertificate =>
  certificate.certificate !== null && certificate.sealed_key !== null;
