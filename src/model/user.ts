// A user of the management API: who may change the gateway; knows nothing of sessions or of how passwords are hashed.
import { type Static, Type as t } from "@sinclair/typebox";
import { defineResource } from "./resource.ts";
import { stays } from "./destination.ts";
import { type FieldForm, flag, type Identity, KEPT, labels, nullable, oneOf } from "./fields.ts";

/** From the least to the most. */
export const roles = ["viewer", "editor", "admin"] as const;
export type Role = (typeof roles)[number];

/** The input of a role, with what each may do. */
export const roleForm: FieldForm = {
  help: "",
  options: {
    viewer: "Reads everything except secrets.",
    editor: "Also changes traffic objects: applications, services, routes, certificates.",
    admin: "Full access, including users, tokens, single sign-on, secrets, listeners and settings.",
  },
  input: "radios",
};

/**
 * Addresses and domains are the same where these are equal. Byte for byte but for A to Z: with more letters folded, U+212A
 * would become k, and an address that belongs to one person would be that of another.
 */
export const emailKey = (text: string): string =>
  text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

const shared = {
  email: t.String({
    maxLength: 254,
    pattern: "^[^\\s@\\u0000-\\u001f\\u007f<>\"',;]{1,64}@[^\\s@\\u0000-\\u001f\\u007f<>\"',;]+$",
    errorMessage: "must be an e-mail address",
    description: "E-mail address to sign in with; unique, A to Z case-insensitive",
    form: {
      title: "E-mail address",
      help: "Used to sign in; the gateway sends no mail to it",
      example: "ann@example.com",
    },
  }),
  name: t.String({
    minLength: 1,
    maxLength: 128,
    pattern: "^[^\\u0000-\\u001f\\u007f]*$",
    errorMessage: "must not hold control characters",
    description: "Display name",
    form: { help: "Display name, for example in the audit log", order: -1 },
  }),
  role: oneOf(roles, {
    description: "viewer reads, editor changes traffic, admin changes access and settings as well",
    form: { ...roleForm, group: "access" },
  }),
  enabled: flag(true, "Whether the user may sign in; turning it off ends every session", {
    help: "Off: the user cannot sign in, and every session ends at once",
    group: "access",
  }),
  ...labels,
};

/** What clients send. */
export const userInput = t.Object(
  {
    ...shared,
    password: t.Optional(
      t.String({
        maxLength: 1024,
        writeOnly: true,
        description: `At least 10 characters. A new user without one can sign in with SSO only. ${KEPT}`,
        form: {
          help: "At least 10 characters; not the name, the address or a common password",
          group: "password",
          isNewOnly: true,
        },
      }),
    ),
  },
  {
    additionalProperties: false,
    title: "User",
    form: {
      groups: [
        { id: "main", title: "User" },
        { id: "access", title: "Access" },
        {
          id: "password",
          title: "Password",
          text: "Initial password; the user can change it under Your account and set up a second factor there.",
        },
      ],
    } satisfies FieldForm,
  },
);

/** What is stored. */
export const userRecord = t.Object(
  {
    ...shared,
    password_hash: stays(
      "it is only compared with what users send",
      nullable(t.String(), "argon2id in PHC form; null: no password"),
    ),
    sso: nullable(
      t.Object({ issuer: t.String(), subject: t.String() }, { additionalProperties: false }),
      "Identity of the user at the identity provider",
    ),
  },
  { additionalProperties: false },
);

const currentPassword = t.Optional(
  t.String({
    maxLength: 1024,
    description: "The user's own password; required from users who have one and change themselves",
  }),
);

/** What clients send to change a password. */
export const passwordChangeInput = t.Object(
  {
    current_password: currentPassword,
    password: t.String({ description: "The new password, 10 to 1024 characters" }),
  },
  { additionalProperties: false, title: "PasswordChange" },
);

/** What clients send to enable or disable the second factor. */
export const ownPasswordInput = t.Object(
  { current_password: currentPassword },
  { additionalProperties: false, title: "OwnPassword" },
);

/** What clients send to confirm their authenticator app. */
export const totpCodeInput = t.Object(
  { code: t.String({ maxLength: 64, description: "Current code of the authenticator app" }) },
  { additionalProperties: false, title: "TotpCode" },
);

export type UserInput = Static<typeof userInput>;
export type User = Readonly<Static<typeof userRecord>> & Identity;

export const users = defineResource<User>({
  word: "user",
  input: userInput,
  record: userRecord,
  nameField: "email",
  nameWord: "e-mail address",
  takenText: "belongs to another user already",
  columns: { email: { of: ({ email }) => emailKey(email), isUnique: true } },
  api: {
    tag: "Users",
    schema: "User",
    view: t.Object({
      has_password: t.Boolean({ description: "Whether the user can sign in with a password" }),
      totp_enabled: t.Boolean({ description: "Whether sign-in requires a second factor" }),
      sso_linked: t.Boolean({ description: "Whether the user has signed in with SSO" }),
    }),
    read: "admin",
    write: "admin",
  },
});
