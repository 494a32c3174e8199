// A credential of a consumer: how the gateway authenticates it; knows nothing of how clients present it.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineLargeResource, refersTo } from "./resource.ts";
import { stays } from "./destination.ts";
import { flag, type Identity, integer, KEPT, labels, nullable, oneOf } from "./fields.ts";

export const credentialTypes = ["key", "basic", "jwt", "hmac"] as const;
export type CredentialType = (typeof credentialTypes)[number];

/** Of `jwt`: the JWS algorithm (RFC 7518). Of `hmac`: the signature algorithm (RFC 9421 section 3.3). */
export const credentialAlgorithms = [
  "HS256",
  "HS384",
  "HS512",
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "hmac-sha256",
  "ed25519",
] as const;
export type CredentialAlgorithm = (typeof credentialAlgorithms)[number];

/** Whether both sides hold the same secret, instead of a key pair. */
export const isSymmetric = (algorithm: CredentialAlgorithm): boolean =>
  algorithm.startsWith("HS") || algorithm === "hmac-sha256";

const shared = {
  type: oneOf(credentialTypes, {
    description:
      "key: an API key; basic: user name and password; jwt: signs tokens; hmac: signs requests",
  }),
  name: nullable(
    t.String({ minLength: 1, maxLength: 128, pattern: "^[^\\u0000-\\u001f\\u007f]+$" }),
    "What it is for",
  ),
  identifier: nullable(
    t.String({
      minLength: 1,
      maxLength: 256,
      pattern: "^[\\x21-\\x39\\x3b-\\x7e](?:[\\x20-\\x39\\x3b-\\x7e]*[\\x21-\\x39\\x3b-\\x7e])?$",
      errorMessage: "must be printable ASCII without colons, and without spaces at its ends",
    }),
    "Unique for the type. basic: the user name, default the consumer's; jwt: the value of the key claim; hmac: the key ID; both default to a random one. Not for key",
  ),
  algorithm: nullable(
    oneOf(credentialAlgorithms, { description: "Algorithm" }),
    "jwt: default HS256; hmac: default hmac-sha256; not for the others",
  ),
  public_key: nullable(
    t.String({ minLength: 1, maxLength: 16_384 }),
    "PEM, for algorithms with a key pair",
  ),
  expires_at: nullable(
    t.String({ format: "date-time" }),
    "RFC 3339; the gateway rejects it from then on; null: never",
  ),
  enabled: flag(true, "Whether it is accepted"),
  ...labels,
};

/** What clients send. The consumer is named in the path or by `consumer_id`. */
export const credentialInput = t.Object(
  {
    consumer_id: refersTo(
      "consumers",
      t.String({ minLength: 1, maxLength: 128, description: "ID or username of the consumer" }),
      { isOwner: true, isFilter: true },
    ),
    ...shared,
    secret: t.Optional(
      t.String({
        minLength: 1,
        maxLength: 4096,
        writeOnly: true,
        description: `The key, the password or the shared secret. Without one on creation, the gateway generates it and shows it once. ${KEPT}`,
      }),
    ),
  },
  { additionalProperties: false, title: "Credential" },
);

const material = {
  secret_hash: stays(
    "it is only compared with what clients send",
    t.Union([t.String(), t.Null()], {
      default: null,
      description: "key: SHA-256, hexadecimal; basic: argon2id",
    }),
  ),
  sealed_secret: stays(
    "it only verifies what clients have signed",
    t.Union([t.String(), t.Null()], {
      default: null,
      description: "jwt and hmac with a shared secret: encrypted",
    }),
  ),
};

/** What is stored. */
const credentialRecord = t.Object(
  {
    consumer_id: t.String(),
    ...shared,
    prefix: nullable(t.String(), "The first characters of a key, to identify it"),
    ...material,
    previous: nullable(
      t.Object({ ...material, until: t.String() }, { additionalProperties: false }),
      "The secret from before the last rotation, and until when it stays valid",
    ),
  },
  { additionalProperties: false },
);

/** `POST /credentials/:id/rotate`. */
export const rotationInput = t.Object(
  {
    overlap_seconds: integer(0, {
      minimum: 0,
      maximum: 31_536_000,
      description: "Seconds for which the old secret stays valid beside the new one",
    }),
  },
  { additionalProperties: false, title: "Rotation" },
);

export type CredentialInput = Static<typeof credentialInput>;
export type Credential = Readonly<Static<typeof credentialRecord>> & Identity;

/** The lookup key of a credential, unique among all of them. */
export const lookupOf = (
  credential: Pick<Credential, "type" | "identifier" | "secret_hash">,
): string =>
  credential.type === "key"
    ? `key ${credential.secret_hash ?? ""}`
    : `${credential.type} ${credential.identifier ?? ""}`;

const ownerOf = ({ consumer_id: owner }: Credential): string => owner;

export const credentials = defineLargeResource<Credential>(
  {
    word: "credential",
    input: credentialInput,
    record: credentialRecord,
    nameField: null,
    identifiedBy: ["consumer_id", "type", "identifier", "name", "secret_hash"],
    columns: {
      consumer_id: { of: ownerOf, refersTo: "consumers" },
      lookup: { of: lookupOf, isUnique: true },
    },
    filters: { type: { description: "Only credentials of this type", of: ({ type }) => type } },
    api: {
      tag: "Credentials",
      schema: "Credential",
      view: t.Object({
        prefix: t.Union([t.String(), t.Null()], {
          description: "The first characters of a key, to identify it",
        }),
        previous_until: t.Union([t.String({ format: "date-time" }), t.Null()], {
          description: "Until when the secret from before the last rotation stays valid",
        }),
        last_used_at: t.Union([t.String({ format: "date-time" }), t.Null()], {
          description: "Last use, accurate to the minute after a crash; null: never",
        }),
        secret: t.Optional(
          t.String({ description: "Shown once, in the response that creates it" }),
        ),
      }),
    },
  },
  { indexes: [lookupOf, ownerOf], ownerIndex: ownerOf },
);
