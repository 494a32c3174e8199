// A certificate that HTTPS listeners present; knows nothing of keys in use or of ACME.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineResource, refersTo } from "./resource.ts";
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
import { asHostName } from "./host-name.ts";

const hostName = (description: string) =>
  asHostName(
    t.String({
      maxLength: 253,
      pattern:
        "^(?:\\*\\.)?(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\\.)*[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$",
      errorMessage: "must be a host name, or one behind *.",
      description,
    }),
  );

/** One of the names of a certificate: of the local CA also an address. */
const subjectName = asHostName(
  t.String({
    maxLength: 253,
    pattern:
      "^(?:(?:\\*\\.)?(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\\.)*[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)$",
    errorMessage: "must be a host name, or one behind *.",
    description: "Host name; local_ca: or IP address",
  }),
);

/** How the gateway proves control of a name to a CA (RFC 8555 section 8). */
export const challengeTypes = ["http-01", "tls-alpn-01", "dns-01"] as const;
export type ChallengeType = (typeof challengeTypes)[number];

/** Fields that only apply to the source `acme`. */
const issuing = {
  acme_account_ids: listOf(
    refersTo("acme_accounts", t.String({ minLength: 1, maxLength: 128 })),
    "acme: accounts to use, IDs or names; when one fails, the next one is tried. Empty: the oldest enabled account",
    { maxItems: 10 },
  ),
  challenge: oneOf(challengeTypes, {
    default: "http-01",
    description:
      "acme: challenge type. http-01: over a plain listener; tls-alpn-01: over an https listener; dns-01: with a DNS provider, which wildcards need",
  }),
  dns_provider_id: nullable(
    refersTo("dns_providers", t.String({ minLength: 1, maxLength: 128 })),
    "acme with dns-01: DNS provider, ID or name. null: the one with the longest matching zone",
  ),
  key_type: oneOf(["ecdsa", "rsa"], {
    default: "ecdsa",
    description: "acme: type of the private key; ecdsa: P-256, rsa: 2048 bits",
  }),
  preferred_chain: nullable(
    t.String({ minLength: 1, maxLength: 256 }),
    "acme: common name of the topmost issuer of the preferred chain; null: the account's",
  ),
  profile: nullable(
    t.String({ minLength: 1, maxLength: 128 }),
    "acme: profile, where the CA offers several; null: the account's",
  ),
  reuse_key: flag(false, "acme: whether renewals reuse the private key"),
  on_demand: nullable(
    group(
      {
        ask_url: t.String({
          default: "",
          maxLength: 2048,
          pattern: "^(?:https?://[^\\s#]+)?$",
          errorMessage: "must be an http:// or https:// address without fragment, or empty",
          description:
            "URL that the gateway requests with ?domain=NAME before it issues a certificate: 200 allows the name. Empty: every name that matches hosts",
        }),
        hosts: listOf(
          hostName("Host name or pattern"),
          "Names that may get a certificate; required",
          { maxItems: 200 },
        ),
      },
      "Issue a certificate when a client first requests a name",
    ),
    "acme: on-demand certificates for names that are not listed",
  ),
};

const shared = {
  name: name("Unique name"),
  source: oneOf(["upload", "self_signed", "acme", "local_ca"], {
    default: "upload",
    description:
      "upload: certificate and private_key are uploaded; self_signed: the gateway signs it, for tests and local networks; acme: issued by an ACME CA and renewed in time; local_ca: signed by the gateway's own CA and renewed in time",
  }),
  domains: listOf(
    subjectName,
    "Host names that it serves. upload: default: all names in the certificate, or a subset of them; otherwise required. local_ca: also IP addresses, for clients that send no name",
    { maxItems: 200 },
  ),
  ...issuing,
  enabled: flag(true, "Whether listeners present it"),
  ...labels,
};

const chain = t.String({
  maxLength: 262_144,
  description: "PEM: the certificate and its intermediates, in any order",
});

/** Whether the gateway issues new ones in time by itself. */
export const isRenewed = ({ source }: { readonly source: string }): boolean =>
  source === "acme" || source === "local_ca";

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
  issuer: nullable(t.String(), "Distinguished name of the issuer"),
  fingerprint: nullable(t.String(), "SHA-256 of the certificate, hexadecimal"),
};

/** Stored fields that the gateway issues or reads from the certificate. */
export const issuedFields: readonly string[] = ["certificate", "sealed_key", ...Object.keys(facts)];

/** What is stored. */
const certificateRecord = t.Object(
  {
    ...shared,
    certificate: nullable(chain, "PEM; null: it has not been issued yet"),
    sealed_key: stays(
      "it signs handshakes and certificate signing requests",
      nullable(t.String(), "The private key, encrypted"),
    ),
    ...facts,
  },
  { additionalProperties: false },
);

const certificateStatuses = [
  "pending",
  "ordering",
  "valid",
  "renewing",
  "failed",
  "expired",
] as const;
export type CertificateStatus = (typeof certificateStatuses)[number];

const time = (description: string) => nullable(t.String({ format: "date-time" }), description);

/** Read-only fields that the gateway adds. */
export const certificateFacts = {
  ...facts,
  status: oneOf(certificateStatuses, {
    description:
      "pending: not issued, or not valid yet; ordering: being issued; renewing: valid, and its renewal is in progress or being retried; failed: not issued, and the last attempt failed",
  }),
  last_error: nullable(t.String(), "Error of the last attempt to issue or renew it"),
  attempts: t.Integer({ description: "Attempts since the last success" }),
  next_attempt_at: time("Next attempt to issue or renew it; null: none"),
  renewal_window: nullable(
    t.Object({ start: t.String(), end: t.String() }),
    "Renewal window that the CA suggests (RFC 9773)",
  ),
};

/** Reasons for a revocation, with their codes in RFC 5280 section 5.3.1. */
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
      description: "Reason of the revocation",
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

export const certificates = defineResource<Certificate>({
  word: "certificate",
  input: certificateInput,
  rules: ({ challenge, domains, source, on_demand }, _, report) => {
    for (const [index, name] of domains.entries()) {
      if (name.includes(":") && source !== "local_ca")
        report(`domains[${index}]`, "must be a host name: only the local CA signs addresses");
    }
    if (source === "local_ca" && domains.length === 0) report("domains", "is required");
    if (source !== "acme") return;
    if (on_demand?.hosts.length === 0) report("on_demand.hosts", "is required");
    const wildcard = domains.findIndex((name) => name.startsWith("*."));
    if (challenge !== "dns-01" && wildcard >= 0)
      report(`domains[${wildcard}]`, 'a wildcard needs the challenge "dns-01"');
    if (domains.length === 0 && on_demand === null) report("domains", "is required");
  },
  record: certificateRecord,
  nameField: "name",
  api: { tag: "Certificates", schema: "Certificate", view: t.Object(certificateFacts) },
});
