// The document that a configuration is exported to and imported from, and what in it is secret; knows no encryption.
import { type Static, Type as t } from "@sinclair/typebox";
import type { CollectionName } from "./gateway-config.ts";

/** Counts up when an older program could not read what a newer one writes. */
export const DOCUMENT_FORMAT = 1;

/** Stands in a plain document where something secret was. */
export const MASK = "***";

/** Who may manage the gateway: only in documents that are encrypted as a whole, and never brought back by a revision. */
export const personalCollections = ["users", "tokens"] as const satisfies readonly CollectionName[];

/** Members of a document beside the collections and the objects that exist once. */
export const documentMembers = ["format", "program"] as const;

/** Merge, the default: nothing is deleted. Replace: what a named collection of the document does not hold is. */
export const importModes = ["merge", "replace"] as const;
export type ImportMode = (typeof importModes)[number];

/** Whether a member of a stored object holds secret material, whatever kind of object it is. */
export const isSecretField = (name: string): boolean =>
  name.startsWith("sealed") || name.endsWith("_hash");

/** Those that are encrypted; the others are hashes, from which nothing can be read. */
export const isSealedField = (name: string): boolean => name.startsWith("sealed");

/** A value in the clear, in the place of an encrypted one: sealed when it is imported. */
export const plainValue = t.Object({ plain: t.String() }, { additionalProperties: false });
export type PlainValue = Static<typeof plainValue>;

const hex = t.String({ pattern: "^[0-9a-f]{64}$", errorMessage: "must be a SHA-256" });

/** What belongs to management access and is no part of the configuration. */
export const accessParts = t.Object(
  {
    totp: t.Array(
      t.Object(
        {
          user_id: t.String({ format: "uuid" }),
          key: plainValue,
          confirmed: t.Boolean(),
          last_step: t.Integer({ minimum: 0 }),
          recovery_hashes: t.Array(hex, { maxItems: 100 }),
        },
        { additionalProperties: false },
      ),
      { default: [] },
    ),
    admin_token: t.Union(
      [
        t.Object(
          { token_hash: hex, created_at: t.String({ format: "date-time" }) },
          { additionalProperties: false },
        ),
        t.Null(),
      ],
      { default: null },
    ),
  },
  { additionalProperties: false },
);
export type AccessParts = Static<typeof accessParts>;

const base64 = (maxLength?: number) =>
  t.String({
    pattern: "^[A-Za-z0-9+/]*={0,2}$",
    errorMessage: "must be base64",
    ...(maxLength === undefined ? {} : { maxLength }),
  });

/** A document that is encrypted as a whole. The bounds keep an import from taking all of the memory. */
export const encryptedDocument = t.Object(
  {
    format: t.Literal(DOCUMENT_FORMAT),
    program: t.Optional(t.String()),
    encrypted: t.Object(
      {
        cipher: t.Literal("aes-256-gcm"),
        kdf: t.Literal("scrypt"),
        n: t.Integer({ minimum: 16_384, maximum: 262_144 }),
        r: t.Integer({ minimum: 8, maximum: 8 }),
        p: t.Integer({ minimum: 1, maximum: 4 }),
        salt: base64(64),
        nonce: base64(32),
        data: base64(),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);
export type EncryptedDocument = Static<typeof encryptedDocument>;
