// Settings of single sign-on with OpenID Connect; knows nothing of the protocol.
import { type Static, Type as t } from "@sinclair/typebox";
import { destination, storedSecret } from "./destination.ts";
import { type FieldForm, flag, KEPT_THERE, listOf, nullable, oneOf } from "./fields.ts";
import { roles } from "./user.ts";

const url = (description: string, form: FieldForm) =>
  t.String({
    default: "",
    maxLength: 2048,
    pattern: "^(?:https?://[^\\s?#]+)?$",
    errorMessage: "must be an http:// or https:// address without query and fragment",
    description,
    form,
  });

/** What a client must have before it can be used. */
const whenEnabled = { enabled: [true] };

const shared = {
  enabled: flag(false, "Whether users can sign in with it", {
    help: "Turn it on after a successful test. Open sign-in pages show the button after a reload",
    group: "status",
  }),
  issuer: destination(
    url("Issuer URL of the identity provider; discovery adds /.well-known/openid-configuration", {
      help: "Issuer URL exactly as the provider publishes it, including a trailing slash",
      example: "https://id.example.com",
      isNeeded: whenEnabled,
    }),
  ),
  client_id: t.String({
    default: "",
    maxLength: 512,
    description: "Client ID at the provider",
    form: { title: "Client ID", help: "As registered at the provider", isNeeded: whenEnabled },
  }),
  token_auth: oneOf(["basic", "post"], {
    default: "basic",
    description: "How the client secret is sent: client_secret_basic or client_secret_post",
    form: {
      title: "Client authentication",
      help: "",
      options: {
        basic: "Header (client_secret_basic), as most providers require",
        post: "Body (client_secret_post)",
      },
      group: "advanced",
    },
  }),
  scopes: t.Array(
    t.String({ minLength: 1, maxLength: 128, pattern: "^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$" }),
    {
      default: ["openid", "email", "profile"],
      maxItems: 50,
      description: "Scopes to request; openid is always among them",
      form: {
        help: "OAuth scopes; some providers require one more for groups",
        group: "advanced",
      },
    },
  ),
  role_claim: t.String({
    default: "",
    maxLength: 256,
    description:
      "Claim of the ID token that holds the role or groups, dots for nested ones; empty: none",
    form: {
      title: "Groups claim",
      help: "Such as groups or realm_access.roles. Empty: no roles from the provider",
      example: "groups",
      group: "users",
      order: 1,
    },
  }),
  role_map: t.Record(
    t.String({ minLength: 1, maxLength: 256 }),
    oneOf(roles, { description: "Role" }),
    {
      default: {},
      description: "Role for each value of role_claim; of several, the highest",
      form: {
        title: "Roles by group",
        help: "The highest role of all groups applies, at each sign-in",
        group: "users",
        order: 2,
      },
    },
  ),
  default_role: nullable(
    oneOf(roles, { description: "Role" }),
    "Role of users without a match in role_map; null: sign-in is denied",
    {
      help: "",
      options: {
        null: "None: sign-in is denied",
        viewer: "viewer",
        editor: "editor",
        admin: "admin",
      },
      group: "users",
      order: 3,
    },
  ),
  allowed_domains: listOf(
    t.String({ minLength: 1, maxLength: 253 }),
    "Domains of e-mail addresses that may sign in; empty: any",
    {
      form: {
        title: "Domains",
        help: "Allowed domains of e-mail addresses. Empty: any",
        example: "example.com",
        group: "users",
      },
    },
  ),
  auto_provision: flag(false, "Whether to create a user at the first sign-in", {
    title: "Create users automatically",
    help: "At their first sign-in. Off: only existing users can sign in, matched by e-mail address",
    group: "users",
    order: -1,
  }),
  button_label: t.String({
    default: "Single sign-on",
    maxLength: 64,
    description: "Text of the button",
    form: { title: "Button text", help: "On the sign-in page", group: "advanced" },
  }),
};

const secretReference = t.Object(
  { $secret: t.String({ minLength: 1, maxLength: 128, description: "Name of a secret" }) },
  { additionalProperties: false },
);

const ssoForm: FieldForm = {
  groups: [
    { id: "main", title: "Identity provider" },
    { id: "users", title: "Users and roles", text: "Allowed users and their roles." },
    {
      id: "advanced",
      title: "Advanced",
      text: "Button, scopes and client authentication.",
      folded: true,
      summary: "Defaults",
    },
    { id: "status", title: "Status" },
  ],
};

/** What clients send. */
export const ssoInput = t.Object(
  {
    ...shared,
    client_secret: t.Optional(
      t.Union([t.String({ maxLength: 4096 }), secretReference, t.Null()], {
        writeOnly: true,
        description: `A text, or a reference to a secret; null: none (public client). ${KEPT_THERE}`,
        form: { help: "Stored encrypted and never shown. Empty: none (public client)" },
      }),
    ),
  },
  { additionalProperties: false, title: "Sso", form: ssoForm },
);

/** What is stored. */
export const ssoRecord = t.Object(
  {
    ...shared,
    client_secret: storedSecret(
      "client_secret",
      t.Union(
        [
          t.Object({ sealed: t.String() }, { additionalProperties: false }),
          secretReference,
          t.Null(),
        ],
        { default: null, description: "Encrypted, or a reference" },
      ),
    ),
  },
  { additionalProperties: false },
);

export type SsoInput = Static<typeof ssoInput>;
export type Sso = Readonly<Static<typeof ssoRecord>> & { readonly updated_at: string };
