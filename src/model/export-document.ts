// The configuration file of exports and imports, and which of its fields are secret; knows no encryption.
import { type Static, Type as t } from "@sinclair/typebox";
import type { CollectionName } from "./gateway-config.ts";

/** Counts up when an older program could not read what a newer one writes. */
export const DOCUMENT_FORMAT = 1;

/** Replaces secrets in a plain export. */
export const MASK = "***";

/** Management access: only in exports that are encrypted as a whole, and never restored by a revision. */
export const personalCollections = ["users", "tokens"] as const satisfies readonly CollectionName[];

/** Members of a configuration file beside collections and singletons. */
export const documentMembers = ["format", "program"] as const;

/** Merge, the default: nothing is deleted. Replace: objects that a collection of the file does not hold are deleted. */
export const importModes = ["merge", "replace"] as const;
export type ImportMode = (typeof importModes)[number];

/** Whether a member of a stored object holds secret material, whatever kind of object it is. */
export const isSecretField = (name: string): boolean =>
  name.startsWith("sealed") || name.endsWith("_hash");

/** Secret fields that are encrypted; the others are hashes. */
export const isSealedField = (name: string): boolean => name.startsWith("sealed");

/** A plain value instead of an encrypted one: the import seals it. */
const plainValue = t.Object({ plain: t.String() }, { additionalProperties: false });
export type PlainValue = Static<typeof plainValue>;

const hex = t.String({ pattern: "^[0-9a-f]{64}$", errorMessage: "must be a SHA-256" });

/** Management access, which is no part of the configuration. */
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

/** An export that is encrypted as a whole. The bounds limit the memory of an import. */
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
