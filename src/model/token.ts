// A named token for automation; knows nothing of requests.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineResource } from "./resource.ts";
import { stays } from "./destination.ts";
import {
  cidr,
  type FieldForm,
  flag,
  type Identity,
  labels,
  listOf,
  name,
  nullable,
  oneOf,
} from "./fields.ts";
import { roleForm, roles } from "./user.ts";

const shared = {
  name: name("Unique name", {
    help: "The program that uses it",
    example: "deploy-pipeline",
  }),
  role: oneOf(roles, {
    default: "viewer",
    description: "What the token may do",
    form: roleForm,
  }),
  expires_at: nullable(
    t.String({ format: "date-time" }),
    "RFC 3339; the gateway rejects it from then on; null: never",
    { title: "Expires", help: "The gateway then rejects it", group: "limits" },
  ),
  allowed_cidrs: listOf(cidr, "Client networks that may use it; empty: any", {
    form: {
      title: "Networks",
      help: "Accepted from these networks only. Empty: any",
      example: "10.0.0.0/8",
      group: "limits",
    },
  }),
  enabled: flag(true, "Whether it is accepted", { help: "Off: the gateway rejects it" }),
  ...labels,
};

/** Part of a token that identifies it. */
export const fingerprint = t.String({ description: "First 8 hexadecimal digits of the SHA-256" });

/** What clients send. */
export const tokenInput = t.Object(shared, {
  additionalProperties: false,
  title: "Token",
  form: {
    groups: [
      { id: "main", title: "Token" },
      { id: "limits", title: "Limits", text: "Restrictions of the token." },
      { id: "labels", title: "Notes" },
    ],
  } satisfies FieldForm,
});

/** What is stored: never the token itself. */
const tokenRecord = t.Object(
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

export const tokens = defineResource<Token>({
  word: "token",
  input: tokenInput,
  record: tokenRecord,
  nameField: "name",
  columns: {
    name: { of: (token) => token.name, isUnique: true },
    token_hash: { of: (token) => token.token_hash, isUnique: true },
  },
  api: {
    tag: "Tokens",
    schema: "Token",
    view: t.Object({
      fingerprint,
      last_used_at: t.Union([t.String({ format: "date-time", description: "When" }), t.Null()], {
        description: "Last use, accurate to the minute after a crash; null: never",
      }),
      token: t.Optional(t.String({ description: "Shown once, in the response that creates it" })),
    }),
    read: "admin",
    write: "admin",
  },
});
