// A certificate that HTTPS listeners present; knows nothing of keys in use or of certificate authorities.
import { type Static, Type as t } from "@sinclair/typebox";
import { flag, type Identity, labels, listOf, name, nullable, oneOf } from "./fields.ts";

const shared = {
  name: name("Unique name"),
  source: oneOf(["upload", "self_signed"], {
    default: "upload",
    description:
      "upload: certificate and private_key are sent; self_signed: made here, for tests and local networks",
  }),
  domains: listOf(
    t.String({
      maxLength: 253,
      pattern:
        "^(?:\\*\\.)?(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\\.)*[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$",
      errorMessage: "must be a host name, or one behind *.",
      description: "Host name",
    }),
    "Host names that it is used for. upload: read from the certificate when left out, and otherwise some of its names; self_signed: required",
    200,
  ),
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
        description: "Write-only PEM, not encrypted. Absent: it stays as it is",
      }),
    ),
  },
  { additionalProperties: false, title: "Certificate" },
);

const facts = {
  not_before: t.String({ format: "date-time", description: "RFC 3339: valid from" }),
  not_after: t.String({ format: "date-time", description: "RFC 3339: valid until" }),
  issuer: t.String({ description: "Distinguished name of who signed it" }),
  fingerprint: t.String({ description: "SHA-256 of the certificate, hexadecimal" }),
};

/** What is stored. */
export const certificateRecord = t.Object(
  {
    ...shared,
    certificate: chain,
    sealed_key: t.String({ description: "The private key, encrypted" }),
    ...facts,
  },
  { additionalProperties: false },
);

/** What the gateway adds for readers. */
export const certificateFacts = {
  ...facts,
  status: oneOf(["valid", "expired", "pending"], {
    description: "pending: it is not valid yet",
  }),
  last_error: nullable(t.String(), "Why there is no valid certificate"),
};

export type CertificateInput = Static<typeof certificateInput>;
export type Certificate = Readonly<Static<typeof certificateRecord>> & Identity;
