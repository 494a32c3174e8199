// A named token for automation; knows nothing of requests.
import { type Static, Type as t } from "@sinclair/typebox";
import { stays } from "./destination.ts";
import { flag, type Identity, labels, listOf, name, nullable, oneOf } from "./fields.ts";
import { roles } from "./user.ts";

const shared = {
  name: name("Unique name"),
  role: oneOf(roles, { default: "viewer", description: "What the token may do" }),
  expires_at: nullable(
    t.String({ format: "date-time" }),
    "RFC 3339; the gateway rejects it from then on; null: never",
  ),
  allowed_cidrs: listOf(
    t.String({ minLength: 1, maxLength: 64 }),
    "Client networks that may use it; empty: any",
  ),
  enabled: flag(true, "Whether it is accepted"),
  ...labels,
};

/** What clients send. */
export const tokenInput = t.Object(shared, { additionalProperties: false, title: "Token" });

/** What is stored: never the token itself. */
export const tokenRecord = t.Object(
  {
    ...shared,
    token_hash: stays(
      "it is only compared with what clients send",
      t.String({ description: "SHA-256 of the token, hexadecimal" }),
    ),
  },
  { additionalProperties: false },
);

export type TokenInput = Static<typeof tokenInput>;
export type Token = Readonly<Static<typeof tokenRecord>> & Identity;
